package slack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"nize/store"
)

// What Slack sends is decoded here, into the few fields that are used and with
// every one of them checked: a library that knows all of Slack's shapes refuses
// a whole event over a block that it does not know, or ends the process.

// maxIDs bounds how many actions one press may name.
const maxIDs = 64

// maxFrame bounds one frame: a press carries its message with all blocks.
const maxFrame = 4 << 20

var (
	idForm    = regexp.MustCompile(`^[A-Z0-9]{1,32}$`)
	stampForm = regexp.MustCompile(`^[0-9]{1,12}\.[0-9]{1,9}$`)
	wordForm  = regexp.MustCompile(`^[A-Za-z0-9_./:|-]{1,255}$`)
)

// envelope is one frame of Socket Mode.
type envelope struct {
	Type           string          `json:"type"`
	ID             string          `json:"envelope_id"`
	Payload        json.RawMessage `json:"payload"`
	Reason         string          `json:"reason"`
	Connections    int             `json:"num_connections"`
	ConnectionInfo struct {
		AppID string `json:"app_id"`
	} `json:"connection_info"`
}

func decodeEnvelope(frame []byte) (e envelope, err error) {
	if len(frame) > maxFrame {
		return e, fmt.Errorf("%w frame: %d bytes", store.ErrInvalid, len(frame))
	}
	if err := json.Unmarshal(frame, &e); err != nil {
		return e, fmt.Errorf("%w frame: %w", store.ErrInvalid, err)
	}
	if e.ID != "" && !wordForm.MatchString(e.ID) {
		return e, fmt.Errorf("%w frame: envelope_id", store.ErrInvalid)
	}
	return e, nil
}

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

// message is an event about a message, and those that name a channel and a
// thread in the same way.
type message struct {
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

// event is a decoded callback.
type event struct {
	id, team string
	through  string // the workspace whose installation of the app got it
	gone     bool   // user_change: the account was switched off
	masked   bool   // a key was masked in what its author wrote
	message
}

// decodeEvent reads a callback. An event of a type that nize does not use has
// only its type and id.
func decodeEvent(payload []byte) (e event, err error) {
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
	e.id, e.team, e.through, e.masked = c.ID, c.Team, c.Context, c.Masked
	if !idForm.MatchString(c.ID) && !wordForm.MatchString(c.ID) {
		return e, fmt.Errorf("%w event: event_id", store.ErrInvalid)
	}
	if !idForm.MatchString(c.Team) {
		return e, fmt.Errorf("%w event: team_id", store.ErrInvalid)
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(c.Event, &head); err != nil {
		return e, fmt.Errorf("%w event: %w", store.ErrInvalid, err)
	}
	e.Type = head.Type
	if !used[head.Type] {
		return e, nil
	}
	if head.Type == "user_change" { // the one whose user is more than an id
		var changed changedUser
		if err := json.Unmarshal(c.Event, &changed); err != nil {
			return e, fmt.Errorf("%w %s event: %w", store.ErrInvalid, head.Type, err)
		}
		e.User, e.gone = changed.User.ID, changed.User.Deleted
		if !idForm.MatchString(e.User) {
			return e, fmt.Errorf("%w %s event: user", store.ErrInvalid, head.Type)
		}
		return e, nil
	}
	if err := json.Unmarshal(c.Event, &e.message); err != nil {
		return e, fmt.Errorf("%w %s event: %w", store.ErrInvalid, head.Type, err)
	}
	return e, e.check()
}

// limitedEvents is the one payload of the events' way in that holds no event:
// Slack sends nothing more for a while, since it was too much or too little of it
// was acknowledged.
func limitedEvents(payload []byte) bool {
	var c callback
	return json.Unmarshal(payload, &c) == nil && c.Type == "app_rate_limited"
}

// used are the types of events that something is done about.
var used = map[string]bool{
	"app_mention": true, "message": true, "app_home_opened": true, "app_context_changed": true,
	"user_change": true, "agent_session_stopped": true, "agent_session_title_changed": true,
	"assistant_thread_started": true, "assistant_thread_context_changed": true,
	"tokens_revoked": true, "app_uninstalled": true,
}

// check makes the ids of an event safe to use, and gives those that come under
// two names one.
func (e *event) check() error {
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
		if id != "" && !idForm.MatchString(id) {
			return fmt.Errorf("%w %s event: %s", store.ErrInvalid, e.Type, what)
		}
	}
	for what, ts := range map[string]string{"ts": e.TS, "thread_ts": e.Thread} {
		if ts != "" && !stampForm.MatchString(ts) {
			return fmt.Errorf("%w %s event: %s", store.ErrInvalid, e.Type, what)
		}
	}
	if (e.Type == "message" || e.Type == "app_mention") && (e.Channel == "" || e.TS == "" && e.Subtype == "") {
		return fmt.Errorf("%w %s event: no channel or ts", store.ErrInvalid, e.Type)
	}
	return nil
}

// again says whether the event tells of a message that was edited: Slack sends an
// app_mention anew for each edit, with the ts of the message that was heard.
func (e *event) again() bool { return len(e.Edited) > 0 && string(e.Edited) != "null" }

// direct says whether the message stands in a conversation with nize alone.
func (e *event) direct() bool {
	return e.Kind == "im" || e.Kind == "" && strings.HasPrefix(e.Channel, "D")
}

// root is the thread that the message belongs to, or begins.
func (e *event) root() string {
	if e.Thread != "" {
		return e.Thread
	}
	return e.TS
}

// aside is the thread in which its author is told something that nobody else
// reads, "" for the channel: Slack shows that in a thread only where it has
// replies already.
func (e *event) aside() string {
	if e.direct() {
		return e.root()
	}
	return e.Thread
}

// interaction is a press, a dialog or a shortcut.
type interaction struct {
	Type     string `json:"type"`
	Callback string `json:"callback_id"`
	Trigger  string `json:"trigger_id"`
	ActionTS string `json:"action_ts"`
	Masked   bool   `json:"nize_masked"`
	User     struct {
		ID   string `json:"id"`
		Team string `json:"team_id"`
	} `json:"user"`
	Team struct {
		ID string `json:"id"`
	} `json:"team"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Container struct {
		Type    string `json:"type"`
		Message string `json:"message_ts"`
		Channel string `json:"channel_id"`
		Thread  string `json:"thread_ts"`
	} `json:"container"`
	Message struct {
		TS     string `json:"ts"`
		Thread string `json:"thread_ts"`
		User   string `json:"user"`
		Bot    string `json:"bot_id"`
		Text   string `json:"text"`

		Username    string          `json:"username"`
		Blocks      json.RawMessage `json:"blocks"`
		Attachments json.RawMessage `json:"attachments"`
		Files       json.RawMessage `json:"files"`
	} `json:"message"`
	Actions []action `json:"actions"`
	View    view     `json:"view"`
}

// action is what was pressed or chosen.
type action struct {
	ID       string `json:"action_id"`
	Block    string `json:"block_id"`
	Value    string `json:"value"`
	TS       string `json:"action_ts"`
	Selected struct {
		Value string `json:"value"`
	} `json:"selected_option"`
	SelectedMany []struct {
		Value string `json:"value"`
	} `json:"selected_options"`
}

// view is a dialog or the Home as it was sent in.
type view struct {
	ID       string `json:"id"`
	Hash     string `json:"hash"`
	Callback string `json:"callback_id"`
	Type     string `json:"type"`
	Metadata string `json:"private_metadata"`
	Team     string `json:"app_installed_team_id"` // whose installation of the app opened it
	State    struct {
		Values inputs `json:"values"`
	} `json:"state"`
}

// inputs are what stands in a dialog, by block_id and action_id.
type inputs map[string]map[string]field

// UnmarshalJSON takes an empty list for nothing, as Slack writes it where a view
// has no inputs.
func (i *inputs) UnmarshalJSON(raw []byte) error {
	var list []struct{}
	if json.Unmarshal(raw, &list) == nil && len(list) == 0 {
		*i = nil
		return nil
	}
	return json.Unmarshal(raw, (*map[string]map[string]field)(i))
}

// field is one input of a dialog.
type field struct {
	Type     string  `json:"type"`
	Value    *string `json:"value"`
	Selected *struct {
		Value string `json:"value"`
	} `json:"selected_option"`
	SelectedMany []struct {
		Value string `json:"value"`
	} `json:"selected_options"`
}

// text is what was typed or chosen, "" for nothing.
func (f field) text() string {
	switch {
	case f.Value != nil:
		return *f.Value
	case f.Selected != nil:
		return f.Selected.Value
	}
	return ""
}

func decodeInteraction(payload []byte) (i interaction, err error) {
	if err := json.Unmarshal(payload, &i); err != nil {
		return i, fmt.Errorf("%w interaction: %w", store.ErrInvalid, err)
	}
	if i.Channel.ID == "" {
		i.Channel.ID = i.Container.Channel
	}
	if i.Message.TS == "" {
		i.Message.TS = i.Container.Message
	}
	if i.Message.Thread == "" {
		i.Message.Thread = i.Container.Thread
	}
	team := i.Team.ID
	if team == "" {
		team = i.User.Team
	}
	i.Team.ID = team
	if !idForm.MatchString(i.User.ID) || !idForm.MatchString(i.Team.ID) {
		return i, fmt.Errorf("%w interaction: user or team", store.ErrInvalid)
	}
	if i.Channel.ID != "" && !idForm.MatchString(i.Channel.ID) {
		return i, fmt.Errorf("%w interaction: channel", store.ErrInvalid)
	}
	for _, ts := range []string{i.Message.TS, i.Message.Thread} {
		if ts != "" && !stampForm.MatchString(ts) {
			return i, fmt.Errorf("%w interaction: message", store.ErrInvalid)
		}
	}
	if len(i.Actions) > maxIDs {
		return i, fmt.Errorf("%w interaction: %d actions", store.ErrInvalid, len(i.Actions))
	}
	return i, nil
}

// slash is a /nize command.
type slash struct {
	Command string `json:"command"`
	Text    string `json:"text"`
	User    string `json:"user_id"`
	Team    string `json:"team_id"`
	Channel string `json:"channel_id"`
	Trigger string `json:"trigger_id"`
	Masked  bool   `json:"nize_masked"`
}

func decodeSlash(payload []byte) (s slash, err error) {
	if err := json.Unmarshal(payload, &s); err != nil {
		return s, fmt.Errorf("%w command: %w", store.ErrInvalid, err)
	}
	if !idForm.MatchString(s.User) || !idForm.MatchString(s.Team) || !idForm.MatchString(s.Channel) {
		return s, fmt.Errorf("%w command: user, team or channel", store.ErrInvalid)
	}
	if s.Trigger != "" && !wordForm.MatchString(s.Trigger) {
		return s, fmt.Errorf("%w command: trigger_id", store.ErrInvalid)
	}
	return s, nil
}
