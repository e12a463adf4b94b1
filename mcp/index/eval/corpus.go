package main

import (
	"bufio"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"nize/store"
)

//go:embed testdata
var embedded embed.FS

// corpusNames lists the corpora in the order of the report.
var corpusNames = []string{"mcp", "metatool", "toolbench", "bfcl", "refservers"}

// request is one request with the tools that answer it.
type request struct {
	ID     string
	Text   string
	Gold   []string // tool ids
	Source string
	Family string
}

// corpus is a set of servers and requests for their tools.
type corpus struct {
	Name     string
	Servers  []store.Server
	Tools    map[string][]store.Tool // by server
	Requests []request
	Dense    map[string][]string // request id → the first tools by a large embedding model
	Chinese  map[string]string   // request id → the request in Chinese
}

// count is the number of tools.
func (c *corpus) count() int {
	n := 0
	for _, ts := range c.Tools {
		n += len(ts)
	}
	return n
}

// files returns the directory of the corpora, or the embedded copy.
func files(dir string) (fs.FS, error) {
	if dir != "" {
		return os.DirFS(dir), nil
	}
	return fs.Sub(embedded, "testdata")
}

// loadAll reads the corpora of a directory, or the embedded ones for "". Those with known
// names come first.
func loadAll(dir string) ([]*corpus, error) {
	fsys, err := files(dir)
	if err != nil {
		return nil, err
	}
	folders, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("reading the corpora: %w", err)
	}
	names := slices.Clone(corpusNames)
	for _, f := range folders {
		if f.IsDir() && !slices.Contains(names, f.Name()) {
			names = append(names, f.Name())
		}
	}
	var all []*corpus
	for _, name := range names {
		c, err := load(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // not a corpus, or missing
		}
		if err != nil {
			return nil, fmt.Errorf("loading corpus %s: %w", name, err)
		}
		if len(c.Requests) > 0 {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no corpus in %q: each is a folder with tools.jsonl and queries.dev.jsonl", dir)
	}
	return all, nil
}

// find returns the corpus with that name, or nil.
func find(all []*corpus, name string) *corpus {
	if i := slices.IndexFunc(all, func(c *corpus) bool { return c.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// load reads one corpus.
func load(fsys fs.FS, name string) (*corpus, error) {
	c := &corpus{Name: name, Tools: make(map[string][]store.Tool), Dense: make(map[string][]string), Chinese: make(map[string]string)}
	ids := make(map[string]string)
	about := make(map[string]string)
	err := lines(fsys, path.Join(name, "tools.jsonl"), func(line []byte) error {
		var t struct {
			ID, Server, Name, Description string
			ServerDescription             string          `json:"server_description"`
			InputSchema                   json.RawMessage `json:"input_schema"`
		}
		if err := json.Unmarshal(line, &t); err != nil {
			return err
		}
		tool := store.Tool{Server: t.Server, Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, State: store.ToolAccepted}
		ids[t.ID] = tool.ID()
		about[t.Server] = t.ServerDescription
		c.Tools[t.Server] = append(c.Tools[t.Server], tool)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name, text := range about {
		c.Servers = append(c.Servers, store.Server{Name: name, About: store.About{Description: text}})
	}
	slices.SortFunc(c.Servers, func(a, b store.Server) int { return strings.Compare(a.Name, b.Name) })
	err = lines(fsys, path.Join(name, "queries.dev.jsonl"), func(line []byte) error {
		var q struct {
			ID, Query, Source string
			Gold              []string
		}
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		r := request{ID: q.ID, Text: q.Query, Source: q.Source, Family: family(q.Source)}
		for _, g := range q.Gold {
			r.Gold = append(r.Gold, ids[g])
		}
		c.Requests = append(c.Requests, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = lines(fsys, path.Join(name, "queries.zh.jsonl"), func(line []byte) error {
		var q struct{ ID, Query string }
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		c.Chinese[q.ID] = q.Query
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err = lines(fsys, path.Join(name, "azure.dense.dev.jsonl"), func(line []byte) error {
		var d struct {
			ID   string
			Top5 []string
		}
		if err := json.Unmarshal(line, &d); err != nil {
			return err
		}
		for _, id := range d.Top5 {
			c.Dense[d.ID] = append(c.Dense[d.ID], ids[id])
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return c, nil
}

// family returns the group in which a request is averaged.
func family(source string) string {
	switch {
	case source == "mongodb" || source == "chrome":
		return "mongo+chrome"
	case strings.HasPrefix(source, "livemcp"):
		return "livemcp"
	case strings.HasPrefix(source, "toolbench"):
		return "toolbench" // multi-step requests of one kind; one of its three parts has 13
	}
	return source
}

// lines calls each with each line of a file, plain or gzipped.
func lines(fsys fs.FS, name string, each func([]byte) error) error {
	var r io.Reader
	f, err := fsys.Open(name + ".gz")
	if err == nil {
		defer f.Close()
		if r, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("reading %s.gz: %w", name, err)
		}
	} else {
		plain, err := fsys.Open(name)
		if err != nil {
			return err
		}
		defer plain.Close()
		r = plain
	}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 4<<20)
	for n := 1; sc.Scan(); n++ {
		if err := each(sc.Bytes()); err != nil {
			return fmt.Errorf("%s, line %d: %w", name, n, err)
		}
	}
	return sc.Err()
}
