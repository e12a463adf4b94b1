// Package incoming decodes what Slack sends: events, presses and dialogs,
// commands, messages with their texts, blocks and files. It is pure: bytes in,
// checked values out, and keys that somebody pasted masked.
package incoming

import (
	"encoding/json"
	"fmt"
	"strings"

	"nize/store"
)

// What Slack sends is decoded here, into the few fields that are used and with
// every one of them checked: a library that knows all of Slack's shapes refuses
// a whole event over a block that it does not know, or ends the process.

// maxIDs bounds how many actions one press may name.
const maxIDs = 64

// callback wraps an event.
type callback struct {
	Type    string          `json:"type"`
	Team    string          `json:"team_id"`
	App     string          `json:"api_app_id"`
	ID      string          `json:"event_id"`
	Event   json.RawMessage `json:"event"`
	Context string          `json:"context_team_id"`
	Masked  bool            `json:"nize_masked"`
}

// Message is an event about a message, and those that name a channel and a
// thread in the same way.
type Message struct {
	Type    string          `json:"type"`
	Subtype string          `json:"subtype"`
	User    string          `json:"user"`
	Bot     string          `json:"bot_id"`
	Text    string          `json:"text"`
	TS      string          `json:"ts"`
	Thread  string          `json:"thread_ts"`
	Channel string          `json:"channel"`
	Kind    string          `json:"channel_type"`
	Hidden  bool            `json:"hidden"`
	Edited  json.RawMessage `json:"edited"` // by whom and when
	Blocks  json.RawMessage `json:"blocks"`
	Files   json.RawMessage `json:"files"`
	// Attachments are what a program added, and messages that were forwarded.
	Attachments json.RawMessage `json:"attachments"`
	Tab         string          `json:"tab"`
	Title       string          `json:"title"`

	// Of app_home_opened: the Home as it was drawn last.
	Home view `json:"view"`

	// Of agent_session_stopped and the older assistant events.
	ChannelID string `json:"channel_id"`
	UserID    string `json:"user_id"`
	Assistant struct {
		User    string `json:"user_id"`
		Channel string `json:"channel_id"`
		Thread  string `json:"thread_ts"`
	} `json:"assistant_thread"`
}

// Event is a decoded callback.
type Event struct {
	ID, Team string
	Through  string // the workspace whose installation of the app got it
	Left     bool   // user_change: the account was switched off
	Masked   bool   // a key was masked in what its author wrote
	Message
}

// DecodeEvent reads a callback. An event of a type that nize does not use has
// only its type and id.
func DecodeEvent(payload []byte) (e Event, err error) {
	var c callback
	if err := json.Unmarshal(payload, &c); err != nil {
		return e, fmt.Errorf("%w event: %w", store.ErrInvalid, err)
	}
	if c.Type != "event_callback" {
		return e, fmt.Errorf("%w event: type %.40q", store.ErrInvalid, c.Type)
	}
	if c.Team == "" {
		c.Team = c.Context
	}
	e.ID, e.Team, e.Through, e.Masked = c.ID, c.Team, c.Context, c.Masked
	if !IDForm.MatchString(c.ID) && !WordForm.MatchString(c.ID) {
		return e, fmt.Errorf("%w event: event_id", store.ErrInvalid)
	}
	if !IDForm.MatchString(c.Team) {
		return e, fmt.Errorf("%w event: team_id", store.ErrInvalid)
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(c.Event, &head); err != nil {
		return e, fmt.Errorf("%w event: %w", store.ErrInvalid, err)
	}
	e.Type = head.Type
	if !Used[head.Type] {
		return e, nil
	}
	if head.Type == "user_change" { // the one whose user is more than an id
		var changed changedUser
		if err := json.Unmarshal(c.Event, &changed); err != nil {
			return e, fmt.Errorf("%w %s event: %w", store.ErrInvalid, head.Type, err)
		}
		e.User, e.Left = changed.User.ID, changed.User.Deleted
		if !IDForm.MatchString(e.User) {
			return e, fmt.Errorf("%w %s event: user", store.ErrInvalid, head.Type)
		}
		return e, nil
	}
	if err := json.Unmarshal(c.Event, &e.Message); err != nil {
		return e, fmt.Errorf("%w %s event: %w", store.ErrInvalid, head.Type, err)
	}
	return e, e.check()
}

// LimitedEvents is the one payload of the events' way in that holds no event:
// Slack sends nothing more for a while, since it was too much or too little of it
// was acknowledged.
func LimitedEvents(payload []byte) bool {
	var c callback
	return json.Unmarshal(payload, &c) == nil && c.Type == "app_rate_limited"
}

// Used are the types of events that something is done about.
var Used = map[string]bool{
	"app_mention": true, "message": true, "app_home_opened": true, "app_context_changed": true,
	"user_change": true, "agent_session_stopped": true, "agent_session_title_changed": true,
	"assistant_thread_started": true, "assistant_thread_context_changed": true,
	"tokens_revoked": true, "app_uninstalled": true,
}

// check makes the ids of an event safe to use, and gives those that come under
// two names one.
func (e *Event) check() error {
	if e.Assistant.Channel != "" {
		e.Channel, e.Thread, e.User = e.Assistant.Channel, e.Assistant.Thread, e.Assistant.User
	}
	if e.Channel == "" {
		e.Channel = e.ChannelID
	}
	if e.User == "" {
		e.User = e.UserID
	}
	for what, id := range map[string]string{"user": e.User, "bot_id": e.Bot, "channel": e.Channel} {
		if id != "" && !IDForm.MatchString(id) {
			return fmt.Errorf("%w %s event: %s", store.ErrInvalid, e.Type, what)
		}
	}
	for what, ts := range map[string]string{"ts": e.TS, "thread_ts": e.Thread} {
		if ts != "" && !StampForm.MatchString(ts) {
			return fmt.Errorf("%w %s event: %s", store.ErrInvalid, e.Type, what)
		}
	}
	if (e.Type == "message" || e.Type == "app_mention") && (e.Channel == "" || e.TS == "" && e.Subtype == "") {
		return fmt.Errorf("%w %s event: no channel or ts", store.ErrInvalid, e.Type)
	}
	return nil
}

// IsEdit says whether the event tells of a message that was edited: Slack sends an
// app_mention again for each edit, with the ts of the message that was heard.
func (e *Event) IsEdit() bool { return len(e.Edited) > 0 && string(e.Edited) != "null" }

// Direct says whether the message stands in a conversation with nize alone.
func (e *Event) Direct() bool {
	return e.Kind == "im" || e.Kind == "" && strings.HasPrefix(e.Channel, "D")
}

// Addresses says whether the message is for nize, whose id is self.
func (e *Event) Addresses(self string) bool {
	return e.Direct() || e.Type == "app_mention" || Mentions(&e.Message, self)
}

// Root is the thread that the message belongs to, or begins.
func (e *Event) Root() string {
	if e.Thread != "" {
		return e.Thread
	}
	return e.TS
}

// PrivateThread is the thread in which its author is told something that nobody else
// reads, "" for the channel: Slack shows that in a thread only where it has
// replies already.
func (e *Event) PrivateThread() string {
	if e.Direct() {
		return e.Root()
	}
	return e.Thread
}

// changedUser is the user_change event.
type changedUser struct {
	User struct {
		ID      string `json:"id"`
		Deleted bool   `json:"deleted"`
	} `json:"user"`
}
