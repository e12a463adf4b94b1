// Package fileconfig applies the providers, models and agents of nized.toml, with the
// operations that nizectl uses.
//
// A record from the file is stored like any other, with the file as its Origin. While the
// file contains it, it can't be changed or removed elsewhere ([Guarded]); when it is
// removed from the file, it is deleted. A record that was created by hand is never taken
// over: the same name in the file is an error.
package fileconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/people"
	"nize/daemon/settings"
	"nize/llm"
	"nize/llm/openai"
	"nize/store"
)

// Store is the part of the store that the file's entries need.
type Store interface {
	store.Models
	store.Agents
}

// Guarded is a Store that rejects changes of records from the file. HowToChange describes
// the alternative.
type Guarded struct {
	Store
	HowToChange func() string
}

// taken returns the error for a record from the file.
func (g Guarded) taken(what, origin string) error {
	return &api.Error{Code: "conflict", Message: fmt.Sprintf("%s is set by the configuration file %s: edit it there, then %s", what, origin, g.HowToChange())}
}

// provider, model and agent return an error for a record from the file.
func (g Guarded) provider(ctx context.Context, name string) error {
	list, err := g.ListProviders(ctx)
	for _, p := range list {
		if p.Name == name && p.Origin != "" {
			return g.taken("provider "+name, p.Origin)
		}
	}
	return err
}

func (g Guarded) model(ctx context.Context, name string, makesDefault bool) error {
	list, err := g.ListModels(ctx)
	for _, m := range list {
		if m.Origin != "" && m.Name == name {
			return g.taken("model "+name, m.Origin)
		}
		if m.Origin != "" && m.Default && makesDefault {
			return g.taken("the default model "+m.Name, m.Origin)
		}
	}
	return err
}

func (g Guarded) agent(ctx context.Context, id string, makesDefault bool) error {
	list, err := g.ListAgents(ctx)
	for _, a := range list {
		if a.Origin != "" && a.ID == id {
			if a.FromExtension() {
				return &api.Error{Code: "conflict", Message: fmt.Sprintf("agent %s is one of %s: change it there", id, a.Origin)}
			}
			return g.taken("agent "+id, a.Origin)
		}
		if a.Origin != "" && a.Default && makesDefault {
			return g.taken("the default agent "+a.ID, a.Origin)
		}
	}
	return err
}

// PutProvider implements [store.Models].
func (g Guarded) PutProvider(ctx context.Context, by store.Caller, p store.Provider) error {
	if err := g.provider(ctx, p.Name); err != nil {
		return err
	}
	p.Origin = ""
	return g.Store.PutProvider(ctx, by, p)
}

// DeleteProvider implements [store.Models].
func (g Guarded) DeleteProvider(ctx context.Context, by store.Caller, name string) error {
	if err := g.provider(ctx, name); err != nil {
		return err
	}
	return g.Store.DeleteProvider(ctx, by, name)
}

// PutModel implements [store.Models].
func (g Guarded) PutModel(ctx context.Context, by store.Caller, m store.ModelName) error {
	if err := g.model(ctx, m.Name, m.Default); err != nil {
		return err
	}
	m.Origin = ""
	return g.Store.PutModel(ctx, by, m)
}

// DeleteModel implements [store.Models].
func (g Guarded) DeleteModel(ctx context.Context, by store.Caller, name string) error {
	if err := g.model(ctx, name, false); err != nil {
		return err
	}
	return g.Store.DeleteModel(ctx, by, name)
}

// PutAgent implements [store.Agents].
func (g Guarded) PutAgent(ctx context.Context, by store.Caller, a store.Agent) error {
	if err := g.agent(ctx, a.ID, a.Default); err != nil {
		return err
	}
	a.Origin = ""
	return g.Store.PutAgent(ctx, by, a)
}

// DeleteAgent implements [store.Agents].
func (g Guarded) DeleteAgent(ctx context.Context, by store.Caller, id string) error {
	if err := g.agent(ctx, id, false); err != nil {
		return err
	}
	return g.Store.DeleteAgent(ctx, by, id)
}

// Applier applies the entries of the file.
type Applier struct {
	Store     Store // unguarded
	Open      func(store.Provider) (*openai.Client, error)
	Router    *llm.Router
	Directory *people.Directory
	// CheckPattern returns an error for a pattern of native tools that matches none.
	CheckPattern func(string) error
	Env          func(string) string
	Now          func() time.Time

	applying sync.Mutex        // serializes Apply and Extend
	before   *settings.Entries // last applied entries; nil before the start
	brought  []store.Agent     // extensions' agents, from the last Extend
}

// Apply applies the entries. If one is invalid, the previous entries stay in force and the
// error contains its line; at the start, nized then exits.
func (a *Applier) Apply(ctx context.Context, next settings.Entries) error {
	a.applying.Lock()
	defer a.applying.Unlock()
	err := a.apply(ctx, next)
	if err != nil && a.before != nil {
		if back := a.apply(ctx, *a.before); back != nil {
			return fmt.Errorf("%w; what was before could not be put back: %w", err, back)
		}
	}
	if err == nil {
		a.before = &next
	}
	return err
}

func (a *Applier) apply(ctx context.Context, next settings.Entries) error {
	keys := map[string]store.Secret{}
	for _, p := range next.Providers {
		key, err := a.key(p)
		if err != nil {
			return err
		}
		keys[p.Name] = key
	}
	if err := a.refuseHandmade(ctx, next); err != nil {
		return err
	}
	for _, p := range next.Providers {
		w := writer{Store: a.Store, origin: p.String(), enabled: p.Enabled == nil || *p.Enabled}
		if _, err := a.providers(w).Add(ctx, store.System, api.AddProviderRequest{Name: p.Name, Kind: p.Kind, BaseURL: p.BaseURL, Key: api.NewSecret(keys[p.Name].Reveal())}); err != nil {
			return p.Wrap("", fmt.Errorf("[[providers]] %s: %w", p.Name, err))
		}
	}
	for _, m := range next.Models {
		w := writer{Store: a.Store, origin: m.String(), model: m}
		providers := a.providers(w)
		for _, target := range m.Fallbacks {
			if err := providers.CheckTarget(ctx, target); err != nil {
				return m.Wrap("fallbacks", err)
			}
		}
		if err := providers.CheckTarget(ctx, m.Target); err != nil {
			return m.Wrap("target", err)
		}
		models := control.Models{Store: w, Providers: providers, Router: a.Router, Directory: a.Directory}
		if _, err := models.Set(ctx, store.System, api.SetModelRequest{Name: m.Name, Target: m.Target, Who: &m.Who, Window: &m.Window, Force: true}); err != nil {
			return m.Wrap("", fmt.Errorf("[[models]] %s: %w", m.Name, err))
		}
	}
	if err := a.applyAgents(ctx, next.Agents); err != nil {
		return err
	}
	return a.removeOthers(ctx, next)
}

// applyAgents applies agents; an agent may refer to a later one.
func (a *Applier) applyAgents(ctx context.Context, left []settings.AgentEntry) (err error) {
	for again := true; again && len(left) > 0; {
		again, err = false, nil
		left = slices.DeleteFunc(slices.Clone(left), func(e settings.AgentEntry) bool {
			failed := a.putAgent(ctx, store.Agent{
				ID: e.ID, Name: e.Name, Model: e.Model, SystemPrompt: e.SystemPrompt, MaxTokens: e.MaxTokens, Temperature: e.Temperature, AllowedTools: e.AllowedTools,
				Direct: e.Direct, MaxSteps: e.MaxSteps, Approval: e.Approval, Default: e.Default, Who: e.Who, Origin: e.String(),
			})
			if failed != nil && err == nil {
				err = e.Wrap("", fmt.Errorf("[[agents]] %s: %w", e.ID, failed))
			}
			again = again || failed == nil
			return failed == nil
		})
	}
	return err
}

func (a *Applier) putAgent(ctx context.Context, agent store.Agent) error {
	w := writer{Store: a.Store, origin: agent.Origin}
	agents := control.Agents{CheckPattern: a.CheckPattern, Store: w, Router: a.Router, Directory: a.Directory, Now: a.Now}
	_, err := agents.Put(ctx, store.System, api.PutAgentRequest{ID: agent.ID, Agent: agent})
	return err
}

func (a *Applier) providers(w writer) *control.Providers {
	return &control.Providers{Store: w, Open: a.Open, Now: a.Now}
}

// maxKey bounds the size of a key file.
const maxKey = 64 << 10

// key reads a provider's key from the place that the file names.
func (a *Applier) key(p settings.ProviderEntry) (store.Secret, error) {
	switch {
	case p.KeyEnv != "":
		key := store.NewSecret(strings.TrimSpace(a.Env(p.KeyEnv)))
		if key.IsZero() {
			return key, p.Wrap("key_env", fmt.Errorf("%w provider %s: the environment of nized has no %s", store.ErrInvalid, p.Name, p.KeyEnv))
		}
		return key, nil
	case p.KeyFile != "":
		f, err := os.Open(p.KeyFile)
		if err != nil {
			return store.Secret{}, p.Wrap("key_file", fmt.Errorf("reading the key of provider %s: %w", p.Name, err))
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, maxKey+1))
		if key := store.NewSecret(strings.TrimSpace(string(data))); err == nil && len(data) <= maxKey && !key.IsZero() {
			return key, nil
		}
		return store.Secret{}, p.Wrap("key_file", fmt.Errorf("%w key of provider %s: %s is empty, longer than 64 KiB, or can't be read", store.ErrInvalid, p.Name, p.KeyFile))
	}
	return store.Secret{}, nil
}

// refuseHandmade returns an error for entries whose names were created by hand before.
func (a *Applier) refuseHandmade(ctx context.Context, next settings.Entries) error {
	refuse := func(p settings.Place, field, what, name string) error {
		return p.Wrap(field, store.Mark(fmt.Errorf("there is a %s %s that was made by hand: remove it (nizectl %ss remove %s), or give this one another name", what, name, what, name), store.ErrConflict))
	}
	providers, err := a.Store.ListProviders(ctx)
	if err != nil {
		return err
	}
	for _, p := range next.Providers {
		if slices.ContainsFunc(providers, func(o store.Provider) bool { return o.Name == p.Name && o.Origin == "" }) {
			return refuse(p.Place, "name", "provider", p.Name)
		}
	}
	models, err := a.Store.ListModels(ctx)
	if err != nil {
		return err
	}
	for _, m := range next.Models {
		if slices.ContainsFunc(models, func(o store.ModelName) bool { return o.Name == m.Name && o.Origin == "" }) {
			return refuse(m.Place, "name", "model", m.Name)
		}
	}
	agents, err := a.Store.ListAgents(ctx)
	if err != nil {
		return err
	}
	for _, e := range next.Agents {
		if slices.ContainsFunc(agents, func(o store.Agent) bool { return o.ID == e.ID && o.Origin == "" }) {
			return refuse(e.Place, "id", "agent", e.ID)
		}
	}
	return nil
}

// removeOthers removes records that came from the file and are no longer in it.
func (a *Applier) removeOthers(ctx context.Context, next settings.Entries) error {
	agents, err := a.Store.ListAgents(ctx)
	if err != nil {
		return err
	}
	for _, o := range agents {
		if o.Origin != "" && !o.FromExtension() && !slices.ContainsFunc(next.Agents, func(e settings.AgentEntry) bool { return e.ID == o.ID }) {
			if err := a.Store.DeleteAgent(ctx, store.System, o.ID); err != nil {
				return err
			}
		}
	}
	models, err := a.Store.ListModels(ctx)
	if err != nil {
		return err
	}
	for _, o := range models {
		if o.Origin != "" && !slices.ContainsFunc(next.Models, func(m settings.ModelEntry) bool { return m.Name == o.Name }) {
			if err := a.Store.DeleteModel(ctx, store.System, o.Name); err != nil {
				return err
			}
		}
	}
	providers, err := a.Store.ListProviders(ctx)
	if err != nil {
		return err
	}
	for _, o := range providers {
		if o.Origin != "" && !slices.ContainsFunc(next.Providers, func(p settings.ProviderEntry) bool { return p.Name == o.Name }) {
			if err := a.Store.DeleteProvider(ctx, store.System, o.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// writer is a Store that sets the file as the Origin of every record it writes, and skips
// unchanged ones.
type writer struct {
	Store
	origin  string
	enabled bool                // for a provider
	model   settings.ModelEntry // for a model: fields that an operation would keep
}

// PutProvider implements [store.Models].
func (w writer) PutProvider(ctx context.Context, by store.Caller, p store.Provider) error {
	p.Origin, p.Enabled = w.origin, w.enabled
	list, err := w.ListProviders(ctx)
	if err != nil {
		return err
	}
	for _, old := range list {
		if old.Name == p.Name && old.Kind == p.Kind && old.BaseURL == p.BaseURL && old.Enabled == p.Enabled && old.Origin == p.Origin && old.Key.Reveal() == p.Key.Reveal() {
			return nil
		}
	}
	return w.Store.PutProvider(ctx, by, p)
}

// PutModel implements [store.Models].
func (w writer) PutModel(ctx context.Context, by store.Caller, m store.ModelName) error {
	list, err := w.ListModels(ctx)
	if err != nil {
		return err
	}
	m.Origin, m.Fallbacks, m.Default = w.origin, w.model.Fallbacks, w.model.Default
	m.Default = m.Default || !slices.ContainsFunc(list, func(o store.ModelName) bool { return o.Default && o.Name != m.Name })
	if slices.ContainsFunc(list, func(old store.ModelName) bool { return same(old, m) }) {
		return nil
	}
	return w.Store.PutModel(ctx, by, m)
}

// PutAgent implements [store.Agents].
func (w writer) PutAgent(ctx context.Context, by store.Caller, a store.Agent) error {
	a.Origin = w.origin
	if old, err := w.GetAgent(ctx, a.ID); err == nil && same(old, a) {
		return nil
	}
	return w.Store.PutAgent(ctx, by, a)
}

// same compares records in their stored form.
func same[T any](a, b T) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}
