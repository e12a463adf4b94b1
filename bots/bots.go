// Package bots turns messages into replies, pending calls into cards and button presses
// into decisions, on every surface.
//
// # What it does
//
// A [Platform] (Slack, Discord, the terminal) decodes events and passes them to a
// [Handler]; [Conversation] is the only implementation. It stores each message before it
// returns ([store.Inbox]), lets the [Agent] work on the thread, and posts [store.Message]s
// at the thread's stored address.
//
// # How a turn runs
//
//	Message ─ Accept (durable, once) ─ queue of the thread
//	worker  ─ Say (durable) ─ Done ─ Work ─┬─ answered
//	                                       └─ calls wait: cards are shown, the worker returns
//	Press   ─ Decide ─ card               the feed reports that a call changed:
//	                                       update its card; when all are settled, continue Work
//
// The worker has no state that matters: each step reads the thread and its calls and does
// the next thing. After a restart it starts from Inbox.Pending and Threads.Open, so a turn
// continues at the point it reached. Cards posted before the restart still work, because a
// press carries only the call's id.
//
// # Rules
//
//   - One step of a thread runs at a time; at most [Options.AtOnce] threads run at once.
//   - If a message arrives during a step, it waits for the step's end. If it
//     arrives while calls wait, it is passed to the agent at once, which
//     knows the turn's author and cancels the calls or queues the message.
//   - What a chat shows may lag or get lost; messages and decisions may not. A
//     failed Post is logged and retried a few times and with the next update
//     of that thread. It never affects the turn.
//   - Each posted message has a stable id and always carries the complete text so
//     far, so a platform can edit, append or print the difference.
//
// bots/outbox records the place of each message in a chat and keeps private messages from
// other readers. card.go renders [store.Card] as plain lines for terminals, screen readers
// and notifications; escape.go makes text from outside harmless. bots/botstest is the
// contract test for every Platform; bots/phrases holds nize's texts.
package bots

import (
	"context"

	"nize/bots/outbox"
	"nize/store"
)

// Agent answers in threads. llm.Agent is the real implementation, botstest.Agent the
// scripted one.
type Agent interface {
	// Say appends the person's message as a turn, once per in.Key: a second Say with the
	// same key returns the turn of the first. Calls of the thread may be pending; the agent
	// decides what the message means for them.
	Say(ctx context.Context, by store.Caller, in store.Inbound) (store.Turn, error)
	// Work continues the thread until it is answered or waits for calls, and reports
	// progress through tell. It may call tell from several goroutines, but not after it
	// returned. Work may be called at any time: it does nothing if the thread is not open,
	// and little while calls wait. It returns soon after ctx ends; the context's cause
	// tells whether the turn was stopped. A final notice ends a turn.
	Work(ctx context.Context, thread string, tell func(store.Progress)) error
}

// Approver decides calls. mcp.Gateway is the real implementation, botstest.Gateway the
// double.
type Approver interface {
	// Decide settles a waiting call if by is allowed to; for an edit it returns the new
	// call. Expected errors are ErrDecided, ErrExpired, ErrRefused and ErrNotFound.
	Decide(ctx context.Context, by store.Caller, id string, d store.Decision) (*store.Call, error)
	// Card describes the call in its current state.
	Card(ctx context.Context, id string) (store.Card, error)
}

// Handler receives what people do. [Conversation] is the only implementation; all methods
// may be called concurrently.
type Handler interface {
	// Message accepts a person's message. When Message returns true, the message is
	// durable; false means that its key was seen before. It is processed later.
	Message(ctx context.Context, in store.Inbound) (fresh bool, err error)
	// Press decides a call and returns its card in the resulting state. If the card could
	// be read, it is returned together with an error too: an error that wraps ErrDecided
	// describes the earlier decision.
	Press(ctx context.Context, by store.Caller, call string, d store.Decision) (store.Card, error)
	// Stop ends the thread's running turn and the messages queued behind it, and cancels
	// its waiting calls.
	Stop(ctx context.Context, by store.Caller, thread string) error
	// Share publishes the private turn number n in its thread, with the results it is based
	// on: from then on other people's turns may use it. It returns when the thread shows
	// the answer, with ErrDecided if it was shared before and ErrRefused if the caller is
	// not the turn's reader.
	Share(ctx context.Context, by store.Caller, thread string, n int) error
}

// Rewriter is implemented by a [Platform] that shows people's messages itself.
type Rewriter interface {
	// Rewritten is called after a message was stored that the platform has to show in
	// another way than before: it replaced one ([store.Inbound.Instead]), which is no longer
	// part of the conversation, or it has files, which can be read from now on.
	Rewritten(thread string)
}

// Platform is a chat system or another place where people talk to nize. botstest.Memory is
// the fake.
type Platform interface {
	outbox.Platform
	// Run passes what people do to h until ctx ends.
	Run(ctx context.Context, h Handler) error
}
