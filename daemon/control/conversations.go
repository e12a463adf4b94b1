package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"nize/daemon/api"
	"nize/store"
)

// Who reads a conversation, and who erases it.

// getThread shows a conversation to who began it or wrote in it, and to admins
// who say why. What is for somebody else alone is shown to nobody.
func (d *Daemon) getThread(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	th, turns, err := d.readThread(ctx, by, r.PathValue("id"), r.URL.Query().Get("reason"))
	if err != nil {
		return nil, err
	}
	view := api.ThreadView{Thread: th, Turns: []store.Turn{}, Cards: []store.Card{}}
	for _, t := range turns {
		if t.By.User != by.User { // where they wrote from is theirs
			t.By = store.Caller{User: t.By.User, Name: t.By.Name}
		}
		view.Turns = append(view.Turns, t.SeenBy(by.User))
	}
	calls, err := d.db.ListCalls(ctx, store.CallQuery{Waiting: true, Thread: th.ID})
	if err != nil {
		return nil, fmt.Errorf("reading the conversation's waiting calls: %w", err)
	}
	for _, c := range calls {
		if !d.gateway.Policy.Sees(ctx, by, c) {
			continue
		}
		card, err := d.gateway.Card(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		view.Cards = append(view.Cards, card)
	}
	return view, nil
}

// readThread reads a conversation for somebody who may. That an admin read
// others' is in the audit before it is answered.
func (d *Daemon) readThread(ctx context.Context, by store.Caller, id, reason string) (store.Thread, []store.Turn, error) {
	th, err := d.db.GetThread(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		_, err := d.thread(ctx, by, id) // says which there are
		return th, nil, err
	}
	if err != nil {
		return th, nil, fmt.Errorf("reading the conversation: %w", err)
	}
	turns, err := d.db.Turns(ctx, id)
	if err != nil {
		return th, nil, fmt.Errorf("reading the conversation: %w", err)
	}
	tookPart := func(t store.Turn) bool { return t.Role == store.FromUser && t.By.User == by.User }
	switch {
	case th.User == by.User || slices.ContainsFunc(turns, tookPart):
		return th, turns, nil
	case !by.IsAdmin():
		_, err := d.thread(ctx, by, id)
		return th, nil, err
	case reason == "":
		return th, nil, fmt.Errorf("%w request: others talk in conversation %s; say why you read it with --reason, which is kept in the audit", store.ErrInvalid, id)
	}
	data, err := json.Marshal(struct {
		Reason string `json:"reason"`
	}{reason})
	if err != nil {
		return th, nil, fmt.Errorf("encoding the reason: %w", err)
	}
	d.db.AddEvent(by, store.Event{Kind: "thread.read", Subject: id, Data: data})
	if err := d.db.Flush(ctx); err != nil {
		return th, nil, fmt.Errorf("noting who reads the conversation: %w", err)
	}
	return th, turns, nil
}

// forgetThread erases a conversation.
func (d *Daemon) forgetThread(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	return d.forgetConversation(ctx, by, r.PathValue("id"))
}

// forgetConversation erases a conversation for who began it, and for admins.
// For others there is none of that id.
func (d *Daemon) forgetConversation(ctx context.Context, by store.Caller, id string) (store.Forgotten, error) {
	th, err := d.db.GetThread(ctx, id)
	if err == nil && th.User != by.User && !by.IsAdmin() {
		err = store.ErrNotFound
	}
	if errors.Is(err, store.ErrNotFound) && !by.IsAdmin() {
		_, err = d.thread(ctx, by, id)
	}
	if err != nil && (!by.IsAdmin() || !errors.Is(err, store.ErrNotFound)) {
		return store.Forgotten{}, err
	}
	f, err := d.db.ForgetThread(ctx, by, id) // also one whose erasure was interrupted
	if err != nil {
		return f, fmt.Errorf("conversation %q: %w", id, err)
	}
	return f, nil
}
