package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"nize/daemon/api"
	"nize/store"
)

// People who go, and what is kept about them.

func hasIdentity(u store.User, identity string) bool { return slices.Contains(u.Identities, identity) }

func (d *Daemon) removeUser(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	u, err := d.directory.Find(ctx, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	was, err := d.userView(ctx, u)
	if err != nil {
		return nil, err
	}
	if err := d.db.RemoveUser(ctx, by, u.ID); err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Name, err)
	}
	return was, nil
}

// findGone finds a person who is a user, or was: one who was removed by id.
func (d *Daemon) findGone(ctx context.Context, who string) (store.User, error) {
	u, err := d.directory.Find(ctx, who)
	if !errors.Is(err, store.ErrNotFound) {
		return u, err
	}
	ids, ok, goneErr := d.db.RemovedUser(ctx, who)
	if goneErr != nil {
		return u, goneErr
	}
	if !ok {
		return u, err
	}
	return store.User{ID: ids[0], Aliases: ids[1:]}, nil
}

func (d *Daemon) forgetUser(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	u, err := d.findGone(ctx, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	d.gateway.Feedback.DropSearches(append([]string{u.ID}, u.Aliases...)...)
	f, err := d.db.ForgetUser(ctx, by, u.ID)
	if err != nil {
		return nil, fmt.Errorf("forgetting %s: %w", r.PathValue("id"), err)
	}
	return f, d.gateway.Feedback.Load(ctx)
}

// exportUser sends everything that is kept about a person, but no secret. One's
// own needs no reason.
func (d *Daemon) exportUser(ctx context.Context, by store.Caller, r *http.Request, send func(any) error) error {
	who, reason := r.PathValue("id"), r.URL.Query().Get("reason")
	u, err := d.exported(ctx, by, who)
	if err != nil {
		return err
	}
	if u.ID != by.User && reason == "" {
		return fmt.Errorf("%w export: it holds what %s said; say why with --reason, which is kept in the audit", store.ErrInvalid, who)
	}
	data, err := json.Marshal(struct {
		Reason string `json:"reason,omitempty"`
	}{reason})
	if err != nil {
		return fmt.Errorf("encoding the reason: %w", err)
	}
	d.db.AddEvent(by, store.Event{Kind: "user.export", Subject: u.ID, Data: data})
	if err := d.db.Flush(ctx); err != nil { // no export without its event, and none without the newest calls
		return fmt.Errorf("noting the export: %w", err)
	}
	e := exporter{d: d, user: u, send: send}
	for _, part := range []func(context.Context) error{e.record, e.access, e.conversations, e.calls, e.numbers} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *Daemon) exported(ctx context.Context, by store.Caller, who string) (store.User, error) {
	if by.IsAdmin() {
		return d.findGone(ctx, who)
	}
	u, err := d.db.GetUser(ctx, by.User)
	if err != nil {
		return u, fmt.Errorf("reading user %s: %w", by.User, err)
	}
	if who != u.ID && who != u.Name && !hasIdentity(u, who) {
		return u, fmt.Errorf("only admins may look after other people's records: %w", store.ErrRefused)
	}
	return u, nil
}

// exporter sends what is kept about one person.
type exporter struct {
	d    *Daemon
	user store.User
	send func(any) error
}

func (e *exporter) put(kind string, record any) error {
	b, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encoding a %s: %w", kind, err)
	}
	return e.send(api.UserRecord{Kind: kind, Record: b})
}

// putAll sends the records that are the person's.
func putAll[T any](e *exporter, kind string, list []T, err error, theirs func(T) bool) error {
	if err != nil {
		return fmt.Errorf("exporting each %s: %w", kind, err)
	}
	for _, v := range list {
		if theirs != nil && !theirs(v) {
			continue
		}
		if err := e.put(kind, v); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) record(ctx context.Context) error {
	if err := e.put("user", e.user); err != nil {
		return err
	}
	teams, err := e.d.db.ListMembers(ctx, "", e.user.ID)
	if err := putAll(e, "membership", teams, err, nil); err != nil {
		return err
	}
	groups, err := e.d.groups.GroupsOf(ctx, e.user.ID)
	if err := putAll(e, "group", groups, err, nil); err != nil {
		return err
	}
	settings, err := e.d.db.ListSettings(ctx, e.user.ID)
	if err != nil {
		return fmt.Errorf("exporting each setting: %w", err)
	}
	if len(settings) == 0 {
		return nil
	}
	return e.put("settings", settings)
}

func (e *exporter) access(ctx context.Context) error {
	var ids = append([]string{e.user.ID}, e.user.Aliases...)
	for _, id := range ids {
		tokens, err := e.d.db.ListTokens(ctx, id)
		if err := putAll(e, "token", tokens, err, nil); err != nil {
			return err
		}
	}
	credentials, err := e.d.db.ListCredentials(ctx)
	if err := putAll(e, "credential", credentials, err, func(c store.Credential) bool { return c.Scope == "user" && c.Owner == e.user.ID }); err != nil {
		return err
	}
	learned, err := e.d.db.ListFeedback(ctx)
	for _, tool := range slices.Sorted(maps.Keys(learned)) {
		if err := putAll(e, "lesson", learned[tool], nil, func(l store.Feedback) bool { return slices.Contains(ids, l.User) }); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("exporting the relevance feedback: %w", err)
	}
	grants, err := e.d.db.ListGrants(ctx, e.user.ID)
	return putAll(e, "grant", grants, err, nil)
}

// all is more than there can be.
const all = 1 << 30

// ids are those under which the store looks: a user's aliases are found with
// it, those of one who was removed are not.
func (e *exporter) ids() []string {
	if len(e.user.Identities) > 0 {
		return []string{e.user.ID}
	}
	return append([]string{e.user.ID}, e.user.Aliases...)
}

// known are all ids of the person.
func (e *exporter) known() []string { return append([]string{e.user.ID}, e.user.Aliases...) }

func (e *exporter) conversations(ctx context.Context) error {
	for _, id := range e.ids() {
		threads, err := e.d.db.ListThreads(ctx, id, all)
		if err != nil {
			return fmt.Errorf("exporting each conversation: %w", err)
		}
		for _, th := range threads {
			if err := e.put("conversation", th); err != nil {
				return err
			}
			turns, err := e.d.db.Turns(ctx, th.ID)
			if errors.Is(err, store.ErrNotFound) {
				continue // pruned meanwhile
			}
			theirs := func(t store.Turn) bool { return t.For == "" || slices.Contains(e.known(), t.For) }
			if err := putAll(e, "turn", turns, err, theirs); err != nil {
				return err
			}
			for _, t := range turns {
				if !theirs(t) {
					continue
				}
				if err := e.pictures(ctx, t); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (e *exporter) calls(ctx context.Context) error {
	for _, id := range e.ids() {
		calls, err := e.d.db.ListCalls(ctx, store.CallQuery{User: id, Limit: all})
		if err := putAll(e, "call", calls, err, nil); err != nil {
			return err
		}
	}
	return nil
}

// numbers are the usage and the audit trail.
func (e *exporter) numbers(ctx context.Context) error {
	for _, id := range e.ids() {
		usage, err := e.d.db.Usage(ctx, store.UsageQuery{By: "day", User: id})
		if err := putAll(e, "usage", usage.Rows, err, nil); err != nil {
			return err
		}
		for after := uint64(0); ; {
			page, err := e.d.db.Events(ctx, store.EventQuery{User: id, Forward: true, After: after, Limit: trailPage})
			if err := putAll(e, "event", page, err, nil); err != nil {
				return err
			}
			if len(page) < trailPage {
				break
			}
			after = page[len(page)-1].Seq
		}
	}
	return nil
}
