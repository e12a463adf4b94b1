package api

import "nize/store"

// ListConversations lists the caller's conversations, newest first.
var ListConversations = Op[Empty, List[store.Thread]]{"GET", "/v1/chat/threads", false, "list conversations"}

// StartConversation starts a conversation.
var StartConversation = Op[StartConversationRequest, store.Thread]{"POST", "/v1/chat/threads", false, "start a conversation"}

// StartConversationRequest says with what it starts.
type StartConversationRequest struct {
	Agent   string   `json:"agent,omitempty"`
	Model   string   `json:"model,omitempty"`
	Servers []string `json:"servers,omitempty"` // allowed ones; empty is all
	Zone    string   `json:"zone,omitempty"`    // IANA name
	Locale  string   `json:"locale,omitempty"`  // BCP 47
}

// ShowConversation shows a conversation that the caller began or wrote in, and
// to admins any, with a reason.
var ShowConversation = Op[ShowConversationRequest, ThreadView]{"GET", "/v1/chat/threads/{id}", false, "show a conversation"}

// ShowConversationRequest names a conversation. The reason is kept in the audit;
// an admin who took no part needs one.
type ShowConversationRequest struct {
	ID     string `path:"id" json:"-"`
	Reason string `query:"reason" json:"-"`
}

// ConversationRequest names a conversation.
type ConversationRequest struct {
	ID string `path:"id" json:"-"`
}

// ThreadView is a conversation whole.
type ThreadView struct {
	Thread store.Thread `json:"thread"`
	Turns  []store.Turn `json:"turns"`
	Cards  []store.Card `json:"cards"` // of its waiting calls
}

// ForgetConversation erases a conversation for everybody in it. ErrConflict while
// something in it runs or waits.
var ForgetConversation = Op[ConversationRequest, store.Forgotten]{"POST", "/v1/chat/threads/{id}/forget", false, "erase a conversation"}

// SendMessage stores a message; it is durable when the call returns.
var SendMessage = Op[SendMessageRequest, Empty]{"POST", "/v1/chat/threads/{id}/messages", false, "send a message"}

// SendMessageRequest is a person's message. Key is chosen by the client: sending
// the same one twice stores it once.
type SendMessageRequest struct {
	Conversation string `path:"id" json:"-"`
	Key          string `json:"key"`
	Text         string `json:"text"`
}

// StopTurn ends the running turn.
var StopTurn = Op[ConversationRequest, Empty]{"POST", "/v1/chat/threads/{id}/stop", false, "stop the running turn"}

// FollowConversation follows a conversation. The first event is always the
// present State and means that nothing from then on is missed: send after it has
// come. The stream lasts until ctx ends or the daemon stops.
var FollowConversation = Stream[ConversationRequest, ChatEvent]{"GET", "/v1/chat/threads/{id}/events", false, "follow a conversation"}

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
