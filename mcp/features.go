package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/expose"
	"nize/mcp/feature"
	"nize/mcp/policy"
	"nize/store"
)

// Clients can read the servers' prompts and resources. Each is stored like a tool, and
// reading it is a call: the same rules decide who can find it, it is held if its definition
// changed, hooks run, and the call is recorded. It needs approval only if an admin requires
// approval for every call of its server.

// features serves prompts and resources to clients.
type features struct {
	gateway *Gateway
	config  store.Config
	log     *slog.Logger
}

// listFeatures returns the features of one kind that the caller sees, sorted by id.
func (s *features) listFeatures(ctx context.Context, by store.Caller, kind string) ([]namedTool, error) {
	g := s.gateway
	v, err := g.Policy.View(ctx, by, store.Scope{})
	if err != nil {
		return nil, err
	}
	e := expose.Of(by.Scopes, policy.BuiltinServer)
	var list []namedTool
	var ids []string // server:name, like a tool id, for the names of prompts
	g.Catalog.EachFeature(func(t *policy.Tool) {
		if k, rest := feature.Of(t.Name); k == kind && e.Feature(t.ID()) && v.Usable(t) {
			list, ids = append(list, namedTool{t.Server + ":" + rest, t}), append(ids, t.Server+":"+rest)
		}
	})
	if kind == feature.Prompt {
		names := expose.Names(ids)
		for i, t := range list {
			list[i].name = names[t.name]
		}
	}
	slices.SortFunc(list, func(a, b namedTool) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

// serve handles requests for prompts and resources. It returns ok false for all other
// requests.
func (s *features) serve(ctx context.Context, by store.Caller, method string, req sdk.Request, next sdk.MethodHandler) (res sdk.Result, ok bool, err error) {
	switch r := req.(type) {
	case *sdk.ListPromptsRequest:
		got, err := next(ctx, method, expose.FirstPage(r))
		if list, ok := got.(*sdk.ListPromptsResult); ok && err == nil {
			list.Prompts = slices.DeleteFunc(list.Prompts, func(p *sdk.Prompt) bool { return p.Name == placeholder })
			list.Prompts, list.NextCursor, err = addFeatures(ctx, s, by, feature.Prompt, expose.CursorOf(r), list.Prompts, func(t namedTool) *sdk.Prompt { return expose.Prompt(t.name, &t.tool.Tool) }, func(p *sdk.Prompt) string { return p.Name })
		}
		return got, true, err
	case *sdk.ListResourcesRequest:
		got, err := next(ctx, method, expose.FirstPage(r))
		if list, ok := got.(*sdk.ListResourcesResult); ok && err == nil {
			list.Resources = slices.DeleteFunc(list.Resources, func(r *sdk.Resource) bool { return r.Name == placeholder })
			list.Resources, list.NextCursor, err = addFeatures(ctx, s, by, feature.Resource, expose.CursorOf(r), list.Resources, func(t namedTool) *sdk.Resource { return expose.Resource(&t.tool.Tool) }, func(r *sdk.Resource) string { return r.URI })
		}
		return got, true, err
	case *sdk.ListResourceTemplatesRequest:
		got, err := next(ctx, method, expose.FirstPage(r))
		if list, ok := got.(*sdk.ListResourceTemplatesResult); ok && err == nil {
			list.ResourceTemplates, list.NextCursor, err = addFeatures(ctx, s, by, feature.Template, expose.CursorOf(r), list.ResourceTemplates, func(t namedTool) *sdk.ResourceTemplate { return expose.Template(&t.tool.Tool) }, func(t *sdk.ResourceTemplate) string { return t.URITemplate })
		}
		return got, true, err
	case *sdk.GetPromptRequest:
		got, found, err := s.getPrompt(ctx, by, r)
		if !found && err == nil {
			return s.passUnknown(ctx, by, r.Params.Name, method, req, next)
		}
		return result(got, err)
	case *sdk.ReadResourceRequest:
		got, found, err := s.readResource(ctx, by, r)
		if !found && err == nil {
			return s.passUnknown(ctx, by, r.Params.URI, method, req, next)
		}
		return result(got, err)
	}
	return nil, false, nil
}

// result returns the values for a request that serve handled. It avoids returning a typed
// nil pointer, which would be a non-nil result.
func result[R interface {
	*T
	sdk.Result
}, T any](got R, err error) (sdk.Result, bool, error) {
	if err != nil {
		return nil, true, err
	}
	return got, true, nil
}

// passUnknown passes a request for a feature that the caller doesn't see to the SDK, and
// records a rejection if the SDK doesn't have it either.
func (s *features) passUnknown(ctx context.Context, by store.Caller, asked, method string, req sdk.Request, next sdk.MethodHandler) (sdk.Result, bool, error) {
	res, err := next(ctx, method, req)
	if err != nil {
		s.gateway.turnAway(by, asked, notATool(asked))
	}
	return res, true, err
}

// addFeatures returns a page of a list: the SDK's entries and the servers' features that
// the caller sees.
func addFeatures[T any](ctx context.Context, s *features, by store.Caller, kind, after string, list []T, form func(namedTool) T, key func(T) string) ([]T, string, error) {
	found, err := s.listFeatures(ctx, by, kind)
	if err != nil {
		return nil, "", internalError(ctx, s.log, "listing prompts or resources", err)
	}
	sizes := map[string]int{}
	for _, t := range found {
		one := form(t)
		sizes[key(one)] = len(t.tool.Meta) + len(t.tool.Icons)
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	list, next := expose.Page(list, after, func(one T) (string, int) { return key(one), sizes[key(one)] })
	return list, next, nil
}

// readFeature reads a prompt or resource, which is a call.
func (s *features) readFeature(ctx context.Context, by store.Caller, req sdk.Request, id string, args json.RawMessage) (*store.Call, error) {
	ctx, cancel := context.WithTimeout(ctx, store.GetSpan(s.config, "", "mcp.wait"))
	defer cancel()
	var w waiter
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		w.left, _ = extra.TokenInfo.Extra["left"].(<-chan struct{})
	}
	c, err := s.gateway.execute(ctx, by, store.Request{Tool: id, Args: args}, &w)
	failure := callError(err)
	if err == nil {
		failure = failureOf(c)
	}
	if failure == nil {
		return c, nil
	}
	if failure.Code == store.CodeInternal && ctx.Err() == nil {
		s.log.Error("reading a prompt or resource", "id", id, "err", err)
	}
	code := int64(jsonrpc.CodeInternalError)
	if failure.Code == store.CodeInvalid || failure.Code == store.CodeNotFound {
		code = jsonrpc.CodeInvalidParams
	}
	return nil, &jsonrpc.Error{Code: code, Message: failure.Message.String(), Data: mustJSON(failure)}
}

// Resources reads resources of servers as calls, by the ids under which they are stored.
type Resources struct{ Gateway *Gateway }

// Read is [Gateway.Call] for a resource.
func (r Resources) Read(ctx context.Context, by store.Caller, req store.Request) (*store.Call, error) {
	_, name, _ := store.SplitToolID(req.Tool)
	if kind, _ := feature.Of(name); kind != feature.Resource {
		return nil, notATool(req.Tool)
	}
	return r.Gateway.call(ctx, by, request{Request: req}, nil)
}

// getPrompt implements prompts/get. It returns found false for a name that the caller
// doesn't see.
func (s *features) getPrompt(ctx context.Context, by store.Caller, req *sdk.GetPromptRequest) (res *sdk.GetPromptResult, found bool, err error) {
	list, err := s.listFeatures(ctx, by, feature.Prompt)
	if err != nil {
		return nil, true, internalError(ctx, s.log, "finding a prompt", err)
	}
	i := slices.IndexFunc(list, func(t namedTool) bool { return t.name == req.Params.Name })
	if i < 0 {
		return nil, false, nil
	}
	args, err := s.gateway.validator.promptArguments(req.Params.Name, list[i].tool.Tool, req.Params.Arguments)
	if err != nil {
		failure := callError(err)
		return nil, true, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: failure.Message.String(), Data: mustJSON(failure)}
	}
	c, err := s.readFeature(ctx, by, req, list[i].tool.ID(), args)
	if err != nil {
		return nil, true, err
	}
	var got struct {
		Description string          `json:"description"`
		Meta        json.RawMessage `json:"_meta"`
		Messages    []struct {
			Role    sdk.Role        `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(c.Result.Passed(), &got); err != nil {
		return nil, true, notRead(err)
	}
	res = complete[sdk.GetPromptResult](req.Session)
	res.Description, res.Meta, res.Messages = got.Description, expose.MetaOf(got.Meta), []*sdk.PromptMessage{}
	for _, m := range got.Messages {
		if len(m.Content) == 0 {
			return nil, true, notRead(errors.New("a message without content"))
		}
		res.Messages = append(res.Messages, &sdk.PromptMessage{Role: m.Role, Content: rawContent{raw: m.Content}})
	}
	return res, true, nil
}

// complete returns a result that the client can distinguish from a question, for the
// protocol versions that have questions. The SDK marks only the results of its own
// handlers.
func complete[R any](ss *sdk.ServerSession) *R {
	r := new(R)
	if p := ss.InitializeParams(); p == nil || p.ProtocolVersion >= questionsAsResults {
		_ = json.Unmarshal([]byte(`{"resultType":"complete"}`), r) // only a decoder can set this field
	}
	return r
}

// notRead returns the error for an upstream's answer that is not in the protocol's form.
func notRead(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server's answer is not in the form of the protocol: " + err.Error()}
}

// findResource resolves an address: nize's own address of a server's resource, or a URI as
// a server wrote it into a result, if exactly one server that the caller may use has it.
func (s *features) findResource(ctx context.Context, by store.Caller, address string) (id string, args json.RawMessage, err error) {
	server, uri, ours := expose.SplitAddress(address)
	for _, kind := range []string{feature.Resource, feature.Template} {
		list, err := s.listFeatures(ctx, by, kind)
		if err != nil {
			return "", nil, err
		}
		list = slices.DeleteFunc(list, func(t namedTool) bool {
			_, has := feature.Of(t.tool.Name)
			return ours && t.tool.Server != server || kind == feature.Resource && has != uri || kind == feature.Template && !expose.TemplateMatches(has, uri)
		})
		switch {
		case len(list) == 0:
			continue
		case slices.ContainsFunc(list, func(t namedTool) bool { return t.tool.Server != list[0].tool.Server }):
			return "", nil, nil // ambiguous
		case kind == feature.Resource:
			return list[0].tool.ID(), json.RawMessage("{}"), nil
		}
		return list[0].tool.ID(), mustJSON(map[string]string{"uri": uri}), nil
	}
	return "", nil, nil
}

// readResource implements resources/read. It returns found false for an address that the
// caller doesn't see.
func (s *features) readResource(ctx context.Context, by store.Caller, req *sdk.ReadResourceRequest) (res *sdk.ReadResourceResult, found bool, err error) {
	id, args, err := s.findResource(ctx, by, req.Params.URI)
	switch {
	case err != nil:
		return nil, true, internalError(ctx, s.log, "finding a resource", err)
	case id == "":
		return nil, false, nil
	}
	c, err := s.readFeature(ctx, by, req, id, args)
	if err != nil {
		return nil, true, err
	}
	var got sdk.ReadResourceResult
	if err := json.Unmarshal(c.Result.Passed(), &got); err != nil {
		return nil, true, notRead(err)
	}
	res = complete[sdk.ReadResourceResult](req.Session)
	res.Meta, res.Contents, res.CacheScope = got.Meta, got.Contents, "private"
	if res.Contents == nil {
		res.Contents = []*sdk.ResourceContents{}
	}
	server, _, ours := expose.SplitAddress(req.Params.URI)
	for _, part := range res.Contents {
		if part == nil {
			continue
		}
		part.Meta = expose.WithoutViews(part.Meta)
		if ours && part.URI != "" {
			part.URI = expose.Address(server, part.URI)
		}
	}
	return res, true, nil
}

// placeholder is added to the SDK's lists and removed again to announce a change: the SDK
// notifies its sessions only of its own changes.
const placeholder = "nize-list-changed"

// namedTool is a tool with the name that a client sees.
type namedTool struct {
	name string
	tool *policy.Tool
}

// internalError logs an error whose cause the client must not see, and returns a generic
// one.
func internalError(ctx context.Context, log *slog.Logger, what string, err error) error {
	if ctx.Err() == nil {
		log.Error(what, "err", err)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
}
