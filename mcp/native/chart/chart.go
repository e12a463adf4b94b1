// Package chart is the native tool show-chart: bars in clients with views, lines of text
// elsewhere.
package chart

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"nize/mcp/native"
	"nize/store"
)

//go:embed chart.html
var template string

const schema = `{"type":"object","properties":{
	"title":{"type":"string","maxLength":200,"description":"What the numbers are."},
	"unit":{"type":"string","maxLength":20,"description":"Of the numbers, such as EUR or ms."},
	"bars":{"type":"array","minItems":1,"maxItems":400,"items":{"type":"object","properties":{
		"label":{"type":"string","maxLength":100},
		"value":{"type":"number"}},"required":["label","value"],"additionalProperties":false}}},
	"required":["title","bars"],"additionalProperties":false}`

// Tool returns show-chart. Numbers stay as they were written.
func Tool() native.Tool {
	yes, no := true, false
	return native.Tool{
		Name: "show-chart", Title: "Show a chart",
		Description: "Show numbers as a bar chart: one bar for each label.",
		InputSchema: json.RawMessage(schema),
		Annotations: store.Annotations{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no},
		Template:    template,
		Run: func(_ context.Context, _ native.Context, input json.RawMessage) (native.Result, error) {
			var chart struct {
				Title string `json:"title"`
				Unit  string `json:"unit"`
				Bars  []struct {
					Label string      `json:"label"`
					Value json.Number `json:"value"`
				} `json:"bars"`
			}
			if err := json.Unmarshal(input, &chart); err != nil {
				return native.Failed("The chart could not be read."), nil
			}
			lines := []string{chart.Title}
			for _, b := range chart.Bars {
				lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s: %s %s", b.Label, b.Value, chart.Unit)))
			}
			r := native.Text(strings.Join(lines, "\n"))
			r.StructuredContent = input
			return r, nil
		},
	}
}
