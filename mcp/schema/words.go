package schema

import (
	"cmp"
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

// choice is "one of" some values, the first twelve of them.
func choice(values []any) string {
	if len(values) == 1 {
		return display(values[0])
	}
	var shown []string
	for _, v := range values {
		if len(shown) == 12 {
			return fmt.Sprintf("one of %s … (%d in all)", strings.Join(shown, ", "), len(values))
		}
		shown = append(shown, display(v))
	}
	return "one of " + strings.Join(shown, ", ")
}

// received is "; received …", unless the value may be a secret.
func (x *explainer) received(at []string) string {
	for _, name := range at {
		if store.SecretName(name) {
			return ""
		}
	}
	return ", received " + display(x.value(at))
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

// display writes a value for a message, short and on one line. What looks
// like a key is not repeated.
func display(v any) string {
	switch t := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(t))
		if len(names) > 6 {
			names = append(names[:6], "…")
		}
		return "an object with " + cmp.Or(clean(store.Clip(strings.Join(names, ", "), 80)), "nothing in it")
	case []any:
		return fmt.Sprintf("an array of %d", len(t))
	case string:
		return strconv.QuoteToGraphic(store.RedactText(store.Clip(t, 60)))
	case json.Number:
		return store.Clip(string(t), 60)
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

func orList(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		switch w {
		case "null":
			out[i] = w
		case "object", "array", "integer":
			out[i] = "an " + w
		default:
			out[i] = "a " + w
		}
	}
	return strings.Join(out, " or ")
}

// ratio writes a bound exactly where it is a short decimal.
func ratio(r *big.Rat) string {
	if prec, exact := r.FloatPrec(); exact && prec < 20 {
		return store.Clip(r.FloatString(prec), 40)
	}
	return store.Clip(r.RatString(), 40)
}

// pointer is the JSON pointer (RFC 6901) of a place; the whole is "the object".
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

// clean drops what a message must not carry along from a schema or a caller.
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
