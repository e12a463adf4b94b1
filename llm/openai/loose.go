package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Services write numbers where the protocol has texts, and the other way round. These
// types read what can only mean one thing; anything else counts as not said.

// looseText is a text; a number is its literal.
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

// looseInt is a whole number, which may be written as a text.
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

// pieces are parts of calls; one alone may stand without its list.
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

// isPage reports whether a body is a web page.
func isPage(body []byte) bool {
	head := strings.ToLower(string(bytes.TrimLeft(body[:min(len(body), 512)], "\ufeff \t\r\n")))
	for _, start := range []string{"<!doctype html", "<html", "<head", "<body", "<title", "<?xml", "<!--"} {
		if strings.HasPrefix(head, start) {
			return true
		}
	}
	return false
}

// pageTitle is the title of a page, "" if it has none.
func pageTitle(body []byte) string {
	text := string(body)
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // folding moved what stands behind
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

// modelNames lists the names in a list of models: under data or models or bare, of
// objects or of names alone. ok is false for what is no such list.
func modelNames(body []byte) (names []string, ok bool) {
	var doc struct {
		Data   json.RawMessage `json:"data"`
		Models json.RawMessage `json:"models"`
	}
	body = bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\ufeff"))
	list := json.RawMessage(body)
	if json.Unmarshal(body, &doc) == nil {
		if list = doc.Data; list == nil {
			list = doc.Models
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
