package view

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"

	"golang.org/x/net/html"
)

// shim implements window.openai on the messages of MCP Apps: templates are written for it.
//
//go:embed shim.js
var shim string

// head precedes a template: the page's own background, in the theme that the shim tracks.
const head = `<!doctype html>
<meta charset="utf-8">
<style>:root{color-scheme:light}:root[data-theme=dark]{color-scheme:dark}body{margin:0;background:#ffffff}:root[data-theme=dark] body{background:#111827}</style>
`

// Globals holds the values that are available to a template before its scripts run.
type Globals struct {
	Theme    string          `json:"theme"`  // light or dark
	Locale   string          `json:"locale"` // with a region, such as en-US
	Input    json.RawMessage `json:"toolInput"`
	Output   json.RawMessage `json:"toolOutput"`           // structuredContent
	Metadata json.RawMessage `json:"toolResponseMetadata"` // of the result
	State    json.RawMessage `json:"widgetState"`          // the state that it stored for this viewer
}

// Fill returns the page of a template, with window.openai and the nonce with which its own
// scripts run; nonce is "" if a view's scripts run anyway. Data can't end the script that
// contains it, because JSON's < and > are escaped.
func Fill(template, nonce string, g Globals) ([]byte, error) {
	data, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(head + "<script nonce=\"" + nonce + "\">")
	b.WriteString(strings.NewReplacer("__GLOBALS__", string(data), "__TEMPLATE__", "null").Replace(shim))
	b.WriteString("</script>\n")
	if nonce == "" {
		b.WriteString(template)
	} else if err := addNonce(&b, template, nonce); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Standalone returns the page of a template for a host other than nize: it requests the
// result from the host, and then writes the template, which finds window.openai as in a
// page of [Fill].
func Standalone(template string) ([]byte, error) {
	text, err := json.Marshal(head + template)
	if err != nil {
		return nil, err
	}
	return []byte(head + "<script>" + strings.NewReplacer("__GLOBALS__", `{"theme":"light","toolInput":null,"toolOutput":null,"toolResponseMetadata":null,"widgetState":null}`, "__TEMPLATE__", string(text)).Replace(shim) + "</script>\n"), nil
}

// addNonce writes a template with the nonce on each of its scripts.
func addNonce(b *bytes.Buffer, template, nonce string) error {
	z := html.NewTokenizer(strings.NewReader(template))
	for {
		kind := z.Next()
		raw := z.Raw()
		if kind == html.ErrorToken {
			b.Write(raw)
			if z.Err().Error() == "EOF" {
				return nil
			}
			return errors.New("the template is not HTML")
		}
		if kind == html.StartTagToken || kind == html.SelfClosingTagToken {
			raw = bytes.Clone(raw) // TagName modifies it
			if name, _ := z.TagName(); string(name) == "script" {
				b.Write(raw[:len("<script")])
				b.WriteString(` nonce="` + nonce + `"`)
				raw = raw[len("<script"):]
			}
		}
		b.Write(raw)
	}
}
