package incoming

import (
	"encoding/json"
	"fmt"
	"strings"

	"nize/store"
)

// Interaction is a press, a submitted dialog or a shortcut.
type Interaction struct {
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
	Actions []Action `json:"actions"`
	View    view     `json:"view"`
}

// Action is a pressed button or a choice.
type Action struct {
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

// view is a submitted dialog or the Home.
type view struct {
	ID       string `json:"id"`
	Hash     string `json:"hash"`
	Callback string `json:"callback_id"`
	Type     string `json:"type"`
	Metadata string `json:"private_metadata"`
	Team     string `json:"app_installed_team_id"` // the workspace whose installation of the app opened it
	State    struct {
		Values Inputs `json:"values"`
	} `json:"state"`
}

// Inputs are the fields of a dialog, keyed by block_id and action_id.
type Inputs map[string]map[string]Field

// UnmarshalJSON accepts an empty list, which Slack sends for a view without inputs.
func (i *Inputs) UnmarshalJSON(raw []byte) error {
	var list []struct{}
	if json.Unmarshal(raw, &list) == nil && len(list) == 0 {
		*i = nil
		return nil
	}
	return json.Unmarshal(raw, (*map[string]map[string]Field)(i))
}

// Field is one input of a dialog.
type Field struct {
	Type     string  `json:"type"`
	Value    *string `json:"value"`
	Selected *struct {
		Value string `json:"value"`
	} `json:"selected_option"`
	SelectedMany []struct {
		Value string `json:"value"`
	} `json:"selected_options"`
}

// Text returns the typed text or the choice, "" for none.
func (f Field) Text() string {
	switch {
	case f.Value != nil:
		return *f.Value
	case f.Selected != nil:
		return f.Selected.Value
	}
	return ""
}

func DecodeInteraction(payload []byte) (i Interaction, err error) {
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
	if !IDForm.MatchString(i.User.ID) || !IDForm.MatchString(i.Team.ID) {
		return i, fmt.Errorf("%w interaction: user or team", store.ErrInvalid)
	}
	if i.Channel.ID != "" && !IDForm.MatchString(i.Channel.ID) {
		return i, fmt.Errorf("%w interaction: channel", store.ErrInvalid)
	}
	for _, ts := range []string{i.Message.TS, i.Message.Thread} {
		if ts != "" && !StampForm.MatchString(ts) {
			return i, fmt.Errorf("%w interaction: message", store.ErrInvalid)
		}
	}
	if len(i.Actions) > maxIDs {
		return i, fmt.Errorf("%w interaction: %d actions", store.ErrInvalid, len(i.Actions))
	}
	return i, nil
}

// Command is a /nize command.
type Command struct {
	Command string `json:"command"`
	Text    string `json:"text"`
	User    string `json:"user_id"`
	Team    string `json:"team_id"`
	Channel string `json:"channel_id"`
	Trigger string `json:"trigger_id"`
	Masked  bool   `json:"nize_masked"`
}

func DecodeCommand(payload []byte) (s Command, err error) {
	if err := json.Unmarshal(payload, &s); err != nil {
		return s, fmt.Errorf("%w command: %w", store.ErrInvalid, err)
	}
	if !IDForm.MatchString(s.User) || !IDForm.MatchString(s.Team) || !IDForm.MatchString(s.Channel) {
		return s, fmt.Errorf("%w command: user, team or channel", store.ErrInvalid)
	}
	if s.Trigger != "" && !WordForm.MatchString(s.Trigger) {
		return s, fmt.Errorf("%w command: trigger_id", store.ErrInvalid)
	}
	return s, nil
}

// Values returns the typed text or the choices.
func (f Field) Values() []string {
	var out []string
	for _, s := range f.SelectedMany {
		out = append(out, s.Value)
	}
	if text := strings.TrimSpace(f.Text()); text != "" {
		out = append(out, text)
	}
	return out
}
