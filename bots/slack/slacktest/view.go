package slacktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

const (
	maxStack = 3          // stacked dialogs
	maxView  = 250 * 1000 // in bytes
)

// trigger is a trigger_id: valid once, for three seconds ([Options.Patience]).
type trigger struct {
	user  string
	at    time.Time
	view  string // the open view that it is from; views.push requires one
	spent bool
}

// triggerLocked makes a trigger_id; s.Mu must be held.
func (s *Server) triggerLocked(user, view string) string {
	id := s.idLocked("trigger")
	s.triggers[id] = trigger{user: user, at: s.opt.Now(), view: view}
	return id
}

// spendLocked consumes a trigger_id; s.Mu must be held.
func (s *Server) spendLocked(id string) (trigger, error) {
	t, ok := s.triggers[id]
	switch {
	case !ok:
		return t, fail("invalid_trigger_id")
	case t.spent:
		return t, fail("exchanged_trigger_id")
	case s.opt.Now().Sub(t.at) > s.opt.Patience:
		return t, fail("expired_trigger_id")
	}
	t.spent = true
	s.triggers[id] = t
	return t, nil
}

// text is a text object.
type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// viewDef is a view as sent by the app.
type viewDef struct {
	Type            string          `json:"type"`
	Title           *text           `json:"title,omitempty"`
	Blocks          json.RawMessage `json:"blocks"`
	Submit          *text           `json:"submit"`
	Close           *text           `json:"close"`
	PrivateMetadata string          `json:"private_metadata"`
	CallbackID      string          `json:"callback_id"`
	ExternalID      string          `json:"external_id"`
	ClearOnClose    bool            `json:"clear_on_close"`
	NotifyOnClose   bool            `json:"notify_on_close"`
}

// wireView is a view as sent by Slack.
type wireView struct {
	viewDef
	ID       string  `json:"id"`
	TeamID   string  `json:"team_id"`
	AppID    string  `json:"app_id"`
	BotID    string  `json:"bot_id"`
	Hash     string  `json:"hash"`
	State    state   `json:"state"`
	RootID   string  `json:"root_view_id"`
	Previous *string `json:"previous_view_id"`
	AppTeam  string  `json:"app_installed_team_id"`
}

// state is the content of the inputs, keyed by block_id and action_id.
type state struct {
	Values map[string]map[string]value `json:"values"`
	sent   bool                        // sent by the platform to the app: an empty map is an empty list there, as PHP encodes it
}

// MarshalJSON implements [json.Marshaler].
func (st state) MarshalJSON() ([]byte, error) {
	if st.sent && len(st.Values) == 0 {
		return []byte(`{"values":[]}`), nil
	}
	return json.Marshal(struct {
		Values map[string]map[string]value `json:"values"`
	}{st.Values})
}

// View is an open dialog of a user, or their App Home.
type View struct {
	ID, User, Hash  string
	Root, Previous  string
	Type            string // modal or home
	Title           string
	Submit          string // empty if it has no submit button
	CallbackID      string
	PrivateMetadata string
	Blocks          json.RawMessage
	Errors          map[string]string // keyed by block_id, after a rejected submission
	Looks           int               // how often it was set
	def             viewDef
	state           state
}

func (v *View) setLocked(s *Server, def viewDef) {
	v.def = def
	v.Type, v.Blocks, v.CallbackID, v.PrivateMetadata = def.Type, def.Blocks, def.CallbackID, def.PrivateMetadata
	v.Title, v.Submit, v.Errors = "", "", nil
	if def.Title != nil {
		v.Title = def.Title.Text
	}
	if def.Submit != nil {
		v.Submit = def.Submit.Text
	}
	v.Looks++
	v.Hash = fmt.Sprintf("%d.%d", s.opt.Now().Unix(), s.serial)
	s.serial++
	v.state = initialState(def.Blocks)
	s.TouchLocked()
}

func (v *View) wire() wireView {
	w := wireView{viewDef: v.def, ID: v.ID, TeamID: Team, AppID: App, BotID: BotID, Hash: v.Hash, State: v.state.clone(), RootID: v.Root, AppTeam: Team}
	if v.Previous != "" {
		w.Previous = &v.Previous
	}
	return w
}

// sent returns v as in events and interactions.
func (v *View) sent() wireView {
	w := v.wire()
	w.State.sent = true
	return w
}

type oneView struct {
	View wireView `json:"view"`
}

// readView decodes and checks a view; kind is the one that the method accepts, empty for
// any.
func readView(raw json.RawMessage, kind string) (viewDef, error) {
	var def viewDef
	if raw == nil {
		return def, fail("invalid_arguments", "missing required field: view")
	}
	if len(raw) > maxView {
		return def, fail("view_too_large")
	}
	if err := checkView(raw); err != nil {
		return def, err
	}
	if err := json.Unmarshal(raw, &def); err != nil {
		return def, fail("invalid_arguments", "failed to parse view")
	}
	if kind != "" && def.Type != kind {
		return def, fail("invalid_arguments", "view must be of type "+kind+" [json-pointer:/view/type]")
	}
	return def, nil
}

func (s *Server) viewOpen(a args) (any, error) {
	t, err := s.viewTrigger(a)
	if err != nil {
		return nil, err
	}
	def, err := readView(a.raw("view"), "modal")
	if err != nil {
		return nil, err
	}
	if len(s.world.stacks[t.user]) > 0 && t.view == "" {
		s.world.stacks[t.user] = nil // a new dialog replaces the old ones
	}
	return s.stackLocked(t.user, def)
}

func (s *Server) viewPush(a args) (any, error) {
	t, err := s.viewTrigger(a)
	if err != nil {
		return nil, err
	}
	if t.view == "" || len(s.world.stacks[t.user]) == 0 {
		return nil, fail("invalid_trigger_id", "push needs a trigger that came from an open view")
	}
	def, err := readView(a.raw("view"), "modal")
	if err != nil {
		return nil, err
	}
	return s.stackLocked(t.user, def)
}

func (s *Server) viewTrigger(a args) (trigger, error) {
	id := a["trigger_id"]
	if id == "" {
		id = a["interactivity_pointer"]
	}
	return s.spendLocked(id)
}

// stackLocked shows a new dialog on top; s.Mu must be held.
func (s *Server) stackLocked(user string, def viewDef) (any, error) {
	stack := s.world.stacks[user]
	if len(stack) >= maxStack {
		return nil, fail("push_limit_reached")
	}
	v := &View{ID: s.idLocked("V"), User: user}
	v.Root = v.ID
	if n := len(stack); n > 0 {
		v.Root, v.Previous = stack[0].ID, stack[n-1].ID
	}
	v.setLocked(s, def)
	s.views[v.ID] = v
	s.world.stacks[user] = append(stack, v)
	return oneView{v.wire()}, nil
}

func (s *Server) viewUpdate(a args) (any, error) {
	v := s.views[a["view_id"]]
	if ext := a["external_id"]; v == nil && ext != "" {
		for _, other := range s.views {
			if other.def.ExternalID == ext {
				v = other
			}
		}
	}
	if v == nil || v.Type == "modal" && !slices.Contains(s.world.stacks[v.User], v) { // it was closed or submitted
		return nil, fail("not_found")
	}
	if a["hash"] != "" && a["hash"] != v.Hash {
		return nil, fail("hash_conflict")
	}
	def, err := readView(a.raw("view"), v.Type)
	if err != nil {
		return nil, err
	}
	v.setLocked(s, def)
	return oneView{v.wire()}, nil
}

func (s *Server) viewPublish(a args) (any, error) {
	u := s.world.user(a["user_id"])
	if u == nil || u.Bot {
		return nil, fail("invalid_arguments", "user_id is not a user")
	}
	def, err := readView(a.raw("view"), "home")
	if err != nil {
		return nil, err
	}
	v := s.world.homes[u.ID]
	if v != nil && a["hash"] != "" && a["hash"] != v.Hash {
		return nil, fail("hash_conflict")
	}
	if v == nil {
		v = &View{ID: s.idLocked("V"), User: u.ID}
		v.Root = v.ID
		s.views[v.ID] = v
		s.world.homes[u.ID] = v
	}
	v.setLocked(s, def)
	return oneView{v.wire()}, nil
}
