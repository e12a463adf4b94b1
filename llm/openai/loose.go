package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"nize/store"
)

// Services send numbers where the protocol has strings, and vice versa. These types accept
// what has only one possible meaning; anything else counts as missing.

// looseText is a string; a number is accepted as its literal.
type looseText string

func (t *looseText) UnmarshalJSON(b []byte) error {
	var s string
	switch {
	case json.Unmarshal(b, &s) == nil:
		*t = looseText(s)
	case len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9'):
		*t = looseText(b)
	}
	return nil
}

// looseInt is an integer, which may be sent as a string.
type looseInt struct {
	n     int
	given bool
}

func (i *looseInt) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err == nil && n == float64(int(n)) {
		*i = looseInt{int(n), true}
	}
	return nil
}

// pieces are parts of calls; a single one may be sent without a list.
type pieces []piece

func (p *pieces) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		var one piece
		if err := json.Unmarshal(b, &one); err != nil {
			return err
		}
		if one.Function.Name != "" {
			*p = pieces{one}
			return nil
		}
	}
	return json.Unmarshal(b, (*[]piece)(p))
}

// isMarkup reports whether a body is a web page or an XML document: neither JSON nor an
// event stream begins like that.
func isMarkup(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body[:min(len(body), 512)], "\ufeff \t\r\n"), []byte("<"))
}

// isXML reports whether markup is an XML document rather than a page.
func isXML(body []byte) bool {
	head := strings.ToLower(string(bytes.TrimLeft(body[:min(len(body), 512)], "\ufeff \t\r\n")))
	for _, mark := range []string{"<!doctype html", "<html", "<head", "<body", "<title"} {
		if strings.Contains(head, mark) {
			return false
		}
	}
	return isMarkup(body) && !strings.HasPrefix(head, "<!--")
}

// wordsOf returns the text of a body that isn't JSON: the text between the tags of an XML
// document, or all of a plain text.
func wordsOf(body []byte) string {
	var words strings.Builder
	for rest := strings.TrimPrefix(string(body), "\ufeff"); rest != ""; {
		text, tag, ok := strings.Cut(rest, "<")
		if !ok || !isMarkup(body) {
			words.WriteString(rest)
			break
		}
		words.WriteString(text + " ")
		if _, rest, ok = strings.Cut(tag, ">"); !ok {
			break
		}
	}
	return strings.Join(strings.Fields(words.String()), " ")
}

// pageTitle returns the title of a page, "" if it has none.
func pageTitle(body []byte) string {
	text := string(body)
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // folding changed the offsets
		return ""
	}
	_, rest, ok := strings.Cut(lower, "<title")
	if !ok {
		return ""
	}
	open := strings.IndexByte(rest, '>')
	end := strings.Index(rest, "</title>")
	if open < 0 || end < open {
		return ""
	}
	from := len(lower) - len(rest)
	return strings.Join(strings.Fields(text[from+open+1:from+end]), " ")
}

// modelNames returns the names in a list of models: under data, models or result or at the
// top level, as objects or plain names. ok is false if the body isn't such a list.
func modelNames(body []byte) (names []string, ok bool) {
	var doc struct {
		Data   json.RawMessage `json:"data"`
		Models json.RawMessage `json:"models"`
		Result json.RawMessage `json:"result"`
	}
	body = bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\ufeff"))
	list := json.RawMessage(body)
	for range 3 { // a list within "data" within "result"
		if doc.Data, doc.Models, doc.Result = nil, nil, nil; json.Unmarshal(list, &doc) != nil {
			break
		}
		list = nil
		for _, other := range []json.RawMessage{doc.Data, doc.Models, doc.Result} {
			if len(list) == 0 || store.IsEmptyJSON(list) && len(other) > 0 {
				list = other
			}
		}
		if len(list) == 0 || list[0] != '{' {
			break
		}
	}
	var items []json.RawMessage
	if json.Unmarshal(list, &items) != nil {
		return nil, string(list) == "null"
	}
	for _, item := range items {
		var text looseText
		var m struct {
			ID    looseText `json:"id"`
			Name  looseText `json:"name"`
			Model looseText `json:"model"`
		}
		if json.Unmarshal(item, &m) == nil {
			text = m.ID
			for _, other := range []looseText{m.Name, m.Model} {
				if text == "" {
					text = other
				}
			}
		} else if json.Unmarshal(item, &text) != nil {
			continue
		}
		if text != "" {
			names = append(names, string(text))
		}
	}
	return names, true
}
