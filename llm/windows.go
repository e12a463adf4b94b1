package llm

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// MinWindow and MaxWindow bound what an admin may set: with less, no system prompt
// with its functions would have room.
const (
	MinWindow = 4096
	MaxWindow = 100_000_000
)

// windowsJSON says how many tokens models take, as providers published it. What is
// not in it counts as unknown.
//
//go:embed windows.json
var windowsJSON []byte

type windowTable struct {
	AsOf       string         `json:"as_of"`
	Unit       string         `json:"unit"`
	Sources    []string       `json:"sources"`
	Exceptions []string       `json:"exceptions"`
	Windows    map[string]int `json:"windows"` // by the beginning of a model's name
}

// windows is read when the first window is asked for.
var windows = sync.OnceValue(func() windowTable {
	var t windowTable
	d := json.NewDecoder(bytes.NewReader(windowsJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		panic(fmt.Sprintf("windows.json: %v", err)) // it is ours, and a test reads it
	}
	return t
})

// TableWindow is how many tokens a model of that name takes, prompt
// and answer together; 0 is unknown.
func TableWindow(model string) int {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	all := windows().Windows
	for end := len(model); end > 0; end-- { // the longest first, and whole words only
		if end < len(model) && !strings.ContainsRune("-:@", rune(model[end])) {
			continue
		}
		if n, ok := all[model[:end]]; ok {
			return n
		}
	}
	return 0
}
