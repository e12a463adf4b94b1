package reply

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"nize/store"
)

// Clients also put the arguments of a tool beside the member "arguments" of
// tools/call: under another word, one by one, or beside params. The SDK ignores
// these, and the tool would run with fewer arguments than were given. So they go to
// it within "arguments", as an object that [Arguments] takes apart. The same holds for
// the arguments of prompts/get, of which the SDK takes texts alone: theirs are the JSON
// text of that object, which [PromptArguments] takes apart.

// besideKey is the first member of such an object.
const besideKey = "nize:beside"

// callMembers are the members of the params of tools/call that the protocol
// defines, other than its arguments.
var callMembers = []string{"name", "_meta", "task", "inputResponses", "requestState", "progressToken"}

// isExtension reports whether a member of params is no argument, but an extension:
// its name is none that parameters of tools have.
func isExtension(name string) bool {
	return slices.Contains(callMembers, name) || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "x-") || strings.ContainsAny(name, "/.:")
}

// position is where a member of an object stands.
type position struct{ key, keyEnd, from, to int }

// besideArguments finds the arguments of a tools/call or prompts/get, and what stands
// beside them. top are the members of the message, params those of its params.
func besideArguments(doc []byte, top, params []position) (arguments *position, beside map[string]json.RawMessage, edits []edit) {
	beside = map[string]json.RawMessage{}
	take := func(m position, name string) {
		value := json.RawMessage(doc[m.from:m.to])
		if store.IsArgumentWord(name) && store.IsEmptyJSON(value) {
			return
		}
		for beside[name] != nil { // a member that is there twice: both must be seen
			name += "'"
		}
		beside[name] = value
		edits = append(edits, edit{m.key, m.keyEnd, []byte(`"` + besideKey + `"`)}) // decoders that ignore case would read it
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

// CallArguments returns the arguments in the params of a tools/call, and the members
// beside them that may be arguments, too, as [Arguments] does.
func CallArguments(params json.RawMessage) (arguments json.RawMessage, beside map[string]json.RawMessage) {
	var members []position
	positions(params, 0, len(params), func(m position) { members = append(members, m) })
	at, beside, _ := besideArguments(params, nil, members)
	if at != nil && string(params[at.from:at.to]) != "null" {
		arguments = params[at.from:at.to]
	}
	return arguments, beside
}

// holdArguments puts what stands beside the arguments of a tools/call or prompts/get
// into them. top are the members of the message, params those of its params, which
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
	case err != nil: // no JSON: the SDK refuses it
	case arguments != nil:
		*edits = append(*edits, edit{arguments.from, arguments.to, held})
	case object >= 0:
		*edits = append(*edits, edit{object + 1, object + 1, slices.Concat([]byte(`"arguments":`), held, []byte(","))})
	}
}

// heldArguments are arguments with what stands beside them.
type heldArguments struct {
	Beside    map[string]json.RawMessage `json:"nize:beside"`
	Arguments json.RawMessage            `json:"arguments"`
}

// isHeldArguments reports whether arguments would pass for held ones.
func isHeldArguments(raw json.RawMessage) bool {
	rest, object := bytes.CutPrefix(bytes.TrimSpace(raw), []byte("{"))
	return object && bytes.HasPrefix(bytes.TrimSpace(rest), []byte(`"`+besideKey+`"`))
}

// Arguments returns the arguments of a tools/call as the client gave them, and the
// members beside them that may be arguments, too. A word for arguments whose value
// holds none is not among them.
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

// promptMethod is the request whose arguments are texts.
const promptMethod = "prompts/get"

// areTexts reports whether the SDK takes arguments of a prompt as they are.
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

// PromptArguments returns the arguments of a prompts/get as the client gave them, and
// the members beside them that may be arguments, too, as [Arguments] does.
func PromptArguments(texts map[string]string) (arguments json.RawMessage, beside map[string]json.RawMessage) {
	if text, held := texts[besideKey]; held && len(texts) == 1 {
		return Arguments(json.RawMessage(text))
	}
	if texts == nil {
		return nil, nil
	}
	arguments, _ = json.Marshal(texts) // texts always encode
	return arguments, nil
}

// keyOf is the name of a member.
func keyOf(doc []byte, m position) string {
	var name string
	if json.Unmarshal(doc[m.key:m.keyEnd], &name) != nil {
		return string(doc[m.key:m.keyEnd])
	}
	return name
}
