package page

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

const article = `<!DOCTYPE html><html><head><title>How tides work - The Daily Shore</title><style>p{color:red}</style><script>var x = "not read";</script></head>
<body><nav><ul><li><a href="/">Home</a></li><li><a href="/ads">Advertise</a></li></ul></nav>
<article><h1>How tides work</h1><p>The moon pulls at the sea, and the sea follows it, <em>slowly</em>, around the whole earth, twice a day, as far as the coasts let it.</p>
<h2>Spring tides</h2><p>When sun and moon stand in a line, which is twice a month, both of them pull together, and the water rises higher than it does <a href="neap.html#low">otherwise</a>.</p>
<ul><li>new moon</li><li>full moon</li></ul>
<table><tr><th>Place</th><th>Metres</th></tr><tr><td>Fundy</td><td>16</td></tr></table>
<pre><code>range = high - low</code></pre></article>
<footer>Copyright, cookies, and 40 other links</footer></body></html>`

func TestMarkdown(t *testing.T) {
	at, err := url.Parse("https://shore.example/science/tides.html")
	if err != nil {
		t.Fatal(err)
	}
	got := Markdown(article, at)
	for _, want := range []string{"# How tides work", "*slowly*", "## Spring tides", "[otherwise](https://shore.example/science/neap.html#low)", "- new moon\n- full moon", "| Fundy", "range = high - low"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not there", want)
		}
	}
	for _, not := range []string{"Advertise", "not read", "cookies", "color"} {
		if strings.Contains(got, not) {
			t.Errorf("%q is there", not)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
	// What is no article comes whole.
	got = Markdown(`<html><head><title>Status</title></head><body><p>All <b>systems</b> work.</p><a href="/log">log</a></body></html>`, at)
	if got != "# Status\n\nAll **systems** work.\n\n[log](https://shore.example/log)" {
		t.Errorf("a short page: %q", got)
	}
}

func TestDecode(t *testing.T) {
	for want, one := range map[string][2]string{
		"größer":                            {"gr\xf6\xdfer", "text/html; charset=iso-8859-1"},
		"größer €":                          {"gr\xf6\xdfer \x80", "text/html"},
		"\u65e5\u672c":                      {"\x93\xfa\x96\x7b", "text/plain; charset=shift_jis"},
		"<meta charset=koi8-r>\u0434\u0430": {"<meta charset=koi8-r>\xc4\xc1", "text/html"},
		"bom é":                             {"\xef\xbb\xbfbom \u00e9", "text/html; charset=iso-8859-1"},
		"wide":                              {"\xff\xfew\x00i\x00d\x00e\x00", "text/plain"},
		"a\ufffdb":                          {"a\x00b", "text/plain; charset=utf-8"},
		"bad\ufffd":                         {"bad\xff", "text/plain; charset=utf-8"},
		"what":                              {"what", "text/plain; charset=no-such-thing"},
	} {
		if got := Decode([]byte(one[0]), one[1]); got != want {
			t.Errorf("%q as %s: %q, want %q", one[0], one[1], got, want)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add(article)
	f.Add("<ul><li><table><tr><td><pre>x")
	f.Add("\x00<a href=' javascript:x'>y</a><img src=data:x>")
	at := &url.URL{Scheme: "https", Host: "a.example", Path: "/b"}
	f.Fuzz(func(t *testing.T, text string) {
		if got := Markdown(Decode([]byte(text), "text/html"), at); !utf8.ValidString(got) {
			t.Errorf("not UTF-8: %q", got)
		}
	})
}
