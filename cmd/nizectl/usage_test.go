package main

import (
	"strings"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// TestUsageBefore: a report ends with how it stands to the period before, of as many days
// in the same zone, and says nothing of it if nothing was used then.
func TestUsageBefore(t *testing.T) {
	kathmandu := time.FixedZone("", 5*3600+45*60)
	for name, test := range map[string]struct {
		args        string
		first       time.Time // that is counted
		now, before store.UsageRow
		asked       string // since when, and by what, for both periods
		want        string
	}{
		"days": {
			"--since 7d", time.Date(2026, 2, 22, 0, 0, 0, 0, kathmandu),
			store.UsageRow{Calls: 30, Prompt: 900, Completion: 100, MicroUSD: 15_000}, store.UsageRow{Calls: 20, Prompt: 1500, Completion: 500, MicroUSD: 10_000},
			"2026-02-14T00:00:00+05:45 day", "against the 8 days before: calls +50 % (20), tokens -50 % (2000), cost +50 % ($0.0100)",
		},
		"conversations": {
			"--since 7d --by conversation", time.Date(2026, 2, 22, 0, 0, 0, 0, kathmandu),
			store.UsageRow{Calls: 1, Prompt: 10, MicroUSD: 10}, store.UsageRow{Calls: 3, Prompt: 10, Unpriced: 1, MicroUSD: 10},
			"2026-02-14T00:00:00+05:45 day", "against the 8 days before: calls -67 % (3), tokens +0 % (10)",
		},
		"tools": {
			"--since 1d --by tool", time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC),
			store.UsageRow{Calls: 2, Failed: 1}, store.UsageRow{Calls: 1},
			"2026-02-26T00:00:00Z tool", "against the 2 days before: calls +100 % (1)",
		},
		"nothing before": {"--since 7d", time.Date(2026, 2, 22, 0, 0, 0, 0, kathmandu), store.UsageRow{Calls: 1}, store.UsageRow{}, "2026-02-14T00:00:00+05:45 day", ""},
		"nothing now":    {"--since 7d", time.Date(2026, 2, 22, 0, 0, 0, 0, kathmandu), store.UsageRow{}, store.UsageRow{Calls: 1}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble(t)
			var asked []api.GetUsageRequest
			answerBy(d, api.GetUsage, func(req api.GetUsageRequest) (store.UsageReport, error) {
				zone := req.Zone
				if req.By == "tool" {
					zone = "UTC"
				}
				if asked = append(asked, req); len(asked) == 1 {
					return store.UsageReport{By: req.By, Since: test.first, Zone: zone, Rows: []store.UsageRow{test.now}, Total: test.now}, nil
				}
				return store.UsageReport{By: req.By, Since: req.Since, Zone: zone, Total: test.now.Plus(test.before)}, nil
			})
			got := d.nizectl(surroundings{env: map[string]string{"TZ": "Asia/Kathmandu"}}, append([]string{"usage"}, strings.Fields(test.args)...)...)
			if got.code != 0 {
				t.Fatalf("%+v", got)
			}
			note := ""
			for line := range strings.Lines(got.err) {
				if strings.HasPrefix(line, "against") {
					note = strings.TrimSpace(line)
				}
			}
			again := ""
			if len(asked) == 2 {
				again = asked[1].Since.In(test.first.Location()).Format(time.RFC3339) + " " + asked[1].By
				if asked[1].Zone != asked[0].Zone || asked[1].User != asked[0].User || asked[1].Top != 0 {
					t.Errorf("asked %+v", asked)
				}
			}
			if note != test.want || again != test.asked {
				t.Errorf("it says %q and asked %q; want %q, %q", note, again, test.want, test.asked)
			}
		})
	}
}

// TestUsageNames: one's own conversations are there by title, with the sum below; others'
// by id.
func TestUsageNames(t *testing.T) {
	d := newDouble(t)
	d.usage([]store.UsageRow{{Key: "01OWN", Calls: 2, Prompt: 5}, {Key: "01OTHER", Calls: 1}})
	answer(d, api.ListConversations, api.List[store.Thread]{Items: []store.Thread{{ID: "01OWN", Title: "Trip to\x1b Tokyo"}}})
	got := d.nizectl(surroundings{}, "usage", "--by", "conversation")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if got.code != 0 || len(lines) != 4 || !strings.HasPrefix(lines[1], "Trip to") || !strings.Contains(lines[1], " (01OWN) ") || strings.Contains(got.out, "\x1b") ||
		!strings.HasPrefix(lines[2], "01OTHER ") || strings.Join(strings.Fields(lines[3])[:3], " ") != "all 3 5" {
		t.Errorf("%+v", got)
	}
}
