package indexer

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"testing"

	"nize/mcp/scan"
	"nize/store"
)

// TestGateRemembersWholeDefinitions: the gate returns a remembered pin only for a
// definition whose every pinned field is the same.
func TestGateRemembersWholeDefinitions(t *testing.T) {
	g := &Gate{ToolIDs: func(context.Context) ([]string, error) { return nil, nil }, NewDefinition: func() {}, Log: slog.New(slog.DiscardHandler)}
	changed := 0
	for f := range reflect.TypeFor[store.Tool]().Fields() {
		var tool store.Tool
		switch v := reflect.ValueOf(&tool).Elem().FieldByIndex(f.Index); v.Interface().(type) {
		case string:
			v.SetString("x")
		case json.RawMessage:
			v.SetBytes([]byte(`{"x":1}`))
		case store.Annotations:
			tool.Annotations.Title = "x"
		default:
			continue
		}
		want, _ := scan.Gate{}.Pin(store.Server{}, "", tool)
		g.Pin(store.Server{}, "", store.Tool{})
		if got, _ := g.Pin(store.Server{}, "", tool); got != want {
			t.Errorf("%s: pin %.12s, want %.12s", f.Name, got, want)
		}
		changed++
	}
	if changed < 8 {
		t.Errorf("only %d fields were changed", changed)
	}
}
