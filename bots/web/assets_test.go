package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"nize/bots/phrases"
)

// TestVendor: the third-party files are exactly those of vendor.json.
func TestVendor(t *testing.T) {
	raw, err := os.ReadFile("vendor/vendor.json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Packages []struct {
			Name, Version, Licence, Integrity string
			Files                             []struct{ From, To, SHA256 string }
		}
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	known := []string{"vendor.json"}
	for _, p := range list.Packages {
		licensed := false
		for _, f := range p.Files {
			known = append(known, f.To)
			licensed = licensed || strings.HasSuffix(f.To, "LICENSE")
			content, err := os.ReadFile(filepath.Join("vendor", f.To))
			if sum := sha256.Sum256(content); err != nil || hex.EncodeToString(sum[:]) != f.SHA256 {
				t.Errorf("vendor/%s is not what vendor.json says (%v): run scripts/vendor", f.To, err)
			}
		}
		if !licensed || p.Licence == "" || !strings.HasPrefix(p.Integrity, "sha512-") {
			t.Errorf("%s has no licence or no integrity", p.Name)
		}
	}
	for _, pattern := range []string{"vendor/*", "vendor/*/*"} {
		found, _ := filepath.Glob(pattern)
		for _, name := range found {
			if name = filepath.ToSlash(strings.TrimPrefix(name, "vendor/")); name != "highlight" && name != "lucide" && !slices.Contains(known, name) {
				t.Errorf("vendor/%s is in no package of vendor.json", name)
			}
		}
	}
}

// modules returns the page's own sources.
func modules(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("page", func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		all[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil || len(all) < 10 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

// TestNoMarkup: the page never turns a text into markup or code.
func TestNoMarkup(t *testing.T) {
	banned := regexp.MustCompile("innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\\.write|DOMParser|createContextualFragment|\\beval\\b|new Function|set(Timeout|Interval)\\(\\s*['\"`]|\\sstyle=|javascript:|<script|\\son[a-z]+=")
	for name, text := range modules(t) {
		if name == "page/index.html" {
			text = strings.NewReplacer(`<script type="importmap">`, "", `<script type="module"`, "").Replace(text)
		}
		if found := banned.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
}

// TestWords: the page's texts are those that its modules use.
func TestWords(t *testing.T) {
	asked, listed := map[string]bool{}, map[string]bool{}
	for name, text := range modules(t) {
		for _, m := range regexp.MustCompile(`\bt\('([^']*)'`).FindAllStringSubmatch(text, -1) {
			asked[strings.ReplaceAll(m[1], `\u2019`, "’")] = true
		}
		if strings.HasSuffix(name, ".js") && !strings.HasPrefix(text, "// @ts-check\n") {
			t.Errorf("%s is not checked by tsc", name)
		}
	}
	for _, w := range words {
		if !asked[w.String()] {
			t.Errorf("no module says %q", w)
		}
		listed[w.String()] = true // several modules may use and list it
	}
	for w := range asked {
		if !listed[w] {
			t.Errorf("the words lack %q", w)
		}
	}
	var said map[string]string
	if err := json.Unmarshal(wordsIn(phrases.For("zh-Hant")), &said); err != nil || said["Send"] != "傳送" {
		t.Errorf("in Chinese: %v, %v", said["Send"], err)
	}
}

// TestIcons: the page has exactly the icons that it uses.
func TestIcons(t *testing.T) {
	has, asked := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`<symbol id="([^"]+)" viewBox="0 0 24 24"> ?<`).FindAllStringSubmatch(serve(NewAssets(), "/app/assets/"+NewAssets().hash+"/icons.svg", nil).Body.String(), -1) {
		has[m[1]] = true
	}
	for name, text := range modules(t) {
		for _, m := range regexp.MustCompile(`\bicon\('([^']*)'`).FindAllStringSubmatch(text, -1) {
			if asked[m[1]] = true; !has[m[1]] {
				t.Errorf("%s asks for the icon %q, which vendor/lucide lacks", name, m[1])
			}
		}
	}
	for name := range has {
		if !asked[name] {
			t.Errorf("no module asks for the icon %q: leave it out of vendor.json", name)
		}
	}
}

func serve(a *Assets, path string, head map[string]string) *httptest.ResponseRecorder {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /app/{$}", func(w http.ResponseWriter, r *http.Request) {
		a.Shell(w, r, "http://127.0.0.1:1/app/frames/", http.StatusOK)
	})
	mux.HandleFunc("GET /app/assets/{hash}/{file...}", a.File)
	mux.HandleFunc("GET /app/phrases/{lang}", a.Phrases)
	r := httptest.NewRequest("GET", path, nil)
	for k, v := range head {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

// TestAssets: the shell may load only nize's own files, all files that it names exist, and
// the first load is small.
func TestAssets(t *testing.T) {
	a := NewAssets()
	w := serve(a, "/app/", nil)
	page := w.Body.String()
	policy := w.Header().Get("Content-Security-Policy")
	inline := regexp.MustCompile(`<script type="importmap">(.*?)</script>`).FindStringSubmatch(page)
	if inline == nil {
		t.Fatal("no import map")
	}
	sum := sha256.Sum256([]byte(inline[1]))
	want := "default-src 'none'; script-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; frame-src http://127.0.0.1:1/app/frames/; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
	if policy != want {
		t.Errorf("the policy is\n%s\nwant\n%s", policy, want)
	}
	for name, value := range map[string]string{
		"Cache-Control": "no-cache", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
		"X-Content-Type-Options": "nosniff", "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=()",
	} {
		if got := w.Header().Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	total := serve(a, "/app/", map[string]string{"Accept-Encoding": "gzip"}).Body.Len() + serve(a, "/app/phrases/zh-Hans.json", map[string]string{"Accept-Encoding": "gzip"}).Body.Len()
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`"(/app/assets/[^"]+\.(?:js|css|svg))"`).FindAllStringSubmatch(page, -1) {
		plain, small := serve(a, m[1], nil), serve(a, m[1], map[string]string{"Accept-Encoding": "br, gzip;q=0.5"})
		z, err := gzip.NewReader(bytes.NewReader(small.Body.Bytes()))
		if err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		if content, err := io.ReadAll(z); err != nil || plain.Code != 200 || !bytes.Equal(content, plain.Body.Bytes()) {
			t.Errorf("%s: %d, %v", m[1], plain.Code, err)
		}
		if got := small.Header().Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("%s: %q", m[1], got)
		}
		if !seen[m[1]] {
			total += small.Body.Len()
		}
		seen[m[1]] = true
		old := strings.Replace(m[1], a.hash, "0123456789abcdef", 1)
		if code := serve(a, old, nil).Code; code != 404 {
			t.Errorf("another hash gave %d", code)
		}
	}
	t.Logf("the first load is %d bytes", total)
	if total > 120<<10 || len(seen) < 15 {
		t.Errorf("the first load has %d bytes in %d files", total, len(seen))
	}
	for path, code := range map[string]int{"/app/phrases/en.json": 200, "/app/phrases/fr.json": 404, "/app/phrases/en": 404, "/app/assets/" + a.hash + "/vendor.json": 404, "/app/assets/" + a.hash + "/highlight/go.js": 200} {
		if got := serve(a, path, nil).Code; got != code {
			t.Errorf("%s: %d, want %d", path, got, code)
		}
	}
	tag := serve(a, "/app/", nil).Header().Get("ETag")
	if got := serve(a, "/app/", map[string]string{"If-None-Match": tag}).Code; got != http.StatusNotModified {
		t.Errorf("the same shell again: %d", got)
	}
}
