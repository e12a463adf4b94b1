package view

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"
)

// seal is the script that comes before those of a view.
//
//go:embed seal.js
var seal string

// framing are the elements that hold another document.
var framing = []string{"iframe", "frame", "frameset", "fencedframe", "portal", "object", "embed", "applet"}

// Seal makes the page of a view as it is served: without WebRTC, which no policy of a
// page governs in most browsers. A frame within it would have WebRTC again, so one that
// was granted no domains for frames has none, neither in its HTML nor by its scripts.
// [Claims.Sends] says what is left.
func Seal(page []byte, nonce string, d Domains) []byte {
	frames := "false"
	if len(d.Frame) > 0 {
		frames = "true"
	} else {
		page = withoutFrames(page)
	}
	var b bytes.Buffer
	if len(page) > 9 && strings.EqualFold(string(bytes.TrimSpace(page)[:min(9, len(bytes.TrimSpace(page)))]), "<!doctype") {
		b.WriteString("<!doctype html>") // the page's own comes too late
	}
	b.WriteString("<script")
	if nonce != "" {
		b.WriteString(` nonce="` + nonce + `"`)
	}
	b.WriteString(">" + strings.Replace(seal, "__FRAMES__", frames, 1) + "</script>\n")
	b.Write(page)
	return b.Bytes()
}

// withoutFrames puts a space after each < that would begin an element with a document
// of its own. That makes it text wherever a browser reads HTML, however it has got
// there, and means the same in a script.
func withoutFrames(page []byte) []byte {
	var b bytes.Buffer
	for {
		at := bytes.IndexByte(page, '<')
		if at < 0 {
			b.Write(page)
			return b.Bytes()
		}
		b.Write(page[:at+1])
		page = page[at+1:]
		end := bytes.IndexAny(page[:min(len(page), 20)], " \t\n\f\r/>")
		if end > 0 && slices.Contains(framing, strings.ToLower(string(page[:end]))) {
			b.WriteByte(' ')
		}
	}
}

// Allowlist is the Connection-Allowlist of a view: where a browser that knows it (those
// on Chromium) lets the view and its frames connect to, by whatever protocol, also to go
// there or to ask for an address by its name. It lets WebRTC nowhere.
func Allowlist(d Domains) string {
	var b strings.Builder
	for i, at := range d.All() {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(`"` + strings.Replace(at, "wss://", "https://", 1) + `"`) // which stands for both
	}
	return "(" + b.String() + ")"
}
