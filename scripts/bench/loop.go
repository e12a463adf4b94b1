package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// loopEnv makes this program the loop that nized's rounds are compared with, so that its
// CPU is separate; its value is a [loopSpec] in JSON.
const loopEnv = "NIZE_BENCH_LOOP"

type loopSpec struct {
	Model string `json:"model"` // URLs
	Tool  string `json:"tool"`
}

// looped is the result of a number of its rounds.
type looped struct {
	P50 time.Duration `json:"p50"`
	CPU time.Duration `json:"cpu"` // of all of them
}

// serveLoop runs as many rounds as each line of its input says, sequentially.
func serveLoop(text string) error {
	var spec loopSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return fmt.Errorf("reading %s: %w", loopEnv, err)
	}
	ctx := context.Background()
	tool, err := connect(ctx, spec.Tool, "")
	if err != nil {
		return err
	}
	defer tool.close()
	model := loopModel(spec.Model)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var n int
		if _, err := fmt.Sscan(in.Text(), &n); err != nil {
			return fmt.Errorf("reading how many rounds: %w", err)
		}
		before, err := ownCPU()
		if err != nil {
			return err
		}
		took, err := p50(ctx, n, func(ctx context.Context, _ int) error {
			_, err := directRound(ctx, model, tool, nil, firstAsk)
			return err
		})
		if err != nil {
			return err
		}
		after, err := ownCPU()
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(looped{took, after - before}); err != nil {
			return fmt.Errorf("telling what came of them: %w", err)
		}
	}
	return in.Err()
}

func loopModel(url string) *openai.Client {
	config := openai.DefaultConfig("no-key")
	config.BaseURL = url + "/v1"
	return openai.NewClientWithConfig(config)
}

func ownCPU() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("reading the CPU used: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

// loop is a running loop process.
type loop struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func startLoop(ctx context.Context, spec loopSpec) (*loop, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the loop's addresses: %w", err)
	}
	cmd := exec.CommandContext(ctx, own)
	cmd.Env = append(os.Environ(), loopEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the loop: %w", err)
	}
	return &loop{cmd, in, json.NewDecoder(out)}, nil
}

// rounds makes it run n rounds.
func (l *loop) rounds(n int) (done looped, err error) {
	if _, err := fmt.Fprintln(l.in, n); err != nil {
		return done, fmt.Errorf("asking the loop for rounds: %w", err)
	}
	if err := l.out.Decode(&done); err != nil {
		return done, fmt.Errorf("reading what the loop's rounds came to: %w", err)
	}
	return done, nil
}

func (l *loop) stop() error {
	_ = l.in.Close() // which ends it
	if err := l.cmd.Wait(); err != nil {
		return fmt.Errorf("the loop ended: %w", err)
	}
	return nil
}
