package api

import (
	"encoding/json"
	"time"

	"nize/store"
)

// ListConversations lists the caller's conversations, newest first.
var ListConversations = Op[Empty, List[store.Thread]]{"GET", "/v1/chat/threads", false, "list conversations"}

// StartConversation creates a conversation.
var StartConversation = Op[StartConversationRequest, store.Thread]{"POST", "/v1/chat/threads", false, "start a conversation"}

// StartConversationRequest is the initial state of a conversation.
type StartConversationRequest struct {
	Agent   string   `json:"agent,omitempty"`
	Model   string   `json:"model,omitempty"`
	Servers []string `json:"servers,omitempty"` // allowed ones; empty is all
	Zone    string   `json:"zone,omitempty"`    // IANA name
	Locale  string   `json:"locale,omitempty"`  // BCP 47
}

// ShowConversation returns a conversation that the caller started or wrote in; admins may
// read any if they give a reason.
var ShowConversation = Op[ShowConversationRequest, ThreadView]{"GET", "/v1/chat/threads/{id}", false, "show a conversation"}

// ShowConversationRequest names a conversation. The reason is recorded in the audit trail;
// an admin who took no part must give one.
type ShowConversationRequest struct {
	ID     string `path:"id" json:"-"`
	Reason string `query:"reason" json:"-"`
}

// ConversationRequest names a conversation.
type ConversationRequest struct {
	ID string `path:"id" json:"-"`
}

// ThreadView is a whole conversation.
type ThreadView struct {
	Thread store.Thread `json:"thread"`
	Turns  []store.Turn `json:"turns"`
	Cards  []store.Card `json:"cards"` // of its pending calls
}

// ForgetConversation erases a conversation for everyone in it. It returns ErrConflict if
// something in it is running or pending.
var ForgetConversation = Op[ConversationRequest, store.Forgotten]{"POST", "/v1/chat/threads/{id}/forget", false, "erase a conversation"}

// SendMessage stores a message; it is durable when the call returns.
var SendMessage = Op[SendMessageRequest, Empty]{"POST", "/v1/chat/threads/{id}/messages", false, "send a message"}

// SendMessageRequest is a person's message. The client chooses Key; a message with the same
// key is stored only once.
type SendMessageRequest struct {
	Conversation string `path:"id" json:"-"`
	Key          string `json:"key"`
	Text         string `json:"text"`
}

// StopTurn stops the running turn.
var StopTurn = Op[ConversationRequest, Empty]{"POST", "/v1/chat/threads/{id}/stop", false, "stop the running turn"}

// FollowConversation yields the events of a conversation. The first event is always the
// current State. No event after it is missed, so send a message only after receiving it.
// The stream lasts until ctx ends or the daemon stops.
var FollowConversation = Stream[ConversationRequest, ChatEvent]{"GET", "/v1/chat/threads/{id}/events", false, "follow a conversation"}

// Values of ChatEvent.State.
const (
	ChatWorking = "working" // the model or a tool is running
	ChatWaiting = "waiting" // a call needs a decision
	ChatIdle    = "idle"    // the turn has ended
)

// ChatEvent is one line of a conversation's stream: a new or changed message (if the ID is
// known, it replaces the earlier one), or a change of state.
type ChatEvent struct {
	Message *store.Message `json:"message,omitempty"`
	State   string         `json:"state,omitempty"`
	Note    string         `json:"note,omitempty"` // a line for display
}

// The operations of a chat client on the HTTP listener, authenticated by a token with
// audience api. Their responses contain what a client displays and no details of nize's
// operation.
var (
	ListChatModels        = Op[Empty, List[ChatModel]]{"GET", "/api/models", false, "list the models that the caller may use"}
	ListChatServers       = Op[Empty, List[ChatServer]]{"GET", "/api/servers", false, "list the servers that the caller may use"}
	ListChatConversations = Op[Empty, List[ChatConversation]]{"GET", "/api/conversations", false, "list the caller's conversations"}
	GetChatConversation   = Op[ConversationRequest, ChatConversationView]{"GET", "/api/conversations/{id}", false, "show one of the caller's conversations"}
	Chat                  = Op[ChatRequest, ChatAnswer]{"POST", "/api/chat", false, "send a message and get the result of the turn"}
	RunTool               = Op[RunToolRequest, ChatAnswer]{"POST", "/api/run-tool", false, "decide on a pending call and get the result of the turn"}
)

// ChatModel is a model that the caller may use.
type ChatModel struct {
	ID        string `json:"id"`
	Default   bool   `json:"default"`
	Available bool   `json:"available"`
	Images    bool   `json:"images"`
}

// ChatServer is a server whose tools the caller may use.
type ChatServer struct {
	ID          string `json:"id"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	State       string `json:"state"`
	ToolCount   int    `json:"tool_count"`
}

// ChatConversation is a conversation in a list.
type ChatConversation struct {
	ID      string    `json:"id"`
	Title   string    `json:"title,omitempty"`
	Surface string    `json:"surface"`
	Agent   string    `json:"agent,omitempty"`
	Model   string    `json:"model,omitempty"`
	Servers []string  `json:"servers,omitempty" doc:"allowed servers; empty is all"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// ChatConversationView is a conversation with its messages.
type ChatConversationView struct {
	ChatConversation
	Messages      []ChatMessage  `json:"messages"`
	ProposedCalls []ProposedCall `json:"proposed_calls" doc:"calls that need approval"`
}

// ChatMessage is one message of a conversation.
type ChatMessage struct {
	N         int        `json:"n" doc:"position, from 0"`
	Role      string     `json:"role" enum:"user,assistant,tool,notice" doc:"notice is a message from nize itself"`
	Name      string     `json:"name,omitempty"`
	Content   string     `json:"content"`
	Finish    string     `json:"finish_reason,omitempty" enum:"length,cut,content_filter" doc:"why an answer is incomplete"`
	ToolCalls []ChatCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty" doc:"the call that a tool answers"`
	At        time.Time  `json:"at"`
}

// ChatCall is a call as the model wrote it: the arguments may be broken JSON.
type ChatCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments" doc:"JSON, as a string"`
}

// ProposedCall is a pending call, with the contents of its card. Texts from the tool's
// server and from the model are claims that nize doesn't verify.
type ProposedCall struct {
	ID          string          `json:"id"`
	Tool        string          `json:"tool" doc:"server:tool"`
	Server      string          `json:"server"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty" doc:"the server's description of the tool"`
	Why         string          `json:"why,omitempty" doc:"the model's explanation"`
	Arguments   json.RawMessage `json:"arguments" jsontype:"object"`
	Warnings    []store.Text    `json:"warnings,omitempty"`
	Digest      string          `json:"digest"`
	Policy      store.Policy    `json:"policy" doc:"who decides: requester, admins, channel, channel-admins or names"`
	Expires     time.Time       `json:"expires,omitzero"`
}

// ChatRequest is a message in a conversation, or the first of a new one.
type ChatRequest struct {
	Message      string   `json:"message"`
	Conversation string   `json:"conversation_id,omitempty" doc:"omit it to start a new conversation"`
	Model        string   `json:"model,omitempty" doc:"for this and later messages; omit it to keep the current one"`
	Servers      []string `json:"servers,omitempty" doc:"allowed servers for this and later messages, empty is all; omit it to keep the current ones"`
	Stream       bool     `json:"stream,omitempty" doc:"respond with server-sent events"`
}

// RunToolRequest is a decision on a call that was proposed in a chat.
type RunToolRequest struct {
	CallID   string `json:"call_id"`
	Decision string `json:"decision" enum:"run,cancel"`
	Tool     string `json:"tool,omitempty" doc:"server.tool or server:tool, for clients that send it along"`
	Digest   string `json:"digest,omitempty" doc:"digest of what was shown"`
	Stream   bool   `json:"stream,omitempty" doc:"respond with server-sent events"`
}

// ChatAnswer is the result of a turn.
type ChatAnswer struct {
	Conversation  string         `json:"conversation_id"`
	Status        string         `json:"status" enum:"completed,requires_approval,max_steps,failed"`
	Message       *ChatReply     `json:"message"`
	ProposedCalls []ProposedCall `json:"proposed_calls" doc:"calls that need approval"`
	Finish        string         `json:"finish_reason,omitempty" enum:"stop,length,cut,content_filter" doc:"of the message; any value but stop is why it is incomplete"`
	Warnings      []string       `json:"warnings,omitempty" doc:"what the message is missing, one sentence each"`
	Error         string         `json:"error,omitempty" doc:"why it failed, in one sentence"`
}

// ChatReply is the model's answer.
type ChatReply struct {
	Role    string `json:"role" enum:"assistant"`
	Content string `json:"content"`
}
