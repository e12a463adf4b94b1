package view

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"
)

// seal is a script that runs before those of a view.
//
//go:embed seal.js
var seal string

// framing lists the elements that contain another document.
var framing = []string{"iframe", "frame", "frameset", "fencedframe", "portal", "object", "embed", "applet"}

// Seal returns the page of a view as it is served: without WebRTC, which no page policy
// restricts in most browsers. A frame within the page would have WebRTC again, so a view
// that was granted no domains for frames gets none, neither in its HTML nor through its
// scripts. [Claims.Sends] describes the remaining ways to send data.
func Seal(page []byte, nonce string, d Domains) []byte {
	frames := "false"
	if len(d.Frame) > 0 {
		frames = "true"
	} else {
		page = withoutFrames(page)
	}
	var b bytes.Buffer
	if len(page) > 9 && strings.EqualFold(string(bytes.TrimSpace(page)[:min(9, len(bytes.TrimSpace(page)))]), "<!doctype") {
		b.WriteString("<!doctype html>") // the page's own doctype comes too late
	}
	b.WriteString("<script")
	if nonce != "" {
		b.WriteString(` nonce="` + nonce + `"`)
	}
	b.WriteString(">" + strings.Replace(seal, "__FRAMES__", frames, 1) + "</script>\n")
	b.Write(page)
	return b.Bytes()
}

// withoutFrames inserts a space after each < that would start an element with its own
// document. That makes it text wherever a browser parses HTML, however the HTML was
// produced, and has the same meaning in a script.
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

// Allowlist returns the Connection-Allowlist of a view: the hosts to which a browser that
// supports it (those based on Chromium) lets the view and its frames connect, by any
// protocol, including navigation and DNS lookups. It allows no WebRTC.
func Allowlist(d Domains) string {
	var b strings.Builder
	for i, at := range d.All() {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(`"` + strings.Replace(at, "wss://", "https://", 1) + `"`) // an https entry covers both
	}
	return "(" + b.String() + ")"
}
