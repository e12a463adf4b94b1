package mcp

import (
	"fmt"
	"testing"

	"nize/store"
)

// BenchmarkUsable is what a search pays for each tool that it looks at.
func BenchmarkUsable(b *testing.B) {
	s := store.Server{Name: "box", Visibility: []string{"user:01ARZ3NDEKTSV4RRFFQ69G5FAV", "all"}}.Normal()
	v := &view{by: store.Caller{User: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Role: store.Member}, grants: []store.Grant{{Tool: "box:other", Deny: true}}}
	v.narrow()
	var tools []*entry
	for i := range 1000 {
		tools = append(tools, newEntry(store.Tool{Server: "box", Name: fmt.Sprintf("tool_%d", i), State: store.ToolAccepted, Pin: "p", Accepted: "p"}, &s))
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, e := range tools {
			if v.usable(e) != nil {
				b.Fatal("not usable")
			}
		}
	}
}
