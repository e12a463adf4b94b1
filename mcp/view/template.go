package view

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"

	"golang.org/x/net/html"
)

// shim is window.openai over the messages of MCP Apps: templates are written for it.
//
//go:embed shim.js
var shim string

// head goes before a template: the page's own background, by the theme that the shim
// keeps.
const head = `<!doctype html>
<meta charset="utf-8">
<style>:root{color-scheme:light}:root[data-theme=dark]{color-scheme:dark}body{margin:0;background:#ffffff}:root[data-theme=dark] body{background:#111827}</style>
`

// Globals are what a template finds at once, before its scripts run.
type Globals struct {
	Theme    string          `json:"theme"`  // light or dark
	Locale   string          `json:"locale"` // with its region, such as en-US
	Input    json.RawMessage `json:"toolInput"`
	Output   json.RawMessage `json:"toolOutput"`           // structuredContent
	Metadata json.RawMessage `json:"toolResponseMetadata"` // of the result
	State    json.RawMessage `json:"widgetState"`          // what it kept for who looks at it
}

// Fill makes the page of a template: it gets what window.openai is, and the nonce by
// which its own scripts run, "" where those of a view run anyhow. Data can't end the script that it is in: JSON's < and >
// are written as escapes.
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

// Standalone makes the page of a template for a host that is not nize: it asks that for
// the result, and when it is there writes the template, which finds window.openai as
// one that [Fill] made does.
func Standalone(template string) ([]byte, error) {
	text, err := json.Marshal(head + template)
	if err != nil {
		return nil, err
	}
	return []byte(head + "<script>" + strings.NewReplacer("__GLOBALS__", `{"theme":"light","toolInput":null,"toolOutput":null,"toolResponseMetadata":null,"widgetState":null}`, "__TEMPLATE__", string(text)).Replace(shim) + "</script>\n"), nil
}

// addNonce writes a template with the nonce at each of its scripts.
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
			return errors.New("a template that is no HTML")
		}
		if kind == html.StartTagToken || kind == html.SelfClosingTagToken {
			raw = bytes.Clone(raw) // TagName changes it
			if name, _ := z.TagName(); string(name) == "script" {
				b.Write(raw[:len("<script")])
				b.WriteString(` nonce="` + nonce + `"`)
				raw = raw[len("<script"):]
			}
		}
		b.Write(raw)
	}
}
