package bots_test

import (
	"encoding/json"
	"testing"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
	"nize/store/display"
)

// A rendered result as a terminal shows it.
func TestViewText(t *testing.T) {
	v := display.View{
		Title: "Weather \x1b[31min Tokyo", Link: "https://weather.example/tokyo", Text: "two\nlines",
		Fields: []display.Field{{Name: "Wind", Value: "\u202ewest"}},
		Table:  &display.Table{Columns: []string{"Day", "Rain"}, Rows: [][]string{{"Monday", "`12`"}, {"Tue"}}, Left: 2},
	}
	const want = "Weather \\u001b[31min Tokyo\nhttps://weather.example/tokyo\ntwo\nlines\nWind: west\nDay     Rain\nMonday  '12'\nTue\n2 more rows are not shown."
	if got := bots.ViewText(v, phrases.For("en")); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestRenderedView: the page gets the same harmless texts, with tables and links as such.
func TestRenderedView(t *testing.T) {
	got := bots.RenderedView(display.View{
		Title: "Weather \x1b[31min Tokyo", Link: "https://weather.example/tokyo", Text: "two\nlines \u202eback",
		Fields: []display.Field{{Name: "Wi\x07nd", Value: "\u202ewest\nby north"}},
		Table:  &display.Table{Columns: []string{"Day\u200b"}, Rows: [][]string{{"\x1b]8;;x"}}, Left: 2},
	}, phrases.For("zh-Hans"))
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"title":"Weather \\u001b[31min Tokyo","link":"https://weather.example/tokyo","text":"two\nlines back","fields":[{"name":"Wi\\u0007nd","value":"west\nby north"}],"table":{"columns":["Day\\u200b"],"rows":[["\\u001b]8;;x"]],"left":2},"more":"还有 2 行未显示。"}`
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
}

// TestImagesOfAView: a renderer chooses which of the result's images is shown.
func TestImagesOfAView(t *testing.T) {
	const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	const image = `{"type":"image","mimeType":"image/png","data":"` + png + `"}`
	for view, want := range map[string]int{`{"title":"t"}`: 2, `{"title":"t","image":2}`: 1, `{"title":"t","image":0}`: 0, `{"title":"t","image":3}`: 0, `{}`: 2, `x`: 2} {
		found := bots.ImagesOf(store.Call{ID: "1", Result: &store.Result{Raw: json.RawMessage(`{"content":[` + image + `,` + image + `]}`), View: json.RawMessage(view)}})
		if len(found.List) != want || (found.View != nil) != (len(view) > 2) {
			t.Errorf("%s: %d images, %+v", view, len(found.List), found.View)
		}
	}
}
