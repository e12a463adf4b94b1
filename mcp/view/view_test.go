package view

import (
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestPolicy is the header, whole.
func TestPolicy(t *testing.T) {
	const want = "sandbox allow-scripts allow-forms; default-src 'none'; script-src 'nonce-N'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; media-src data: blob:; connect-src 'none'; frame-src 'none'; worker-src blob:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors https://nize.example"
	if got := Policy("https://nize.example", "N"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// FuzzFill: each script of a template has the nonce, first, and what it shows adds
// none, whatever that is.
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
	})
}
