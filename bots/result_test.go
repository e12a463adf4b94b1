package bots_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"nize/bots"
	"nize/store"
)

// returned is a call with a result of these items.
func returned(items ...string) store.Call {
	return store.Call{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Server: "box", Tool: "draw", Result: &store.Result{Raw: json.RawMessage(`{"content":[` + strings.Join(items, ",") + `]}`)}}
}

func imageItem(kind string, data []byte) string {
	return fmt.Sprintf(`{"type":"image","mimeType":%q,"data":%q}`, kind, base64.StdEncoding.EncodeToString(data))
}

// An image's bytes determine its type, and the number of images is limited.
func TestImagesOf(t *testing.T) {
	good := picture(t, 3, 2)
	one := imageItem("image/png", good)
	large := imageItem("image/png", append(bytes.Clone(good), make([]byte, 5<<20)...))
	for name, c := range map[string]struct {
		call store.Call
		want int
		left int
	}{
		"none":                  {returned(`{"type":"text","text":"an image/png"}`), 0, 0},
		"no result":             {store.Call{}, 0, 0},
		"an error":              {store.Call{Result: &store.Result{Raw: returned(one).Result.Raw, Error: &store.CallError{}}}, 0, 0},
		"one":                   {returned(one), 1, 0},
		"another type is named": {returned(imageItem("image/jpeg", good)), 1, 0},
		"of a resource":         {returned(fmt.Sprintf(`{"type":"resource","resource":{"uri":"a:b","mimeType":"image/png","blob":%q}}`, base64.StdEncoding.EncodeToString(good))), 1, 0},
		"SVG":                   {returned(imageItem("image/svg+xml", []byte("<svg/>"))), 0, 1},
		"SVG as PNG":            {returned(imageItem("image/png", []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`))), 0, 1},
		"a page as PNG":         {returned(imageItem("image/png", []byte("<html><script>alert(1)</script>"))), 0, 1},
		"half of one":           {returned(imageItem("image/png", good[:20])), 0, 1},
		"sound":                 {returned(imageItem("audio/wav", good)), 0, 0},
		"too many":              {returned(strings.Split(strings.Repeat(one+";", 10), ";")[:10]...), 8, 2},
		"too large together":    {returned(large, large, one), 2, 1},
	} {
		got := bots.ImagesOf(c.call)
		if len(got.List) != c.want || got.Left != c.left {
			t.Errorf("%s: %d images and %d left, want %d and %d", name, len(got.List), got.Left, c.want, c.left)
		}
		for i, image := range got.List {
			if want := fmt.Sprintf("result-%s-%d.png", c.call.ID, i+1); c.call.ID != "" && image.Name != want {
				t.Errorf("%s: it is called %s, want %s", name, image.Name, want)
			}
		}
	}
}

// Other files have clean names, and their number is limited.
func TestFilesOf(t *testing.T) {
	blob := func(kind, uri string, size int) string {
		return fmt.Sprintf(`{"type":"resource","resource":{"uri":%q,"mimeType":%q,"blob":%q}}`, uri, kind, base64.StdEncoding.EncodeToString(make([]byte, size)))
	}
	long := strings.Repeat("é", 200)
	for name, c := range map[string]struct {
		items []string
		want  string
		left  string
	}{
		"text":          {[]string{`{"type":"resource","resource":{"uri":"a:b","text":"words"}}`}, "", ""},
		"plain":         {[]string{blob("application/pdf", "https://h/a/b.pdf?x=1#y", 1)}, "b.pdf", ""},
		"no ending":     {[]string{blob("application/pdf", "doc://7", 1)}, "file.pdf", ""},
		"opaque":        {[]string{blob("", "urn:x:thing", 1)}, "thing.bin", ""},
		"no address":    {[]string{blob("", "", 1)}, "file.bin", ""},
		"not a URL":     {[]string{blob("", "%zz/..", 1)}, "file.bin", ""},
		"a way out":     {[]string{blob("", `f:/a/..%2f..%5C.bashrc`, 1)}, "bashrc.bin", ""},
		"steering":      {[]string{blob("", "f:/<@U1>%E2%80%AEfdp.exe%0A", 1)}, "__U1__fdp.exe_", ""},
		"the same name": {[]string{blob("", "a/x.csv", 1), blob("", "b/x.csv", 1)}, "x.csv x-2.csv", ""},
		"long":          {[]string{blob("", "f:/"+long+".tar", 1)}, long[:2*76] + ".tar", ""},
		"sound":         {[]string{`{"type":"audio","mimeType":"audio/mpeg","data":"AAAA"}`}, "file.mp3", ""},
		"SVG":           {[]string{blob("image/svg+xml", "f:/a.svg", 4)}, "a.svg", ""},
		"too large":     {[]string{blob("", "f:/big.iso", 9<<20), blob("", "f:/small", 1)}, "small.bin", "big.iso (9.4 MB)"},
		"too many":      {slices.Repeat([]string{blob("", "f:/a.b", 1500)}, 9), "a.b a-2.b a-3.b a-4.b a-5.b a-6.b a-7.b a-8.b", "a-9.b (1 kB)"},
	} {
		var names []string
		got := bots.ImagesOf(returned(c.items...))
		for _, f := range got.Files {
			names = append(names, f.Name)
		}
		if strings.Join(names, " ") != c.want || strings.Join(got.LeftFiles, " ") != c.left || len(got.List)+got.Left > 0 {
			t.Errorf("%s: %q and left %q, want %q and %q", name, names, got.LeftFiles, c.want, c.left)
		}
	}
}

// Whatever a server returns, the shown items are images within the limits.
func FuzzImagesOf(f *testing.F) {
	f.Add([]byte(returned(imageItem("image/png", picture(f, 1, 1)), imageItem("image/gif", []byte("GIF89a"))).Result.Raw))
	f.Add([]byte(`{"content":[{"type":"resource","resource":{"uri":"f:/a%2e","blob":"aW1h"}},{"type":"audio","data":"aW1h"}]}`))
	f.Add([]byte(`{"content":[{"type":"resource","resource":{"blob":"aW1hZ2Uv","mimeType":"image/"}}]}`))
	f.Add([]byte(`{"content":[{"type":"image","data":"aW1h","image/":""}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, size := bots.ImagesOf(store.Call{Result: &store.Result{Raw: raw}}), 0
		for _, image := range got.List {
			size += len(image.Data)
			if read := bots.ReadFile(store.File{}, image.Data, 0); read.Type != image.Type {
				t.Errorf("%s is %s", image.Type, read.Type)
			}
		}
		for _, f := range got.Files {
			size += len(f.Data)
			if n := utf8.RuneCountInString(f.Name); n == 0 || n > 90 || strings.ContainsAny(f.Name, "/\\<>@\n") || strings.HasPrefix(f.Name, ".") {
				t.Errorf("a file is called %q", f.Name)
			}
		}
		if len(got.List)+len(got.Files) > 8 || size > 8<<20 {
			t.Errorf("%d images and %d files of %d bytes", len(got.List), len(got.Files), size)
		}
	})
}
