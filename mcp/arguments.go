package mcp

import (
	"encoding/json"
	"errors"
	"fmt"

	"nize/mcp/schema"
	"nize/store"
)

// Fits says whether a tool takes arguments: nil, or a [store.CallError] with
// [store.CodeInvalid] that says what is wrong with them, as [Gateway.Call] would.
// Of a tool that is not there it says nothing. It is for a form that is still
// open; what is called is looked at again.
func (g *Gateway) CheckArguments(id string, args json.RawMessage) error {
	tool, ok := g.tools.get(id)
	if !ok {
		return nil
	}
	_, err := g.fitting(tool, args)
	return err
}

// argsOf are the arguments of a request; none are those of an empty object.
func argsOf(req store.Request) json.RawMessage {
	if len(req.Args) == 0 || string(req.Args) == "null" {
		return json.RawMessage("{}")
	}
	return req.Args
}

// fitting is the canonical form of arguments that fit the tool's input schema.
func (g *Gateway) fitting(tool *entry, args json.RawMessage) (canonical json.RawMessage, err error) {
	if canonical, err = store.Canonical(args); err != nil {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: fmt.Sprintf("arguments of %s are no valid JSON: %v", tool.ID(), whatIsWrong(err))}
	}
	if canonical[0] != '{' {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: fmt.Sprintf("arguments of %s must be a JSON object, such as {\"name\": \"value\"}", tool.ID())}
	}
	return canonical, g.fit(tool, canonical)
}

// fit checks arguments against the tool's input schema. A schema that cannot
// be checked blocks nothing: its server will say what is wrong.
func (g *Gateway) fit(tool *entry, args json.RawMessage) error {
	err := g.schemas.Check(tool.Tool, args)
	if errors.Is(err, schema.ErrUnchecked) {
		g.opt.Log.Warn("arguments not checked", "tool", tool.ID(), "err", err)
		return nil
	}
	return err
}
