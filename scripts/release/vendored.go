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
