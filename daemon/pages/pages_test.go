package pages

import (
	"net/http/httptest"
	"strings"
	"testing"

	"nize/store"
)

func TestLanguage(t *testing.T) {
	for header, want := range map[string]string{
		"": "en", "de": "en", "de, en;q=0.5, zh;q=0.4": "en", "zh": "zh-Hans", "zh-CN,zh;q=0.9,en;q=0.8": "zh-Hans",
		"zh-TW": "zh-Hant", "zh-Hant-HK": "zh-Hant", "en;q=0.1, zh-HK;q=0.9": "zh-Hant", "en;q=0, zh": "zh-Hans", ";;;q=x,,": "en",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Language", header)
		if got := Language(r); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

// TestPage: what others wrote stays text, and the page lets nothing in.
func TestPage(t *testing.T) {
	page := New(`<p>{{.}}</p>`)
	w := httptest.NewRecorder()
	page.Write(w, httptest.NewRequest("GET", "/", nil), 400, Page{Title: store.Plain("<b>"), Next: `https://x.example/?a=1&b="><script>`, Data: `<script>alert(1)</script>`})
	body, policy := w.Body.String(), w.Header().Get("Content-Security-Policy")
	if w.Code != 400 || strings.Contains(body, "<script") || strings.Contains(body, "<b>") {
		t.Errorf("%d\n%s", w.Code, body)
	}
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "script-src") {
		t.Errorf("the policy is %q", policy)
	}
}
