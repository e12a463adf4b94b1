// Command eval measures how well the index finds tools, on corpora of public
// tools and of requests that others wrote (testdata/README.md), by the same
// door as the daemon: index.Replace, index.Search.
//
//	go run ./mcp/index/eval [-corpora DIR] [-floors] [-ablate]
//
// It prints tables in Markdown. With -floors it exits 1 when a figure is below
// the floor that the project holds itself to; with -ablate it also prints what
// each signal is worth, family by family.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
)

func main() {
	dir := flag.String("corpora", "", "directory with the corpora instead of the embedded ones")
	floors := flag.Bool("floors", false, "exit 1 when a figure is below its floor")
	ablate := flag.Bool("ablate", false, "print what each signal is worth")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "eval: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	low, err := run(os.Stdout, *dir, *ablate)
	if err != nil {
		fmt.Fprintf(os.Stderr, "eval: %v\n", err)
		os.Exit(1)
	}
	if *floors && low > 0 {
		fmt.Fprintf(os.Stderr, "eval: %d figures are below their floor\n", low)
		os.Exit(1)
	}
}

// run prints the whole report and returns how many figures are below their floor.
func run(w io.Writer, dir string, ablate bool) (low int, err error) {
	fsys, err := files(dir)
	if err != nil {
		return 0, err
	}
	var all []*corpus
	for _, name := range corpusNames {
		c, err := load(fsys, name)
		if err != nil {
			return 0, fmt.Errorf("loading the corpora: %w", err)
		}
		all = append(all, c)
	}
	figures, err := printQuality(w, all)
	if err != nil {
		return 0, err
	}
	if err := printThreshold(w, all); err != nil {
		return 0, err
	}
	large, err := printLarge(w, all)
	if err != nil {
		return 0, err
	}
	if err := printSizes(w, all[0]); err != nil {
		return 0, err
	}
	fused, err := printFusion(w, all[0])
	if err != nil {
		return 0, err
	}
	learned, err := printReplay(w, all)
	if err != nil {
		return 0, err
	}
	figures = slices.Concat(figures, large, fused, learned)
	if ablate {
		if err := printAblation(w, all); err != nil {
			return 0, err
		}
	}
	return printFloors(w, figures), nil
}
