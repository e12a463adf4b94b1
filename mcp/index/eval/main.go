// Command eval measures how well the index finds tools.
//
// It uses corpora of public tools and of requests by other authors (testdata/README.md),
// and the same functions as the daemon: index.Replace, index.Search.
//
//	go run ./mcp/index/eval [-corpora DIR] [-floors]
//
// It prints tables in Markdown, the first with one row for each corpus. With -corpora it
// measures the corpora of a directory instead, each a folder with tools.jsonl and
// queries.dev.jsonl (or .gz). With -floors it exits 1 if a figure is below the project's
// threshold; times, which depend on a slow or a busy machine, are printed beside their
// thresholds and don't count.
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

func main() {
	dir := flag.String("corpora", "", "directory with the corpora instead of the embedded ones")
	floors := flag.Bool("floors", false, "exit 1 when a figure is below its floor")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "eval: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	low, err := run(os.Stdout, *dir)
	if err != nil {
		fmt.Fprintf(os.Stderr, "eval: %v\n", err)
		os.Exit(1)
	}
	if *floors && low > 0 {
		fmt.Fprintf(os.Stderr, "eval: %d figures are below their floor\n", low)
		os.Exit(1)
	}
}

// run prints the whole report and returns how many figures are below their threshold.
func run(w io.Writer, dir string) (low int, err error) {
	all, err := loadAll(dir)
	if err != nil {
		return 0, err
	}
	out, err := printQuality(w, all)
	if err != nil {
		return 0, err
	}
	figures := out.floors()
	if c := find(all, "mcp"); c != nil {
		var large strings.Builder // its variant is printed first
		more, err := printLarge(&large, all, out)
		if err != nil {
			return 0, err
		}
		printVariants(w, out)
		fmt.Fprint(w, large.String())
		figures = append(figures, more...)
		if len(c.Dense) > 0 {
			fused, err := printFusion(w, c)
			if err != nil {
				return 0, err
			}
			figures = append(figures, fused...)
		}
	}
	if err := printSizes(w, all); err != nil {
		return 0, err
	}
	learned, err := printReplay(w, all)
	if err != nil {
		return 0, err
	}
	figures = append(figures, learned...)
	refusals, err := printRefusal(w, all)
	if err != nil {
		return 0, err
	}
	figures = append(figures, refusals...)
	fsys, err := files(dir)
	if err != nil {
		return 0, err
	}
	if _, err := fs.Stat(fsys, "toolbox/tools.jsonl"); err == nil {
		served, err := printToolbox(w, fsys)
		if err != nil {
			return 0, err
		}
		figures = append(figures, served...)
	}
	if err := leftOut(w, all); err != nil {
		return 0, err
	}
	return printFloors(w, figures), nil
}
