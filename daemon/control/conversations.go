package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/bots"
	"nize/bots/terminal"
	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/store"
	"nize/store/follow"
)

// Conversations implements the operations on people's conversations with nize.
type Conversations struct {
	Store interface {
		store.Threads
		ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error)
		ForgetThread(ctx context.Context, by store.Caller, id string) (store.Forgotten, error)
		AddEvent(by store.Caller, e store.Event)
		Flush(ctx context.Context) error
	}
	Sees     func(ctx context.Context, by store.Caller, c store.Call) bool
	Cards    func(ctx context.Context, calls []store.Call) ([]store.Card, error)
	Handler  bots.Handler
	Terminal *terminal.Platform
	Config   store.Config
	Agents   *Agents
	Models   *Models
	Servers  *Servers
	// Begins fills in the defaults for a new conversation's agent and model.
	Begins func(ctx context.Context, by store.Caller, agent, model string) (string, string, error)
	Now    func() time.Time
}

// Mount registers the operations.
func (c *Conversations) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListConversations, c.List)
	mux.Handle(m, api.StartConversation, c.Start)
	mux.Handle(m, api.ShowConversation, c.Show)
	mux.HandleStream(m, api.FollowConversation, c.Follow)
	mux.Handle(m, api.ForgetConversation, c.Forget)
	mux.Handle(m, api.SendMessage, c.Send)
	mux.Handle(m, api.StopTurn, c.Stop)
}

// inChat returns the caller as a participant of a chat. An admin in a chat must approve
// calls as everyone else, unlike with nizectl tools call. Callers over HTTP and on the page
// keep their surface, so that their decisions stay within it.
func inChat(by store.Caller) store.Caller {
	if by.Surface != store.OnHTTP && by.Surface != store.OnWeb {
		by.Surface = store.OnTerminal
	}
	return by
}

// own returns a conversation that the caller started, to continue it. It returns
// ErrNotFound for other people's, even if the caller is an admin.
func (c *Conversations) own(ctx context.Context, by store.Caller, id string) (store.Thread, error) {
	th, err := c.Store.GetThread(ctx, id)
	if err == nil && th.User != by.User {
		err = store.ErrNotFound
	}
	if !errors.Is(err, store.ErrNotFound) {
		return th, err
	}
	mine, listErr := c.Store.ListThreads(ctx, by.User, 100)
	if listErr != nil {
		return th, fmt.Errorf("listing conversations: %w", listErr)
	}
	ids := make([]string, len(mine))
	for i, m := range mine {
		ids[i] = m.ID
	}
	return store.Thread{}, store.Unknown("conversation", id, ids)
}

// Find returns the conversation in which a person is writing, whoever started it.
func (c *Conversations) Find(ctx context.Context, id string) (store.Thread, error) {
	th, err := c.Store.GetThread(ctx, id)
	if err != nil {
		return th, fmt.Errorf("reading the conversation: %w", err)
	}
	return th, nil
}

// ErrNotTheirs is returned if another person started the conversation.
var ErrNotTheirs = store.Mark(fmt.Errorf("someone else started the conversation"), store.ErrRefused)

// Change changes the conversation in which the caller is writing. It returns ErrNotTheirs
// unless the caller started it or is an admin.
func (c *Conversations) Change(ctx context.Context, by store.Caller, id string, edit func(*store.Thread)) error {
	th, err := c.Find(ctx, id)
	if err != nil {
		return err
	}
	if th.User != by.User && !by.IsAdmin() {
		return ErrNotTheirs
	}
	if _, err := c.Store.EditThread(ctx, by, th.ID, edit); err != nil {
		return fmt.Errorf("changing the conversation: %w", err)
	}
	return nil
}

// List returns the caller's conversations, newest first.
func (c *Conversations) List(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[store.Thread], err error) {
	list, err := c.Store.ListThreads(ctx, by.User, 100)
	if err != nil {
		return none, fmt.Errorf("listing conversations: %w", err)
	}
	return api.Items(list), nil
}

// Start creates a conversation at the terminal, on the page, or over HTTP.
func (c *Conversations) Start(ctx context.Context, by store.Caller, req api.StartConversationRequest) (none store.Thread, err error) {
	if req.Agent != "" {
		if err := c.Agents.Check(ctx, by, req.Agent); err != nil {
			return none, err
		}
	}
	if req.Model != "" {
		if err := c.Models.MayAsk(ctx, by, req.Model); err != nil {
			return none, err
		}
	}
	for _, s := range req.Servers {
		if err := c.Servers.Check(ctx, by, s); err != nil {
			return none, err
		}
	}
	if req.Zone != "" {
		if _, err := time.LoadLocation(req.Zone); err != nil {
			req.Zone = "" // ignore an unknown zone
		}
	}
	if req.Agent, req.Model, err = c.Begins(ctx, by, req.Agent, req.Model); err != nil {
		return none, err
	}
	now := c.Now()
	id := store.NewID(now)
	at := store.OnTerminal
	if by.Surface == store.OnWeb || by.Surface == store.OnHTTP {
		at = by.Surface
	}
	th := store.Thread{
		ID: id, User: by.User, Address: store.Address{Surface: at, Thread: id},
		Agent: req.Agent, Model: req.Model, Servers: req.Servers, Created: now, Updated: now,
		Zone: store.TimeZone(c.Config, by.User, req.Zone), Locale: store.Language(c.Config, by.User, req.Locale),
	}
	if err := c.Store.StartThread(ctx, inChat(by), th, store.ThreadQuotaOf(c.Config)); err != nil {
		return none, fmt.Errorf("storing a conversation: %w", err)
	}
	return th, nil
}

// Send accepts a person's message.
func (c *Conversations) Send(ctx context.Context, by store.Caller, req api.SendMessageRequest) (none api.Empty, err error) {
	th, err := c.own(ctx, by, req.Conversation)
	if err != nil {
		return none, err
	}
	if at := th.Address.Surface; by.Surface == store.OnWeb && at != by.Surface { // its replies go to that surface
		return none, store.Mark(store.Errorf("this conversation is held on %s; go on with it there", string(at)), store.ErrConflict)
	}
	// The client chooses the key; the thread's id before it keeps clients apart.
	if req.Key == "" {
		return none, fmt.Errorf("%w message: key is required", store.ErrInvalid)
	}
	in := store.Inbound{Key: th.ID + ":" + req.Key, Thread: th.ID, By: inChat(by), Text: req.Text}
	_, err = c.Handler.Message(ctx, in)
	return none, err
}

// Stop stops the running turn.
func (c *Conversations) Stop(ctx context.Context, by store.Caller, req api.ConversationRequest) (none api.Empty, err error) {
	th, err := c.own(ctx, by, req.ID)
	if err != nil {
		return none, err
	}
	return none, c.Handler.Stop(ctx, inChat(by), th.ID)
}

// Follow sends a conversation's events until ctx ends.
func (c *Conversations) Follow(ctx context.Context, by store.Caller, req api.ConversationRequest, send func(api.ChatEvent) error) error {
	th, err := c.own(ctx, by, req.ID)
	if err != nil {
		return err
	}
	f := c.Terminal.Follow(th.ID)
	defer f.Close()
	for {
		e, err := f.Next(ctx)
		switch {
		case errors.Is(err, follow.ErrBehind):
			return &api.Error{Code: "unavailable", Message: "too slow: read the conversation again"}
		case err != nil:
			return nil // ctx has ended
		}
		if err := send(api.ChatEvent{Message: e.Message, State: string(e.State)}); err != nil {
			return err
		}
	}
}

// maxWaiting is more calls than can wait (approvals.max_waiting).
const maxWaiting = 1 << 20

// Show returns a conversation that the caller started or wrote in; an admin may read any if
// they give a reason. Parts that are private to another person are always removed.
func (c *Conversations) Show(ctx context.Context, by store.Caller, req api.ShowConversationRequest) (none api.ThreadView, err error) {
	th, turns, noted, err := c.read(ctx, by, req.ID, req.Reason)
	if err != nil {
		return none, err
	}
	view := api.ThreadView{Thread: th, Turns: []store.Turn{}, Cards: []store.Card{}}
	for _, t := range turns {
		if t.By.User != by.User { // hide where other people wrote from
			t.By = store.Caller{User: t.By.User, Name: t.By.Name}
		}
		if !by.IsAdmin() { // only admins may see the target of a model's name
			t.Model, t.Opaque = "", nil
		}
		view.Turns = append(view.Turns, t.SeenBy(by.User))
	}
	calls, err := c.Store.ListCalls(ctx, store.CallQuery{Waiting: true, Thread: th.ID, Limit: maxWaiting})
	if err != nil {
		return none, fmt.Errorf("reading the conversation's waiting calls: %w", err)
	}
	if !noted {
		calls = slices.DeleteFunc(calls, func(call store.Call) bool { return !c.Sees(ctx, by, call) })
	}
	if view.Cards, err = c.Cards(ctx, calls); err != nil {
		return none, err
	}
	return view, nil
}

// read returns a conversation if the caller may read it. noted is true if they may only
// because they are an admin who gave a reason; it is then already recorded in the audit
// trail.
func (c *Conversations) read(ctx context.Context, by store.Caller, id, reason string) (th store.Thread, turns []store.Turn, noted bool, err error) {
	th, err = c.Store.GetThread(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		_, err := c.own(ctx, by, id) // its error lists the caller's own
		return th, nil, false, err
	}
	if err != nil {
		return th, nil, false, fmt.Errorf("reading the conversation: %w", err)
	}
	for range 3 { // until both are from the same moment, since Open must match the turns
		before := th
		if turns, err = c.Store.Turns(ctx, id); err == nil {
			th, err = c.Store.GetThread(ctx, id)
		}
		if err != nil {
			return th, nil, false, fmt.Errorf("reading the conversation: %w", err)
		}
		if th.Open == before.Open && th.Updated.Equal(before.Updated) {
			break
		}
	}
	tookPart := func(t store.Turn) bool { return t.Role == store.FromUser && t.By.User == by.User }
	switch {
	case th.User == by.User || slices.ContainsFunc(turns, tookPart):
		return th, turns, false, nil
	case !by.IsAdmin():
		_, err := c.own(ctx, by, id)
		return th, nil, false, err
	case reason == "":
		return th, nil, false, fmt.Errorf("%w request: conversation %s belongs to other people; give a reason for reading it with --reason, which is kept in the audit", store.ErrInvalid, id)
	}
	if err := people.NoteReading(ctx, c.Store, by, "thread.read", id, reason); err != nil {
		return th, nil, false, err
	}
	return th, turns, true, nil
}

// Forget erases a conversation if the caller started it or is an admin; for others it
// returns ErrNotFound.
func (c *Conversations) Forget(ctx context.Context, by store.Caller, req api.ConversationRequest) (store.Forgotten, error) {
	th, err := c.Store.GetThread(ctx, req.ID)
	if err == nil && th.User != by.User && !by.IsAdmin() {
		err = store.ErrNotFound
	}
	if errors.Is(err, store.ErrNotFound) && !by.IsAdmin() {
		_, err = c.own(ctx, by, req.ID)
	}
	if err != nil && (!by.IsAdmin() || !errors.Is(err, store.ErrNotFound)) {
		return store.Forgotten{}, err
	}
	f, err := c.Store.ForgetThread(ctx, by, req.ID) // also resumes an interrupted erasure
	if err != nil {
		return f, fmt.Errorf("conversation %q: %w", req.ID, err)
	}
	return f, nil
}
