package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is the part of Grafana's model that is checked.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct {
			Name  string
			Query json.RawMessage
		}
	}
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ RefID, Expr, LegendFormat string }
	}
}

var (
	metricName = regexp.MustCompile(`\b(?:nize|go|process)_[a-z0-9_]+`)
	matcher    = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
	grouping   = regexp.MustCompile(`by \(([a-z_, ]+)\)`)
	legend     = regexp.MustCompile(`{{([a-z_]+)}}`)
)

// The dashboard is what Grafana loads, and asks for series that there are: each
// name with the suffix of its type, each label one of that metric.
func TestDashboard(t *testing.T) {
	m := testMetrics(full, nil)
	use(t, m)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{} // by the name of a series
	for _, f := range families {
		have := []string{"job", "instance"} // which Prometheus adds
		for _, l := range f.GetMetric()[0].GetLabel() {
			have = append(have, l.GetName())
		}
		if f.GetMetric()[0].GetHistogram() == nil {
			labels[f.GetName()] = have
			continue
		}
		labels[f.GetName()+"_bucket"] = append(slices.Clone(have), "le")
		labels[f.GetName()+"_sum"], labels[f.GetName()+"_count"] = have, have
	}
	file, err := os.ReadFile("../../scripts/grafana/nize.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(file, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || len(d.Templating.List) != 3 || len(d.Panels) < 30 {
		t.Errorf("%q (%s) with %d variables and %d panels", d.Title, d.UID, len(d.Templating.List), len(d.Panels))
	}
	shown, ids, cells := map[string]bool{}, map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.W < 1 || p.GridPos.X+p.GridPos.W > 24 || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q, %+v", p.ID, p.Title, p.GridPos)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if cells[at] != "" {
					t.Fatalf("%q lies on %q", p.Title, cells[at])
				}
				cells[at] = p.Title
			}
		}
		for _, target := range p.Targets {
			names := metricName.FindAllString(target.Expr, -1)
			if len(names) == 0 || strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") || strings.Count(target.Expr, "{") != strings.Count(target.Expr, "}") {
				t.Errorf("%s: %s", p.Title, target.Expr)
			}
			for _, name := range names {
				have, ok := labels[name]
				if !ok {
					t.Errorf("%s: there is no %s", p.Title, name)
					continue
				}
				shown[strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")] = true
				var asked []string
				for _, x := range matcher.FindAllStringSubmatch(target.Expr, -1) {
					asked = append(asked, x[1])
				}
				for _, x := range grouping.FindAllStringSubmatch(target.Expr, -1) {
					asked = append(asked, strings.Split(x[1], ", ")...)
				}
				for _, x := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
					asked = append(asked, x[1])
				}
				for _, label := range asked {
					if !slices.Contains(have, label) {
						t.Errorf("%s: %s has no label %s", p.Title, name, label)
					}
				}
			}
		}
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "nize_") && !shown[f.GetName()] {
			t.Errorf("the dashboard does not show %s", f.GetName())
		}
	}
}
