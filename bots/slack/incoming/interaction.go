package incoming

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/store"
)

// Interaction is a press, a submitted dialog or a shortcut.
type Interaction struct {
	interaction
	Pressed []*Action `json:"actions"`
	Message Message   `json:"message"`
	View    View      `json:"view"`
	Masked  bool      `json:"nize_masked"`
}

// interaction is slack-go's type without its UnmarshalJSON.
type interaction slackgo.InteractionCallback

// Actions are the pressed buttons and the choices.
func (i *Interaction) Actions() []*Action { return i.Pressed }

// Action is a pressed button, a choice, or an input of a dialog.
type Action = slackgo.BlockAction

// View is a submitted dialog or the Home.
type View struct {
	slackgo.View
	Blocks json.RawMessage `json:"blocks"`
	State  struct {
		Values Inputs `json:"values"`
	} `json:"state"`
}

// Inputs are the fields of a dialog, keyed by block_id and action_id.
type Inputs map[string]map[string]Action

// UnmarshalJSON accepts an empty list, which Slack sends for a view without inputs.
func (i *Inputs) UnmarshalJSON(raw []byte) error {
	var list []struct{}
	if json.Unmarshal(raw, &list) == nil && len(list) == 0 {
		*i = nil
		return nil
	}
	return json.Unmarshal(raw, (*map[string]map[string]Action)(i))
}

// chosen has the members of an action or an input that tell what a person chose or typed.
type chosen struct {
	ActionID        string   `json:"action_id"`
	BlockID         string   `json:"block_id"`
	ActionTs        string   `json:"action_ts"`
	Value           string   `json:"value"`
	SelectedOption  option   `json:"selected_option"`
	SelectedOptions []option `json:"selected_options"`
}

type option struct {
	Value string `json:"value"`
}

// checkChosen returns an error if one of those members has another JSON type than expected:
// read as empty, it would be another answer.
func checkChosen(payload []byte) error {
	var p struct {
		Actions []chosen `json:"actions"`
		View    struct {
			State struct {
				Values json.RawMessage `json:"values"`
			} `json:"state"`
		} `json:"view"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return err
	}
	values := p.View.State.Values
	var none Inputs
	if len(values) == 0 || none.UnmarshalJSON(values) == nil && none == nil {
		return nil
	}
	var inputs map[string]map[string]chosen
	return json.Unmarshal(values, &inputs)
}

// Typed returns the typed text of an input, or the choice; "" for none.
func Typed(a Action) string { return cmp.Or(a.Value, a.SelectedOption.Value) }

// Values returns the choices of an input, or the typed text.
func Values(a Action) []string {
	var out []string
	for _, s := range a.SelectedOptions {
		out = append(out, s.Value)
	}
	if text := strings.TrimSpace(Typed(a)); text != "" {
		out = append(out, text)
	}
	return out
}

func DecodeInteraction(payload []byte) (i Interaction, err error) {
	if err := errors.Join(tolerant(json.Unmarshal(payload, &i)), checkChosen(payload)); err != nil {
		return i, fmt.Errorf("%w interaction: %w", store.ErrInvalid, err)
	}
	i.Pressed = slices.DeleteFunc(i.Pressed, func(a *Action) bool { return a == nil })
	i.Channel.ID = cmp.Or(i.Channel.ID, i.Container.ChannelID)
	i.Message.Timestamp = cmp.Or(i.Message.Timestamp, i.Container.MessageTs)
	i.Message.ThreadTimestamp = cmp.Or(i.Message.ThreadTimestamp, i.Container.ThreadTs)
	i.Team.ID = cmp.Or(i.Team.ID, i.User.TeamID)
	if !IDForm.MatchString(i.User.ID) || !IDForm.MatchString(i.Team.ID) {
		return i, fmt.Errorf("%w interaction: user or team", store.ErrInvalid)
	}
	if i.Channel.ID != "" && !IDForm.MatchString(i.Channel.ID) {
		return i, fmt.Errorf("%w interaction: channel", store.ErrInvalid)
	}
	for _, ts := range []string{i.Message.Timestamp, i.Message.ThreadTimestamp} {
		if ts != "" && !StampForm.MatchString(ts) {
			return i, fmt.Errorf("%w interaction: message", store.ErrInvalid)
		}
	}
	if n := len(i.Actions()); n > maxIDs {
		return i, fmt.Errorf("%w interaction: %d actions", store.ErrInvalid, n)
	}
	return i, nil
}

// Command is a /nize command.
type Command struct {
	slackgo.SlashCommand
	Masked bool
}

func DecodeCommand(payload []byte) (s Command, err error) {
	var used struct {
		Command string `json:"command"`
		Text    string `json:"text"` // of another JSON type, it is no empty command
		Masked  bool   `json:"nize_masked"`
	}
	if err := errors.Join(tolerant(json.Unmarshal(payload, &s.SlashCommand)), json.Unmarshal(payload, &used)); err != nil {
		return s, fmt.Errorf("%w command: %w", store.ErrInvalid, err)
	}
	s.Masked = used.Masked
	if !IDForm.MatchString(s.UserID) || !IDForm.MatchString(s.TeamID) || !IDForm.MatchString(s.ChannelID) {
		return s, fmt.Errorf("%w command: user, team or channel", store.ErrInvalid)
	}
	if s.TriggerID != "" && !WordForm.MatchString(s.TriggerID) {
		return s, fmt.Errorf("%w command: trigger_id", store.ErrInvalid)
	}
	return s, nil
}
