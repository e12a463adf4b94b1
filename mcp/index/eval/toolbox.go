package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"nize/mcp/index"
	"nize/store"
)

// toolboxRequests lists the files of requests to the example server: those that the weights
// were tuned with, harder ones that were looked at too, and those that were written before
// and not looked at. kept and refused are the least numbers.
var toolboxRequests = []struct {
	name          string
	kept, refused int
}{{"dev", 17, 19}, {"more", 24, 17}, {"heldout", 17, 19}}

// served is a request to the example server, with the tool that answers it or "" if there
// is none.
type served struct{ Query, Tool string }

// servedCount counts requests: those with a tool, those of them that returned the tool, and
// returned it first; those without a tool, and those of them that returned nothing.
type servedCount struct {
	with, kept, first int
	without, refused  int
	wrong             []string // the requests with another answer, and the answers
}

// leastScore is the default of index.min_similarity.
const leastScore = 0.4

// measureToolbox asks one file of requests of the example server.
func measureToolbox(fsys fs.FS, name string) (n servedCount, err error) {
	var tools []store.Tool
	err = lines(fsys, path.Join("toolbox", "tools.jsonl"), func(line []byte) error {
		var t struct {
			Name, Description string
			InputSchema       json.RawMessage `json:"input_schema"`
		}
		if err := json.Unmarshal(line, &t); err != nil {
			return err
		}
		tools = append(tools, store.Tool{Server: "toolbox", Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
		return nil
	})
	if err != nil {
		return n, err
	}
	x := index.New(index.Options{})
	defer x.Close()
	if err := x.Replace(context.Background(), store.Server{Name: "toolbox"}, tools); err != nil {
		return n, err
	}
	err = lines(fsys, path.Join("toolbox", "requests."+name+".jsonl"), func(line []byte) error {
		var r served
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		a, err := x.Search(context.Background(), index.Query{Text: r.Query, MinScore: leastScore})
		if err != nil {
			return err
		}
		at := slices.IndexFunc(a.Hits, func(h store.Hit) bool { return h.Tool.Name == r.Tool })
		ok := at >= 0
		if r.Tool == "" {
			n.without++
			if ok = len(a.Hits) == 0; ok {
				n.refused++
			}
		} else {
			n.with++
			if ok {
				n.kept++
			}
			if at == 0 {
				n.first++
			}
		}
		if !ok {
			line := r.Query + ":"
			for _, h := range slices.Concat(a.Hits, a.Near) {
				line += fmt.Sprintf(" %s %.2f", h.Tool.Name, h.Score)
			}
			n.wrong = append(n.wrong, line)
		}
		return nil
	})
	return n, err
}

// printToolbox prints how many requests the example server answers and refuses.
func printToolbox(w io.Writer, fsys fs.FS) ([]figure, error) {
	fmt.Fprint(w, `
## The example server
Requests that nize-toolbox has a tool for, and requests that it has none for, at a least score of 0.4.

| requests | with a tool | kept | first | without | refused |
|---|---|---|---|---|---|
`)
	var out []figure
	for _, r := range toolboxRequests {
		n, err := measureToolbox(fsys, r.name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d |\n", r.name, n.with, n.kept, n.first, n.without, n.refused)
		out = append(out,
			figure{name: "toolbox, " + r.name + ": kept", value: float64(n.kept), floor: float64(r.kept)},
			figure{name: "toolbox, " + r.name + ": refused", value: float64(n.refused), floor: float64(r.refused)})
	}
	return out, nil
}
