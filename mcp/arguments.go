package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"nize/mcp/policy"
	"nize/mcp/schema"
	"nize/store"
)

// validator checks arguments against the input schemas of tools.
type validator struct {
	schemas schema.Cache
	log     *slog.Logger
}

// CheckArguments says whether a tool takes arguments: nil, or a [store.CallError]
// with [store.CodeInvalid] that says what is wrong with them, as [Gateway.Call]
// would. Of a tool that is not there it says nothing. It is for a form that is
// still open; what is called is looked at again.
func (g *Gateway) CheckArguments(id string, args json.RawMessage) error {
	tool, ok := g.Catalog.Get(id)
	if !ok {
		return nil
	}
	_, err := g.validator.canonicalArgs(tool, args)
	return err
}

// argsOf are the arguments of a request; none are those of an empty object.
func argsOf(req store.Request) json.RawMessage {
	if len(req.Args) == 0 || string(req.Args) == "null" {
		return json.RawMessage("{}")
	}
	return req.Args
}

// canonicalArgs is the canonical form of arguments that the tool's input schema
// allows.
func (v *validator) canonicalArgs(tool *policy.Tool, args json.RawMessage) (canonical json.RawMessage, err error) {
	if canonical, err = store.Canonical(args); err != nil {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("arguments of %s are not valid JSON: %v", tool.ID(), jsonProblem(err))}
	}
	if canonical[0] != '{' {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("arguments of %s must be a JSON object, such as {\"name\": \"value\"}", tool.ID())}
	}
	return canonical, v.checkSchema(tool, canonical)
}

// checkSchema checks arguments against the tool's input schema. A schema that cannot
// be checked blocks nothing: its server will say what is wrong.
func (v *validator) checkSchema(tool *policy.Tool, args json.RawMessage) error {
	err := v.schemas.Check(tool.Tool, args)
	if errors.Is(err, schema.ErrUnchecked) {
		v.log.Warn("arguments not checked", "tool", tool.ID(), "err", err)
		return nil
	}
	return err
}

// placeArgs puts the arguments that stand beside tool_id, or under another word
// than params, into req.Args. It does so if params is empty and the tool's schema
// leaves one reading; otherwise it returns a [store.CallError] with
// [store.CodeInvalid], because a tool must not run with fewer arguments than were
// given. The error of a tool that the caller can't see is the same as of one that
// does not exist.
func (g *Gateway) placeArgs(ctx context.Context, by store.Caller, req *store.Request) error {
	if len(req.Beside) == 0 {
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
	args, err := g.validator.place(tool, argsOf(*req), req.Beside)
	if err != nil {
		return err
	}
	req.Args, req.Beside = args, nil
	return nil
}

// place returns the arguments that beside means, when params are the others.
func (v *validator) place(tool *policy.Tool, params json.RawMessage, beside map[string]json.RawMessage) (json.RawMessage, error) {
	names := slices.Sorted(maps.Keys(beside))
	refuse := func(why store.Text) error {
		return &store.CallError{Code: store.CodeInvalid, Message: store.Textf(`%s: %s; send all arguments of the tool within params: {"tool_id": %q, "params": {…}}`, Execute, why, tool.ID())}
	}
	if !store.IsEmptyJSON(params) {
		return nil, refuse(store.Textf("%s is outside params, which holds arguments too", quotedList(names)))
	}
	declared := v.schemas.Properties(tool.Tool)
	isParameter := func(name string) bool {
		if len(declared) == 0 { // then only a word for arguments can be anything else
			return !store.IsArgumentWord(name)
		}
		return slices.Contains(declared, name)
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
		return nil, refuse(store.Textf("%s is outside params and not a parameter of the tool", quotedList(unknown)))
	}
	if len(readings) > 1 {
		fit := slices.DeleteFunc(slices.Clone(readings), func(args json.RawMessage) bool {
			_, err := v.canonicalArgs(tool, args)
			return err != nil
		})
		if len(fit) != 1 {
			return nil, refuse(store.Textf("%s may be a parameter of the tool or hold all of its arguments", quotedList(names)))
		}
		readings = fit
	}
	return readings[0], nil
}

// quotedList is a list of a few names that came from outside.
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
