// Command bench measures the figures that nize guarantees, each beside its limit, and
// prints them as a table.
//
// It runs the real bin/nized as a separate process with the SDK's client, and beside it, in
// the same run and round by round, the same upstream server directly: on a busy machine
// ratios are reliable where times aren't. The upstream is this program again, as a separate
// process. All protocols are 2025-11-25, stateful, over loopback HTTP; results are 100
// bytes.
//
//	go run ./scripts/bench [-bin DIR] [-rounds N] [-events N] [-only PART] [-floors]
//
// With -floors it exits with 1 if a figure that does not depend on the machine (a ratio, a
// count, a size) misses its limit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	if spec := os.Getenv(upstreamEnv); spec != "" {
		if err := serveUpstream(spec); err != nil {
			fmt.Fprintf(os.Stderr, "bench upstream: %v\n", err)
			os.Exit(1)
		}
		return
	}
	if kind := os.Getenv(hostileEnv); kind != "" {
		if err := serveHostile(kind); err != nil {
			os.Exit(1)
		}
		return
	}
	if spec := os.Getenv(loopEnv); spec != "" {
		if err := serveLoop(spec); err != nil {
			fmt.Fprintf(os.Stderr, "bench loop: %v\n", err)
			os.Exit(1)
		}
		return
	}
	if spec := os.Getenv(crowdEnv); spec != "" {
		if err := serveCrowd(spec); err != nil {
			fmt.Fprintf(os.Stderr, "bench crowd: %v\n", err)
			os.Exit(1)
		}
		return
	}
	b := bench{}
	flag.StringVar(&b.bin, "bin", "bin", "`DIR` with nized and nizectl")
	flag.IntVar(&b.rounds, "rounds", 9, "rounds of direct and gateway calls")
	flag.StringVar(&b.only, "only", "", "measure this `PART` alone, such as \"a big team\"")
	flag.IntVar(&b.events, "events", 1_000_000, "`N` audit events to measure the trail with; 0 leaves that out")
	floors := flag.Bool("floors", false, "exit 1 when a ratio, a count or a size misses its floor")
	flag.Parse()
	if flag.NArg() > 0 || b.rounds < 1 || b.events < 0 {
		fmt.Fprintln(os.Stderr, "usage: bench [-bin DIR] [-rounds N] [-events N] [-only PART] [-floors]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, &b)
	if err == nil && *floors {
		err = b.table.missed()
	}
	if err != nil {
		stop()
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// run measures the parts, one after the other.
func run(ctx context.Context, b *bench) (err error) {
	if b.bin, err = filepath.Abs(b.bin); err != nil {
		return fmt.Errorf("finding the programs: %w", err)
	}
	for _, name := range []string{"nized", "nizectl"} {
		if _, err := os.Stat(filepath.Join(b.bin, name)); err != nil {
			return fmt.Errorf("%w: build the programs first, with make build", err)
		}
	}
	if b.dir, err = os.MkdirTemp("", "nize-bench."); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()

	parts := []struct {
		name string
		run  func(context.Context) error
	}{
		{"calls", b.calls},
		{"calls over a PostgreSQL", b.postgres},
		{"what a call costs on disk", b.storage},
		{"an upstream that comes back", b.comesBack},
		{"under fire", b.fire},
		{"a flood", b.flood},
		{"a crowd", b.crowded},
		{"discovery", b.discovery},
		{"the index by itself", b.index},
		{"start", b.start},
		{"restart", b.restart},
		{"traces", b.tracing},
		{"programs", b.programs},
		{"rounds", b.programRounds},
		{"a big team", b.estate},
		{"a long audit trail", b.trail},
		{"documents", b.documents},
		{"usage", b.usage},
		{"curves", b.curves},
		{"asks", b.asks},
		{"a chat", b.chat},
		{"the chat page", b.page},
		{"the chat page in a browser", b.paint},
		{"signing in", b.signIn},
		{"a directory", b.directory},
	}
	for _, p := range parts {
		if b.only != "" && b.only != p.name {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s\n", p.name)
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("measuring %s: %w", p.name, err)
		}
	}
	fmt.Printf("%s\n\n", machine())
	b.table.print(os.Stdout)
	return nil
}
