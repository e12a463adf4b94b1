// Package llm is the assistant: the loop that answers people with the help of
// a model and of tools.
//
// # The loop
//
// [Agent.Say] appends a person's message to a thread; [Agent.Work] looks at the
// thread and does the next thing, until there is nothing to do or something
// must be waited for:
//
//	the last step has calls without a result
//	    ├─ one waits or runs ──► return; whoever settles it calls Work again
//	    └─ all are settled   ──► append one tool turn per call, look again
//	nobody waits for an answer ──► return
//	else                       ──► generate, choose ids, append, look again
//
// Work holds no state of its own. All it knows it reads from the thread, every
// step is one Append at a numbered place, and [store.ErrExists] means that
// somebody was first: look again. So it may be repeated after a crash, and be
// called twice at once. A call of a tool has the id that was stored with the
// model's turn, so that a repeated step finds the call that was made.
//
// # Who is answered
//
// Messages arrive while the model speaks or a card waits. [store.Turn.Re] of a
// model's turn says up to which message it had read; what came later from the
// same person joins in at the next round (and cancels calls that still wait),
// what came from others queues and is answered afterwards, with its own
// author's rights.
//
// # Rooms
//
// [Model] is implemented by llm/openai (every service that speaks OpenAI's
// protocol) and llm/offline (the built-in planner); llm/llmtest.Script is the
// scripted double. [Router] finds the model behind a name and falls back to
// others. [Tools] is the gateway; this package imports neither it nor the chat
// platforms and meets them on the roof.
package llm

import (
	"context"
	"encoding/json"
	"time"

	"nize/store"
)

// Offline is the provider that is always there; its model needs no key and no
// network.
const (
	Offline      = "offline"
	OfflineModel = Offline + "/planner"
)

// Model is one provider's way of speaking. llm/openai and llm/offline implement
// it; llmtest.Script is the scripted double.
type Model interface {
	// Generate asks the model once and calls delta, which may be nil, for every
	// piece of text as it comes, from the calling goroutine. A reply is
	// complete, or its Finish says why it is not; a stream that broke off before
	// any text is an error. Errors of the service are a [*ProviderError]; a cancelled ctx is its cause. It is safe for
	// concurrent use.
	Generate(ctx context.Context, req Request, delta func(Delta)) (Reply, error)
}

// Request is one round with a model.
type Request struct {
	Model  string // the provider's own name of it
	System string // the same in every round of a conversation, for prompt caches
	// Context is what changes from turn to turn (time, zone, locale, who asks).
	// Models put it beside the newest message, behind the cacheable prefix.
	Context string
	// Locale (BCP 47, "" where nobody knows) is the language in which nize itself
	// speaks in the conversation. A language model looks at the person's words.
	Locale string
	// Turns is the history in the order a model wants it: every tool turn
	// follows the model's turn that called. Tool results are framed, see [Frame].
	Turns       []store.Turn
	Functions   []store.Function
	NoCalls     bool // the functions are listed, but must not be called now
	MaxTokens   int  // 0 is the provider's default
	Temperature *float64
	Bill        *Bill // who pays; models don't look at it
}

// Bill says who a model call is booked to.
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

// Reply is what a model said.
type Reply struct {
	Text   string
	Calls  []store.ToolCall // Provider, Name and Args are set; the agent chooses the ids
	Usage  Usage
	Opaque json.RawMessage // what the provider wants back unchanged
	Finish string          // stop, tool_calls, or one of the Finish constants
	Model  string          // provider/model that spoke; set by [Router]
	Kind   string          // of the provider; set by [Router]
	Remark store.Text      // of nize's own, behind Text, if that is not whole; set by [CheckReply]
	// MicroUSD is the price in millionths of a dollar; nil where it is unknown.
	MicroUSD *int64
	// Crossed are budgets of which 80 % or all were used up with this reply.
	Crossed []store.BudgetState
}

// Why a reply ended that is not whole.
const (
	FinishLength   = store.FinishLength
	FinishWithheld = store.FinishWithheld
	FinishCut      = store.FinishCut
)

// Usage counts tokens. Estimated is set where the provider sent none.
type Usage struct {
	Prompt, Completion, Cached, Reasoning int64

	Estimated bool
	// MicroUSD is the price where the provider itself names it (Priced).
	MicroUSD int64
	Priced   bool
}

// Tools is the one door to the tools; mcp.Gateway is it. Meta-tools are served
// at once, execute_tool becomes a stored call.
type Tools interface {
	// Functions lists what the model is offered.
	Functions(ctx context.Context, by store.Caller, scope store.Scope) ([]store.Function, error)
	// Meta serves every function but execute_tool. It changes nothing, so it
	// may be repeated.
	Meta(ctx context.Context, by store.Caller, scope store.Scope, fn store.ToolCall) (*store.Result, error)
	// Call returns the call in a final state, running or pending. A
	// [*store.CallError] says that it was refused before it existed; an error
	// wrapping [store.ErrExists], that the id was used before.
	Call(ctx context.Context, by store.Caller, req store.Request) (*store.Call, error)
	// Decide is used for [store.Cancel] only.
	Decide(ctx context.Context, by store.Caller, id string, d store.Decision) (*store.Call, error)
}

// OwnDecisions says whether the requester alone can approve a call that waits, as rights
// stand now: their next message withdraws such a call, and waits behind any other. Tools
// may implement it; without it the policy of the call says so.
type OwnDecisions interface {
	DecidesAlone(ctx context.Context, by store.Caller, c store.Call) bool
}

// ExecuteTool is the function whose use becomes a stored call.
const ExecuteTool = "execute_tool"

// The functions by which a model looks for a tool and reads about it.
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

// Channels tells how channels are set up; [store.Channels] has it.
type Channels interface {
	GetChannel(ctx context.Context, place string) (store.Channel, error)
}

// MayAskFunc says why a person may not ask for a model by that name ("" is the
// default); [Router.MayAsk] is it. A forbidden and an unknown name give the
// same error.
type MayAskFunc func(ctx context.Context, by store.Caller, groups []string, name string) error

// Models answers for a name; [*Router] is it.
type Models interface {
	// Generate is [Model.Generate] by the model of that logical name or
	// provider/model, or its fallbacks; "" is the default. req.Model is set by it.
	Generate(ctx context.Context, name string, req Request, delta func(Delta)) (Reply, error)
}

// recordTimeout bounds what is written after the caller has left.
const recordTimeout = 5 * time.Second
