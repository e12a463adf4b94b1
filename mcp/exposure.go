package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/expose"
	"nize/mcp/feature"
	"nize/mcp/policy"
	"nize/store"
)

// The lists of tools, prompts and resources that a client sees depend on its caller, but
// the SDK has one list for all. So these lists are built here for each request, before the
// SDK handles it. A call by name is executed like execute_tool, with another form of
// answer.

const (
	// lookAgain is how long changes are collected before the lists of the sessions are
	// compared, because editing a server produces many changes.
	lookAgain = 250 * time.Millisecond
)

// listNamed returns the tools that the caller sees by name, sorted by name. shows reports
// whether the client shows views; such a client also sees the tools that only views may
// call.
func (s *Server) listNamed(ctx context.Context, by store.Caller, shows bool) ([]namedTool, error) {
	e := expose.Of(by.Scopes, policy.BuiltinServer)
	if e.NoTool() {
		return nil, nil
	}
	g := s.opt.Gateway
	v, err := g.Policy.View(ctx, by, store.Scope{})
	if err != nil {
		return nil, err
	}
	views := v
	if shows {
		if views, err = g.Policy.View(ctx, by, store.Scope{View: true}); err != nil {
			return nil, err
		}
	}
	var list []namedTool
	var ids []string
	g.Catalog.Each(func(t *policy.Tool) bool {
		if e.Tool(t.ID(), t.Server == policy.BuiltinServer) && (v.Usable(t) || views.Usable(t)) {
			list, ids = append(list, namedTool{tool: t}), append(ids, t.ID())
		}
		return true
	})
	names := expose.Names(ids)
	for i, t := range list {
		list[i].name = names[t.tool.ID()]
	}
	slices.SortFunc(list, func(a, b namedTool) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

// findNamed returns the id of the tool that the caller sees by this name, or "" if there is
// none. If the call comes from a view and not from a model, it also returns that view's
// server.
//
// A view calls the tools of its server by their names on that server, and the host forwards
// the call unchanged. So a name that isn't a client-facing name, but the name of a tool of
// exactly one server among those with views, means that tool. This gives no client more
// than it has by the tool's client-facing name. An ambiguous name matches no tool.
func (s *Server) findNamed(ctx context.Context, by store.Caller, name string, shows bool) (id, view string, err error) {
	list, err := s.listNamed(ctx, by, shows)
	if err != nil {
		return "", "", err
	}
	i, ok := slices.BinarySearchFunc(list, name, func(t namedTool, name string) int { return strings.Compare(t.name, name) })
	switch {
	case ok && list[i].tool.View().NotModel:
		return list[i].tool.ID(), list[i].tool.Server, nil
	case ok:
		return list[i].tool.ID(), "", nil
	case !shows:
		return "", "", nil
	}
	showing := map[string]bool{}
	for _, t := range list {
		showing[t.tool.Server] = showing[t.tool.Server] || s.opt.Views.Address(t.tool) != ""
	}
	for _, t := range list {
		if t.tool.Name != name || !showing[t.tool.Server] || t.tool.View().NotApp {
			continue
		}
		if id != "" {
			return "", "", nil
		}
		id, view = t.tool.ID(), t.tool.Server
	}
	return id, view, nil
}

// serveExposed wraps the SDK's handler and limits each request to what its caller may see.
func (s *Server) serveExposed(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		by, ok := callerOf(req)
		if !ok {
			return next(ctx, method, req)
		}
		switch r := req.(type) {
		case *sdk.ListToolsRequest:
			return s.listTools(ctx, by, next, r)
		case *sdk.CallToolRequest:
			return s.callNamed(ctx, by, next, r)
		}
		shows := showsViews(req)
		switch r := req.(type) {
		case *sdk.ListResourcesRequest:
			if shows {
				next = s.addViews(by, next)
			}
		case *sdk.ReadResourceRequest:
			if strings.HasPrefix(r.Params.URI, uiScheme) {
				return s.readView(ctx, by, next, r)
			}
		}
		if res, ok, err := s.features().serve(ctx, by, method, req, next); ok {
			return res, err
		}
		if ss, ok := req.GetSession().(*sdk.ServerSession); ok && (method == "notifications/initialized" || method == "subscriptions/listen") {
			lists, err := s.digestLists(ctx, by, shows)
			if err != nil {
				return nil, internalError(ctx, s.opt.Log, method, err)
			}
			s.lists.Begin(ss, by, shows, lists)
			if method == "subscriptions/listen" { // it is its own session, which ends with the stream
				defer s.lists.End(ss)
			}
		}
		res, err := next(ctx, method, req)
		if err == nil {
			s.limitCapabilities(by, shows || showsViews(req), res) // for initialize, only known after the SDK's handler
		}
		return res, err
	}
}

// callerOf returns the caller of a request.
func callerOf(req sdk.Request) (store.Caller, bool) {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return store.Caller{}, false
	}
	by, ok := extra.TokenInfo.Extra["caller"].(store.Caller)
	return by, ok
}

// limitCapabilities removes the server capabilities that this caller can't observe: a list
// of only the five meta-tools never changes.
func (s *Server) limitCapabilities(by store.Caller, shows bool, res sdk.Result) {
	var caps *sdk.ServerCapabilities
	switch r := res.(type) {
	case *sdk.InitializeResult:
		caps = r.Capabilities
	case *sdk.DiscoverResult:
		caps = r.Capabilities
	}
	if caps == nil || hasFixtures {
		return
	}
	e := expose.Of(by.Scopes, policy.BuiltinServer)
	if caps.Tools != nil && e.NoTool() {
		caps.Tools.ListChanged = false
	}
	if e.NoFeature(policy.BuiltinServer) {
		caps.Prompts = nil
		if !shows || e.NoTool() {
			caps.Resources = nil
		}
	}
}

// listTools returns a page of the tools that the caller sees by name, including the five
// meta-tools if the caller has them.
func (s *Server) listTools(ctx context.Context, by store.Caller, next sdk.MethodHandler, req *sdk.ListToolsRequest) (sdk.Result, error) {
	after := ""
	first := *req
	if req.Params != nil {
		after = req.Params.Cursor
		first.Params = &sdk.ListToolsParams{Meta: req.Params.Meta}
	}
	got, err := next(ctx, "tools/list", &first)
	if err != nil {
		return nil, err
	}
	res, ok := got.(*sdk.ListToolsResult)
	if !ok {
		return got, nil
	}
	all := res.Tools
	if !expose.Of(by.Scopes, policy.BuiltinServer).Meta {
		all = slices.DeleteFunc(slices.Clone(all), func(t *sdk.Tool) bool { return isMeta(t.Name) })
	}
	shows := showsViews(req)
	named, err := s.listNamed(ctx, by, shows)
	if err != nil {
		return nil, internalError(ctx, s.opt.Log, "listing tools", err)
	}
	for _, t := range named {
		tool := expose.Tool(t.name, &t.tool.Tool, req.ProtocolVersion())
		tool.Meta = s.opt.Views.Meta(t.tool, shows)
		all = append(all, tool)
	}
	slices.SortFunc(all, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	res.Tools, res.NextCursor = expose.Page(all, after, func(t *sdk.Tool) (string, int) {
		in, _ := t.InputSchema.(json.RawMessage)
		out, _ := t.OutputSchema.(json.RawMessage)
		return t.Name, len(t.Description) + len(in) + len(out)
	})
	return res, nil
}

func isMeta(name string) bool {
	return slices.ContainsFunc(metaTools, func(m metaTool) bool { return m.name == name })
}

// use is one use of a tool, through execute_tool or by its name.
type use struct {
	req    store.Request
	answer func(*store.Call, error) answer
}

type useKey struct{}

// parsed returns the use itself, or the one that the arguments of execute_tool describe. It
// returns a use even with an error.
func (u use) parsed(raw json.RawMessage) (use, error) {
	if u.answer != nil {
		return u, nil
	}
	args, err := parseExecute(raw)
	return use{
		req:    store.Request{Tool: args.Tool, Args: args.Params, Beside: args.Beside, Asked: store.Asked{ByMeta: true}},
		answer: func(c *store.Call, err error) answer { return executeAnswer(args.Tool, c, err) },
	}, err
}

// callNamed serves a call of a tool by its name; it is executed like execute_tool. The SDK
// serves the five meta-tools, if the caller has them, and the other tools that it knows.
func (s *Server) callNamed(ctx context.Context, by store.Caller, next sdk.MethodHandler, req *sdk.CallToolRequest) (sdk.Result, error) {
	name := req.Params.Name
	meta := isMeta(name)
	if meta && expose.Of(by.Scopes, policy.BuiltinServer).Meta {
		return next(ctx, "tools/call", req)
	}
	id, view, err := s.findNamed(ctx, by, name, showsViews(req))
	switch {
	case err != nil:
		return nil, internalError(ctx, s.opt.Log, "finding a tool by its name", err)
	case id == "" && !meta:
		id = s.fixture(name)
	}
	switch {
	case id == "" && meta:
		s.opt.Gateway.turnAway(by, name, notATool(name))
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", name)} // the SDK's own message
	case id == "":
		res, err := next(ctx, "tools/call", req)
		if err != nil { // the SDK knows no such tool
			s.opt.Gateway.turnAway(by, name, notATool(name))
		}
		return res, err
	}
	r, params := *req, *req.Params
	params.Name = Execute
	r.Params = &params
	args, beside := req.Params.Arguments, map[string]json.RawMessage(nil)
	if tool, ok := s.opt.Gateway.Catalog.Get(id); ok {
		args, beside = s.opt.Gateway.validator.takeArguments(tool.Tool, args)
	}
	u := use{store.Request{Tool: id, Args: args, Beside: beside, Asked: store.Asked{View: view}}, func(c *store.Call, err error) answer { return namedAnswer(c, err, req.ProtocolVersion()) }}
	return next(context.WithValue(ctx, useKey{}, u), "tools/call", &r)
}

// namedAnswer returns the answer of a tool that was called by its name: the upstream's
// whole result, or one text of ours. Structured content that clients of that version don't
// accept becomes a text if there is no other content.
func namedAnswer(c *store.Call, err error, version string) answer {
	failure := callError(err)
	if err == nil {
		failure = failureOf(c)
	}
	a := answer{isError: failure != nil}
	if c != nil && c.Result != nil {
		a.take(c.Result.Passed())
	}
	if structured := expose.Structured(a.structured, version); structured == nil && a.structured != nil {
		if len(a.items) == 0 && string(a.structured) != "null" {
			a.items = []json.RawMessage{textItem(string(a.structured))}
		}
		a.structured = nil
	}
	if len(a.items) == 0 && failure != nil {
		a.items = []json.RawMessage{textItem(failure.Message.String())}
	}
	return a
}

// digestLists returns digests of the caller's lists, to detect changes.
func (s *Server) digestLists(ctx context.Context, by store.Caller, shows bool) (expose.Lists, error) {
	tools, err := s.listNamed(ctx, by, shows)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	for _, t := range tools {
		fmt.Fprintf(h, "%s %s %s\n", t.name, t.tool.Pin, t.tool.Icons)
	}
	lists := expose.Lists{expose.ToolsChanged: [32]byte(h.Sum(nil))}
	for notice, kinds := range map[string][]string{expose.PromptsChanged: {feature.Prompt}, expose.ResourcesChanged: {feature.Resource, feature.Template}} {
		h.Reset()
		for _, kind := range kinds {
			list, err := s.features().listFeatures(ctx, by, kind)
			if err != nil {
				return nil, err
			}
			for _, t := range list {
				fmt.Fprintf(h, "%s %s %s\n", t.tool.ID(), t.tool.Pin, t.tool.Icons)
			}
		}
		if shows && notice == expose.ResourcesChanged {
			for _, r := range s.opt.Views.Resources(toolsOf(tools)) {
				fmt.Fprintf(h, "%s\n", mustJSON(r))
			}
		}
		lists[notice] = [32]byte(h.Sum(nil))
	}
	return lists, nil
}

// followLists notifies sessions of changes to their lists until ctx ends.
func (s *Server) followLists(ctx context.Context) {
	for {
		select {
		case <-s.opt.Gateway.worker.relist:
		case <-ctx.Done():
			return
		}
		timer := time.NewTimer(lookAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		due := s.lists.Compare(s.sdk.Sessions(), func(by store.Caller, shows bool) (expose.Lists, error) {
			lists, err := s.digestLists(ctx, by, shows)
			if err != nil && ctx.Err() == nil {
				s.opt.Log.Error("comparing the lists of a client", "user", by.User, "err", err)
			}
			return lists, err
		})
		if slices.Contains(due, expose.ToolsChanged) {
			s.addMetaTool(metaTools[0]) // any change makes the SDK notify its sessions
		}
		s.tellFeatures(due)
	}
}

// onlyDue suppresses list notifications to sessions whose own lists did not change.
func (s *Server) onlyDue(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case expose.ToolsChanged, expose.PromptsChanged, expose.ResourcesChanged:
			if ss, ok := req.GetSession().(*sdk.ServerSession); ok && !s.lists.TakeDue(ss, method) && !hasFixtures {
				return nil, nil
			}
		}
		return next(ctx, method, req)
	}
}

// addViews adds the views of the tools that the caller sees by name to a list of resources.
func (s *Server) addViews(by store.Caller, next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		res, err := next(ctx, method, req)
		if list, ok := res.(*sdk.ListResourcesResult); ok && err == nil {
			named, err := s.listNamed(ctx, by, true)
			if err != nil {
				return nil, internalError(ctx, s.opt.Log, "listing views", err)
			}
			list.Resources = append(slices.Clip(list.Resources), s.opt.Views.Resources(toolsOf(named))...)
		}
		return res, err
	}
}

func toolsOf(named []namedTool) (list []*policy.Tool) {
	for _, t := range named {
		list = append(list, t.tool)
	}
	return list
}

// notThere is the error code for a view that doesn't exist or that the caller can't see.
const notThere = -32002

// readView returns the view of a tool that the caller sees by name. Other addresses of this
// form are resources of a server.
func (s *Server) readView(ctx context.Context, by store.Caller, next sdk.MethodHandler, req *sdk.ReadResourceRequest) (sdk.Result, error) {
	if showsViews(req) {
		named, err := s.listNamed(ctx, by, true)
		if err != nil {
			return nil, internalError(ctx, s.opt.Log, "finding a view", err)
		}
		if i := slices.IndexFunc(named, func(t namedTool) bool { return s.opt.Views.Address(t.tool) == req.Params.URI }); i >= 0 {
			t := named[i].tool
			part, sum, err := s.opt.Views.Read(ctx, by, t)
			if err != nil {
				s.opt.Log.Warn("a view is left out", "tool", t.ID(), "err", err)
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the view of " + t.ID() + " can't be had"}
			}
			s.opt.Gateway.calls.AddEvent(by, store.Event{Kind: "view.open", Subject: t.ID(), Tool: t.ID(), Data: mustJSON(map[string]string{"sha256": sum})})
			res := complete[sdk.ReadResourceResult](req.Session)
			res.Contents, res.CacheScope = []*sdk.ResourceContents{part}, "private"
			return res, nil
		}
	}
	res, _, err := s.features().serve(ctx, by, "resources/read", req, next)
	var unknown *jsonrpc.Error
	if errors.As(err, &unknown) && unknown.Code == jsonrpc.CodeInvalidParams {
		return nil, &jsonrpc.Error{Code: notThere, Message: unknown.Message, Data: unknown.Data}
	}
	return res, err
}

// tellFeatures makes the SDK notify its sessions that prompts or resources changed.
func (s *Server) tellFeatures(notices []string) {
	if slices.Contains(notices, expose.PromptsChanged) {
		s.sdk.AddPrompt(&sdk.Prompt{Name: placeholder}, nil)
		s.sdk.RemovePrompts(placeholder)
	}
	if slices.Contains(notices, expose.ResourcesChanged) {
		s.sdk.AddResource(&sdk.Resource{Name: placeholder, URI: "nize:" + placeholder}, nil)
		s.sdk.RemoveResources("nize:" + placeholder)
	}
}

func (s *Server) features() *features { return &features{s.opt.Gateway, s.opt.Config, s.opt.Log} }
