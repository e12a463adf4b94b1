// Package incoming decodes what Slack sends: events, presses, dialogs, commands and
// messages. It is pure: it turns bytes into checked values, and masks keys that people
// pasted.
//
// The types are slack-go's. What the library would refuse as a whole is read apart, in
// members that replace its own; TestLibrary has the payload for each:
//
//   - the blocks, attachments and files of a message, and the blocks of a view: one part of
//     an unexpected shape makes it refuse all of the event
//   - a member of another JSON type than the library expects: nize doesn't use most of
//     them. What a person chose or typed is refused then
//   - the inputs of a view that has none, for which Slack sends an empty list
//   - the text of blocks (blocks.go): of types that it doesn't know it keeps only the JSON
package incoming

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	"nize/store"
)

// maxIDs limits how many actions one press may contain.
const maxIDs = 64

// callback is the envelope of an event.
type callback struct {
	slackevents.EventsAPICallbackEvent
	Through string `json:"context_team_id"` // slack-go has no field for it
	Masked  bool   `json:"nize_masked"`
}

// Message is a message of an event, of a list or of an interaction.
type Message struct {
	slackgo.Msg
	ChannelType string          `json:"channel_type"`
	Blocks      json.RawMessage `json:"blocks"`
	Attachments json.RawMessage `json:"attachments"`
	Files       json.RawMessage `json:"files"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (m *Message) UnmarshalJSON(raw []byte) error {
	type plain Message
	return tolerant(json.Unmarshal(raw, (*plain)(m)))
}

// tolerant drops an error about a member of another JSON type than expected; the member has
// its zero value then.
func tolerant(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// Event is a decoded callback. For events that aren't messages, Message has the channel, the
// thread and the person concerned.
type Event struct {
	ID, Team string
	Through  string // the workspace whose installation of the app received it
	Left     bool   // user_change: the account was deactivated
	Masked   bool   // a key in the author's words was masked
	Message
	Tab   string // app_home_opened
	Home  View   // app_home_opened: the Home as last drawn
	Title string // agent_session_title_changed
}

// DecodeEvent decodes a callback. An event of a type that nize doesn't use has only its
// type and id.
func DecodeEvent(payload []byte) (e Event, err error) {
	var c callback
	if err := tolerant(json.Unmarshal(payload, &c)); err != nil {
		return e, fmt.Errorf("%w event: %w", store.ErrInvalid, err)
	}
	if c.Type != slackevents.CallbackEvent || c.InnerEvent == nil {
		return e, fmt.Errorf("%w event: type %.40q", store.ErrInvalid, c.Type)
	}
	if c.TeamID == "" {
		c.TeamID = c.Through
	}
	e.ID, e.Team, e.Through, e.Masked = c.EventID, c.TeamID, c.Through, c.Masked
	if !IDForm.MatchString(e.ID) && !WordForm.MatchString(e.ID) {
		return e, fmt.Errorf("%w event: event_id", store.ErrInvalid)
	}
	if !IDForm.MatchString(e.Team) {
		return e, fmt.Errorf("%w event: team_id", store.ErrInvalid)
	}
	var head slackgo.Event
	if err := json.Unmarshal(*c.InnerEvent, &head); err != nil {
		return e, fmt.Errorf("%w event: %w", store.ErrInvalid, err)
	}
	if e.Type = head.Type; !Used[e.Type] {
		return e, nil
	}
	if err := e.decode(*c.InnerEvent); err != nil {
		return e, fmt.Errorf("%w %s event: %w", store.ErrInvalid, e.Type, err)
	}
	return e, e.check()
}

// decode decodes the inner event.
func (e *Event) decode(raw []byte) error {
	switch slackevents.EventsAPIType(e.Type) {
	case slackevents.Message, slackevents.AppMention:
		return json.Unmarshal(raw, &e.Message)
	case slackevents.AppHomeOpened:
		var o struct {
			slackevents.AppHomeOpenedEvent
			View View `json:"view"`
		}
		err := tolerant(json.Unmarshal(raw, &o))
		e.User, e.Channel, e.Tab, e.Home = o.User, o.Channel, o.Tab, o.View
		return err
	case slackevents.AssistantThreadStarted:
		var o slackevents.AssistantThreadStartedEvent
		err := tolerant(json.Unmarshal(raw, &o))
		e.User, e.Channel, e.ThreadTimestamp = o.AssistantThread.UserID, o.AssistantThread.ChannelID, o.AssistantThread.ThreadTimeStamp
		return err
	case slackevents.AgentSessionStopped:
		var o slackevents.AgentSessionStoppedEvent
		err := tolerant(json.Unmarshal(raw, &o))
		e.User, e.Channel, e.ThreadTimestamp = o.User, o.Channel, o.ThreadTimestamp
		return err
	case slackevents.AgentSessionTitleChanged:
		var o slackevents.AgentSessionTitleChangedEvent
		err := tolerant(json.Unmarshal(raw, &o))
		e.User, e.Channel, e.ThreadTimestamp, e.Title = o.User, o.Channel, o.ThreadTimestamp, o.Title
		return err
	case slackevents.UserChange:
		var o slackevents.UserChangeEvent
		err := tolerant(json.Unmarshal(raw, &o)) // a profile has many members
		e.User, e.Left = o.User.ID, o.User.Deleted
		if err == nil && e.User == "" {
			err = errors.New("no user")
		}
		return err
	}
	return nil // nothing of it is used
}

// LimitedEvents reports whether a payload is the only non-event among event payloads: Slack
// pauses events because there were too many, or too few were acknowledged.
func LimitedEvents(payload []byte) bool {
	var c callback
	return json.Unmarshal(payload, &c) == nil && c.Type == slackevents.AppRateLimited
}

// Used are the event types that nize handles.
var Used = map[string]bool{
	"app_mention": true, "message": true, "app_home_opened": true, "user_change": true, "agent_session_stopped": true,
	"agent_session_title_changed": true, "assistant_thread_started": true, "tokens_revoked": true, "app_uninstalled": true,
}

// check validates the ids of an event.
func (e *Event) check() error {
	for what, id := range map[string]string{"user": e.User, "bot_id": e.BotID, "channel": e.Channel} {
		if id != "" && !IDForm.MatchString(id) {
			return fmt.Errorf("%w %s event: %s", store.ErrInvalid, e.Type, what)
		}
	}
	for what, ts := range map[string]string{"ts": e.Timestamp, "thread_ts": e.ThreadTimestamp} {
		if ts != "" && !StampForm.MatchString(ts) {
			return fmt.Errorf("%w %s event: %s", store.ErrInvalid, e.Type, what)
		}
	}
	if (e.Type == "message" || e.Type == "app_mention") && (e.Channel == "" || e.Timestamp == "" && e.SubType == "") {
		return fmt.Errorf("%w %s event: no channel or ts", store.ErrInvalid, e.Type)
	}
	return nil
}

// IsEdit reports whether the event is about an edited message: Slack sends app_mention
// again for each edit, with the ts of the original message.
func (e *Event) IsEdit() bool { return e.Edited != nil }

// Direct reports whether the message is in a direct conversation with nize.
func (e *Event) Direct() bool {
	return e.ChannelType == "im" || e.ChannelType == "" && strings.HasPrefix(e.Channel, "D")
}

// Addresses reports whether the message is for nize, whose user id is self.
func (e *Event) Addresses(self string) bool {
	return e.Direct() || e.Type == "app_mention" || Mentions(&e.Message, self)
}

// Root returns the thread that the message belongs to or begins.
func (e *Event) Root() string {
	if e.ThreadTimestamp != "" {
		return e.ThreadTimestamp
	}
	return e.Timestamp
}

// PrivateThread returns the thread in which to send the author an ephemeral message, "" for
// the channel: Slack shows ephemeral messages in a thread only if it has replies.
func (e *Event) PrivateThread() string {
	if e.Direct() {
		return e.Root()
	}
	return e.ThreadTimestamp
}
