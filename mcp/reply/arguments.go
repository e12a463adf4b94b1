package reply

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"nize/store"
)

// Some clients put the arguments of a tool beside the member "arguments" of tools/call:
// under another word, individually, or beside params. The SDK ignores these, and the tool
// would run with fewer arguments than were sent. So they are passed to it within
// "arguments", as an object that [Arguments] splits again. The same applies to the
// arguments of prompts/get, of which the SDK only accepts strings: theirs contain the JSON
// text of that object, which [PromptArguments] splits.

// besideKey is the first member of such an object.
const besideKey = "nize:beside"

// callMembers lists the members of the params of tools/call that the protocol defines,
// except its arguments.
var callMembers = []string{"name", "_meta", "task", "inputResponses", "requestState", "progressToken"}

// isExtension reports whether a member of params is an extension and not an argument: its
// name has a form that parameters of tools don't have.
func isExtension(name string) bool {
	return slices.Contains(callMembers, name) || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "x-") || strings.ContainsAny(name, "/.:")
}

// position is the position of a member in its document.
type position struct{ key, keyEnd, from, to int }

// besideArguments returns the arguments of a tools/call or prompts/get, and the members
// beside them. top are the members of the message, params those of its params.
func besideArguments(doc []byte, top, params []position) (arguments *position, beside map[string]json.RawMessage, edits []edit) {
	beside = map[string]json.RawMessage{}
	take := func(m position, name string) {
		value := json.RawMessage(doc[m.from:m.to])
		if store.IsArgumentWord(name) && store.IsEmptyJSON(value) {
			return
		}
		for beside[name] != nil { // a duplicate member: keep both
			name += "'"
		}
		beside[name] = value
		edits = append(edits, edit{m.key, m.keyEnd, []byte(`"` + besideKey + `"`)}) // rename it, because case-insensitive decoders would read it
	}
	for _, m := range top {
		if name := keyOf(doc, m); name != "params" && store.IsArgumentWord(name) {
			take(m, name)
		}
	}
	for i := range params {
		switch name := keyOf(doc, params[i]); {
		case name == "arguments" && arguments == nil:
			arguments = &params[i]
		case !isExtension(name):
			take(params[i], name)
		}
	}
	return arguments, beside, edits
}

// CallArguments returns the arguments in the params of a tools/call, and the members beside
// them that may also be arguments, like [Arguments].
func CallArguments(params json.RawMessage) (arguments json.RawMessage, beside map[string]json.RawMessage) {
	var members []position
	positions(params, 0, len(params), func(m position) { members = append(members, m) })
	at, beside, _ := besideArguments(params, nil, members)
	if at != nil && string(params[at.from:at.to]) != "null" {
		arguments = params[at.from:at.to]
	}
	return arguments, beside
}

// holdArguments moves the members beside the arguments of a tools/call or prompts/get into
// the arguments. top are the members of the message, params those of its params, which
// begin at object.
func holdArguments(doc []byte, method string, top, params []position, object int, edits *[]edit) {
	arguments, beside, moved := besideArguments(doc, top, params)
	*edits = append(*edits, moved...)
	given := json.RawMessage("null")
	if arguments != nil {
		given = doc[arguments.from:arguments.to]
	}
	prompt := method == promptMethod
	if len(beside) == 0 && !isHeldArguments(given) && !(prompt && !areTexts(given)) {
		return
	}
	held, err := json.Marshal(heldArguments{beside, given})
	if prompt && err == nil {
		held, err = json.Marshal(map[string]string{besideKey: string(held)})
	}
	switch {
	case err != nil: // invalid JSON, which the SDK refuses
	case arguments != nil:
		*edits = append(*edits, edit{arguments.from, arguments.to, held})
	case object >= 0:
		*edits = append(*edits, edit{object + 1, object + 1, slices.Concat([]byte(`"arguments":`), held, []byte(","))})
	}
}

// heldArguments holds arguments together with the members beside them.
type heldArguments struct {
	Beside    map[string]json.RawMessage `json:"nize:beside"`
	Arguments json.RawMessage            `json:"arguments"`
}

// isHeldArguments reports whether arguments have the form of heldArguments.
func isHeldArguments(raw json.RawMessage) bool {
	rest, object := bytes.CutPrefix(bytes.TrimSpace(raw), []byte("{"))
	return object && bytes.HasPrefix(bytes.TrimSpace(rest), []byte(`"`+besideKey+`"`))
}

// Arguments returns the arguments of a tools/call as sent by the client, and the members
// beside them that may also be arguments. It omits words for arguments with an empty value.
func Arguments(raw json.RawMessage) (arguments json.RawMessage, beside map[string]json.RawMessage) {
	var held heldArguments
	if !isHeldArguments(raw) || json.Unmarshal(raw, &held) != nil {
		return raw, nil
	}
	if string(held.Arguments) == "null" {
		held.Arguments = nil
	}
	return held.Arguments, maps.Clone(held.Beside)
}

// promptMethod is the request whose arguments are strings.
const promptMethod = "prompts/get"

// areTexts reports whether the SDK accepts the arguments of a prompt as they are.
func areTexts(raw json.RawMessage) bool {
	var texts map[string]*string
	if json.Unmarshal(raw, &texts) != nil {
		return false
	}
	for _, text := range texts {
		if text == nil {
			return false
		}
	}
	return true
}

// PromptArguments returns the arguments of a prompts/get as sent by the client, and the
// members beside them that may also be arguments, like [Arguments].
func PromptArguments(texts map[string]string) (arguments json.RawMessage, beside map[string]json.RawMessage) {
	if text, held := texts[besideKey]; held && len(texts) == 1 {
		return Arguments(json.RawMessage(text))
	}
	if texts == nil {
		return nil, nil
	}
	arguments, _ = json.Marshal(texts) // strings always encode
	return arguments, nil
}

// keyOf returns the name of a member.
func keyOf(doc []byte, m position) string {
	var name string
	if json.Unmarshal(doc[m.key:m.keyEnd], &name) != nil {
		return string(doc[m.key:m.keyEnd])
	}
	return name
}
