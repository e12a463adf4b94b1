package mcp

import (
	"encoding/json"
	"errors"
	"log/slog"

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
