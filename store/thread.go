package store

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Address is where an answer goes: enough to find the place again after a
// restart, on any surface.
type Address struct {
	Surface Surface `json:"surface"`
	Team    string  `json:"team,omitempty"`
	Channel string  `json:"channel,omitempty"`
	Direct  bool    `json:"direct,omitempty"` // the channel is somebody's own conversation with nize
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
	Servers []string `json:"servers,omitempty"` // allowed ones; empty is all
	Title   string   `json:"title,omitempty"`   // the first message of User in short, until a model wrote one
	Named   bool     `json:"named,omitempty"`   // a person chose the title, and it stays
	Zone    string   `json:"zone,omitempty"`    // IANA name of the person's time zone
	Locale  string   `json:"locale,omitempty"`  // BCP 47
	Muted   bool     `json:"muted,omitempty"`   // answered only where nize is addressed by name
	Follows string   `json:"follows,omitempty"` // the platform's id of whom nize answers here without being addressed
	// Streaming says whether answers are shown while they are written: on, off,
	// or "" for what User likes.
	Streaming   string `json:"streaming,omitempty"`
	LastMessage string `json:"heard,omitempty"`   // the platform's mark of the last message that was taken
	Tainted     bool   `json:"tainted,omitempty"` // a turn brought words of somebody outside the team; it stays so
	Open        bool   `json:"open,omitempty"`    // the last turn still wants work
	// Since is when the conversation before this one in the same place was
	// forgotten: what was said there before it is not looked up.
	Since   time.Time `json:"since,omitzero"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// Values of [Thread.Streaming].
const (
	StreamingOn  = "on"
	StreamingOff = "off"
)

// TurnRole is who speaks in a turn.
type TurnRole string

const (
	FromUser  TurnRole = "user"
	FromModel TurnRole = "assistant"
	FromTool  TurnRole = "tool"
	FromNize  TurnRole = "notice" // nize's own words to the person; the model does not see them
	// FromSummary is what was said up to Re, in short: for models, in its place.
	FromSummary TurnRole = "summary"
	FromAgent   TurnRole = "agent" // of an agent that another one called: As is who speaks there
)

// Turn is what was said: one message of a thread.
type Turn struct {
	Thread string   `json:"thread"`
	N      int      `json:"n"` // its place, from 0
	Role   TurnRole `json:"role"`
	By     Caller   `json:"by,omitzero"` // the author of a user's turn: the turn runs with their rights
	Text   string   `json:"text,omitempty"`
	// Said is what nize itself says, for people: what Text says of a notice or of a
	// call without a result; after a model's Text, and no part of it, why that is
	// not whole.
	Said Text `json:"-"`
	// Finish is why a model's answer ended before it was whole (one of the Finish
	// constants), and [FinishSteps] of the notice at a turn's step limit.
	Finish string `json:"finish,omitempty"`
	// Ended is the state of the call if a tool's turn tells that instead of a result.
	Ended State `json:"-"`
	// Unmade is set on a tool's turn if the call was never made, for example because
	// its arguments didn't fit. Ended is [Failed] then, and Said is why.
	Unmade bool   `json:"unmade,omitempty"`
	Files  []File `json:"files,omitempty"` // of a user's turn; pictures in the result of a tool's
	// Earlier is what others had said before, of a user's turn.
	Earlier *Earlier   `json:"earlier,omitempty"`
	Calls   []ToolCall `json:"calls,omitempty"`   // of the model's turn
	CallID  string     `json:"call_id,omitempty"` // of a tool's turn: the ToolCall answered
	// Opaque is what the provider wants back unchanged (reasoning items); only
	// the provider that wrote it reads it.
	Opaque   json.RawMessage `json:"opaque,omitempty"`
	Model    string          `json:"model,omitempty"`    // provider/model that spoke
	Final    bool            `json:"final,omitempty"`    // a model's turn that was cut short and is nevertheless the answer; a notice that ends the turn
	Key      string          `json:"key,omitempty"`      // of a user's turn: [Inbound.Key], so that it is said once
	Replaces int             `json:"replaces,omitempty"` // of a user's turn: how many right before it were a message that it stands in the place of, and what came of that
	Re       int             `json:"re,omitempty"`       // of a model's turn and a final notice: the place of the last user's turn that it answers
	// For is the user who alone may read it where others take part: it is, or
	// rests on, a private result. "" is everybody there.
	For string `json:"for,omitempty"`
	// SharedBy is who shared it with everybody there, where it was private.
	SharedBy string    `json:"shared_by,omitempty"`
	In       string    `json:"in,omitempty"` // of an agent's turn: the ToolCall that called it
	As       TurnRole  `json:"as,omitempty"`
	At       time.Time `json:"at"`
}

// Why a model's answer ended that is not whole, and what ended a turn.
const (
	FinishStop     = "stop"           // it is whole
	FinishLength   = "length"         // the model had no more tokens
	FinishWithheld = "content_filter" // the service withheld the rest
	FinishCut      = "cut"            // it broke off, or somebody stopped it
	FinishSteps    = "max_steps"      // of a turn: its step limit
)

// FinishRemark returns what people read after an answer that is not whole; the zero
// Text for one that is.
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

// WithRemark returns a model's text as people read it, with nize's remark behind it.
func WithRemark(text, remark string) string {
	if remark == "" || strings.TrimSpace(text) == "" {
		return text + remark
	}
	return text + "\n\n" + remark
}

// SeenBy is the turn as that user may read it: of what is for somebody else only
// that it was said.
func (t Turn) SeenBy(user string) Turn {
	if t.For == "" || t.For == user {
		return t
	}
	t.Text, t.Said, t.Finish, t.Ended, t.Calls, t.Opaque, t.Files = Withheld, Text{}, "", "", nil, nil, nil
	t.Unmade = false
	return t
}

// Outcome returns the state of the call that a tool's turn answers, for calls of which
// there is no record. It is always final: turns stored by older versions say
// [Planned], or only why, of a call that was never made, which is [Failed].
func (t Turn) Outcome() State {
	switch {
	case t.Unmade, t.Ended == Planned, t.Ended == "" && t.Said != (Text{}):
		return Failed
	case t.Ended.Final():
		return t.Ended
	}
	return Done
}

// InForce are the turns that no later one has replaced.
func InForce(turns []Turn) (kept []Turn) {
	for _, t := range turns {
		if t.Replaces > 0 {
			kept = slices.DeleteFunc(kept, func(o Turn) bool { return o.N >= t.N-t.Replaces })
		}
		kept = append(kept, t)
	}
	return kept
}

// Withheld stands where something private of somebody else's was said.
const Withheld = "[a private result of another person, not shared]"

// TurnID names a turn outside of its thread.
func TurnID(thread string, n int) string { return thread + "/" + strconv.Itoa(n) }

// ToolCall is one proposed use of a function by the model. ID is ours, chosen
// when the turn is stored; it becomes the Call's id for execute_tool.
type ToolCall struct {
	ID       string `json:"id"`
	Provider string `json:"provider,omitempty"` // the provider's own id for it
	Name     string `json:"name"`
	Args     string `json:"args"` // as the model wrote them; may be broken JSON
}

// Item is something that came in and must not be lost.
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
	Kind   string `json:"kind"` // call, turn, thread, server, tools, token, setting, provider, model, agent, grant, user, credential, bot; reminder: a call still waits; recovered: the database answers again
	ID     string `json:"id"`
	Thread string `json:"thread,omitempty"`
	State  State  `json:"state,omitempty"` // of a call
	// Approved is set on a pending call that a person said yes to.
	Approved bool `json:"approved,omitempty"`
	// Waited is set on a call that waits for a person, or did until this change.
	Waited bool `json:"waited,omitempty"`
}

// Backlog remembers which conversations a chat may lag behind in, so that a
// start finds what the store has and the chat lacks without reading all of
// them. A conversation is noted by [Threads.Append], and by a change of a call
// that was ever put to people, in the same transaction; what is shown nowhere
// that lasts (a terminal, HTTP) never is.
type Backlog interface {
	// LaggingThreads returns the conversations that are noted, with the place of the
	// first turn that may lack in the chat.
	LaggingThreads(ctx context.Context) (map[string]int, error)
	// RecordShown notes that the chat has all of a conversation before turn next.
	// Unless it has more turns by now, or is open, it is not behind any more.
	RecordShown(ctx context.Context, thread string, next int) error
}
