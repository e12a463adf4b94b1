package view

import (
	"encoding/json"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"nize/store"
	"nize/store/display"
)

const weather = `{
  "title": "Weather in {{.city}}",
  "link": "{{.url}}",
  "text": "{{range $i, $w := .warnings}}{{if $i}}, {{end}}{{upper $w}}{{end}}",
  "fields": [
    {"name": "Temperature", "value": "{{number 1 .degrees}} °C"},
    {"name": "Wind", "value": "{{.wind}}"},
    {"name": "{{.nothing}}", "value": "x"}
  ],
  "table": {"rows": "forecast.days", "columns": [{"name": "Day", "value": "{{.day}}"}, {"name": "Rain", "value": "{{default 0 .mm}} mm"}]},
  "image": 1
}`

const tokyo = `{"content":[{"type":"text","text":"21"}],"structuredContent":{"city":"Tokyo","url":"https://weather.example/tokyo","degrees":21.25,
 "warnings":["storm","heat"],"forecast":{"days":[{"day":"Mon","mm":12},{"day":"Tue"}]}}}`

// cpuClock shows the time for which this process has computed, which is no longer
// on a busy machine, as the time is.
func cpuClock() time.Time {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Unix(0, u.Utime.Nano()+u.Stime.Nano())
}

func render(t *testing.T, template, result string) (display.View, error) {
	t.Helper()
	r, err := ParseRenderer([]byte(template))
	if err != nil {
		t.Fatalf("%s: %v", template, err)
	}
	v, err := r.Render(Call{"w:get", json.RawMessage(`{"place":"Tokyo, Japan","days":2,"tags":["a","b"],"deep":{"x":"<b>"}}`), json.RawMessage(result)}, cpuClock)
	if v == nil {
		v = &display.View{}
	}
	return *v, err
}

func TestRender(t *testing.T) {
	got, err := render(t, weather, tokyo)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(got)
	const want = `{"title":"Weather in Tokyo","link":"https://weather.example/tokyo","text":"STORM, HEAT","fields":[{"name":"Temperature","value":"21.2 °C"}],"table":{"columns":["Day","Rain"],"rows":[["Mon","12 mm"],["Tue","0 mm"]]},"image":1}`
	if err != nil || string(raw) != want {
		t.Errorf("got  %s\nwant %s; %v", raw, want, err)
	}
	if back, ok := display.Decode(raw); !ok || back.Table.Rows[1][0] != "Tue" {
		t.Errorf("read again it is %+v", back)
	}
	for name, result := range map[string]string{
		"an error":     `{"isError":true,"structuredContent":{"city":"Tokyo"}}`,
		"only text":    `{"content":[{"type":"text","text":"21"}]}`,
		"a list":       `[]`,
		"much of it":   `{"structuredContent":{"city":"` + strings.Repeat("x", maxData) + `"}}`,
		"null":         `{"structuredContent":null}`,
		"not a result": `x`,
	} {
		if got, err := render(t, weather, result); err != nil || !got.Empty() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestLink leads nowhere that the result itself does not.
func TestLink(t *testing.T) {
	for result, want := range map[string]string{
		`{"structuredContent":{"id":"7","url":"https://a.example/7"}}`:                                      "https://a.example/7",
		`{"structuredContent":{"id":"7"},"content":[{"type":"resource_link","uri":"https://a.example/7"}]}`: "https://a.example/7",
		`{"structuredContent":{"id":"7","text":"see https://a.example/7"}}`:                                 "",
		`{"structuredContent":{"id":"8","url":"https://a.example/7"}}`:                                      "",
		`{"structuredContent":{"id":"7\" onclick","url":"https://a.example/7"}}`:                            "",
	} {
		if got, err := render(t, `{"title": "{{.id}}", "link": "https://a.example/{{.id}}"}`, result); err != nil || got.Link != want {
			t.Errorf("%s: %q, %v", result, got.Link, err)
		}
	}
	for address, want := range map[string]bool{
		"https://a.example/x?y=z#w": true, "http://a.example": true, "javascript:alert(1)": false, "https://": false, "//a.example": false,
		"https://ann:pw@a.example": false, "https://a.example/<@U1>": false, "https://a.example/\u202e": false, "https://a.example/" + strings.Repeat("x", display.MaxURL): false, "slack://x/y": false, "https://a.example/|x": false,
	} {
		if display.IsAddress(address) != want {
			t.Errorf("%q is an address: %v", address, !want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for template, want := range map[string]string{
		`{`:                        "unexpected EOF",
		"{\n \"title\": x}":        "line 2: invalid character 'x' looking for beginning of value",
		`[]`:                       "it must be an object",
		`{"title": 7}`:             "title: it can't be a JSON number",
		`{"titel": "x"}`:           `unknown field "titel"`,
		`{"title": "x"} {}`:        "there is text after its end",
		`{}`:                       "it shows nothing",
		`{"title": "{{.x"}`:        "title: 1: unclosed action",
		`{"title": "{{nope .x}}"}`: `title: 1: function "nope" not defined`,
		`{"fields": [{"name": "x", "value": "{{end}}"}]}`:        "fields[0].value: 1: unexpected {{end}}",
		`{"title": "{{define \"x\"}}{{end}}{{template \"x\"}}"}`: "title: define and block are not available",
		`{"title": "{{template \"x\"}}"}`:                        "title: template is not available",
		`{"title": "{{_step}}"}`:                                 "title: _step is not a function",
		`{"link": "https://x.example"}`:                          "link: it needs a title",
		`{"table": {"columns": [{"name": "x", "value": "y"}]}}`:  "table.rows: it must name where the rows stand",
		`{"table": {"rows": "x"}}`:                               "table.columns: there must be 1 to 6",
		`{"title": "x", "image": -1}`:                            "image: it is 0 for none",
		`{"title": "` + strings.Repeat("x", MaxRenderer) + `"}`:  "it is over 64 KiB",
	} {
		if _, err := ParseRenderer([]byte(template)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v\nwant %s", template, err, want)
		}
	}
}

// TestBounds is templates and data that would take for ever, or all memory.
func TestBounds(t *testing.T) {
	many := `{"structuredContent":{"s":"` + strings.Repeat("x", 100_000) + `","l":[` + strings.TrimSuffix(strings.Repeat(`"y",`, 10_000), ",") + `],"n":1000000000}}`
	for text, fails := range map[string]bool{
		`{{range $.l}}{{range $.l}}{{range $.l}}{{end}}{{end}}{{end}}`: true,
		`{{range .n}}{{end}}`: true,
		`{{$x := .s}}{{range .l}}{{$x = print $x $x}}{{end}}`:    true,
		`{{$x := \"a\"}}{{range .l}}{{$x = print $x $x}}{{end}}`: true,
		`{{printf \"%999999d\" 1}}`:                              true,
		`{{printf \"%*d\" .n 1}}`:                                true,
		`{{join .s .l}}`:                                         true,
		`{{js .s}}`:                                              true,
		`{{call .s}}`:                                            true,
		`{{.s}}`:                                                 false,
		`{{.}}`:                                                  false,
		`{{range .n}}ä{{end}}`:                                   true,
		`{{.l}}`:                                                 false,
		`{{.s.t}}`:                                               true,
	} {
		began := cpuClock()
		got, err := render(t, `{"title": "t", "text": "`+text+`"}`, many)
		if (err != nil) != fails || utf8.RuneCountInString(got.Text) > display.MaxText || !utf8.ValidString(got.Text) {
			t.Errorf("%s: %d characters, %v", text, len(got.Text), err)
		}
		if took := cpuClock().Sub(began); took > 20*maxTime {
			t.Errorf("%s took %s", text, took)
		}
	}
}

func TestSet(t *testing.T) {
	s := &Renderers{Log: slog.New(slog.DiscardHandler), Now: time.Now}
	one, _ := ParseRenderer([]byte(`{"title": "one"}`))
	two, _ := ParseRenderer([]byte(`{"title": "two {{.city.name}}"}`))
	see := func(want string) {
		t.Helper()
		if got := string(s.View(&store.Call{Server: "w", Tool: "get", Args: json.RawMessage(`{}`)}, &store.Result{Raw: json.RawMessage(tokyo)})); got != want {
			t.Errorf("it shows %s, want %s", got, want)
		}
	}
	see("")
	s.Put("w:get", one)
	see(`{"title":"one"}`)
	s.Put("w:get", two)
	see("") // it fails
	s.Put("w:get", nil)
	see("")
}

// TestRenderCall: a renderer has the call's name and arguments beside its result.
func TestRenderCall(t *testing.T) {
	for template, want := range map[string]string{
		"{{tool}}: {{args.place}}":                "w:get: Tokyo, Japan",
		"{{args.days}} days of {{.city}}":         "2 days of Tokyo",
		`{{join "+" args.tags}} {{args.deep.x}}`:  "a+b <b>",
		"{{range args.tags}}[{{.}}]{{end}}":       "[a][b]",
		`{{index args "place"}}`:                  "Tokyo, Japan",
		"{{args.none}}{{with args.none}}x{{end}}": "",
	} {
		raw, err := json.Marshal(map[string]string{"title": "t", "text": template})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := render(t, string(raw), tokyo); err != nil || got.Text != want {
			t.Errorf("%s: %q, %v; want %q", template, got.Text, err, want)
		}
	}
	v, err := render(t, `{"title": "x", "link": "{{args.place}}", "fields": [{"name": "a", "value": "{{args}}"}]}`, tokyo)
	if err != nil || v.Link != "" {
		t.Errorf("a link of the arguments, %+v, %v", v, err)
	}
}

// FuzzRender: whatever the template and the result are, a view is within its bounds
// and reads back as what it was.
func FuzzRender(f *testing.F) {
	f.Add([]byte(weather), []byte(tokyo))
	f.Add([]byte(`{"title":"{{.}}","link":"{{.url}}"}`), []byte(`{"structuredContent":{"url":"https://x.example"}}`))
	f.Add([]byte(`{"table":{"rows":"a","columns":[{"name":"{{len .a}}","value":"{{printf \"%v\" .}}"}]}}`), []byte(`{"structuredContent":{"a":[1,null,[2]]}}`))
	f.Fuzz(func(t *testing.T, template, result []byte) {
		r, err := ParseRenderer(template)
		if err != nil {
			return
		}
		v, err := r.Render(Call{"w:get", result, result}, time.Now)
		if err != nil || v == nil {
			return
		}
		if v.Link != "" && (!strings.Contains(string(result), "http") || !display.IsAddress(v.Link)) {
			t.Errorf("a link of nobody's: %q", v.Link)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		back, ok := display.Decode(raw)
		again, err := json.Marshal(back)
		if !ok || err != nil || string(again) != string(raw) {
			t.Errorf("it was  %s\nread is %s, %v", raw, again, err)
		}
	})
}
