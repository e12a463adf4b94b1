package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"nize/mcp/policy"
	"nize/mcp/question"
	"nize/mcp/reply"
	"nize/mcp/schema"
	"nize/store"
)

// validator validates arguments against the input schemas of tools.
type validator struct {
	schemas schema.Cache
	log     *slog.Logger
	counted func() // called for each canonicalisation, in tests; else nil
}

// CheckForm checks what somebody entered in the form of a card, while the form is still
// open: arguments of the call's tool, or the answer to a question. It returns a
// [store.CallError] with [store.CodeInvalid] as the decision would, which checks them
// again, and nil if the tool is gone.
func (g *Gateway) CheckForm(c store.Call, values json.RawMessage) error {
	if c.Question != nil {
		canonical, err := canonicalAnswer(values)
		if err != nil {
			return err
		}
		return question.Check(*c.Question, canonical)
	}
	tool, ok := g.Catalog.Get(c.ToolID())
	if !ok {
		return nil
	}
	_, err := g.validator.canonicalArgs(tool, request{Request: store.Request{Args: values}})
	return err
}

// argsOf returns the arguments of a request, or an empty object if it has none.
func argsOf(req store.Request) json.RawMessage {
	if len(req.Args) == 0 || string(req.Args) == "null" {
		return json.RawMessage("{}")
	}
	return req.Args
}

// request is a request on its way through the gateway. Its arguments are made canonical
// once, when it arrives or when a hook changed them.
type request struct {
	store.Request
	canonical bool // Args are in their place and canonical
}

// makeCanonical makes the arguments canonical. It leaves them as they are if they are not
// valid JSON; the call then reports the error.
func (v *validator) makeCanonical(req *request) error {
	if req.canonical {
		return nil
	}
	canonical, err := v.canonical(argsOf(req.Request))
	if err == nil {
		req.Args, req.canonical = canonical, true
	}
	return err
}

// canonical is [store.Canonical].
func (v *validator) canonical(args json.RawMessage) (json.RawMessage, error) {
	if v.counted != nil {
		v.counted()
	}
	return store.Canonical(args)
}

// canonicalArgs returns the canonical form of the arguments, or an error if the tool's
// input schema doesn't allow them.
func (v *validator) canonicalArgs(tool *policy.Tool, req request) (canonical json.RawMessage, err error) {
	if err = v.makeCanonical(&req); err != nil {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("arguments of %s are not valid JSON: %v", tool.ID(), jsonProblem(err))}
	}
	if req.Args[0] != '{' {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("arguments of %s must be a JSON object, such as {\"name\": \"value\"}", tool.ID())}
	}
	return req.Args, v.checkSchema(tool.Tool, req.Args)
}

// checkSchema validates arguments against the tool's input schema. An unusable schema
// doesn't block the call, because the server validates its arguments itself.
func (v *validator) checkSchema(tool store.Tool, args json.RawMessage) error {
	err := v.schemas.Check(tool, args)
	if errors.Is(err, schema.ErrUnchecked) {
		v.log.Warn("arguments not checked", "tool", tool.ID(), "err", err)
		return nil
	}
	return err
}

// placeArgs moves arguments that were sent beside params, or under another key within it,
// into req.Args. It does so only if the tool's schema leaves one interpretation; otherwise
// it returns a [store.CallError] with [store.CodeInvalid], because a tool must not run with
// fewer arguments than the caller sent. The error doesn't reveal whether a tool that the
// caller can't see exists.
func (g *Gateway) placeArgs(ctx context.Context, by store.Caller, req *store.Request) error {
	if word, _ := soleWord(req.Args); len(req.Beside) == 0 && word == "" {
		return nil
	}
	v, err := g.Policy.View(ctx, by, store.Scope{Agent: req.Agent, Servers: req.Allowed, Thread: req.Thread, Tools: req.Named, View: req.View != ""})
	if err != nil {
		return err
	}
	tool, err := g.Policy.Find(v, req.Tool)
	if err != nil {
		return err
	}
	at := place{validator: &g.validator, tool: tool.Tool, as: Execute, in: "params", example: fmt.Sprintf(`{"tool_id": %q, "params": {…}}`, tool.ID())}
	if !req.ByMeta {
		at.as, at.in, at.example = tool.ID(), "arguments", `{"name": "…", "arguments": {…}}`
	}
	args := argsOf(*req)
	if args, err = at.settle(args, req.Beside); err != nil {
		return err
	}
	req.Args, req.Beside = args, nil
	return nil
}

// place describes where the arguments of a tool belong.
type place struct {
	validator *validator
	tool      store.Tool
	as        string // the called tool, for messages
	in        string // the member that holds the arguments
	example   string
}

func (p place) refuse(why store.Text) error {
	return &store.CallError{Code: store.CodeInvalid, Message: store.Textf("%s: %s; send all arguments of the tool within %s: %s", p.as, why, p.in, p.example)}
}

// settle returns the intended arguments, given those in the right place and the members
// beside them.
func (p place) settle(args json.RawMessage, beside map[string]json.RawMessage) (json.RawMessage, error) {
	if len(beside) > 0 {
		var err error
		if args, err = p.put(args, beside); err != nil {
			return nil, err
		}
	}
	if word, within := soleWord(args); word != "" {
		return p.takeOut(args, word, within)
	}
	return args, nil
}

// put returns the arguments that the members of beside represent. It returns an error if
// args isn't empty or if beside is ambiguous.
func (p place) put(args json.RawMessage, beside map[string]json.RawMessage) (json.RawMessage, error) {
	declared := p.validator.schemas.Properties(p.tool)
	isParameter := func(name string) bool {
		if len(declared) == 0 { // without declared parameters only a known word for arguments can be a wrapper
			return !store.IsArgumentWord(name)
		}
		return slices.Contains(declared, name)
	}
	names := slices.Sorted(maps.Keys(beside))
	if object, ok := store.ObjectOf(args); !ok {
		return args, nil // the validation of the arguments reports the error
	} else if string(object) != "{}" {
		return nil, p.refuse(store.Textf("%s is outside %s, which holds arguments too", quotedList(names), p.in))
	}
	var readings []json.RawMessage
	if len(names) == 1 && store.IsArgumentWord(names[0]) {
		if within, ok := store.ObjectOf(beside[names[0]]); ok {
			readings = append(readings, within)
		}
	}
	if unknown := slices.DeleteFunc(slices.Clone(names), isParameter); len(unknown) == 0 {
		readings = append(readings, mustJSON(beside))
	} else if len(readings) == 0 {
		return nil, p.refuse(store.Textf("%s is outside %s and not a parameter of the tool", quotedList(unknown), p.in))
	}
	if len(readings) > 1 {
		fit := slices.DeleteFunc(slices.Clone(readings), func(args json.RawMessage) bool {
			canonical, err := store.Canonical(args)
			return err != nil || p.validator.checkSchema(p.tool, canonical) != nil
		})
		if len(fit) != 1 {
			return nil, p.refuse(store.Textf("%s may be a parameter of the tool or hold all of its arguments", quotedList(names)))
		}
		readings = fit
	}
	return readings[0], nil
}

// takeOut unwraps arguments that are all nested once more under a word for arguments. A
// server would otherwise drop that unknown parameter and run the tool without arguments.
func (p place) takeOut(args json.RawMessage, word string, within json.RawMessage) (json.RawMessage, error) {
	declared := p.validator.schemas.Properties(p.tool)
	if len(declared) == 0 || slices.Contains(declared, word) || p.validator.schemas.TakesOthers(p.tool) {
		return args, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(within, &members) != nil {
		return args, nil // unreachable: within is a canonical JSON object
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(declared, name) {
			return nil, p.refuse(store.Textf("%s is not a parameter of the tool, and neither is %s in it", quotedList([]string{word}), quotedList([]string{name})))
		}
	}
	return within, nil
}

// soleWord returns the only member of the arguments if its name is a word for arguments and
// its value is an object with members.
func soleWord(args json.RawMessage) (word string, within json.RawMessage) {
	var members map[string]json.RawMessage
	if len(args) == 0 || json.Unmarshal(args, &members) != nil || len(members) != 1 {
		return "", nil
	}
	for name, value := range members {
		if object, ok := store.ObjectOf(value); ok && string(object) != "{}" && store.IsArgumentWord(name) {
			return name, object
		}
	}
	return "", nil
}

// CallByParams is [Gateway.Call] with the params of a tools/call, in which the arguments
// may be misplaced.
func (g *Gateway) CallByParams(ctx context.Context, by store.Caller, req store.Request, params json.RawMessage) (*store.Call, error) {
	req.Args, req.Beside = reply.CallArguments(params)
	if tool, ok := g.Catalog.Get(req.Tool); ok {
		req.Args, req.Beside = g.validator.withoutExtensions(tool.Tool, req.Args, req.Beside)
	}
	return g.Call(ctx, by, req)
}

// promptArguments returns the arguments of a prompt, which are strings. Numbers and
// booleans become strings in the form in which the client wrote them.
func (v *validator) promptArguments(name string, tool store.Tool, texts map[string]string) (json.RawMessage, error) {
	args, beside := reply.PromptArguments(texts)
	args, beside = v.withoutExtensions(tool, args, beside)
	at := place{validator: v, tool: tool, as: name, in: "arguments", example: fmt.Sprintf(`{"name": %q, "arguments": {…}}`, name)}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	args, err := at.settle(args, beside)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil || members == nil {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("arguments of %s must be a JSON object", name)}
	}
	for key, value := range members {
		switch c := value[0]; {
		case string(value) == "null": // not set
			delete(members, key)
		case c != '"' && c != '{' && c != '[': // the validation of the arguments refuses these
			members[key] = mustJSON(string(value))
		}
	}
	return mustJSON(members), nil
}

// takeArguments returns the arguments of a tools/call of a tool by its name, and the
// members beside them. If arguments are in their place, members that are not parameters of
// the tool are treated as extensions and ignored.
func (v *validator) takeArguments(tool store.Tool, raw json.RawMessage) (args json.RawMessage, beside map[string]json.RawMessage) {
	args, beside = reply.Arguments(raw)
	return v.withoutExtensions(tool, args, beside)
}

// withoutExtensions drops the members beside the arguments that are not parameters of the
// tool.
func (v *validator) withoutExtensions(tool store.Tool, args json.RawMessage, beside map[string]json.RawMessage) (json.RawMessage, map[string]json.RawMessage) {
	object, ok := store.ObjectOf(args)
	if ok {
		args = object
	}
	declared := v.schemas.Properties(tool)
	maps.DeleteFunc(beside, func(name string, _ json.RawMessage) bool {
		return !store.IsArgumentWord(name) && !slices.Contains(declared, name) && (string(object) != "{}" || v.schemas.TakesNothing(tool))
	})
	return args, beside
}

// placeMeta returns the arguments of a meta-tool.
func (v *validator) placeMeta(name string, raw json.RawMessage) (json.RawMessage, error) {
	args, beside := reply.Arguments(raw)
	if len(beside) == 0 {
		return args, nil
	}
	i := slices.IndexFunc(metaTools, func(m metaTool) bool { return m.name == name })
	if i < 0 {
		return args, nil
	}
	at := place{validator: v, tool: store.Tool{Name: name, InputSchema: metaTools[i].input}, as: name, in: "arguments", example: fmt.Sprintf(`{"name": %q, "arguments": {…}}`, name)}
	if name == Execute { // the called tool's own parameters may be there, too
		if _, ok := beside["tool_id"]; ok && store.IsEmptyJSON(args) {
			return mustJSON(beside), nil
		}
	}
	return at.put(args, beside)
}

// quotedList formats a short list of names from outside, quoted.
func quotedList(names []string) string {
	const most = 5
	var quoted []string
	for _, name := range names[:min(len(names), most)] {
		quoted = append(quoted, strconv.Quote(store.Clip(name, 60)))
	}
	if more := len(names) - len(quoted); more > 0 {
		quoted = append(quoted, "…")
	}
	return strings.Join(quoted, ", ")
}
