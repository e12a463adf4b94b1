package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"nize/mcp/feature"
	"nize/mcp/policy"
	"nize/store"
)

// metaTool is one of the five meta-tools as a client sees it.
type metaTool struct {
	name, title, description string
	input, output            json.RawMessage
	readOnly                 bool
}

// hitSchema describes one found tool.
const hitSchema = `{"type":"object","properties":{"tool_id":{"type":"string"},"tool_name":{"type":"string"},"description":{"type":"string"},"domain":{"type":"string"},"server_id":{"type":"string"},"server_name":{"type":"string"},"server_description":{"type":"string"},"score":{"type":"number"}},"required":["tool_id"]}`

var metaTools = []metaTool{
	{Discover, "Find tools", "Find the tools that can do what a sentence asks for, best first.",
		json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"what you want to do, in plain words"},"domain":{"type":"string","description":"search only this domain"},"top_k":{"type":"integer","minimum":1,"maximum":50,"description":"how many; default 5"},"min_similarity":{"type":"number","minimum":0,"maximum":1,"description":"leave out tools with a lower score"}},"required":["query"]}`),
		json.RawMessage(`{"type":"object","properties":{"tools":{"type":"array","items":` + hitSchema + `},"degraded":{"type":"boolean"},"note":{"type":"string"}},"required":["tools"]}`), true},
	{Describe, "Describe a tool", "The exact parameters of one tool. Read it before the first call.",
		json.RawMessage(`{"type":"object","properties":{"tool_id":{"type":"string","description":"as found, server:tool"}},"required":["tool_id"]}`),
		json.RawMessage(`{"type":"object","properties":{"tool_id":{"type":"string"},"name":{"type":"string"},"description":{"type":"string"},"input_schema":{"type":"object"},"output_schema":{"type":"object"},"annotations":{"type":"object"},"server":{"type":"string"},"domain":{"type":"string"},"needs_approval":{"type":"boolean"}},"required":["tool_id","input_schema","needs_approval"]}`), true},
	{Execute, "Run a tool", "Run a tool. A person may have to approve the call first; then this waits.",
		json.RawMessage(`{"type":"object","properties":{"tool_id":{"type":"string","description":"as found, server:tool"},"params":{"type":"object","description":"the tool's arguments, as its input_schema says"},"tool_name":{"type":"string","description":"its name, for people"}},"required":["tool_id","params"]}`),
		json.RawMessage(`{"type":"object","properties":{"success":{"type":"boolean"},"tool_name":{"type":"string"},"result":{},"error":{"type":"object","properties":{"code":{"type":"string"},"message":{"type":"string"},"retryable":{"type":"boolean"}},"required":["code","message","retryable"]}},"required":["success","tool_name"]}`), false},
	{Domains, "List domains", "The fields that tools exist for, with how many each has, page by page.",
		json.RawMessage(`{"type":"object","properties":{"cursor":{"type":"string","description":"next_cursor of the page before"}}}`),
		json.RawMessage(`{"type":"object","properties":{"domains":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"description":{"type":"string"},"tool_count":{"type":"integer"}},"required":["id","tool_count"]}},"domain_count":{"type":"integer"},"tool_count":{"type":"integer"},"next_cursor":{"type":"string"}},"required":["domains"]}`), true},
	{Browse, "Browse a domain", "The tools of one domain, page by page.",
		json.RawMessage(`{"type":"object","properties":{"domain_id":{"type":"string"},"cursor":{"type":"string","description":"next_cursor of the page before"}},"required":["domain_id"]}`),
		json.RawMessage(`{"type":"object","properties":{"tools":{"type":"array","items":` + hitSchema + `},"next_cursor":{"type":"string"}},"required":["tools"]}`), true},
}

// Functions returns the meta-tools in the form that a model sees.
func (g *Gateway) Functions(context.Context, store.Caller, store.Scope) ([]store.Function, error) {
	out := make([]store.Function, len(metaTools))
	for i, m := range metaTools {
		out[i] = store.Function{Name: m.name, Description: m.description, Schema: m.input}
	}
	return out, nil
}

// metaArgs holds the arguments of the four read-only meta-tools; each uses its own fields.
type metaArgs struct {
	Query    string   `json:"query"`
	Domain   string   `json:"domain"`
	TopK     *int     `json:"top_k"`
	Min      *float64 `json:"min_similarity"`
	ToolID   string   `json:"tool_id"`
	DomainID string   `json:"domain_id"`
	Cursor   string   `json:"cursor"`
}

// Meta runs one of the four read-only meta-tools, and records an event. It returns an error
// in the arguments as a result, so that a model can act on it.
func (g *Gateway) Meta(ctx context.Context, by store.Caller, scope store.Scope, fn store.ToolCall) (*store.Result, error) {
	inv := &Invocation{Point: AroundMeta, By: by, Scope: scope, Tool: fn.Name, Args: json.RawMessage(fn.Args)}
	answer, err := g.answerMeta(ctx, inv)
	var failure *store.CallError
	if err != nil && ctx.Err() == nil {
		if failure = callError(err); failure.Code == store.CodeInternal {
			g.log.Error("meta-tool", "tool", fn.Name, "err", err)
		}
		var asked metaArgs
		_ = json.Unmarshal([]byte(fn.Args), &asked) // arguments that are not an object name no tool
		g.turnAway(by, cmp.Or(asked.ToolID, policy.BuiltinServer+":"+fn.Name), failure)
	} else if err != nil {
		failure = callError(err)
	}
	r := &store.Result{IsError: failure != nil, Error: failure}
	if failure == nil {
		r.Raw = textResult(answer)
	}
	g.hooks.runAfter(ctx, inv, r)
	return r, nil
}

// textResult wraps a JSON answer as a tool result, structured and as text.
func textResult(answer json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	out.WriteString(`{"content":[{"type":"text","text":`)
	out.Write(mustJSON(string(answer)))
	out.WriteString(`}],"structuredContent":`)
	out.Write(answer)
	out.WriteByte('}')
	return out.Bytes()
}

// answerMeta runs the before-hooks and the meta-tool.
func (g *Gateway) answerMeta(ctx context.Context, inv *Invocation) (json.RawMessage, error) {
	if err := g.hooks.runBefore(ctx, inv); err != nil {
		return nil, err
	}
	var args metaArgs
	var err error
	if inv.Tool != Execute {
		if args, err = parseMeta(inv.Tool, inv.Args); err != nil {
			return nil, err
		}
	}
	switch inv.Tool {
	case Discover:
		return g.Discovery.discover(ctx, inv, args)
	case Describe:
		return g.Discovery.describe(ctx, inv, args)
	case Domains:
		return g.Discovery.domains(ctx, inv, args)
	case Browse:
		return g.Discovery.browse(ctx, inv, args)
	case Execute: // using it is a call; this argument error is not one
		if _, err := parseExecute(inv.Args); err != nil {
			return nil, err
		}
		return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("arguments of %s must be a JSON object", Execute)}
	}
	names := make([]string, len(metaTools))
	for i, m := range metaTools {
		names[i] = m.name
	}
	return nil, &store.CallError{Code: store.CodeNotFound, Message: store.TextOf(store.Unknown("function", inv.Tool, names))}
}

// parseMeta parses the arguments of a meta-tool, strictly enough that the error shows a
// model its mistake.
func parseMeta(tool string, raw json.RawMessage) (metaArgs, error) {
	var a metaArgs
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	canonical, err := store.Canonical(raw)
	if err != nil {
		return a, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("arguments of %s are not a valid JSON object: %v", tool, jsonProblem(err))}
	}
	if object, ok := store.ObjectOf(canonical); ok { // the object may be encoded in a string
		canonical = object
	}
	if err := json.Unmarshal(canonical, &a); err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) && mismatch.Field != "" {
			return a, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("%s: %s must be of type %s, not %s", tool, mismatch.Field, jsonType(mismatch), mismatch.Value)}
		}
		return a, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("arguments of %s must be a JSON object", tool)}
	}
	missing := func(name string) error { return missingArgument(tool, name) }
	switch {
	case tool == Discover && strings.TrimSpace(a.Query) == "":
		return a, missing("query")
	case tool == Discover && len(a.Query) > 8<<10:
		return a, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("discover_tools: query is longer than 8 KiB")}
	case tool == Discover && a.TopK != nil && (*a.TopK < 1 || *a.TopK > 50):
		return a, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("discover_tools: top_k must be from 1 to 50")}
	case tool == Discover && a.Min != nil && !(*a.Min >= 0 && *a.Min <= 1):
		return a, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("discover_tools: min_similarity must be from 0 to 1")}
	case tool == Describe && a.ToolID == "":
		return a, missing("tool_id")
	case tool == Describe && !feature.IsToolID(a.ToolID):
		return a, notATool(a.ToolID)
	case tool == Browse && a.DomainID == "":
		return a, missing("domain_id")
	}
	return a, nil
}

func missingArgument(tool, name string) error {
	return &store.CallError{Code: store.CodeInvalid, Message: store.Textf("%s: %s is required", tool, name)}
}

// parseExecute parses the arguments of execute_tool. If it returns an error, the result
// still names the tool if raw does.
func parseExecute(raw json.RawMessage) (store.ExecuteArgs, error) {
	args, err := store.ReadExecute(raw)
	switch {
	case err != nil:
	case args.Tool == "":
		err = missingArgument(Execute, "tool_id")
	case !feature.IsToolID(args.Tool):
		err = notATool(args.Tool)
	}
	return args, err
}

// jsonProblem returns the text of an error of store.Canonical without its prefix.
func jsonProblem(err error) store.Text {
	if parts, ok := err.(interface{ Unwrap() []error }); ok {
		return store.TextOf(parts.Unwrap()[1])
	}
	return store.TextOf(err)
}

func jsonType(e *json.UnmarshalTypeError) string {
	switch e.Type.Kind().String() {
	case "int":
		return "integer"
	case "float64":
		return "number"
	}
	return e.Type.Kind().String()
}

// notATool returns the error for a request to run a prompt or resource.
func notATool(id string) error {
	return &store.CallError{Code: store.CodeNotFound, Message: store.Textf("%s; search with discover_tools", store.Textf("tool %q not found", id))}
}
