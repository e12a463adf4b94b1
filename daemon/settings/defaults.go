package settings

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"nize/store"
	"nize/store/outage"
)

// The settings of a person's defaults.
const (
	KeyAgent  = "chat.agent"
	KeyModel  = "chat.model"
	KeyDenied = "servers.denied"
)

// Defaults are people's own choices: the agent and the model of new conversations, and the
// servers whose tools they don't want. They are settings that only users have, so they are
// audited, listed, set and explained like all others. This type implements what goes beyond
// a single value.
type Defaults struct {
	Config *Config
	Users  store.Users
	// Each returns an error if the caller may not use the name; the error is the same if
	// the name doesn't exist.
	CheckAgent, CheckModel, CheckServer func(ctx context.Context, by store.Caller, name string) error
	Log                                 *slog.Logger

	denying sync.Mutex // serializes changes of a person's list of servers
}

// Check returns an error for a user's own value that doesn't exist for them.
func (d *Defaults) Check(ctx context.Context, user, key, value string) error {
	if value == "" || key != KeyAgent && key != KeyModel && key != KeyDenied {
		return nil
	}
	u, err := d.Users.GetUser(ctx, user)
	if err != nil {
		return fmt.Errorf("reading user %s: %w", user, err)
	}
	who := store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnTerminal}
	switch key {
	case KeyAgent:
		return d.CheckAgent(ctx, who, value)
	case KeyModel:
		return d.CheckModel(ctx, who, value)
	}
	// Servers already on the list may have been removed since; added ones must exist.
	own, err := store.ReadConfig(ctx, d.Config, user)
	if err != nil {
		return err
	}
	old := store.GetList(own, user, KeyDenied)
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name == "" || slices.Contains(old, name) {
			continue
		}
		if err := d.CheckServer(ctx, who, name); err != nil {
			return err
		}
	}
	return nil
}

// Of returns the agent and model with which the caller's conversation begins. Values given
// for the conversation or its channel take precedence over the caller's own choice; "" is
// the system's default. A choice that the caller may no longer use is ignored, and the
// caller's model is not combined with an agent chosen by someone else. If a choice can't be
// read, Of returns an error, since another agent may have more tools.
func (d *Defaults) Of(ctx context.Context, by store.Caller, agent, model string) (_, _ string, err error) {
	if agent != "" {
		return agent, model, nil
	}
	values, err := store.ReadConfig(ctx, d.Config, by.User)
	if err != nil {
		return "", "", err
	}
	if own := values.Get(by.User, KeyAgent); own != "" {
		if err := d.CheckAgent(ctx, by, own); err == nil {
			agent = own
		} else if outage.Is(err) {
			return "", "", err
		} else {
			d.Log.Info("an agent that was chosen as the default is left out", "user", by.User, "agent", own, "err", err)
		}
	}
	if own := values.Get(by.User, KeyModel); own != "" && model == "" {
		if err := d.CheckModel(ctx, by, own); err == nil {
			model = own
		} else if outage.Is(err) {
			return "", "", err
		} else {
			d.Log.Info("a model that was chosen as the default is left out", "user", by.User, "model", own, "err", err)
		}
	}
	return agent, model, nil
}

// Deny adds servers to the caller's list of unwanted ones, or removes them. It reads the
// list and writes it back, so calls are serialized.
func (d *Defaults) Deny(ctx context.Context, by store.Caller, names []string, deny bool) error {
	d.denying.Lock()
	defer d.denying.Unlock()
	own, err := store.ReadConfig(ctx, d.Config, by.User)
	if err != nil {
		return err
	}
	old := store.GetList(own, by.User, KeyDenied)
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
	if err := d.Check(ctx, by.User, KeyDenied, value); err != nil {
		return err
	}
	_, err = d.Config.Put(ctx, by, by.User, KeyDenied, value)
	return err
}
