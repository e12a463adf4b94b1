package store

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Address is the destination of an answer: enough to find the place again after a restart,
// on any surface.
type Address struct {
	Surface Surface `json:"surface"`
	Team    string  `json:"team,omitempty"`
	Channel string  `json:"channel,omitempty"`
	Direct  bool    `json:"direct,omitempty"` // the channel is a user's direct conversation with nize
	Thread  string  `json:"thread,omitempty"`
	Message string  `json:"message,omitempty"` // one message there
}

// Thread is a conversation.
type Thread struct {
	ID      string   `json:"id"`
	User    string   `json:"user"` // who started it
	Address Address  `json:"address"`
	Agent   string   `json:"agent,omitempty"`
	Model   string   `json:"model,omitempty"`   // logical name or provider/model; "" is the agent's
	Servers []string `json:"servers,omitempty"` // allowed servers; empty is all
	Title   string   `json:"title,omitempty"`   // User's first message, shortened, until a model writes a title
	Named   bool     `json:"named,omitempty"`   // a person chose the title; models don't change it
	Zone    string   `json:"zone,omitempty"`    // IANA name of the person's time zone
	Locale  string   `json:"locale,omitempty"`  // BCP 47
	Muted   bool     `json:"muted,omitempty"`   // nize answers only if addressed by name
	Follows string   `json:"follows,omitempty"` // the platform's id of the person whom nize answers here without being addressed
	// Streaming sets whether answers are shown while they are written: on, off, or "" for
	// User's own setting.
	Streaming   string `json:"streaming,omitempty"`
	LastMessage string `json:"heard,omitempty"`   // the platform's id of the last message that was accepted
	Tainted     bool   `json:"tainted,omitempty"` // a turn contained words of a person outside the team; never reset
	Open        bool   `json:"open,omitempty"`    // the last turn needs more work
	// Since is when the previous conversation in the same place was forgotten: earlier
	// messages are not looked up.
	Since   time.Time `json:"since,omitzero"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// Values of [Thread.Streaming].
const (
	StreamingOn  = "on"
	StreamingOff = "off"
)

// TurnRole is the author of a turn.
type TurnRole string

const (
	FromUser  TurnRole = "user"
	FromModel TurnRole = "assistant"
	FromTool  TurnRole = "tool"
	FromNize  TurnRole = "notice" // nize's own message to the person; models don't see it
	// FromSummary is a summary of the turns up to Re. Models get it instead of them.
	FromSummary TurnRole = "summary"
	FromAgent   TurnRole = "agent" // of an agent that another one called; As names it
)

// Turn is one message of a thread.
type Turn struct {
	Thread string   `json:"thread"`
	N      int      `json:"n"` // its number, from 0
	Role   TurnRole `json:"role"`
	By     Caller   `json:"by,omitzero"` // the author of a user's turn; the turn runs with their rights
	Text   string   `json:"text,omitempty"`
	// Said is nize's own text for people: the meaning of Text in a notice or a call without
	// a result; with a model's turn, why Text is incomplete, which Text does not contain.
	Said Text `json:"-"`
	// Finish is why a model's answer is incomplete (one of the Finish constants), and
	// [FinishSteps] for the notice at a turn's step limit.
	Finish string `json:"finish,omitempty"`
	// Ended is the call's state if a tool's turn reports that instead of a result.
	Ended State `json:"-"`
	// Unmade is set on a tool's turn if the call was never made, for example because its
	// arguments were invalid. Ended is then [Failed], and Said is the reason.
	Unmade bool   `json:"unmade,omitempty"`
	Files  []File `json:"files,omitempty"` // of a user's turn; or the images in the result of a tool's turn
	// Earlier holds other people's earlier messages, of a user's turn.
	Earlier *Earlier   `json:"earlier,omitempty"`
	Calls   []ToolCall `json:"calls,omitempty"`   // of the model's turn
	CallID  string     `json:"call_id,omitempty"` // of a tool's turn: the answered ToolCall
	// Opaque is data that the provider needs back unchanged (reasoning items); only the
	// provider that wrote it reads it.
	Opaque   json.RawMessage `json:"opaque,omitempty"`
	Model    string          `json:"model,omitempty"`    // provider/model that wrote it
	Final    bool            `json:"final,omitempty"`    // a model's turn that was cut short and is nevertheless the answer; a notice that ends the turn
	Key      string          `json:"key,omitempty"`      // of a user's turn: [Inbound.Key], for deduplication
	Replaces int             `json:"replaces,omitempty"` // of a user's turn: how many turns right before it belong to the message that it replaces
	Re       int             `json:"re,omitempty"`       // of a model's turn and a final notice: the number of the last user's turn that it answers
	// For is the only user who may read it, if others take part: it is, or is based on, a
	// private result. "" is everyone there.
	For string `json:"for,omitempty"`
	// SharedBy is the user who shared it with everyone there, if it was private.
	SharedBy string    `json:"shared_by,omitempty"`
	In       string    `json:"in,omitempty"` // of an agent's turn: the ToolCall that called it
	As       TurnRole  `json:"as,omitempty"`
	At       time.Time `json:"at"`
}

// Why a model's answer or a turn ended.
const (
	FinishStop     = "stop"           // it is complete
	FinishLength   = "length"         // the token limit was reached
	FinishWithheld = "content_filter" // the service withheld the rest
	FinishCut      = "cut"            // the connection broke, or a person stopped it
	FinishSteps    = "max_steps"      // of a turn: its step limit
)

// FinishRemark returns the remark shown after an incomplete answer; the zero Text for a
// complete one.
func FinishRemark(finish string) Text {
	switch finish {
	case FinishLength:
		return Textf("[The answer reached its length limit.]")
	case FinishWithheld:
		return Textf("[The model service withheld the rest of the answer.]")
	case FinishCut:
		return Textf("[The answer broke off here.]")
	}
	return Text{}
}

// WithRemark returns a model's text followed by nize's remark.
func WithRemark(text, remark string) string {
	if remark == "" || strings.TrimSpace(text) == "" {
		return text + remark
	}
	return text + "\n\n" + remark
}

// SeenBy returns the turn as that user may read it. Of a turn that is private to another
// user, only its existence remains.
func (t Turn) SeenBy(user string) Turn {
	if t.For == "" || t.For == user {
		return t
	}
	t.Text, t.Said, t.Finish, t.Ended, t.Calls, t.Opaque, t.Files = Withheld, Text{}, "", "", nil, nil, nil
	t.Unmade = false
	return t
}

// Outcome returns the state of the call that a tool's turn answers, for calls that have no
// record. It is always final: older versions stored [Planned], or only a reason, for a call
// that was never made, which is [Failed].
func (t Turn) Outcome() State {
	switch {
	case t.Unmade, t.Ended == Planned, t.Ended == "" && t.Said != (Text{}):
		return Failed
	case t.Ended.Final():
		return t.Ended
	}
	return Done
}

// InForce returns the turns that no later turn has replaced.
func InForce(turns []Turn) (kept []Turn) {
	for _, t := range turns {
		if t.Replaces > 0 {
			kept = slices.DeleteFunc(kept, func(o Turn) bool { return o.N >= t.N-t.Replaces })
		}
		kept = append(kept, t)
	}
	return kept
}

// Withheld replaces text that is private to another user.
const Withheld = "[a private result of another person, not shared]"

// TurnID returns the name of a turn outside of its thread.
func TurnID(thread string, n int) string { return thread + "/" + strconv.Itoa(n) }

// ToolCall is one use of a function proposed by the model. ID is ours, chosen when the turn
// is stored; it becomes the Call's id for execute_tool.
type ToolCall struct {
	ID       string `json:"id"`
	Provider string `json:"provider,omitempty"` // the provider's own id for it
	Name     string `json:"name"`
	Args     string `json:"args"` // as written by the model; may be invalid JSON
}

// Item is incoming data that must not be lost.
type Item struct {
	ID      string          `json:"id"`
	Kind    string          `json:"kind"`    // message, press …
	Keys    []string        `json:"keys"`    // for deduplication
	Payload json.RawMessage `json:"payload"` // Inbound, for the platform that accepted it
	At      time.Time       `json:"at"`
}

// Seq numbers changes in commit order.
type Seq uint64

// Change is one entry of the feed.
type Change struct {
	Seq    Seq    `json:"seq"`
	Kind   string `json:"kind"` // call, turn, thread, server, tools, token, setting, provider, model, agent, grant, user, credential, bot; reminder: a call still waits; recovered: the database is available again
	ID     string `json:"id"`
	Thread string `json:"thread,omitempty"`
	State  State  `json:"state,omitempty"` // of a call
	// Approved is set on a pending call that was approved.
	Approved bool `json:"approved,omitempty"`
	// Waited is set on a call that waits for a person, or did before this change.
	Waited bool `json:"waited,omitempty"`
}

// Backlog records which conversations a chat may lag behind in, so that a start finds turns
// that the chat lacks without reading all conversations. [Threads.Append] records a
// conversation, and so does a change of a call that ever waited for people, in the same
// transaction. Conversations that are not shown anywhere persistent (a terminal, HTTP) are
// never recorded.
type Backlog interface {
	// LaggingThreads returns the recorded conversations, with the number of the first turn
	// that the chat may lack.
	LaggingThreads(ctx context.Context) (map[string]int, error)
	// RecordShown records that the chat has all turns of a conversation before turn next.
	// If that is every turn, and the conversation is not open, it is no longer lagging.
	RecordShown(ctx context.Context, thread string, next int) error
}
