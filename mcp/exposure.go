package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
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

// What a client sees by name is its caller's, while the SDK has one list for all:
// so the lists are made here, before the SDK's, for each request. A call by name
// goes the way of execute_tool, with another form of the answer.

const (
	// lookAgain is how long changes are gathered before the lists of the sessions
	// are compared: an edit of a server is many changes.
	lookAgain = 250 * time.Millisecond
)

// listNamed returns the tools that the caller sees by name, sorted by it.
func (s *Server) listNamed(ctx context.Context, by store.Caller) ([]namedTool, error) {
	e := expose.Of(by.Scopes, policy.BuiltinServer)
	if e.NoTool() {
		return nil, nil
	}
	g := s.opt.Gateway
	v, err := g.Policy.View(ctx, by, store.Scope{})
	if err != nil {
		return nil, err
	}
	var list []namedTool
	var ids []string
	g.Catalog.Each(func(t *policy.Tool) bool {
		if e.Tool(t.ID(), t.Server == policy.BuiltinServer) && v.Usable(t) {
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

// findNamed returns the id of the tool that the caller sees by a name.
func (s *Server) findNamed(ctx context.Context, by store.Caller, name string) (id string, err error) {
	list, err := s.listNamed(ctx, by)
	if err != nil {
		return "", err
	}
	i, ok := slices.BinarySearchFunc(list, name, func(t namedTool, name string) int { return strings.Compare(t.name, name) })
	if !ok {
		return "", nil
	}
	return list[i].tool.ID(), nil
}

// serveExposed is the SDK's half of a request as its caller may see it.
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
		if res, ok, err := s.features().serve(ctx, by, method, req, next); ok {
			return res, err
		}
		if ss, ok := req.GetSession().(*sdk.ServerSession); ok && (method == "notifications/initialized" || method == "subscriptions/listen") {
			lists, err := s.digestLists(ctx, by)
			if err != nil {
				return nil, internalError(ctx, s.opt.Log, method, err)
			}
			s.lists.Begin(ss, by, lists)
			if method == "subscriptions/listen" { // which is a session of its own, and ends with the stream
				defer s.lists.End(ss)
			}
		}
		res, err := next(ctx, method, req)
		if err == nil {
			s.limitCapabilities(by, res)
		}
		return res, err
	}
}

// callerOf is who sent a request.
func callerOf(req sdk.Request) (store.Caller, bool) {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return store.Caller{}, false
	}
	by, ok := extra.TokenInfo.Extra["caller"].(store.Caller)
	return by, ok
}

// limitCapabilities declares of what the server can do only what this caller can
// meet: a list of five tools never changes.
func (s *Server) limitCapabilities(by store.Caller, res sdk.Result) {
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
		caps.Prompts, caps.Resources = nil, nil
	}
}

// listTools answers a page of the tools that the caller sees by name, the five
// meta-tools among them where they are.
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
	named, err := s.listNamed(ctx, by)
	if err != nil {
		return nil, internalError(ctx, s.opt.Log, "listing tools", err)
	}
	for _, t := range named {
		all = append(all, expose.Tool(t.name, &t.tool.Tool))
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

// use is one use of a tool, by execute_tool or by its name.
type use struct {
	req    store.Request
	answer func(*store.Call, error) answer
}

type useKey struct{}

// parsed is the use itself, or the one that the arguments of execute_tool say.
// There is an answer also with an error.
func (u use) parsed(raw json.RawMessage) (use, error) {
	if u.answer != nil {
		return u, nil
	}
	args, err := parseMeta(Execute, raw)
	return use{
		req:    store.Request{Tool: args.ToolID, Args: args.Params, Asked: store.Asked{ByMeta: true}},
		answer: func(c *store.Call, err error) answer { return executeAnswer(args, c, err) },
	}, err
}

// callNamed serves a call of a tool by its name: it goes on as execute_tool does.
// The five meta-tools, where the caller has them, and what else the SDK knows are
// the SDK's.
func (s *Server) callNamed(ctx context.Context, by store.Caller, next sdk.MethodHandler, req *sdk.CallToolRequest) (sdk.Result, error) {
	name := req.Params.Name
	meta := isMeta(name)
	if meta && expose.Of(by.Scopes, policy.BuiltinServer).Meta {
		return next(ctx, "tools/call", req)
	}
	id, err := s.findNamed(ctx, by, name)
	switch {
	case err != nil:
		return nil, internalError(ctx, s.opt.Log, "finding a tool by its name", err)
	case id == "" && meta:
		s.opt.Gateway.turnAway(by, name, notATool(name))
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", name)} // as the SDK has it
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
	u := use{store.Request{Tool: id, Args: req.Params.Arguments}, namedAnswer}
	return next(context.WithValue(ctx, useKey{}, u), "tools/call", &r)
}

// namedAnswer is the answer of a tool that was called by its name: the
// upstream's whole, or one text of ours.
func namedAnswer(c *store.Call, err error) answer {
	failure := callError(err)
	if err == nil {
		failure = failureOf(c)
	}
	a := answer{isError: failure != nil}
	if c != nil && c.Result != nil {
		a.take(c.Result.Passed())
	}
	if len(a.items) == 0 && failure != nil {
		a.items = []json.RawMessage{textItem(failure.Message.String())}
	}
	return a
}

// digestLists tells the caller's lists from others.
func (s *Server) digestLists(ctx context.Context, by store.Caller) (expose.Lists, error) {
	tools, err := s.listNamed(ctx, by)
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
		lists[notice] = [32]byte(h.Sum(nil))
	}
	return lists, nil
}

// followLists tells sessions that a list of theirs changed, until ctx ends.
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
		due := s.lists.Compare(s.sdk.Sessions(), func(by store.Caller) (expose.Lists, error) {
			lists, err := s.digestLists(ctx, by)
			if err != nil && ctx.Err() == nil {
				s.opt.Log.Error("comparing the lists of a client", "user", by.User, "err", err)
			}
			return lists, err
		})
		if slices.Contains(due, expose.ToolsChanged) {
			s.addMetaTool(metaTools[0]) // the SDK tells its sessions of any change of its own
		}
		s.tellFeatures(due)
	}
}

// onlyDue keeps from a session the notices of changes that are another's.
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

// tellFeatures has the SDK tell its sessions that prompts or resources changed.
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
