package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestOf is what a tool's _meta says of its view, and who may call the tool.
func TestOf(t *testing.T) {
	for meta, want := range map[string]Claims{
		``:                                  {},
		`{"ui":7}`:                          {},
		`{"ui":{"resourceUri":"ui://a/b"}}`: {URI: "ui://a/b"},
		`{"ui/resourceUri":"ui://old"}`:     {URI: "ui://old"},
		`{"ui":{"resourceUri":"ui://new"},"ui/resourceUri":"ui://old"}`: {URI: "ui://new"},
		`{"openai/outputTemplate":"ui://sky"}`:                          {URI: "ui://sky", Skybridge: true},
		`{"ui":{"resourceUri":"https://evil.example/x"}}`:               {},
		`{"ui":{"resourceUri":["ui://a"]}}`:                             {},
		`{"ui":{"visibility":["model"]}}`:                               {NotApp: true},
		`{"ui":{"visibility":["app"]}}`:                                 {NotModel: true},
		`{"ui":{"visibility":["app","model"]}}`:                         {},
		`{"ui":{"visibility":[]}}`:                                      {NotModel: true, NotApp: true},
		`{"ui":{"visibility":"model"}}`:                                 {NotModel: true, NotApp: true},
	} {
		var got Claims
		if c := Of(json.RawMessage(meta)); c != nil {
			got = *c
		}
		if got.URI != want.URI || got.Skybridge != want.Skybridge || got.NotModel != want.NotModel || got.NotApp != want.NotApp || got.Accepted.Any() {
			t.Errorf("%s: %+v", meta, got)
		}
	}
}

// TestDomains: only origins get into a policy, and only those that were accepted.
func TestDomains(t *testing.T) {
	good := []string{"https://a.example", "https://*.b.example", "wss://c.example:8443", "https://localhost:1"}
	bad := []string{"http://a.example", "https://a.example/path", "https://*", "https://*.com", "https://a.example; script-src *", "https://a.example 'unsafe-eval'", "*", "'self'", "data:", "https://", "https://a..b", "https://a.example,b", "https://ä.example", "https://u@a.example", "https://a.example\n"}
	list, _ := json.Marshal(append(append([]string{}, good...), bad...))
	d := Declared(json.RawMessage(`{"ui":{"csp":{"connectDomains":` + string(list) + `,"resourceDomains":["HTTPS://CDN.example/"],"frameDomains":["https://f.example"]},"permissions":{"clipboardWrite":{},"camera":{}}}}`))
	if len(d.Connect) != len(good) || len(d.Dropped) != len(bad) || !d.Clipboard {
		t.Errorf("%d of %d were taken: %q; dropped %q", len(d.Connect), len(good), d.Connect, d.Dropped)
	}
	meta := Pinned(json.RawMessage(`{"ui":{"resourceUri":"ui://a"},"nize/view":{"connect":["https://forged.example"]}}`), d)
	if got := Of(meta).Accepted; len(got.Connect) != len(good) || got.Resource[0] != "https://cdn.example" {
		t.Errorf("pinned: %s", meta)
	}
	if got := Of(Pinned(json.RawMessage(`{"ui":{"resourceUri":"ui://a"},"nize/view":{"connect":["https://forged.example"]}}`), Domains{})).Accepted; got.Any() {
		t.Errorf("a server accepted its own domains: %+v", got)
	}
	more := Domains{Connect: []string{"https://a.example", "https://new.example"}}
	if got := d.And(more); len(got.Connect) != 1 || got.Clipboard || len(got.Resource) != 0 {
		t.Errorf("both: %+v", got)
	}
	if got := (Declared(json.RawMessage(`{"openai/widgetCSP":{"connect_domains":["https://o.example"]}}`))).Connect; len(got) != 1 {
		t.Errorf("the older names: %q", got)
	}
}

// TestRead is what counts as the HTML of a view, in the forms that servers have.
func TestRead(t *testing.T) {
	app, sky := Claims{URI: "ui://a"}, Claims{URI: "ui://a", Skybridge: true}
	of := func(content string) string { return `{"contents":[` + content + `]}` }
	long := strings.Repeat("x", MaxBytes)
	for raw, want := range map[string]struct {
		claims Claims
		html   string // "" is none
	}{
		of(`{"uri":"ui://a","mimeType":"text/html;profile=mcp-app","text":"<p>é"}`): {app, "<p>é"},
		of(`{"mimeType":"text/html; profile=mcp-app","text":"<p>"}`):                {app, "<p>"},
		of(`{"mimeType":"text/html;profile=mcp-app","blob":"PHA+"}`):                {app, "<p>"},
		of(`{"mimeType":"text/html+skybridge","text":"<p>"}`):                       {sky, "<p>"},
		of(`{"mimeType":"text/html;profile=mcp-app","text":"s"}`):                   {sky, "s"},
		of(`{"mimeType":"text/html;profile=mcp-app","text":"` + long + `"}`):        {app, long},
		of(`{"mimeType":"text/html+skybridge","text":"<q>"}`):                       {app, ""},
		of(`{"mimeType":"text/html","text":"<p>"}`):                                 {sky, ""},
		of(`{"mimeType":"text/html;profile=other","text":"<p>"}`):                   {app, ""},
		of(`{"text":"<p>"}`): {app, ""},
		of(`{"mimeType":"text/html;profile=mcp-app","text":""}`):                                                      {app, ""},
		of(`{"mimeType":"text/html;profile=mcp-app","text":7}`):                                                       {app, ""},
		of(`{"mimeType":"text/html;profile=mcp-app","blob":"!"}`):                                                     {app, ""},
		of(`{"mimeType":"text/html;profile=mcp-app","blob":"/w=="}`):                                                  {app, ""},
		of(`{"mimeType":"text/html;profile=mcp-app","text":"` + long + `x"}`):                                         {app, ""},
		of(`{"mimeType":"text/html;profile=mcp-app","text":"a"},{"mimeType":"text/html;profile=mcp-app","text":"b"}`): {app, ""},
		of(``): {app, ""}, `{}`: {app, ""}, `[]`: {app, ""}, ``: {app, ""},
	} {
		got, err := Read(json.RawMessage(raw), want.claims)
		if string(got.HTML) != want.html || (err == nil) != (want.html != "") || got.Skybridge != strings.Contains(raw, "skybridge") && err == nil {
			t.Errorf("%.150s: %.80q, %v", raw, got.HTML, err)
		}
	}
}

// TestGranted: a view gets what it declares and what was accepted, the content's own
// declaration before the list's.
func TestGranted(t *testing.T) {
	csp := func(domains string) json.RawMessage {
		return json.RawMessage(`{"ui":{"csp":{"resourceDomains":[` + domains + `]}}}`)
	}
	accepted := Domains{Resource: []string{"https://a.x", "https://b.x"}}
	for name, c := range map[string]struct{ content, listed, declared, granted string }{
		"the content's":          {content: `"https://a.x"`, listed: `"https://b.x"`, declared: "https://a.x", granted: "https://a.x"},
		"the list's":             {listed: `"https://b.x"`, declared: "https://b.x", granted: "https://a.x https://b.x"},
		"more than was accepted": {content: `"https://a.x","https://new.x"`, declared: "https://a.x https://new.x", granted: "https://a.x"},
		"none any more":          {content: ` `, listed: `"https://b.x"`},
	} {
		var content Content
		if c.content != "" {
			content.Meta = csp(c.content)
		}
		if got := strings.Join(content.Domains(csp(c.listed)).All(), " "); got != c.declared {
			t.Errorf("%s declares %q", name, got)
		}
		if got := strings.Join(content.Granted(accepted).All(), " "); got != c.granted {
			t.Errorf("%s gets %q", name, got)
		}
	}
}

// TestPolicy is the header, whole.
func TestPolicy(t *testing.T) {
	const page = "https://nize.example"
	for want, got := range map[string]string{
		"sandbox allow-scripts allow-forms; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; media-src data: blob:; connect-src 'none'; frame-src 'none'; worker-src blob:; object-src 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types default; frame-ancestors https://nize.example":                                                                       Policy(page, false, "", Domains{}),
		"sandbox allow-scripts allow-forms; default-src 'none'; script-src 'unsafe-inline' https://r.x; style-src 'unsafe-inline' https://r.x; img-src data: blob: https://r.x; font-src data: https://r.x; media-src data: blob: https://r.x; connect-src https://c.x; frame-src https://f.x; worker-src blob:; object-src 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types default; frame-ancestors https://nize.example": Policy(page, false, "", Domains{Connect: []string{"https://c.x"}, Resource: []string{"https://r.x"}, Frame: []string{"https://f.x"}}),
		"sandbox allow-scripts allow-forms; default-src 'none'; script-src 'nonce-N'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; media-src data: blob:; connect-src 'none'; frame-src 'none'; worker-src blob:; object-src 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types default; frame-ancestors https://nize.example":                                                                             Policy(page, false, "N", Domains{Connect: []string{"https://c.x"}}),
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// FuzzFill: each script of a template has the nonce, first, and what it shows adds
// none, whatever that is; nor does one that is written later.
func FuzzFill(f *testing.F) {
	f.Add("<p>hi<script>a()</script><SCRIPT src=x nonce=y></SCRIPT>", `</script><script>alert(1)</script>`)
	f.Add("<!-- <script> --><textarea><script></textarea><svg><script/>", `<!--<script>`)
	f.Add("<script", "\u2028")
	f.Fuzz(func(t *testing.T, template, data string) {
		value, err := json.Marshal(map[string]string{"x": data})
		if err != nil {
			t.Skip()
		}
		page, err := Fill(template, "NONCE", Globals{Theme: "dark", Output: value})
		if err != nil {
			t.Skip()
		}
		scripts := func(text string) (n, own int) {
			z := html.NewTokenizer(strings.NewReader(text))
			for z.Next() != html.ErrorToken {
				token := z.Token()
				if token.Data != "script" || token.Type == html.EndTagToken || token.Type == html.TextToken || token.Type == html.CommentToken {
					continue
				}
				n++
				if len(token.Attr) > 0 && token.Attr[0].Key == "nonce" && token.Attr[0].Val == "NONCE" {
					own++
				}
			}
			return n, own
		}
		before, _ := scripts(template)
		if n, own := scripts(string(page)); n != before+1 || own != n {
			t.Errorf("%d scripts of %d have the nonce; the template has %d\n%s", own, n, before, page)
		}
		alone, err := Standalone(template)
		if n, _ := scripts(string(alone)); err != nil || n != 1 || !bytes.HasSuffix(alone, []byte("})()\n</script>\n")) {
			t.Errorf("for other hosts it has %d scripts before it is written, %v\n%s", n, err, alone)
		}
	})
}
