package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"nize/bots/phrases"
	"nize/bots/theme"
)

// The page's files: its own modules and third-party ones (vendor/vendor.json lists their
// sources, scripts/vendor rebuilds them). Modules in subfolders of page are loaded when
// they are needed.
//
//go:embed page vendor/*.js vendor/highlight/*.js vendor/lucide/*.svg
var files embed.FS

// iconsName is the file with all icons, iconsFrom the folder with one file per icon.
const (
	iconsName = "icons.svg"
	iconsFrom = "vendor/lucide"
)

var iconShape = regexp.MustCompile(`(?s)<svg.*?>(.*)</svg>`)

// sprite returns the icons as symbols of one document, which is loaded once. The style
// sheet determines how they are drawn (lines in the colour of the text).
func sprite() []byte {
	var b bytes.Buffer
	b.WriteString("<svg xmlns=\"http://www.w3.org/2000/svg\"><!-- Lucide, ISC: vendor/lucide/LICENSE -->\n")
	list, _ := files.ReadDir(iconsFrom) // embedded files are in memory
	for _, f := range list {
		one, _ := files.ReadFile(iconsFrom + "/" + f.Name())
		if shape := iconShape.FindSubmatch(one); shape != nil {
			fmt.Fprintf(&b, "<symbol id=%q viewBox=\"0 0 24 24\">%s</symbol>\n", strings.TrimSuffix(f.Name(), ".svg"), bytes.Join(bytes.Fields(shape[1]), []byte(" ")))
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// bare maps the names by which modules import third-party code to files.
var bare = map[string]string{"preact": "preact.js", "preact/hooks": "preact-hooks.js", "htm": "htm.js", "marked": "marked.js", "hljs/": "highlight/"}

// themeName is the file of the theme that all pages load before other styles.
const themeName = "base.css"

// first are the modules that every visit needs: the shell preloads them, so that the
// browser doesn't discover them one by one.
var first = []string{"preact.js", "preact-hooks.js", "htm.js", "marked.js"}

// Assets are the files of the page: a shell, the same for everybody and without any data,
// and the files that it loads, whose names contain a hash of their content.
type Assets struct {
	hash  string
	shell asset
	files map[string]asset
	words map[string]func() asset // made at the first request
	// policy is the shell's content security policy.
	policy string
}

type asset struct {
	kind  string
	plain []byte
	small func() []byte // compressed at the first request, to keep the start fast
}

func newAsset(kind string, content []byte) asset {
	return asset{kind, content, sync.OnceValue(func() []byte {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
		_, _ = z.Write(content)                               // writes to memory can't fail
		_ = z.Close()
		return b.Bytes()
	})}
}

var kinds = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// NewAssets reads the files.
func NewAssets() *Assets {
	a := &Assets{files: map[string]asset{}, words: map[string]func() asset{}}
	sum := sha256.New()
	sum.Write(theme.Base)
	a.files[themeName] = newAsset(kinds[".css"], theme.Base)
	a.files[iconsName] = newAsset(kinds[".svg"], sprite())
	modules, styles := []string{}, []string{themeName}
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error { // embedded files are in memory
		if err != nil || d.IsDir() {
			return err
		}
		_, short, _ := strings.Cut(name, "/")
		content, _ := files.ReadFile(name)
		inner := sha256.Sum256(content)
		sum.Write([]byte(name + "\x00"))
		sum.Write(inner[:])
		if kind := kinds[path.Ext(name)]; kind != "" && path.Dir(name) != iconsFrom {
			a.files[short] = newAsset(kind, content)
			switch {
			case path.Dir(name) != "page":
			case path.Ext(name) == ".js":
				modules = append(modules, short)
			case path.Ext(name) == ".css":
				styles = append(styles, short)
			}
		}
		return nil
	})
	a.hash = hex.EncodeToString(sum.Sum(nil))[:16]
	base := "/app/assets/" + a.hash + "/"
	imports := map[string]string{}
	for name, file := range bare {
		imports[name] = base + file
	}
	importMap, _ := json.Marshal(map[string]map[string]string{"imports": imports}) // encoding strings can't fail
	var preload strings.Builder
	for _, name := range styles {
		preload.WriteString(`<link rel="stylesheet" href="` + base + name + `">` + "\n")
	}
	preload.WriteString(`<link rel="preload" as="image" type="image/svg+xml" href="` + base + iconsName + `">` + "\n")
	for _, name := range slices.Concat(first, modules) {
		preload.WriteString(`<link rel="modulepreload" href="` + base + name + `">` + "\n")
	}
	page, _ := files.ReadFile("page/index.html")
	shell := strings.NewReplacer("{{base}}", base, "{{imports}}", string(importMap), "{{preload}}", preload.String()).Replace(string(page))
	a.shell = newAsset("text/html; charset=utf-8", []byte(shell))
	digest := sha256.Sum256(importMap)
	a.policy = "default-src 'none'; script-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; frame-src "
	for _, lang := range []string{"en", "zh-Hans", "zh-Hant"} {
		a.words[lang] = sync.OnceValue(func() asset { return newAsset("application/json", wordsIn(phrases.For(lang))) })
	}
	return a
}

// Shell responds with the shell and a status; the shell also shows the message for a
// missing page. frames is the origin of the frames of views.
func (a *Assets) Shell(w http.ResponseWriter, r *http.Request, frames string, status int) {
	h := w.Header()
	h.Set("Content-Security-Policy", a.policy+frames+"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=()")
	h.Set("Cache-Control", "no-cache")
	a.shell.serve(w, r, status)
}

// File responds with one file, or 404 if its hash is not the current one.
func (a *Assets) File(w http.ResponseWriter, r *http.Request) {
	file, ok := a.files[r.PathValue("file")]
	if !ok || r.PathValue("hash") != a.hash {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	file.serve(w, r, http.StatusOK)
}

// Phrases responds with the page's texts in a language: {lang} is LANG.json.
func (a *Assets) Phrases(w http.ResponseWriter, r *http.Request) {
	lang, ok := strings.CutSuffix(r.PathValue("lang"), ".json")
	words, known := a.words[lang]
	if !ok || !known {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	words().serve(w, r, http.StatusOK)
}

func (a asset) serve(w http.ResponseWriter, r *http.Request, status int) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Vary", "Accept-Encoding")
	sum := sha256.Sum256(a.plain)
	body, tag := a.plain, `"`+hex.EncodeToString(sum[:8])+`"`
	if acceptsGzip(r) {
		body = a.small()
		h.Set("Content-Encoding", "gzip")
		tag = strings.TrimSuffix(tag, `"`) + `-gz"`
	}
	h.Set("ETag", tag)
	if status == http.StatusOK && r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the browser is gone
}

func acceptsGzip(r *http.Request) bool {
	for item := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, rest, _ := strings.Cut(strings.TrimSpace(item), ";")
		if name == "gzip" && strings.ReplaceAll(strings.TrimSpace(rest), " ", "") != "q=0" {
			return true
		}
	}
	return false
}
