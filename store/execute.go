package store

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// ExecuteArgs are the arguments of execute_tool. Models and clients often put the tool's
// arguments beside tool_id, or under another name than params. These members are kept,
// because a tool must never run with fewer arguments than were given; the gateway, which
// knows the tool's schema, places or refuses them.
type ExecuteArgs struct {
	Tool   string          // tool_id, "" if it is missing
	Params json.RawMessage // a JSON object
	// Beside holds all members other than tool_id, tool_name and params, except empty ones
	// with a name in argumentWords.
	Beside map[string]json.RawMessage
}

// argumentWords are the names that models use instead of params, in lower case.
var argumentWords = []string{
	"params", "param", "parameters", "arguments", "args", "input", "inputs", "kwargs",
	"tool_params", "tool_parameters", "tool_arguments", "tool_args", "tool_input", "toolparams", "toolarguments", "toolargs", "toolinput",
}

// IsArgumentWord reports whether models put a tool's arguments into a member of that name,
// beside tool_id.
func IsArgumentWord(name string) bool {
	return slices.Contains(argumentWords, strings.ToLower(name))
}

// ReadExecute parses the arguments of execute_tool: an object, or a string that holds the
// JSON text of one. The same holds for params. The error is a [*CallError] with code
// invalid_arguments.
func ReadExecute(raw []byte) (ExecuteArgs, error) {
	object, kind, err := objectOf(raw)
	switch {
	case err != nil:
		return ExecuteArgs{}, &CallError{Code: CodeInvalid, Message: Textf("arguments of %s are not a valid JSON object: %v", "execute_tool", withoutHead(err))}
	case kind != "":
		return ExecuteArgs{}, &CallError{Code: CodeInvalid, Message: Textf("arguments of %s must be a JSON object", "execute_tool")}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return ExecuteArgs{}, err // unreachable: object is a canonical JSON object
	}
	var args ExecuteArgs
	for _, name := range []string{"tool_id", "tool_name"} {
		var text *string
		if value, ok := members[name]; ok && json.Unmarshal(value, &text) != nil {
			return args, &CallError{Code: CodeInvalid, Message: Textf("%s: %s must be of type %s, not %s", "execute_tool", name, "string", jsonKind(value))}
		}
		if name == "tool_id" && text != nil {
			args.Tool = *text
		}
		delete(members, name)
	}
	params, kind, err := objectOf(members["params"])
	if err != nil || kind != "" {
		if kind == "" {
			kind = "string"
		}
		return args, &CallError{Code: CodeInvalid, Message: Textf("%s: %s must be of type %s, not %s", "execute_tool", "params", "object", kind)}
	}
	args.Params = params
	delete(members, "params")
	for name, value := range members {
		if IsArgumentWord(name) && IsEmptyJSON(value) {
			continue
		}
		if args.Beside == nil {
			args.Beside = map[string]json.RawMessage{}
		}
		args.Beside[name] = value
	}
	return args, nil
}

// ObjectOf returns the canonical form of value if it is a JSON object or a string that
// holds the JSON text of one; otherwise ok is false. An absent, null, blank or [] value is
// {}.
func ObjectOf(value json.RawMessage) (object json.RawMessage, ok bool) {
	object, kind, err := objectOf(value)
	return object, err == nil && kind == ""
}

// IsEmptyJSON reports whether a value holds no arguments: it is absent, null, blank, {} or
// [].
func IsEmptyJSON(value json.RawMessage) bool {
	object, ok := ObjectOf(value)
	return ok && string(object) == "{}"
}

// maxTexts is how many times a JSON text may be nested in a JSON string.
const maxTexts = 3

// objectOf is ObjectOf; kind is the JSON type of a value that is not an object.
func objectOf(value []byte) (object json.RawMessage, kind string, err error) {
	for range maxTexts {
		if len(bytes.TrimSpace(value)) == 0 {
			return json.RawMessage("{}"), "", nil
		}
		if object, err = Canonical(value); err != nil {
			return nil, "", err
		}
		var text string
		switch {
		case object[0] == '{':
			return object, "", nil
		case string(object) == "null" || string(object) == "[]": // PHP encodes an empty object as []
			return json.RawMessage("{}"), "", nil
		case object[0] != '"':
			return nil, jsonKind(object), nil
		}
		if err := json.Unmarshal(object, &text); err != nil {
			return nil, "", err
		}
		value = []byte(text)
	}
	return nil, "string", nil
}

// withoutHead returns the reason in an error of [Canonical].
func withoutHead(err error) Text {
	if parts, ok := err.(interface{ Unwrap() []error }); ok {
		return TextOf(parts.Unwrap()[1])
	}
	return TextOf(err)
}

// jsonKind returns the JSON type of a valid value.
func jsonKind(value json.RawMessage) string {
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
