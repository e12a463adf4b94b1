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

// Defaults are what people choose for themselves: the agent and the model of
// the conversations that they begin, and the servers that they want no tool of.
// They are settings that only users have, so they are audited, listed, set and
// explained like all others; here is what goes beyond one value.
type Defaults struct {
	Config *Config
	Users  store.Users
	// Each refuses a name that the caller may not use; that there is none of
	// that name is the same error.
	CheckAgent, CheckModel, CheckServer func(ctx context.Context, by store.Caller, name string) error
	Log                                 *slog.Logger

	denying sync.Mutex // held while a person's list of servers changes
}

// Check refuses a value of a user's own that is not there for them.
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
	// What was switched off may be gone by now; what is added must be there.
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

// Of is with which agent and model a conversation of the caller's begins: what
// was said for it, or for its channel, goes before what the caller chose for
// all of theirs, and "" is what the system has. A choice that they may not use
// any more counts as none, and the model that they chose is not put under an
// agent that somebody else chose. A choice that can't be read is an error: another agent
// may have more tools.
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

// Deny switches servers off for the caller, or on again. Both read the list and
// write it back, so one does so at a time.
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
