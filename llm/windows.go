package llm

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// MinWindow and MaxWindow limit what an admin may set: with less, a system prompt with its
// functions would not fit.
const (
	MinWindow = 4096
	MaxWindow = 100_000_000
)

// windowsJSON has the context windows of models as published by providers. A model that is
// missing counts as unknown.
//
//go:embed windows.json
var windowsJSON []byte

type windowTable struct {
	AsOf       string         `json:"as_of"`
	Unit       string         `json:"unit"`
	Sources    []string       `json:"sources"`
	Exceptions []string       `json:"exceptions"`
	Windows    map[string]int `json:"windows"` // keyed by the beginning of a model's name
}

// windows is decoded when the first window is needed.
var windows = sync.OnceValue(func() windowTable {
	var t windowTable
	d := json.NewDecoder(bytes.NewReader(windowsJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		panic(fmt.Sprintf("windows.json: %v", err)) // the file is embedded and tested
	}
	return t
})

// TableWindow returns the context window of a model in tokens, for prompt and answer
// together; 0 if unknown.
func TableWindow(model string) int {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	all := windows().Windows
	for end := len(model); end > 0; end-- { // the longest prefix first, and only whole words
		if end < len(model) && !strings.ContainsRune("-:@", rune(model[end])) {
			continue
		}
		if n, ok := all[model[:end]]; ok {
			return n
		}
	}
	return 0
}
