// Package llm is the assistant: the loop that answers people with the help of a model and
// of tools.
//
// # The loop
//
// [Agent.Say] appends a person's message to a thread. [Agent.Work] reads the thread and
// does the next thing, until there is nothing to do or it has to wait:
//
//	the last step has calls without a result
//	    ├─ one waits or runs ──► return; whoever settles it calls Work again
//	    └─ all are settled   ──► append one tool turn per call, read again
//	no message is unanswered   ──► return
//	else                       ──► generate, choose ids, append, read again
//
// Work has no state of its own. It reads everything from the thread, and each step is one
// Append at a numbered position; [store.ErrExists] means that another writer was first, so
// it reads again. That makes it safe to repeat Work after a crash, and to call it twice at
// once. A tool call has the id that was stored with the model's turn, so a repeated step
// finds the call that was made.
//
// # Who is answered
//
// Messages arrive while the model generates or a card waits. [store.Turn.Re] of a model's
// turn is the last message that it had read. Later messages of the same person are included
// in the next round (and cancel calls that still wait); messages of other people are queued
// and answered afterwards, with their own author's rights.
//
// # Packages
//
// [Model] is implemented by llm/openai (for all services that speak OpenAI's protocol) and
// llm/offline (the built-in planner); llm/llmtest.Script is the scripted double. [Router]
// finds the model with a name and its fallbacks. [Tools] is the gateway. This package
// imports neither it nor the chat platforms; the composition root connects them.
package llm

import (
	"context"
	"encoding/json"
	"time"

	"nize/store"
)

// Offline is the provider that always exists; its model needs no key and no network.
const (
	Offline      = "offline"
	OfflineModel = Offline + "/planner"
)

// Model generates replies with one provider. llm/openai and llm/offline implement it;
// llmtest.Script is the scripted double.
type Model interface {
	// Generate asks the model once. It calls delta, which may be nil, for each piece of
	// text as it arrives, on the calling goroutine. A reply is complete unless its Finish
	// says otherwise; if a stream ends before any text, Generate returns an error. Errors
	// of the service are a [*ProviderError]; if ctx is cancelled, it returns the cause. It
	// is safe for concurrent use.
	Generate(ctx context.Context, req Request, delta func(Delta)) (Reply, error)
}

// Request is one round with a model.
type Request struct {
	Model  string // the provider's own name of it
	System string // the same in every round of a conversation, for prompt caches
	// Context is what changes between turns (time, zone, locale, requester). Models put it
	// beside the newest message, after the cacheable prefix.
	Context string
	// Locale (BCP 47, "" if unknown) is the language of nize's own texts in the
	// conversation. A language model follows the person's words instead.
	Locale string
	// Turns is the history in the order that models need: every tool turn follows the
	// model's turn that called. Tool results are framed, see [Frame].
	Turns       []store.Turn
	Functions   []store.Function
	NoCalls     bool // the functions are listed but must not be called now
	MaxTokens   int  // 0 means the provider's default
	Temperature *float64
	Bill        *Bill // who pays; ignored by models
}

// Bill says who pays for a model call.
type Bill struct {
	By     store.Caller
	Team   string // [store.TeamOf]
	Thread string
	Agent  string
}

// Delta is a piece of a reply.
type Delta struct {
	Text string
}

// Reply is a model's reply.
type Reply struct {
	Text   string
	Calls  []store.ToolCall // with Provider, Name and Args; the agent chooses the ids
	Usage  Usage
	Opaque json.RawMessage // data that the provider needs back unchanged
	Finish string          // stop, tool_calls, or one of the Finish constants
	Model  string          // provider/model that replied; set by [Router]
	Kind   string          // kind of the provider; set by [Router]
	Remark store.Text      // nize's note after Text if that is incomplete; set by [CheckReply]
	// MicroUSD is the price in millionths of a dollar; nil if unknown.
	MicroUSD *int64
	// Crossed lists the budgets of which this reply used up 80 % or all.
	Crossed []store.BudgetState
}

// Reasons why a reply is incomplete.
const (
	FinishLength   = store.FinishLength
	FinishWithheld = store.FinishWithheld
	FinishCut      = store.FinishCut
)

// Usage counts tokens. Estimated is set if the provider sent no counts.
type Usage struct {
	Prompt, Completion, Cached, Reasoning int64

	Estimated bool
	// MicroUSD is the price if the provider reports it (Priced).
	MicroUSD int64
	Priced   bool
}

// Tools is the only access to tools; mcp.Gateway implements it. Meta-tools are served at
// once, execute_tool becomes a stored call.
type Tools interface {
	// Functions lists what the model is offered.
	Functions(ctx context.Context, by store.Caller, scope store.Scope) ([]store.Function, error)
	// Meta serves every function except execute_tool. It changes nothing, so it may be
	// repeated.
	Meta(ctx context.Context, by store.Caller, scope store.Scope, fn store.ToolCall) (*store.Result, error)
	// Call returns the call in a final state, running or pending. It returns a
	// [*store.CallError] if the call was refused before it existed, and an error wrapping
	// [store.ErrExists] if the id was used before.
	Call(ctx context.Context, by store.Caller, req store.Request) (*store.Call, error)
	// Decide is used for [store.Cancel] only.
	Decide(ctx context.Context, by store.Caller, id string, d store.Decision) (*store.Call, error)
}

// OwnDecisions reports whether only the requester can approve a waiting call, according to
// current rights: their next message cancels such a call, and waits for any other. Tools
// may implement it; without it, the call's policy decides.
type OwnDecisions interface {
	DecidesAlone(ctx context.Context, by store.Caller, c store.Call) bool
}

// ExecuteTool is the function whose use becomes a stored call.
const ExecuteTool = "execute_tool"

// The functions with which a model searches for tools and reads about them.
const (
	discoverTools = "discover_tools"
	describeTool  = "get_tool_schema"
)

// Threads is the part of [store.Threads] that the agent needs.
type Threads interface {
	GetThread(ctx context.Context, id string) (store.Thread, error)
	Append(ctx context.Context, by store.Caller, t store.Turn, open bool) error
	Turns(ctx context.Context, thread string) ([]store.Turn, error)
}

// Calls is the part of [store.Calls] that the agent needs.
type Calls interface {
	GetCall(ctx context.Context, id string) (store.Call, error)
	ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error)
}

// Agents is the part of [store.Agents] that the agent needs.
type Agents interface {
	GetAgent(ctx context.Context, id string) (store.Agent, error)
	ListAgents(ctx context.Context) ([]store.Agent, error)
}

// Groups is the part of [store.Groups] that the agent needs.
type Groups interface {
	GroupsOf(ctx context.Context, user string) ([]string, error)
}

// Channels reads channel settings; [store.Channels] implements it.
type Channels interface {
	GetChannel(ctx context.Context, place string) (store.Channel, error)
}

// MayAskFunc returns an error if a person may not use the model with that name ("" is the
// default); [Router.MayAsk] implements it. A forbidden and an unknown name return the same
// error.
type MayAskFunc func(ctx context.Context, by store.Caller, groups []string, name string) error

// Models generates replies by model name; [*Router] implements it.
type Models interface {
	// Generate is [Model.Generate] with the model of that logical name or provider/model,
	// or its fallbacks; "" is the default. It sets req.Model.
	Generate(ctx context.Context, name string, req Request, delta func(Delta)) (Reply, error)
}

// recordTimeout limits writes that are made after ctx was cancelled.
const recordTimeout = 5 * time.Second
