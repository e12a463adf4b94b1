package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/cmd/nizectl/display"
	"nize/store"
)

var update = flag.Bool("update", false, "write the golden files")

// TestChart draws on terminals of all kinds.
func TestChart(t *testing.T) {
	d := newDouble(t)
	rows := []store.UsageRow{
		{Key: "openai/gpt-5-mini", Calls: 900, Prompt: 1_200_000, Completion: 34_567},
		{Key: "deepseek/deepseek-chat", Calls: 20, Prompt: 300_000, Completion: 10},
		{Key: "模型/很长的名字很长的名字", Calls: 3, Prompt: 99},
		{Key: "", Calls: 1},
	}
	days := []store.UsageRow{{Key: "2026-02-25", Calls: 1, Prompt: 10}, {Key: "2026-03-01", Calls: 3, Prompt: 40}}
	const utf8 = "en_GB.UTF-8"
	for name, test := range map[string]struct {
		args string
		rows []store.UsageRow
		env  map[string]string
		tty  bool
	}{
		"wide":    {"--by model", rows, map[string]string{"LANG": utf8}, false},
		"colour":  {"--by model", rows, map[string]string{"LANG": utf8}, true},
		"plain":   {"--by model", rows, map[string]string{"LANG": "C", "NO_COLOR": "1"}, true},
		"narrow":  {"--by model", rows, map[string]string{"LC_ALL": utf8, "COLUMNS": "32"}, false},
		"tiny":    {"--by model", rows, map[string]string{"COLUMNS": "3"}, false},
		"tools":   {"--by tool", []store.UsageRow{{Key: "toolbox:roll", Calls: 12}, {Key: "toolbox:convert_units", Calls: 4}}, map[string]string{"COLUMNS": "50"}, false},
		"days":    {"--since 2026-02-24T00:00:00Z", days, map[string]string{"LANG": utf8, "COLUMNS": "40"}, false},
		"nothing": {"--since 2026-02-24T00:00:00Z", nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			d.usage(test.rows)
			got := d.nizectl(surroundings{env: test.env, tty: test.tty}, append([]string{"usage", "--chart"}, strings.Fields(test.args)...)...)
			if got.code != 0 {
				t.Fatalf("%+v", got)
			}
			text := got.out + "--\n" + got.err
			path := filepath.Join("testdata", "chart_"+name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, string(want)); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			columns := map[string]int{"narrow": 32, "tiny": leastColumns, "tools": 50, "days": 40}[name]
			for line := range strings.Lines(got.out) {
				if w := display.Width(strings.TrimSuffix(line, "\n")); columns > 0 && w > columns {
					t.Errorf("%d columns: %q", w, line)
				}
			}
		})
	}
}
