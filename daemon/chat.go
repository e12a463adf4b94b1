package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// atTerminal is the caller as somebody who chats: an admin in a chat is asked
// like everybody else, unlike with nizectl tools call.
func atTerminal(by store.Caller) store.Caller {
	by.Surface = store.OnTerminal
	return by
}

// thread reads a conversation that the caller began, for going on with it.
// Nobody else's is found here, also not by admins.
func (d *Daemon) thread(ctx context.Context, by store.Caller, id string) (store.Thread, error) {
	th, err := d.db.GetThread(ctx, id)
	if err == nil && th.User != by.User {
		err = store.ErrNotFound
	}
	if !errors.Is(err, store.ErrNotFound) {
		return th, err
	}
	mine, listErr := d.db.ListThreads(ctx, by.User, 100)
	if listErr != nil {
		return th, fmt.Errorf("listing conversations: %w", listErr)
	}
	ids := make([]string, len(mine))
	for i, m := range mine {
		ids[i] = m.ID
	}
	return store.Thread{}, store.Unknown("conversation", id, ids)
}

func (d *Daemon) listThreads(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	list, err := d.db.ListThreads(ctx, by.User, 100)
	if err != nil {
		return nil, fmt.Errorf("listing conversations: %w", err)
	}
	return items(list), nil
}

func (d *Daemon) newThread(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.NewThread](r)
	if err != nil {
		return nil, err
	}
	if req.Agent != "" {
		if _, err := d.ops.agents.Find(ctx, by, req.Agent); err != nil {
			return nil, err
		}
	}
	if req.Model != "" {
		if err := d.router.MayAsk(ctx, by, d.directory.GroupsOf(ctx, by), req.Model); err != nil {
			return nil, err
		}
		if _, err := d.router.Resolve(ctx, req.Model); err != nil {
			return nil, err
		}
	}
	for _, s := range req.Servers {
		if _, err := d.ops.servers.Find(ctx, by, s); err != nil {
			return nil, err
		}
	}
	if req.Zone != "" {
		if _, err := time.LoadLocation(req.Zone); err != nil {
			req.Zone = "" // a zone that nobody knows is as good as none
		}
	}
	req.Agent, req.Model = d.defaults.Of(ctx, by, req.Agent, req.Model)
	now := d.now()
	id := store.NewID(now)
	th := store.Thread{
		ID: id, User: by.User, Address: store.Address{Surface: store.OnTerminal, Thread: id},
		Agent: req.Agent, Model: req.Model, Servers: req.Servers, Created: now, Updated: now,
		Zone: store.TimeZone(d.config, by.User, req.Zone), Locale: store.Language(d.config, by.User, req.Locale),
	}
	if err := d.db.PutThread(ctx, atTerminal(by), th); err != nil {
		return nil, fmt.Errorf("storing a conversation: %w", err)
	}
	return th, nil
}

func (d *Daemon) sendMessage(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.NewMessage](r)
	if err != nil {
		return nil, err
	}
	th, err := d.thread(ctx, by, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	// The key is the client's; the thread before it keeps clients apart.
	if req.Key == "" {
		return nil, fmt.Errorf("%w message: key is required", store.ErrInvalid)
	}
	in := store.Inbound{Key: th.ID + ":" + req.Key, Thread: th.ID, By: atTerminal(by), Text: req.Text}
	if _, err := d.conversation.Message(ctx, in); err != nil {
		return nil, err
	}
	return nil, nil
}

func (d *Daemon) stopThread(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	th, err := d.thread(ctx, by, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return nil, d.conversation.Stop(ctx, atTerminal(by), th.ID)
}

func (d *Daemon) threadEvents(ctx context.Context, by store.Caller, r *http.Request, send func(any) error) error {
	th, err := d.thread(ctx, by, r.PathValue("id"))
	if err != nil {
		return err
	}
	f := d.terminals.open(th.ID)
	defer d.terminals.close(th.ID, f)
	for {
		select {
		case e := <-f.events:
			if err := send(e); err != nil {
				return err
			}
		case <-f.cut:
			return &api.Error{Code: "unavailable", Message: "too slow: read the conversation again"}
		case <-ctx.Done():
			return nil
		}
	}
}
