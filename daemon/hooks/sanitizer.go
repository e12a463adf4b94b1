package hooks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"nize/mcp"
	"nize/store"
)

// sanitizer changes or forbids arguments by a list of rules.
type sanitizer struct {
	named
	Rules []*sanitizerRule `json:"rules"`
}

// sanitizerRule applies to the value at a JSON pointer (RFC 6901). With a pattern it only
// applies if the value is a string that matches.
//
//	strip    removes the value
//	default  sets a missing value
//	redact   replaces it with value or [redacted]; with a pattern, replaces
//	         the matching parts
//	forbid   refuses the call
type sanitizerRule struct {
	Pointer string          `json:"pointer"`
	Pattern string          `json:"pattern"`
	Action  string          `json:"action"`
	Value   json.RawMessage `json:"value"`

	path    []string
	pattern *regexp.Regexp // nil for any value
}

const redacted = "[redacted]"

func newSanitizer(n named) (mcp.Hook, error) {
	s := &sanitizer{named: n}
	if err := decode(n.record, s); err != nil {
		return nil, err
	}
	if len(s.Rules) == 0 {
		return nil, store.Errorf(`want {"rules":[{"pointer":"/x","action":"strip|default|redact|forbid"}]}`)
	}
	for i, r := range s.Rules {
		if r == nil {
			return nil, store.Errorf("rule %d is null", i+1)
		}
		if err := r.prepare(); err != nil {
			return nil, store.Errorf("rule %d: %w", i+1, err)
		}
	}
	return s, nil
}

func (r *sanitizerRule) prepare() (err error) {
	if !strings.HasPrefix(r.Pointer, "/") {
		return store.Errorf("pointer “%s”: want a JSON pointer such as `/name` or `/list/0`", r.Pointer)
	}
	for _, part := range strings.Split(r.Pointer[1:], "/") {
		r.path = append(r.path, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
	}
	if r.Pattern != "" {
		if r.pattern, err = regexp.Compile(r.Pattern); err != nil {
			return store.Errorf("pattern “%s”: it is not a regular expression", r.Pattern)
		}
	}
	switch r.Action {
	case "strip", "forbid":
		if r.Value != nil {
			return store.Errorf("`%s` takes no value", r.Action)
		}
	case "default":
		if r.Value == nil || r.Pattern != "" {
			return store.Errorf("`default` needs a value, and no pattern")
		}
	case "redact":
		if r.Value == nil {
			r.Value = encode(redacted)
		}
		if r.pattern != nil && json.Unmarshal(r.Value, new(string)) != nil {
			return store.Errorf("`redact` with a pattern needs a text as value")
		}
	default:
		return store.Errorf("action “%s”: want `strip`, `default`, `redact` or `forbid`", r.Action)
	}
	return nil
}

// Review implements [mcp.ReviewHook].
func (s *sanitizer) Review(ctx context.Context, inv *mcp.Invocation) error { return s.Before(ctx, inv) }

func (s *sanitizer) Before(ctx context.Context, inv *mcp.Invocation) error {
	args := inv.Args
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	for _, r := range s.Rules {
		if err := ctx.Err(); err != nil { // many rules on long arguments take time
			return err
		}
		forbidden := false
		changed, err := edit(args, r.path, func(v json.RawMessage) json.RawMessage {
			after, no := r.apply(v)
			forbidden = forbidden || no
			return after
		})
		if err != nil {
			return err
		}
		if forbidden {
			return &store.CallError{Code: store.CodeInvalid, Message: store.Textf("hook %s forbids %s", s.record.Name, r.Pointer)}
		}
		args = changed
	}
	if !bytes.Equal(args, inv.Args) && len(inv.Args) > 0 {
		inv.Args = args
	}
	return nil
}

// apply returns the rule's replacement of a value; nil means no value.
func (r *sanitizerRule) apply(v json.RawMessage) (after json.RawMessage, forbidden bool) {
	if r.Action == "default" {
		if v == nil {
			return r.Value, false
		}
		return v, false
	}
	var text string
	isText := v != nil && json.Unmarshal(v, &text) == nil && bytes.TrimSpace(v)[0] == '"'
	if v == nil || r.pattern != nil && (!isText || !r.pattern.MatchString(text)) {
		return v, false
	}
	switch r.Action {
	case "strip":
		return nil, false
	case "forbid":
		return v, true
	}
	if r.pattern == nil {
		return r.Value, false
	}
	var by string
	if err := json.Unmarshal(r.Value, &by); err != nil {
		return r.Value, false
	}
	return encode(r.pattern.ReplaceAllLiteralString(text, by)), false
}

// edit changes the value at a path and nothing else: numbers stay as they were written.
// change gets nil if there is no value, and returns nil to remove it. A path through a
// value that is neither object nor list has no effect; missing objects are not created.
func edit(doc json.RawMessage, path []string, change func(json.RawMessage) json.RawMessage) (json.RawMessage, error) {
	if len(path) == 0 {
		return change(doc), nil
	}
	doc = bytes.TrimSpace(doc)
	switch {
	case len(doc) > 0 && doc[0] == '{':
		var object map[string]json.RawMessage
		if err := json.Unmarshal(doc, &object); err != nil {
			return nil, fmt.Errorf("reading the arguments: %w", err)
		}
		old, has := object[path[0]]
		if !has && len(path) > 1 {
			return doc, nil
		}
		fresh, err := edit(old, path[1:], change)
		switch {
		case err != nil || !has && fresh == nil || has && bytes.Equal(old, fresh):
			return doc, err
		case fresh == nil:
			delete(object, path[0])
		default:
			object[path[0]] = fresh
		}
		return encode(object), nil
	case len(doc) > 0 && doc[0] == '[':
		var list []json.RawMessage
		if err := json.Unmarshal(doc, &list); err != nil {
			return nil, fmt.Errorf("reading the arguments: %w", err)
		}
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(list) {
			return doc, nil
		}
		fresh, err := edit(list[i], path[1:], change)
		switch {
		case err != nil || bytes.Equal(list[i], fresh):
			return doc, err
		case fresh == nil:
			list = append(list[:i], list[i+1:]...)
		default:
			list[i] = fresh
		}
		return encode(list), nil
	}
	return doc, nil
}

// encode encodes JSON without escaping for HTML.
func encode(v any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // unreachable: strings and parsed JSON always encode
	}
	return bytes.TrimSpace(out.Bytes())
}

// redaction removes strings that look like secrets from results, by their form and by the
// name of their field. All other bytes are unchanged.
type redaction struct{ named }

func (redaction) After(_ context.Context, _ *mcp.Invocation, r *store.Result) error {
	if r.Error != nil {
		if text := r.Error.Message.String(); store.LooksSecret(text) {
			told := *r.Error
			told.Message = store.Plain(store.RedactText(text))
			r.Error = &told
		}
		return nil
	}
	raw, err := redactStrings(r.Raw)
	if err != nil {
		return err
	}
	if !bytes.Equal(raw, r.Raw) {
		r.Raw, r.Shown = raw, nil
	}
	return nil
}

// fileBytes is the length from which a string under data or blob counts as a file's
// content, in which the form of a key occurs by chance.
const fileBytes = 256

// redactStrings redacts the strings of a JSON document.
func redactStrings(doc json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(doc) {
		return nil, fmt.Errorf("the result is not valid JSON")
	}
	var out bytes.Buffer
	var names []string // the field names of the open objects and lists, "" if none
	name := ""
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; c {
		case '{', '[':
			names = append(names, name)
			if c == '{' {
				name = ""
			}
		case '}', ']':
			names, name = names[:len(names)-1], ""
		case ',':
			name = ""
			if n := len(names); n > 0 {
				name = names[n-1] // for a list's items; in an object the next name follows
			}
		case '"':
			end := i + 1
			for doc[end] != '"' {
				if doc[end] == '\\' {
					end++
				}
				end++
			}
			var text string
			if err := json.Unmarshal(doc[i:end+1], &text); err != nil {
				return nil, fmt.Errorf("reading the result: %w", err)
			}
			if rest := bytes.TrimLeft(doc[end+1:], " \t\r\n"); len(rest) > 0 && rest[0] == ':' {
				if name = text; len(names) > 0 && store.SecretName(names[len(names)-1]) {
					name = names[len(names)-1] // values nested below a secret's name are secret too
				}
				out.Write(doc[i : end+1])
			} else if hidden := redactString(name, text); hidden != text {
				out.Write(encode(hidden))
			} else {
				out.Write(doc[i : end+1])
			}
			i = end
			continue
		}
		out.WriteByte(doc[i])
	}
	return out.Bytes(), nil
}

func redactString(name, text string) string {
	switch {
	case (name == "data" || name == "blob") && len(text) >= fileBytes:
		return text
	case store.SecretName(name) && text != "":
		return redacted
	}
	return cmp.Or(store.RedactText(text), text)
}
