package api

import (
	"context"
	"iter"
	"net/url"

	"nize/store"
)

// NewThread starts a conversation.
type NewThread struct {
	Agent   string   `json:"agent,omitempty"`
	Model   string   `json:"model,omitempty"`
	Servers []string `json:"servers,omitempty"` // allowed ones; empty is all
	Zone    string   `json:"zone,omitempty"`    // IANA name
	Locale  string   `json:"locale,omitempty"`  // BCP 47
}

// ThreadView is a conversation whole.
type ThreadView struct {
	Thread store.Thread `json:"thread"`
	Turns  []store.Turn `json:"turns"`
	Cards  []store.Card `json:"cards"` // of its waiting calls
}

// NewMessage is a person's message. Key is chosen by the client: sending the
// same one twice stores it once.
type NewMessage struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// What a conversation does, in ChatEvent.State.
const (
	ChatWorking = "working" // the model or a tool is at it
	ChatWaiting = "waiting" // a call waits for a person
	ChatIdle    = "idle"    // the turn has ended
)

// ChatEvent is one line of a conversation's stream: a message that is new or
// has changed (same ID: it replaces the one before), or a change of state.
type ChatEvent struct {
	Message *store.Message `json:"message,omitempty"`
	State   string         `json:"state,omitempty"`
	Note    string         `json:"note,omitempty"` // one line about it, for people
}

// Threads lists the caller's conversations, newest first.
func (c *Client) Threads(ctx context.Context) ([]store.Thread, error) {
	return list[store.Thread](ctx, c, request{method: "GET", path: "/v1/chat/threads"})
}

// NewThread starts a conversation.
func (c *Client) NewThread(ctx context.Context, t NewThread) (store.Thread, error) {
	return do[store.Thread](ctx, c, request{method: "POST", path: "/v1/chat/threads", body: t})
}

// Thread shows a conversation that the caller began or wrote in.
func (c *Client) Thread(ctx context.Context, id string) (ThreadView, error) {
	return c.ReadThread(ctx, id, "")
}

// ReadThread is Thread, for an admin who took no part with the reason, which is
// kept in the audit.
func (c *Client) ReadThread(ctx context.Context, id, reason string) (ThreadView, error) {
	return do[ThreadView](ctx, c, request{method: "GET", path: "/v1/chat/threads/" + url.PathEscape(id), query: query("reason", reason)})
}

// ForgetThread erases a conversation for everybody in it. ErrConflict while
// something in it runs or waits.
func (c *Client) ForgetThread(ctx context.Context, id string) (store.Forgotten, error) {
	return do[store.Forgotten](ctx, c, request{method: "POST", path: "/v1/chat/threads/" + url.PathEscape(id) + "/forget"})
}

// Send stores a message; it is durable when Send returns (202).
func (c *Client) Send(ctx context.Context, thread string, m NewMessage) error {
	return exec(ctx, c, request{method: "POST", path: "/v1/chat/threads/" + url.PathEscape(thread) + "/messages", body: m})
}

// Stop ends the running turn.
func (c *Client) Stop(ctx context.Context, thread string) error {
	return exec(ctx, c, request{method: "POST", path: "/v1/chat/threads/" + url.PathEscape(thread) + "/stop"})
}

// Events follows a conversation. The first event is always the present State
// and means that nothing from then on is missed: send after it has come. The
// stream lasts until ctx ends or the daemon stops.
func (c *Client) Events(ctx context.Context, thread string) iter.Seq2[ChatEvent, error] {
	return stream[ChatEvent](ctx, c, request{method: "GET", path: "/v1/chat/threads/" + url.PathEscape(thread) + "/events"})
}
