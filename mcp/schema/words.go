package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"nize/store"
)

// choice formats "one of" some values, the first twelve of them.
func choice(values []any) store.Text {
	var shown []string
	for _, v := range values {
		if len(shown) == 12 {
			return store.Textf("one of %s … (%d in all)", strings.Join(shown, ", "), len(values))
		}
		word, _ := display(v)
		shown = append(shown, word.String())
	}
	return store.Textf("one of %v", strings.Join(shown, ", "))
}

// mustBe formats a rule that requires a value, or one of several. In translations a word
// and a literal value are placed differently: words use %v and literals %s.
func mustBe(values ...any) store.Text {
	if len(values) > 1 {
		return store.Textf("must be %v", choice(values))
	}
	word, literal := display(values[0])
	if literal {
		return store.Textf("must be %s", word)
	}
	return store.Textf("must be %v", word)
}

// received appends the received value to a rule, unless it may be a secret.
func (x *explainer) received(at []string, rule store.Text) store.Text {
	for _, name := range at {
		if store.SecretName(name) {
			return rule
		}
	}
	word, literal := display(x.value(at))
	if literal {
		return store.Textf("%s, received %s", rule, word)
	}
	return store.Textf("%s, received %v", rule, word)
}

func (x *explainer) value(at []string) any {
	v := x.doc
	for _, token := range at {
		switch t := v.(type) {
		case map[string]any:
			v = t[token]
		case []any:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(t) {
				v = t[i]
			}
		}
	}
	return v
}

// display formats a value for a message, short and on one line: literally, or in words. It
// doesn't repeat values that look like keys.
func display(v any) (word store.Text, literal bool) {
	switch t := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(t))
		if len(names) > 6 {
			names = append(names[:6], "…")
		}
		if list := clean(store.Clip(strings.Join(names, ", "), 80)); list != "" {
			return store.Textf("an object with %s", list), false
		}
		return store.Textf("an object with nothing in it"), false
	case []any:
		return store.Textf("an array of %d", len(t)), false
	case string:
		return store.Plain(strconv.QuoteToGraphic(store.RedactText(store.Clip(t, 60)))), true
	case json.Number:
		return store.Plain(store.Clip(string(t), 60)), true
	case nil:
		return store.Textf("null"), false
	}
	return store.Plain(fmt.Sprint(v)), true
}

// orList joins types with "or".
func orList(types []string, name func(string) store.Text) (list store.Text) {
	for i, t := range types {
		if i == 0 {
			list = name(t)
		} else {
			list = store.Textf("%s or %s", list, name(t))
		}
	}
	return list
}

// aType returns a type with its article.
func aType(name string) store.Text {
	switch name {
	case "object":
		return store.Textf("an object")
	case "array":
		return store.Textf("an array")
	case "integer":
		return store.Textf("an integer")
	case "number":
		return store.Textf("a number")
	case "string":
		return store.Textf("a string")
	case "boolean":
		return store.Textf("a boolean")
	}
	return bareType(name)
}

func bareType(name string) store.Text {
	switch name {
	case "object":
		return store.Textf("object")
	case "array":
		return store.Textf("array")
	case "integer":
		return store.Textf("integer")
	case "number":
		return store.Textf("number")
	case "string":
		return store.Textf("string")
	case "boolean":
		return store.Textf("boolean")
	}
	return store.Textf("null")
}

// ratio formats a limit, exactly if it is a short decimal.
func ratio(r *big.Rat) string {
	if prec, exact := r.FloatPrec(); exact && prec < 20 {
		return store.Clip(r.FloatString(prec), 40)
	}
	return store.Clip(r.RatString(), 40)
}

// pointer returns the JSON pointer (RFC 6901) of a location, or "the object" for the whole.
func pointer(at []string) string {
	if len(at) == 0 {
		return "the arguments"
	}
	var out strings.Builder
	for _, token := range at {
		out.WriteString("/" + show(token))
	}
	return store.Clip(out.String(), 200)
}

func show(token string) string {
	return clean(store.Clip(strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1"), 80))
}

// clean removes parts of a schema's or a caller's text that must not appear in a message.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, s)
}
