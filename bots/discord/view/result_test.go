package view

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bwmarrin/discordgo"

	"nize/bots/phrases"
	"nize/store/display"
)

// The result of a tool as it looks, and within what Discord takes.
func TestResultGolden(t *testing.T) {
	w := phrases.For("en")
	v := display.View{
		Title: "Issue 7 @everyone *now*", Link: "https://tracker.example/7", Text: "see <@3000>, [here](https://evil.example) and https://evil.example\n\u202egnp.exe",
		Fields: []display.Field{{Name: "Who <@&1>", Value: "||ben||"}, {Name: "State", Value: "`open`"}},
		Table:  &display.Table{Columns: []string{"Day", "```Rain"}, Rows: [][]string{{"Mon", "12 mm"}, {"Tue", "<@3000>"}}, Left: 3},
	}
	m := Result(v, "tracker:get", "01ARZ3NDEKTSV4RRFFQ69G5FAV", w)
	checkMessage(t, "result", m)
	got, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "result.json")
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != string(got)+"\n" {
		t.Errorf("%v; got %s", err, got)
	}
	long := display.View{Title: strings.Repeat("*", 9999), Text: strings.Repeat("_", 9999), Table: &display.Table{}}
	for range 30 {
		long.Fields = append(long.Fields, display.Field{Name: strings.Repeat("[", 999), Value: strings.Repeat("@", 9999)})
		long.Table.Columns = append(long.Table.Columns, strings.Repeat("c", 999))
		long.Table.Rows = append(long.Table.Rows, make([]string, 30))
		for i := range long.Table.Rows {
			long.Table.Rows[i][len(long.Fields)-1] = strings.Repeat("z", 999)
		}
	}
	for _, v := range []display.View{long, {Title: long.Title, Table: long.Table}, {Text: long.Text, Table: long.Table}} {
		m = Result(v.Bounded(), "tracker:get", "01ARZ3NDEKTSV4RRFFQ69G5FAV", w)
		e := m.Embeds[0]
		all := size(e.Title) + size(e.Description) + size(e.Footer.Text)
		for _, f := range e.Fields {
			if all += size(f.Name) + size(f.Value); size(f.Name) > maxFieldName || size(f.Value) > maxFieldValue {
				t.Errorf("a field of %d and %d characters", size(f.Name), size(f.Value))
			}
		}
		if all > maxEmbed || size(e.Title) > maxEmbedTitle || size(e.Description) > maxDescription || m.Flags&discordgo.MessageFlagsSuppressEmbeds != 0 {
			t.Errorf("%d characters, title %d, description %d, flags %d", all, size(e.Title), size(e.Description), m.Flags)
		}
	}
}
