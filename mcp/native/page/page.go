// Package page converts the main content of a web page to Markdown, and bytes in any
// charset to text.
//
// External content is read within limits: a page with more elements, longer tags or deeper
// lists than people write is not passed to the libraries, whose time and memory would grow
// with it; only its plain text is read.
package page

import (
	"bytes"
	"net/url"
	"strings"
	"unicode/utf8"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

const (
	maxElements = 50_000
	maxTag      = 64 << 10 // bytes of one tag including its attributes
	maxIndent   = 40       // nested lists and quotations

	// minArticle is the minimum share of an article in the page's text; if less was found,
	// the page is not an article, and all of it is used.
	minArticle = 0.25
)

// Decode returns a body as UTF-8. The charset is that of a byte order mark, the content
// type or a meta element, in this order.
func Decode(body []byte, contentType string) string {
	encoding, _, _ := charset.DetermineEncoding(body[:min(len(body), 1024)], contentType)
	text, err := encoding.NewDecoder().Bytes(body)
	if err != nil {
		text = body
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	return strings.ReplaceAll(string(bytes.ToValidUTF8(text, []byte("\uFFFD"))), "\x00", "\uFFFD")
}

// Markdown returns the main content of a page. at is its URL, against which relative links
// are resolved; it may be nil.
func Markdown(text string, at *url.URL) string {
	if !readable(text) {
		return plain(text)
	}
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return plain(text)
	}
	whole := length(doc)
	title := titleOf(doc)
	parser := readability.NewParser()
	parser.MaxElemsToParse = 2 * maxElements // a parsed page has more elements than its source
	node := doc
	article, err := parser.ParseDocument(doc, at)
	if err == nil && article.Node != nil && float64(length(article.Node)) >= minArticle*float64(whole) {
		node = article.Node
		if t := article.Title(); t != "" {
			title = t
		}
	}
	options := []converter.ConvertOptionFunc{}
	if at != nil {
		options = append(options, converter.WithDomain(at.Scheme+"://"+at.Host))
	}
	md, err := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()),
		converter.WithEscapeMode(converter.EscapeModeDisabled)).ConvertNode(node, options...)
	if err != nil {
		return plain(text)
	}
	out := strings.TrimSpace(string(md))
	if title = strings.Join(strings.Fields(title), " "); title != "" && !strings.Contains(head(out), title) {
		out = strings.TrimSpace("# " + title + "\n\n" + out)
	}
	return out
}

// head returns the part of an article that may contain its own title.
func head(s string) string { return s[:min(len(s), 300)] }

// readable reports whether a page is passed to the libraries.
func readable(text string) bool {
	z := html.NewTokenizer(strings.NewReader(text))
	elements, indent := 0, 0
	for {
		switch z.Next() {
		case html.ErrorToken:
			return true
		case html.StartTagToken, html.SelfClosingTagToken:
			elements++
			if len(z.Raw()) > maxTag || elements > maxElements {
				return false
			}
			if indents(z) {
				if indent++; indent > maxIndent {
					return false
				}
			}
		case html.EndTagToken:
			if indents(z) && indent > 0 {
				indent--
			}
		}
	}
}

func indents(z *html.Tokenizer) bool {
	name, _ := z.TagName()
	switch string(name) {
	case "ul", "ol", "blockquote", "table":
		return true
	}
	return false
}

// plain returns the plain text of a page, line by line.
func plain(text string) string {
	var out strings.Builder
	z := html.NewTokenizer(strings.NewReader(text))
	skip := ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(out.String())
		case html.StartTagToken:
			if name, _ := z.TagName(); hidden(string(name)) {
				skip = string(name)
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == skip {
				skip = ""
			}
		case html.TextToken:
			if line := strings.Join(strings.Fields(string(z.Text())), " "); line != "" && skip == "" {
				out.WriteString(line + "\n")
			}
		}
	}
}

func hidden(element string) bool {
	switch element {
	case "script", "style", "noscript", "template", "svg":
		return true
	}
	return false
}

// length counts the characters of a node's visible text.
func length(n *html.Node) (total int) {
	if n.Type == html.TextNode {
		return utf8.RuneCountInString(strings.TrimSpace(n.Data))
	}
	if n.Type == html.ElementNode && hidden(n.Data) {
		return 0
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		total += length(c)
	}
	return total
}

func titleOf(n *html.Node) string {
	if n.Type == html.ElementNode && n.Data == "title" && n.FirstChild != nil {
		return n.FirstChild.Data
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if t := titleOf(c); t != "" {
			return t
		}
	}
	return ""
}
