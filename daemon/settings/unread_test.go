package settings

import (
	"context"
	"errors"
	"testing"

	"nize/store"
)

// away is a store of settings that can't be asked any more.
type away struct {
	store.Settings
	values map[string]map[string]string // by user
	err    error
	term   context.Context
}

func (a *away) ListSettings(_ context.Context, user string) (map[string]string, error) {
	return a.values[user], a.err
}

func (a *away) PutSetting(_ context.Context, _ store.Caller, user, key, value string) error {
	a.values[user] = map[string]string{key: value}
	return nil
}

func (a *away) Term() context.Context { return a.term }

// TestUnread: what a person set for themselves, and can't be read, is an error and not the
// system's value.
func TestUnread(t *testing.T) {
	layers, err := Open(Sources{NoFile: true, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	term, end := context.WithCancel(t.Context())
	ctx := t.Context()
	stored := &away{term: term, values: map[string]map[string]string{"": {}, "ada": {"servers.denied": "box"}}}
	c, err := NewConfig(ctx, stored, layers)
	if err != nil {
		t.Fatal(err)
	}
	stored.err = store.ErrNoDatabase
	if _, err := store.ReadConfig(ctx, c, "ada"); !errors.Is(err, store.ErrNoDatabase) {
		t.Errorf("while it can't be read: %v", err)
	}
	s := &Settings{Config: c}
	ada := store.Caller{User: "ada", Role: store.Member}
	if _, err := s.ListOwn(ctx, ada, struct{}{}); !errors.Is(err, store.ErrNoDatabase) {
		t.Errorf("the list of it: %v", err)
	}
	d := &Defaults{Config: c}
	if _, _, err := d.Of(ctx, ada, "", ""); !errors.Is(err, store.ErrNoDatabase) {
		t.Errorf("the agent that they chose: %v", err)
	}
	if err := d.Deny(ctx, ada, []string{"other"}, true); !errors.Is(err, store.ErrNoDatabase) {
		t.Errorf("switching another one off: %v", err)
	}
	stored.err = nil
	own, err := store.ReadConfig(ctx, c, "ada")
	if err != nil || own.Get("ada", "servers.denied") != "box" || own.Get("bob", "servers.denied") != "" {
		t.Errorf("once it can be read: %v", err)
	}
	// What is stored and can't be read again is not what was known before.
	stored.err = store.ErrNoDatabase
	if _, err := c.Put(ctx, ada, "ada", "servers.denied", "other"); !errors.Is(err, store.ErrNoDatabase) {
		t.Errorf("a change that can't be read again: %v", err)
	}
	if _, err := store.ReadConfig(ctx, c, "ada"); !errors.Is(err, store.ErrNoDatabase) {
		t.Errorf("after it: %v", err)
	}
	stored.err = nil
	if own, err := store.ReadConfig(ctx, c, "ada"); err != nil || own.Get("ada", "servers.denied") != "other" {
		t.Errorf("when it can be read again: %v", err)
	}
	end() // another process may change it
	if _, err := store.ReadConfig(ctx, c, "ada"); !errors.Is(err, store.ErrNoDatabase) {
		t.Errorf("without the lease: %v", err)
	}
}
