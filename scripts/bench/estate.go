package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/store"
)

const (
	estatePeople  = 1000
	estateServers = 500
	estateTools   = 10_000
	estateRuns    = 7 // of each command
)

// estateCommands are timed on a daemon of a big team. Those that print thousands of lines
// have no limit.
var estateCommands = []struct {
	args string
	long bool // it prints a line for each of thousands
}{
	{"status", false},
	{"servers list", false},
	{"servers show system-250", false},
	{"tools search invoice", false},
	{"tools show system-250:" + "TOOL", false},
	{"tools domains", false},
	{"tools why system-250:TOOL --user person-500", false},
	{"tools list --server system-250", false},
	{"tools list", true},
	{"users list", false},
	{"users show person-500", false},
	{"groups list", false},
	{"tokens list", false},
	{"approvals list", false},
	{"config list", false},
	{"audit", false},
	{"usage", false},
	{"servers show --generate-shell-completion", false},
}

// estate measures each command, as a whole process, with 1,000 people, 500 servers and
// 10,000 tools.
func (b *bench) estate(ctx context.Context) (err error) {
	batches := split(estateTools, estateTools/estateServers)
	up, err := startUpstream(ctx, "", batches...)
	if err != nil {
		return err
	}
	defer up.kill()
	d, err := b.startNized(ctx, "estate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := errors.Join(d.name(ctx, estatePeople), d.register(ctx, up, 0, len(batches))); err != nil {
		return err
	}
	tool := generate(250 * estateTools / estateServers).name
	for _, c := range estateCommands {
		args := strings.Fields(strings.ReplaceAll(c.args, "TOOL", tool))
		took, printed, err := b.whole(ctx, d, args)
		if err != nil {
			return err
		}
		r := row{what: fmt.Sprintf("`nizectl %s`, 1,000 people, 500 servers, 10,000 tools", c.args), value: millis(took), unit: "ms", reference: fmt.Sprintf("%d lines", printed)}
		if !c.long {
			r.floor, r.aim = 20, 8
		}
		b.table.add(r)
	}
	return nil
}

// whole returns how long a nizectl command takes as a process, and how many lines it
// prints.
func (b *bench) whole(ctx context.Context, d *nized, args []string) (took time.Duration, lines int, err error) {
	var out bytes.Buffer
	took, err = p50(ctx, estateRuns, func(ctx context.Context, _ int) error {
		out.Reset()
		cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "nizectl"), args...)
		cmd.Env = []string{"NIZE_SOCKET=" + d.api.Socket, "HOME=" + b.dir}
		cmd.Stdout = &out
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("nizectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(said.Bytes()))
		}
		return nil
	})
	return took, bytes.Count(out.Bytes(), []byte("\n")), err
}

// name creates people, sixteen at a time.
func (d *nized) name(ctx context.Context, people int) error {
	numbers := make(chan int)
	errs := make(chan error, people) // one for each
	var adding sync.WaitGroup
	for range 16 {
		adding.Go(func() {
			for i := range numbers {
				if _, err := api.AddUser.Call(ctx, d.api, api.AddUserRequest{Name: fmt.Sprintf("person-%d", i), Role: store.Member}); err != nil {
					errs <- fmt.Errorf("naming person %d: %w", i, err)
				}
			}
		})
	}
	for i := range people {
		numbers <- i
	}
	close(numbers)
	adding.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}
