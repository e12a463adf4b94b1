package trace

import (
	"context"
	"errors"

	"nize/bots"
	"nize/llm"
	"nize/mcp"
	"nize/store"
)

// Attribute names of OpenTelemetry's conventions.
const (
	operation      = "gen_ai.operation.name"
	conversationID = "gen_ai.conversation.id"
	toolName       = "gen_ai.tool.name"
	toolCallID     = "gen_ai.tool.call.id"
	methodName     = "mcp.method.name"
	toolsCall      = "tools/call"
	executeTool    = "execute_tool"
	surface        = "nize.surface"
)

// Agent traces messages and the work on them.
func (t *Tracer) Agent(a bots.Agent) bots.Agent { return agent{a, t} }

type agent struct {
	bots.Agent
	t *Tracer
}

func (a agent) Say(ctx context.Context, by store.Caller, in store.Inbound) (store.Turn, error) {
	ctx, s := a.t.start(ctx, consumer, "message", string(by.Surface))
	turn, err := a.Agent.Say(ctx, by, in)
	if s != nil {
		s.set(surface, string(by.Surface))
		s.set(conversationID, in.Thread)
		a.t.threads.put(in.Thread, s)
	}
	s.end(faultOf(err))
	return turn, err
}

func (a agent) Work(ctx context.Context, thread string, tell func(store.Progress)) error {
	if !a.t.on() {
		return a.Agent.Work(ctx, thread, tell)
	}
	ctx, s := a.t.start(within(ctx, a.t.threads.get(thread)), internal, "invoke_agent", "")
	err := a.Agent.Work(ctx, thread, tell)
	if s != nil && s.leads.Load() { // otherwise there was nothing to do
		s.set(operation, "invoke_agent")
		s.set(conversationID, thread)
		s.end(faultOf(err))
	}
	return err
}

// Tools traces an agent's use of tools.
func (t *Tracer) Tools(x llm.Tools) llm.Tools { return tools{x, t} }

type tools struct {
	llm.Tools
	t *Tracer
}

func (x tools) Meta(ctx context.Context, by store.Caller, scope store.Scope, fn store.ToolCall) (*store.Result, error) {
	ctx, s := x.t.start(ctx, internal, executeTool, identifier(fn.Name))
	r, err := x.Tools.Meta(ctx, by, scope, fn)
	s.set(operation, executeTool)
	s.set(toolName, identifier(fn.Name))
	fault := faultOf(err)
	if err == nil && r.Error != nil {
		fault = string(r.Error.Code)
	}
	s.end(fault)
	return r, err
}

func (x tools) Call(ctx context.Context, by store.Caller, req store.Request) (*store.Call, error) {
	ctx, s := x.t.start(ctx, internal, executeTool, identifier(req.Tool))
	c, err := x.Tools.Call(ctx, by, req)
	s.set(operation, executeTool)
	s.set(toolName, identifier(req.Tool))
	fault := faultOf(err)
	if err == nil && s != nil {
		s.set(toolCallID, c.ID)
		s.set("nize.call.state", string(c.State))
		if c.State.Final() && c.State != store.Done {
			fault = string(c.State)
		}
		if c.Result != nil && c.Result.Error != nil {
			fault = string(c.Result.Error.Code)
		}
	}
	s.end(fault)
	return c, err
}

// Calls remembers the span that requested each pending call, so that it becomes the parent
// of the call's run.
func (t *Tracer) Calls(s mcp.CallStore) mcp.CallStore { return calls{s, t} }

type calls struct {
	mcp.CallStore
	t *Tracer
}

func (s calls) Begin(ctx context.Context, by store.Caller, c store.Call) error {
	if c.State == store.Pending && s.t.on() {
		s.t.calls.put(c.ID, spanOf(ctx))
	}
	return s.CallStore.Begin(ctx, by, c)
}

// Runner traces calls of upstream servers.
func (t *Tracer) Runner(r mcp.Runner) mcp.Runner { return runner{r, t} }

type runner struct {
	mcp.Runner
	t *Tracer
}

func (r runner) Run(ctx context.Context, by store.Caller, c *store.Call, progress store.ProgressFunc) (*store.Result, error) {
	if !r.t.on() {
		return r.Runner.Run(ctx, by, c, progress)
	}
	if spanOf(ctx) == nil {
		ctx = within(ctx, r.t.calls.get(c.ID))
	}
	ctx, s := r.t.start(ctx, client, toolsCall, c.Tool)
	result, err := r.Runner.Run(ctx, by, c, progress)
	s.set(methodName, toolsCall)
	s.set(operation, executeTool)
	s.set(toolName, c.Tool)
	s.set(toolCallID, c.ID)
	s.set("nize.server", c.Server)
	s.set(surface, string(c.Surface))
	fault := faultOf(err)
	if err == nil && result != nil && result.IsError {
		fault = string(store.CodeTool)
	}
	s.end(fault)
	return result, err
}

// MetaTool traces an MCP client's use of a meta-tool; traceparent identifies the client's
// own span. The returned function ends the span.
func (t *Tracer) MetaTool(ctx context.Context, tool, traceparent string) (context.Context, func(failed bool)) {
	if !t.on() {
		return ctx, ignore
	}
	ctx, s := t.start(within(ctx, parseTraceparent(traceparent)), server, toolsCall, identifier(tool))
	s.set(methodName, toolsCall)
	s.set(operation, executeTool)
	s.set(toolName, identifier(tool))
	return ctx, func(failed bool) {
		if failed {
			s.end(string(store.CodeTool))
			return
		}
		s.end("")
	}
}

func ignore(bool) {}

// Model traces the requests to a model of a provider.
func (t *Tracer) Model(kind string, of llm.Model) llm.Model { return model{of, kind, t} }

type model struct {
	llm.Model
	kind string
	t    *Tracer
}

// providers maps nize's names of providers to those of the conventions, if they differ.
var providers = map[string]string{"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai", "azure": "azure.ai.openai"}

func (m model) Generate(ctx context.Context, req llm.Request, delta func(llm.Delta)) (llm.Reply, error) {
	ctx, s := m.t.start(ctx, client, "chat", req.Model)
	reply, err := m.Model.Generate(ctx, req, delta)
	if s == nil {
		return reply, err
	}
	s.set(operation, "chat")
	provider := m.kind
	if name := providers[m.kind]; name != "" {
		provider = name
	}
	s.set("gen_ai.provider.name", provider)
	s.set("gen_ai.request.model", req.Model)
	s.count("gen_ai.usage.input_tokens", reply.Usage.Prompt)
	s.count("gen_ai.usage.output_tokens", reply.Usage.Completion)
	s.count("gen_ai.usage.cache_read.input_tokens", reply.Usage.Cached)
	s.end(faultOf(err))
	return reply, err
}

// faultOf returns the kind of an error, never its text.
func faultOf(err error) string {
	var failed *store.CallError
	var service *llm.ProviderError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &failed):
		return string(failed.Code)
	case errors.As(err, &service):
		return string(service.Fault)
	case errors.Is(err, context.Canceled), errors.Is(err, llm.ErrShutdown):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "_OTHER" // the conventions' value for other errors
}
