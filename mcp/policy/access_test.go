package policy

import (
	"fmt"
	"testing"

	"nize/store"
)

// BenchmarkUsable is what a search pays for each tool that it looks at.
func BenchmarkUsable(b *testing.B) {
	s := store.Server{Name: "box", Visibility: []string{"user:01ARZ3NDEKTSV4RRFFQ69G5FAV", "all"}}.Normal()
	v := &View{by: store.Caller{User: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Role: store.Member}, grants: []store.Grant{{Tool: "box:other", Deny: true}}}
	v.selectRules()
	var tools []*Tool
	for i := range 1000 {
		tools = append(tools, NewTool(store.Tool{Server: "box", Name: fmt.Sprintf("tool_%d", i), State: store.ToolAccepted, Pin: "p", Accepted: "p"}, &s))
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, t := range tools {
			if !v.Usable(t) {
				b.Fatal("not usable")
			}
		}
	}
}
