package slacktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"nize/bots/chattest"
	"slices"
	"strings"
	"time"
)

// interaction is the payload of a press, a dialog or a shortcut.
type interaction struct {
	Type        string            `json:"type"`
	Team        interTeam         `json:"team"`
	User        interUser         `json:"user"`
	AppID       string            `json:"api_app_id"`
	Token       string            `json:"token"`
	TriggerID   string            `json:"trigger_id"`
	ResponseURL string            `json:"response_url,omitempty"`
	Container   *container        `json:"container,omitempty"`
	Channel     *interChannel     `json:"channel,omitempty"`
	Message     *wireMessage      `json:"message,omitempty"`
	MessageTS   string            `json:"message_ts,omitempty"`
	View        *wireView         `json:"view,omitempty"`
	State       *state            `json:"state,omitempty"`
	Actions     []json.RawMessage `json:"actions,omitempty"`
	CallbackID  string            `json:"callback_id,omitempty"`
	ActionTS    string            `json:"action_ts,omitempty"`
	Cleared     *bool             `json:"is_cleared,omitempty"`
	Enterprise  *string           `json:"enterprise"`
	IsOrg       bool              `json:"is_enterprise_install"`
	ResponseTo  []string          `json:"response_urls,omitempty"`
}

type interTeam struct {
	ID     string `json:"id"`
	Domain string `json:"domain"`
}

type interUser struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Name     string `json:"name"`
	TeamID   string `json:"team_id"`
}

type interChannel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type container struct {
	Type        string `json:"type"`
	MessageTS   string `json:"message_ts,omitempty"`
	ChannelID   string `json:"channel_id,omitempty"`
	ThreadTS    string `json:"thread_ts,omitempty"`
	IsEphemeral bool   `json:"is_ephemeral"`
	ViewID      string `json:"view_id,omitempty"`
}

// pressed is an entry of actions.
type pressed struct {
	ActionID string          `json:"action_id"`
	BlockID  string          `json:"block_id"`
	Text     json.RawMessage `json:"text,omitempty"`
	Value    string          `json:"value,omitempty"`
	Style    string          `json:"style,omitempty"`
	ActionTS string          `json:"action_ts"`
	Type     string          `json:"type"`
}

// interactionLocked begins the payload of a user's action; s.Mu must be held.
func (s *Server) interactionLocked(kind, user, view string) (interaction, error) {
	u := s.world.user(user)
	if u == nil {
		return interaction{}, fmt.Errorf("slacktest: no user %s", user)
	}
	return interaction{Type: kind, Team: interTeam{ID: Team, Domain: "fake"}, User: interUser{ID: u.ID, Username: u.Name, Name: u.Name, TeamID: u.Team},
		AppID: App, Token: "fake-verification", TriggerID: s.triggerLocked(user, view)}, nil
}

// channelOf returns the channel part of a payload.
func channelOf(c *Channel) *interChannel {
	name := c.Name
	switch {
	case c.IM:
		name = "directmessage"
	case c.Private:
		name = "privategroup"
	}
	return &interChannel{ID: c.ID, Name: name}
}

// ask sends a payload and waits for its acknowledgement. payload is called with s.Mu held;
// if it returns none, nothing is sent.
func (s *Server) ask(ctx context.Context, kind string, payload func() (any, error)) (json.RawMessage, error) {
	d := &delivery{kind: kind, Ask: chattest.NewAsk()}
	err := s.Try(func() error {
		made, err := payload()
		if err == nil && made != nil {
			d.payload = chattest.JSON(made)
			s.sendLocked(d)
		}
		return err
	})
	if err != nil || d.payload == nil {
		return nil, err
	}
	err = d.Wait(ctx)
	return d.reply, err
}

// askInteractive is ask without a payload in the acknowledgement.
func (s *Server) askInteractive(ctx context.Context, payload func() (any, error)) error {
	_, err := s.ask(ctx, "interactive", payload)
	return err
}

// Press presses a button of a message and waits for the app's acknowledgement. The action
// is an action_id, "block_id/action_id", or the button's text.
func (s *Server) Press(ctx context.Context, user string, m Message, action string) error {
	return s.Choose(ctx, user, m, action)
}

// Choose selects values in a select or another element of a message.
func (s *Server) Choose(ctx context.Context, user string, m Message, action string, values ...string) error {
	return s.askInteractive(ctx, func() (any, error) { return s.pressLocked(user, m, action, values) })
}

func (s *Server) pressLocked(user string, m Message, action string, values []string) (any, error) {
	got, c := s.world.message(m.Channel, m.TS), s.world.channel(m.Channel)
	if got == nil || !c.has(user) || got.For != "" && got.For != user {
		return nil, fmt.Errorf("slacktest: %s sees no message %s", user, m.TS)
	}
	p, err := findSpot(got.Blocks, action)
	if err != nil {
		return nil, err
	}
	out, err := s.interactionLocked("block_actions", user, "")
	if err != nil {
		return nil, err
	}
	if out.Actions, err = s.actionLocked(p, values); err != nil {
		return nil, err
	}
	out.Container = &container{Type: "message", MessageTS: got.TS, ChannelID: c.ID, ThreadTS: got.ThreadTS, IsEphemeral: got.For != ""}
	out.Channel = channelOf(c)
	st := initialState(got.Blocks)
	out.State = &st
	if got.For == "" {
		w := s.wireLocked(got)
		out.Message = &w
	}
	out.ResponseURL = s.replyURLLocked(user, c.ID, got.Root(), got)
	return out, nil
}

// actionLocked returns the actions of one press; s.Mu must be held.
func (s *Server) actionLocked(p spot, values []string) ([]json.RawMessage, error) {
	at := s.stampLocked()
	if p.Type == "button" || p.Type == "icon_button" || p.Type == "workflow_button" {
		return []json.RawMessage{chattest.JSON(pressed{ActionID: p.ActionID, BlockID: p.block, Text: p.Text, Value: p.Value, Style: p.Style, ActionTS: at, Type: p.Type})}, nil
	}
	v, err := p.fill(values)
	if err != nil {
		return nil, err
	}
	return []json.RawMessage{chattest.JSON(chosen{value: v, ActionID: p.ActionID, BlockID: p.block, ActionTS: at})}, nil
}

// chosen is an entry of actions for an element other than a button.
type chosen struct {
	value
	ActionID string `json:"action_id"`
	BlockID  string `json:"block_id"`
	ActionTS string `json:"action_ts"`
}

// Views returns a user's open dialogs, the top one last.
func (s *Server) Views(user string) []View {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var list []View
	for _, v := range s.world.stacks[user] {
		list = append(list, v.cloneLocked())
	}
	return list
}

// Home returns a user's App Home, and whether there is one.
func (s *Server) Home(user string) (View, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if v := s.world.homes[user]; v != nil {
		return v.cloneLocked(), true
	}
	return View{}, false
}

func (v *View) cloneLocked() View {
	out := *v
	out.Errors = maps.Clone(v.Errors)
	return out
}

// openViewLocked returns a view that the user sees; s.Mu must be held.
func (s *Server) openViewLocked(user, view string) (*View, error) {
	v := s.views[view]
	if v == nil || v.User != user || v.Type == "modal" && !slices.Contains(s.world.stacks[user], v) {
		return nil, fmt.Errorf("slacktest: %s has no open view %s", user, view)
	}
	return v, nil
}

// PressView presses a button in a dialog or in App Home, or selects values there.
func (s *Server) PressView(ctx context.Context, user, view, action string, values ...string) error {
	return s.askInteractive(ctx, func() (any, error) {
		v, err := s.openViewLocked(user, view)
		if err != nil {
			return nil, err
		}
		p, err := findSpot(v.Blocks, action)
		if err != nil {
			return nil, err
		}
		if p.input && !p.dispatch {
			return nil, fmt.Errorf("slacktest: input %s tells nobody before it is submitted", p.ActionID)
		}
		out, err := s.interactionLocked("block_actions", v.User, v.ID)
		if err != nil {
			return nil, err
		}
		if out.Actions, err = s.actionLocked(p, values); err != nil {
			return nil, err
		}
		if p.Type != "button" && p.Type != "overflow" {
			filled, err := p.fill(values)
			if err != nil {
				return nil, err
			}
			v.state.set(p, filled)
		}
		w, st := v.sent(), v.state
		out.View, out.State = &w, &st
		out.Container = &container{Type: "view", ViewID: v.ID}
		return out, nil
	})
}

// Refused are the errors that the app showed at a dialog's inputs.
type Refused map[string]string

func (r Refused) Error() string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(r)) {
		list = append(list, k+": "+r[k])
	}
	return "slacktest: the app refused the dialog: " + strings.Join(list, "; ")
}

// viewAnswer is a possible response of an app to a submission.
type viewAnswer struct {
	Action string            `json:"response_action"`
	Errors map[string]string `json:"errors"`
	View   json.RawMessage   `json:"view"`
}

// Submit presses a dialog's submit button with these values, by "block_id/action_id",
// action_id or block_id; other inputs keep their content. The error is a [Refused] if the
// app rejected the input, and [ErrNotAcked] if it didn't respond; then the dialog stays
// open.
func (s *Server) Submit(ctx context.Context, user, view string, values map[string][]string) error {
	var v *View
	reply, err := s.ask(ctx, "interactive", func() (payload any, err error) {
		if v, err = s.openViewLocked(user, view); err != nil {
			return nil, err
		}
		return s.submissionLocked(v, values)
	})
	if err != nil {
		return err
	}
	var answer viewAnswer
	if len(reply) > 0 && json.Unmarshal(reply, &answer) != nil {
		return errors.New("slacktest: the app's answer to the dialog is none")
	}
	return s.Try(func() error { return s.answeredLocked(v, answer) })
}

// submissionLocked fills in the inputs and returns the payload; s.Mu must be held.
func (s *Server) submissionLocked(v *View, values map[string][]string) (any, error) {
	if v.Submit == "" {
		return nil, fmt.Errorf("slacktest: view %s has no submit button", v.ID)
	}
	left := maps.Clone(values)
	for _, p := range spots(v.Blocks) {
		for _, name := range []string{p.block + "/" + p.ActionID, p.ActionID, p.block} {
			given, ok := values[name]
			if !ok {
				continue
			}
			delete(left, name)
			filled, err := p.fill(given)
			if err != nil {
				return nil, err
			}
			v.state.set(p, filled)
			break
		}
		if p.input && !p.optional && v.state.Values[p.block][p.ActionID].empty() && p.Type != "checkboxes" {
			return nil, fmt.Errorf("slacktest: %s must be filled in", p.ActionID)
		}
	}
	for name := range left {
		return nil, fmt.Errorf("slacktest: the dialog has no input %s", name)
	}
	out, err := s.interactionLocked("view_submission", v.User, v.ID)
	if err != nil {
		return nil, err
	}
	// A dialog comes from its person's workspace, which may differ in a shared channel. The
	// view has the app's workspace.
	out.Team.ID = out.User.TeamID
	w := v.sent()
	out.View = &w
	return out, nil
}

func (s *Server) answeredLocked(v *View, answer viewAnswer) error {
	switch answer.Action {
	case "":
		s.closeLocked(v)
	case "clear":
		s.world.stacks[v.User] = nil
	case "errors":
		v.Errors = answer.Errors
		for block := range answer.Errors {
			if v.state.Values[block] == nil {
				return fmt.Errorf("slacktest: the app named an error at %s, which is no input", block)
			}
		}
		return Refused(answer.Errors)
	case "update", "push":
		def, err := readView(answer.View, "modal")
		if err != nil {
			return fmt.Errorf("slacktest: the app's %s of the dialog: %w", answer.Action, err)
		}
		if answer.Action == "push" {
			_, err = s.stackLocked(v.User, def)
			return err
		}
		v.setLocked(s, def)
	default:
		return fmt.Errorf("slacktest: the app answered the dialog with %q", answer.Action)
	}
	return nil
}

// closeLocked removes a view from its stack; s.Mu must be held.
func (s *Server) closeLocked(v *View) {
	s.world.stacks[v.User] = slices.DeleteFunc(slices.Clone(s.world.stacks[v.User]), func(o *View) bool { return o == v })
}

// CloseView closes a user's dialog without submitting it.
func (s *Server) CloseView(ctx context.Context, user, view string) error {
	return s.askInteractive(ctx, func() (any, error) {
		v, err := s.openViewLocked(user, view)
		if err != nil {
			return nil, err
		}
		if v.def.ClearOnClose {
			s.world.stacks[user] = nil
		} else {
			s.closeLocked(v)
		}
		if !v.def.NotifyOnClose {
			return nil, nil
		}
		out, err := s.interactionLocked("view_closed", user, v.ID)
		w := v.sent()
		out.View, out.Cleared = &w, &v.def.ClearOnClose
		return out, err
	})
}

// Shortcut runs a message shortcut or, with an empty message, a global one.
func (s *Server) Shortcut(ctx context.Context, user string, m Message, callback string) error {
	return s.askInteractive(ctx, func() (any, error) {
		got, kind := s.world.message(m.Channel, m.TS), "message_action"
		switch {
		case m.TS == "":
			kind = "shortcut"
		case got == nil:
			return nil, fmt.Errorf("slacktest: no message %s", m.TS)
		}
		out, err := s.interactionLocked(kind, user, "")
		out.CallbackID, out.ActionTS = callback, s.stampLocked()
		if got != nil {
			c := s.world.channel(m.Channel)
			w := s.wireLocked(got)
			out.Message, out.MessageTS, out.Channel = &w, got.TS, channelOf(c)
			out.ResponseURL = s.replyURLLocked(user, c.ID, got.Root(), nil)
		}
		return out, err
	})
}

const (
	replyLife = 30 * time.Minute
	replyUses = 5
)
