// Package bots turns messages into replies, waiting calls into cards and
// presses into decisions, the same way on every surface.
//
// # What it does
//
// A [Platform] (Slack, Discord, the terminal) decodes what people do and hands
// it to a [Handler]; [Conversation] is the one Handler. It stores each message
// before it returns ([store.Inbox]), lets the [Agent] work on the thread, and
// shows what happens as [store.Message]s at the thread's stored address.
//
// # How a turn runs
//
//	Message ─ Accept (durable, once) ─ queue of the thread
//	worker  ─ Say (durable) ─ Done ─ Work ─┬─ answered
//	                                       └─ calls wait: cards are shown, the worker leaves
//	Press   ─ Decide ─ card               the feed tells when a call changed:
//	                                       update its card; when all settled, Work goes on
//
// The worker keeps no truth of its own: each step reads the thread and its
// calls and does the next thing. After a restart it starts from Inbox.Pending
// and Threads.Open, so a turn goes on wherever it stood, and a card that was
// posted before still works, because a press carries only the call's id.
//
// # Rules
//
//   - One step of a thread at a time; at most [Options.AtOnce] threads at once.
//   - A message that arrives during a step waits for its end. One that arrives
//     while calls wait is said at once: the agent knows whose turn it is, and
//     cancels the calls or lets the message queue.
//   - What is shown may lag and may be lost; what was said and decided may
//     not. A platform's failed Post is logged, tried again a few times and with
//     the next update of that thread, and never touches the turn.
//   - Everything shown has a stable id, and its text is always the whole text
//     so far, so a platform can edit, append or print the difference.
//
// bots/outbox knows what stands where in a chat, and keeps what is for one person
// alone from those who read along. card.go renders [store.Card] as plain lines for
// terminals, screen readers and notifications; escape.go makes outside text
// harmless. bots/botstest is the contract that every Platform passes; bots/phrases
// holds nize's words.
package bots

import (
	"context"

	"nize/bots/outbox"
	"nize/store"
)

// Agent answers in threads. llm.Agent is the real one, botstest.Agent the
// scripted one.
type Agent interface {
	// Say appends the person's message as a turn, once per in.Key: a second
	// Say with the same key returns the turn of the first. Calls of the thread
	// may wait meanwhile: what the message means for them is the agent's to say.
	Say(ctx context.Context, by store.Caller, in store.Inbound) (store.Turn, error)
	// Work does the next thing in the thread until it answered or waits for
	// calls, and tells what happens; tell may be called from several
	// goroutines, but not after Work returned. It does nothing in a thread
	// that is not open, and little where calls wait; it may be called at any
	// time. When ctx ends it returns soon; the cause says whether the turn was
	// stopped. A final notice ends a turn.
	Work(ctx context.Context, thread string, tell func(store.Progress)) error
}

// Approver decides about calls. mcp.Gateway is the real one,
// botstest.Gateway the double.
type Approver interface {
	// Decide settles a waiting call if by may do so; for an edit it returns
	// the new call. ErrDecided, ErrExpired, ErrRefused and ErrNotFound are
	// the expected errors.
	Decide(ctx context.Context, by store.Caller, id string, d store.Decision) (*store.Call, error)
	// Card describes the call as it stands now.
	Card(ctx context.Context, id string) (store.Card, error)
}

// Handler takes what people do. [Conversation] is the one implementation; all
// methods may be called concurrently.
type Handler interface {
	// Message accepts a person's message. It is durable when Message returns
	// true; false means that its key was seen before. The work happens later.
	Message(ctx context.Context, in store.Inbound) (fresh bool, err error)
	// Press decides about a call and returns its card as it stands after
	// that, with an error too wherever the card could be read: an error
	// wrapping ErrDecided says in words what had been decided.
	Press(ctx context.Context, by store.Caller, call string, d store.Decision) (store.Card, error)
	// Stop ends the running turn of the thread, what waits behind it, and
	// cancels its waiting calls.
	Stop(ctx context.Context, by store.Caller, thread string) error
	// Share shows the private turn number n of a thread there, with what it
	// rests on: everybody's model may read it from then on. It returns when the
	// thread shows it. ErrDecided for who shared it before, ErrRefused for
	// everybody but whom it is for.
	Share(ctx context.Context, by store.Caller, thread string, n int) error
}

// Rewriter is what a [Platform] implements too where people may write another message
// instead of their last one ([store.Inbound.Instead]).
type Rewriter interface {
	// Rewritten says that this was done: what was there is not part of the
	// conversation any more.
	Rewritten(thread string)
}

// Platform is a place where people meet nize. botstest.Memory is the fake.
type Platform interface {
	outbox.Platform
	// Run takes what people do to h until ctx ends.
	Run(ctx context.Context, h Handler) error
}
