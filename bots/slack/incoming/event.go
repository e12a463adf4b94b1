// Package incoming decodes what Slack sends: events, presses, dialogs, commands and
// messages. It is pure: it turns bytes into checked values, and masks keys that people
// pasted.
package incoming

import (
	"encoding/json"
	"fmt"
	"strings"

	"nize/store"
)

// Slack's payloads are decoded here, into the few fields that are used, and each field is
// checked. A library that knows all of Slack's shapes rejects a whole event because of one
// unknown block, or crashes.

// maxIDs limits how many actions one press may contain.
const maxIDs = 64

// callback is the envelope of an event.
type callback struct {
	Type    string          `json:"type"`
	Team    string          `json:"team_id"`
	App     string          `json:"api_app_id"`
	ID      string          `json:"event_id"`
	Event   json.RawMessage `json:"event"`
	Context string          `json:"context_team_id"`
	Masked  bool            `json:"nize_masked"`
}

// Message is an event about a message, or another event that names a channel and a thread
// in the same form.
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
	Edited  json.RawMessage `json:"edited"` // author and time of the edit
	Blocks  json.RawMessage `json:"blocks"`
	Files   json.RawMessage `json:"files"`
	// Attachments are what a program added, and forwarded messages.
	Attachments json.RawMessage `json:"attachments"`
	Tab         string          `json:"tab"`
	Title       string          `json:"title"`

	// For app_home_opened: the Home as last drawn.
	Home view `json:"view"`

	// For agent_session_stopped and the older assistant events.
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
	Through  string // the workspace whose installation of the app received it
	Left     bool   // user_change: the account was deactivated
	Masked   bool   // a key in the author's words was masked
	Message
}

// DecodeEvent decodes a callback. An event of a type that nize doesn't use has only its
// type and id.
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
	if head.Type == "user_change" { // the only event whose user is an object
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

// LimitedEvents reports whether a payload is the only non-event among event payloads: Slack
// pauses events because there were too many, or too few were acknowledged.
func LimitedEvents(payload []byte) bool {
	var c callback
	return json.Unmarshal(payload, &c) == nil && c.Type == "app_rate_limited"
}

// Used are the event types that nize handles.
var Used = map[string]bool{
	"app_mention": true, "message": true, "app_home_opened": true, "app_context_changed": true,
	"user_change": true, "agent_session_stopped": true, "agent_session_title_changed": true,
	"assistant_thread_started": true, "assistant_thread_context_changed": true,
	"tokens_revoked": true, "app_uninstalled": true,
}

// check validates the ids of an event, and moves those that come under two names to one
// field.
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

// IsEdit reports whether the event is about an edited message: Slack sends app_mention
// again for each edit, with the ts of the original message.
func (e *Event) IsEdit() bool { return len(e.Edited) > 0 && string(e.Edited) != "null" }

// Direct reports whether the message is in a direct conversation with nize.
func (e *Event) Direct() bool {
	return e.Kind == "im" || e.Kind == "" && strings.HasPrefix(e.Channel, "D")
}

// Addresses reports whether the message is for nize, whose user id is self.
func (e *Event) Addresses(self string) bool {
	return e.Direct() || e.Type == "app_mention" || Mentions(&e.Message, self)
}

// Root returns the thread that the message belongs to or begins.
func (e *Event) Root() string {
	if e.Thread != "" {
		return e.Thread
	}
	return e.TS
}

// PrivateThread returns the thread in which to send the author an ephemeral message, "" for
// the channel: Slack shows ephemeral messages in a thread only if it has replies.
func (e *Event) PrivateThread() string {
	if e.Direct() {
		return e.Root()
	}
	return e.Thread
}

// changedUser is a user_change event.
type changedUser struct {
	User struct {
		ID      string `json:"id"`
		Deleted bool   `json:"deleted"`
	} `json:"user"`
}
