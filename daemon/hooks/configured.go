package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"nize/mcp"
	"nize/mcp/upstream/process"
	"nize/store"
	"nize/store/hooks"
)

// Set holds the hooks that admins and people configured. It is safe for concurrent use. The
// fields for hook types that aren't used may have zero values.
type Set struct {
	Store  hooks.Store
	Spawn  func(process.Command) (process.Child, error) // for exec
	Events Events                                       // for audit
	Now    func() time.Time

	current atomic.Pointer[[]configured]
}

// Events stores the events of audit hooks.
type Events interface {
	AddEvent(by store.Caller, e store.Event)
}

var _ mcp.ConfiguredHooks = (*Set)(nil)

// configured is a hook with its record.
type configured struct {
	record hooks.Hook
	hook   mcp.Hook
}

// Reload reads the hooks again; calls that begin after it returns use them. Unchanged hooks
// keep their counters.
func (s *Set) Reload(ctx context.Context) error {
	list, err := s.Store.ListHooks(ctx)
	if err != nil {
		return fmt.Errorf("reading the hooks: %w", err)
	}
	var fresh []configured
	for _, h := range list {
		if !h.Enabled {
			continue
		}
		fresh = append(fresh, configured{h, s.runner(h)})
	}
	slices.SortFunc(fresh, func(a, b configured) int { return hooks.Compare(a.record, b.record) })
	s.current.Store(&fresh)
	return nil
}

// running returns the runner of a revision that is in use, or nil.
func (s *Set) running(id string, revision uint64) mcp.Hook {
	if list := s.current.Load(); list != nil {
		for _, c := range *list {
			if c.record.ID == id && c.record.Revision == revision {
				return c.hook
			}
		}
	}
	return nil
}

// runner returns the implementation of a hook. An invalid hook fails every call; its
// configuration was validated when it was stored.
func (s *Set) runner(h hooks.Hook) mcp.Hook {
	if r := s.running(h.ID, h.Revision); r != nil {
		return r
	}
	r, err := s.build(h)
	if err != nil {
		return broken{named{h}, err}
	}
	return r
}

// For implements [mcp.ConfiguredHooks].
func (s *Set) For(inv *mcp.Invocation) []mcp.Hook {
	list := s.current.Load()
	if list == nil || len(*list) == 0 {
		return nil
	}
	var out []mcp.Hook
	id := inv.ToolID()
	for _, c := range *list {
		if c.record.Matches(inv.By.User, id) {
			out = append(out, c.hook)
		}
	}
	return out
}

// At implements [mcp.ConfiguredHooks].
func (s *Set) At(ctx context.Context, ref store.HookRef) (mcp.Hook, error) {
	if r := s.running(ref.ID, ref.Revision); r != nil {
		return r, nil
	}
	h, err := s.Store.HookRevision(ctx, ref.ID, ref.Revision)
	if errors.Is(err, store.ErrNotFound) && ref.Personal {
		return s.newest(ref), nil
	}
	if err != nil {
		return nil, err
	}
	return s.runner(h), nil
}

// newest replaces a person's revision that is no longer stored: it returns the hook's
// current revision, or a hook that does nothing if its owner removed or disabled it.
func (s *Set) newest(ref store.HookRef) mcp.Hook {
	if list := s.current.Load(); list != nil {
		for _, c := range *list {
			if c.record.ID == ref.ID {
				return c.hook
			}
		}
	}
	return named{hooks.Hook{ID: ref.ID, Revision: ref.Revision, Name: ref.Name}}
}

// Around returns the records of the hooks around a user's use of a tool, in order.
func (s *Set) Around(user, tool string) (list []hooks.Hook) {
	if current := s.current.Load(); current != nil {
		for _, c := range *current {
			if c.record.Matches(user, tool) {
				list = append(list, c.record)
			}
		}
	}
	return list
}

// Check returns an error if a hook's configuration is not valid for its type.
func (s *Set) Check(h hooks.Hook) error {
	if _, err := s.build(h); err != nil {
		return store.Errorf("%w config of hook %s: %w", store.ErrInvalid, h.Name, err)
	}
	return nil
}

// Trial is the result of one hook for a sample call.
type Trial struct {
	Point    string
	Decision string // allow, deny, change or failed
	Reason   string
	Args     json.RawMessage // set for before
	Result   json.RawMessage // set for after
}

// Try runs a single hook, without counting, before and after a sample call. The after-hook
// runs if the before-hook succeeded.
func (s *Set) Try(ctx context.Context, h hooks.Hook, inv *mcp.Invocation, result json.RawMessage) ([]Trial, error) {
	fresh := &Set{Spawn: s.Spawn, Events: nobody{}, Now: s.Now}
	r, err := fresh.build(h)
	if err != nil {
		return nil, err
	}
	limit := mcp.LimitOf(r)
	run := func(f func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if err := f(ctx); err != nil {
			return err
		}
		return ctx.Err()
	}
	was := inv.Args
	err = run(func(ctx context.Context) error { return r.Before(ctx, inv) })
	before := trial("before", err, !bytes.Equal(was, inv.Args))
	before.Args = inv.Args
	if err != nil {
		return []Trial{before}, nil
	}
	res := &store.Result{Raw: result}
	err = run(func(ctx context.Context) error { return r.After(ctx, inv, res) })
	if err == nil && (inv.MaxBytes > 0 || inv.MaxItems > 0) {
		err = Truncate{Bytes: func() int { return 1 << 30 }, Items: 1 << 30}.After(ctx, inv, res)
	}
	after := trial("after", err, !bytes.Equal(result, res.Passed()))
	if err == nil {
		after.Result = res.Passed()
	}
	return []Trial{before, after}, nil
}

func trial(point string, err error, changed bool) Trial {
	t := Trial{Point: point, Decision: "allow"}
	switch said := (*store.CallError)(nil); {
	case asCallError(err, &said):
		t.Decision, t.Reason = "deny", said.Message.String()
	case err != nil:
		t.Decision, t.Reason = "failed", store.ErrText(err)
	case changed:
		t.Decision = "change"
	}
	return t
}

type nobody struct{}

func (nobody) AddEvent(store.Caller, store.Event) {}

// build returns the implementation of a hook's record.
func (s *Set) build(h hooks.Hook) (mcp.Hook, error) {
	n := named{h}
	switch h.Type {
	case hooks.Audit:
		return recorder{n, s.Events, s.Now}, decode(h, &struct{}{})
	case hooks.Access:
		return newAccessList(n)
	case hooks.RateLimit:
		return newRateLimit(n, s.Now)
	case hooks.Sanitizer:
		return newSanitizer(n)
	case hooks.Truncation:
		return newTruncation(n)
	case hooks.Redaction:
		return redaction{n}, decode(h, &struct{}{})
	case hooks.Exec:
		return newExec(n, s.Spawn, s.Now)
	case hooks.Webhook:
		return newWebhook(n, s.Now)
	}
	return nil, store.Unknown("hook type", h.Type, hooks.Types)
}

// decode parses a configuration, which must not contain fields without effect.
func decode(h hooks.Hook, into any) error {
	dec := json.NewDecoder(bytes.NewReader(h.Config))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		var other *json.UnmarshalTypeError
		text := strings.TrimPrefix(err.Error(), "json: ")
		if name, ok := strings.CutPrefix(text, "unknown field "); ok {
			return store.Errorf("there is no field %s", name)
		} else if errors.As(err, &other) {
			return store.Errorf("the field “%s” can't be “%s”", other.Field, other.Value)
		}
		return errors.New(text)
	}
	return nil
}

// named is embedded in every configured hook: it holds the record.
type named struct{ record hooks.Hook }

func (n named) Ref() store.HookRef                          { return n.record.Ref() }
func (named) Before(context.Context, *mcp.Invocation) error { return nil }

func (named) After(context.Context, *mcp.Invocation, *store.Result) error { return nil }

// broken is a hook that can't run.
type broken struct {
	named
	err error
}

func (b broken) Before(context.Context, *mcp.Invocation) error               { return b.err }
func (b broken) After(context.Context, *mcp.Invocation, *store.Result) error { return b.err }

// recorder stores an event for each use, with its outcome and duration.
type recorder struct {
	named
	events Events
	now    func() time.Time
}

func (a recorder) After(_ context.Context, inv *mcp.Invocation, r *store.Result) error {
	outcome, code := store.Done, store.Code("")
	if r.IsError {
		outcome = store.Failed
	}
	if r.Error != nil {
		code = r.Error.Code
	}
	began := inv.Started
	if inv.Call != nil && !inv.Call.Started.IsZero() {
		began = inv.Call.Started
	}
	data, err := json.Marshal(struct {
		Args   json.RawMessage `json:"args,omitempty"`
		Call   string          `json:"call,omitempty"`
		TookUS int64           `json:"took_us"`
		Code   store.Code      `json:"code,omitempty"`
	}{store.Redact(inv.Args, 512), callID(inv), max(0, a.now().Sub(began).Microseconds()), code})
	if err != nil {
		return fmt.Errorf("describing the use of %s: %w", inv.ToolID(), err)
	}
	a.events.AddEvent(inv.By, store.Event{Kind: "hook.audit", Subject: a.record.Name, Tool: inv.ToolID(), Outcome: outcome, Data: data})
	return nil
}

func callID(inv *mcp.Invocation) string {
	if inv.Call == nil {
		return ""
	}
	return inv.Call.ID
}

// accessList denies calls by its patterns, among those that its scope and tool match.
// Without patterns it applies the gateway's own rules again.
type accessList struct {
	named
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

func newAccessList(n named) (mcp.Hook, error) {
	a := accessList{named: n}
	return &a, decode(n.record, &a)
}

var _ mcp.AccessHook = (*accessList)(nil)

func (a *accessList) Before(ctx context.Context, inv *mcp.Invocation) error {
	return a.Access(ctx, inv)
}

// Access implements [mcp.AccessHook].
func (a *accessList) Access(_ context.Context, inv *mcp.Invocation) error {
	id := inv.ToolID()
	if store.MatchAny(a.Deny, id) || len(a.Allow) > 0 && !store.MatchAny(a.Allow, id) {
		return &store.CallError{Code: store.CodeRefused, Message: store.Textf("hook %s does not allow %s", a.record.Name, id)}
	}
	return inv.Allowed()
}

// truncation lowers the limit of a result's size. The built-in hook applies it, after all
// other hooks have seen the whole result.
type truncation struct {
	named
	Bytes int `json:"bytes"`
	Items int `json:"items"`
}

// minBytes is the minimum for a marker and a part of the result.
const minBytes = 64

func newTruncation(n named) (mcp.Hook, error) {
	t := truncation{named: n}
	if err := decode(n.record, &t); err != nil {
		return nil, err
	}
	if t.Bytes < 0 || t.Items < 0 || t.Bytes+t.Items == 0 || t.Bytes > 0 && t.Bytes < minBytes {
		return nil, store.Errorf(`want {"bytes":N,"items":N}: bytes from %d on, items from 1 on, at least one of them`, minBytes)
	}
	return &t, nil
}

func (t *truncation) After(_ context.Context, inv *mcp.Invocation, _ *store.Result) error {
	if inv.Point != mcp.AroundMeta && inv.Tool == mcp.ReadResult {
		return nil // it reads the rest of truncated results
	}
	inv.MaxBytes, inv.MaxItems = least(inv.MaxBytes, t.Bytes), least(inv.MaxItems, t.Items)
	return nil
}

// least returns the smaller of two limits; 0 means unlimited.
func least(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
