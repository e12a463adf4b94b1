package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"nize/store"
	"nize/store/kv"
)

// A damaged database can crash the process that reads it, block it forever or fill its
// memory: a cycle of pages reads as an endless database. So Check runs in a child process
// whose stack, memory and time are bounded by the size of the file, and which exits with
// its parent.

const (
	// checkVar makes a process the child that checks the database at that path.
	checkVar = "NIZE_CHECK_DATABASE"

	// Exit codes of the child.
	checkFailed = 1 // the last line of its output has the reason
	checkOrphan = 3 // its parent exited
	checkInUse  = 5 // another process has the database open

	checkStack   = 64 << 20        // an intact tree of pages is about ten levels deep
	checkMemory  = 256 << 20       // and a little for each page:
	checkPerPage = 256             // bytes that bbolt keeps for each page
	checkTime    = 2 * time.Minute // and a little for each byte:
	checkSpeed   = 20 << 20        // bytes a second, on a slow disk
	maxProblems  = 5               // in the error
	maxProblem   = 500             // bytes of them
)

// CheckMain doesn't return in a process that [CheckInChild] started. A program that uses
// CheckInChild calls CheckMain first.
func CheckMain() {
	path := os.Getenv(checkVar)
	if path == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // returns when the parent exits
		os.Exit(checkOrphan)
	}()
	debug.SetMaxStack(checkStack)
	if fi, err := os.Stat(path); err == nil {
		go watchMemory(uint64(checkMemory + fi.Size()/int64(os.Getpagesize())*checkPerPage))
	}
	exitWith := func(err error) {
		switch {
		case errors.Is(err, store.ErrConflict):
			os.Exit(checkInUse)
		case err != nil:
			text := strings.TrimPrefix(err.Error(), "checking database "+path+": ")
			fmt.Println(store.Clip(strings.Join(strings.Fields(text), " "), maxProblem))
			os.Exit(checkFailed)
		}
		os.Exit(0)
	}
	exitWith(check(path, exitWith))
}

// watchMemory ends the child when it uses more than limit bytes. A limit of the operating
// system would end it without a message, and the race detector at once.
func watchMemory(limit uint64) {
	taken := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	for range time.Tick(20 * time.Millisecond) {
		if metrics.Read(taken); taken[0].Value.Uint64() > limit {
			fmt.Printf("%v: checking it takes more than %d MiB of memory\n", kv.ErrDamaged, limit>>20)
			os.Exit(checkFailed)
		}
	}
}

// CheckInChild is [Check] in a child process. The error is one line.
func CheckInChild(ctx context.Context, path string) error {
	if os.Getenv(checkVar) != "" {
		return errors.New("the program does not call bolt.CheckMain first, so it cannot check its database in a child process")
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the program to check the database with: %w", err)
	}
	patience := checkTime
	if fi, err := os.Stat(path); err == nil {
		patience += time.Duration(math.Ceil(float64(fi.Size())/checkSpeed)) * time.Second
	}
	return checkWith(ctx, exec.Command(program), path, patience)
}

func checkWith(ctx context.Context, cmd *exec.Cmd, path string, patience time.Duration) error {
	cmd.Env = append(cmd.Env, checkVar+"="+path)
	held, err := cmd.StdinPipe() // closed when this process exits, even if it is killed
	if err != nil {
		return fmt.Errorf("starting the check of the database: %w", err)
	}
	defer held.Close()
	var out lastBytes
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the check of the database: %w", err)
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }) // it may have exited
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	err = cmd.Wait()
	inTime := late.Stop()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &exit):
		return fmt.Errorf("checking the database: %w", err)
	case !inTime:
		return fmt.Errorf("%w: the check did not end within %s", kv.ErrDamaged, patience)
	case exit.ExitCode() == checkInUse:
		return fmt.Errorf("%w: another nized has the database open", store.ErrConflict)
	case exit.ExitCode() == checkFailed:
		return errors.New(out.line())
	}
	return fmt.Errorf("%w: it ended the process that read it (%w)", kv.ErrDamaged, err)
}

// lastBytes keeps the last bytes that are written to it.
type lastBytes []byte

func (l *lastBytes) Write(p []byte) (int, error) {
	*l = append(*l, p...)
	if over := len(*l) - 4<<10; over > 0 {
		*l = append((*l)[:0], (*l)[over:]...)
	}
	return len(p), nil
}

// line returns the last line.
func (l lastBytes) line() string {
	text := bytes.TrimSpace(l)
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}
