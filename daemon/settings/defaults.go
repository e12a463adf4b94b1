package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nize/store"
)

// What a person chose for themselves: the agent and the model of
// the conversations that they begin, and the servers that they want no tool of.
// They are settings that only users have, so they are audited, listed, set and
// explained like all others; what is here is what only the roof can check.

// Keys of those settings.
const (
	keyAgent  = "chat.agent"
	keyModel  = "chat.model"
	keyDenied = "servers.denied"
)

// asUser is somebody as the author of what they do.
func (d *Daemon) asUser(ctx context.Context, user string) (store.Caller, error) {
	u, err := d.db.GetUser(ctx, user)
	if err != nil {
		return store.Caller{}, fmt.Errorf("reading user %s: %w", user, err)
	}
	return store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnTerminal}, nil
}

// checkOwn refuses a value of a user's own that is not there for them.
// An unknown and a forbidden name give the same error.
func (d *Daemon) checkOwn(ctx context.Context, user, key, value string) error {
	if value == "" || key != keyAgent && key != keyModel && key != keyDenied {
		return nil
	}
	who, err := d.asUser(ctx, user)
	if err != nil {
		return err
	}
	switch key {
	case keyAgent:
		_, err = d.agent(ctx, who, value)
		return err
	case keyModel:
		return d.checkModel(ctx, who, value)
	}
	// What was switched off may be gone by now; what is added must be there.
	old := store.GetList(d.config, user, keyDenied)
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name == "" || slices.Contains(old, name) {
			continue
		}
		if err := d.mayUse(ctx, who, name); err != nil {
			return err
		}
	}
	return nil
}

// mayUse refuses the name of a server that there is not, for the caller.
func (d *Daemon) mayUse(ctx context.Context, by store.Caller, name string) error {
	if err := d.mayKnow(ctx, by, name); err != nil {
		return err
	}
	_, err := d.server(ctx, name)
	return err
}

// checkModel refuses a model name that is unknown to the caller: that there is
// none of that name, or that others alone may use it, is the same error.
func (d *Daemon) checkModel(ctx context.Context, by store.Caller, name string) error {
	list, err := d.modelsFor(ctx, by)
	if err != nil {
		return err
	}
	var names []string
	for _, m := range list {
		if m.Name == name {
			return nil
		}
		names = append(names, m.Name)
	}
	return store.Unknown("model", name, names)
}

// begins is with which agent and model a conversation of the caller's begins:
// what was said for it, or for its channel, goes before what the caller chose
// for all of theirs, and "" is what the system has. A choice that they may not
// use any more counts as none, and the model that they chose is not put under
// an agent that somebody else chose.
func (d *Daemon) begins(ctx context.Context, by store.Caller, agent, model string) (string, string) {
	if agent != "" {
		return agent, model
	}
	if own := d.config.Get(by.User, keyAgent); own != "" {
		if _, err := d.agent(ctx, by, own); err == nil {
			agent = own
		} else {
			d.log.Info("an agent that was chosen as the default is left out", "user", by.User, "agent", own, "err", err)
		}
	}
	if own := d.config.Get(by.User, keyModel); own != "" && model == "" {
		if err := d.checkModel(ctx, by, own); err == nil {
			model = own
		} else {
			d.log.Info("a model that was chosen as the default is left out", "user", by.User, "model", own, "err", err)
		}
	}
	return agent, model
}

// setDenied switches servers off for the caller, or on again. Both read what
// there is and write it anew, so one does so at a time.
func (d *Daemon) setDenied(ctx context.Context, by store.Caller, names []string, deny bool) error {
	d.choosing.Lock()
	defer d.choosing.Unlock()
	old := store.GetList(d.config, by.User, keyDenied)
	next := slices.DeleteFunc(slices.Clone(old), func(s string) bool { return slices.Contains(names, s) })
	if deny {
		next = append(next, names...)
	}
	slices.Sort(next)
	next = slices.Compact(next)
	if slices.Equal(next, old) {
		return nil
	}
	value := strings.Join(next, ",")
	if err := d.checkOwn(ctx, by.User, keyDenied, value); err != nil {
		return err
	}
	_, err := d.config.put(ctx, by, by.User, keyDenied, value)
	return err
}
