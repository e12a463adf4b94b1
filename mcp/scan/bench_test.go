package scan

import (
	"encoding/json"
	"fmt"
	"testing"

	"nize/store"
)

// BenchmarkDefinition is what a tool costs when its server lists it: the gate,
// the scan, the pin, and the comparison with the names of 5,000 others.
func BenchmarkDefinition(b *testing.B) {
	var ids []string
	for i := range 5000 {
		ids = append(ids, fmt.Sprintf("system:list_things_%d", i))
	}
	names := NewNames(ids)
	server := store.Server{Name: "box", Transport: store.HTTP, URL: "https://box.example/mcp"}
	tool := store.Tool{Server: "box", Name: "list_invoices", Description: "Lists invoices in the billing system. Results are sorted by the date of the last change.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","description":"Identifier of the entry."},"status":{"type":"string","enum":["open","pending","closed"],"description":"Only entries in this state."},"limit":{"type":"integer","minimum":1,"maximum":200,"default":50,"description":"How many entries at most."}}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if err := (Gate{}).Check(tool); err != nil {
			b.Fatal(err)
		}
		_, findings := Gate{}.Pin(server, "", tool)
		if findings = append(findings, Gate{}.Shadow("", tool, names)...); len(findings) > 0 {
			b.Fatal(findings)
		}
	}
}
