package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/store"
	"nize/store/identity"
)

// RecordStore reads the records about a person.
type RecordStore interface {
	ListMembers(ctx context.Context, team, user string) ([]store.Membership, error)
	ListSettings(ctx context.Context, user string) (map[string]string, error)
	ListTokens(ctx context.Context, user string) ([]store.Token, error)
	ListCredentials(ctx context.Context) ([]store.Credential, error)
	ListFeedback(ctx context.Context) (map[string][]store.Feedback, error)
	ListGrants(ctx context.Context, owners ...string) ([]store.Grant, error)
	ListThreads(ctx context.Context, user string, limit int) ([]store.Thread, error)
	Turns(ctx context.Context, thread string) ([]store.Turn, error)
	GetFile(ctx context.Context, thread, id string) ([]byte, error)
	ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error)
	Usage(ctx context.Context, q store.UsageQuery) (store.UsageReport, error)
	Events(ctx context.Context, q store.EventQuery) ([]store.Event, error)
	GetPerson(ctx context.Context, identity string) (identity.Record, error)
	GetSCIMUser(ctx context.Context, id string) (identity.SCIMUser, error)
}

const (
	noLimit   = 1 << 30 // larger than any result
	eventPage = 1000    // events in memory at once
)

// exporter sends the records about one person.
type exporter struct {
	store RecordStore
	user  store.User
	send  func(api.UserRecord) error
}

func (e *exporter) put(kind string, record any) error {
	b, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encoding a %s: %w", kind, err)
	}
	return e.send(api.UserRecord{Kind: kind, Record: b})
}

// putAll sends the records that belong to the person.
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

// export sends all records, in this order.
func (e *exporter) export(ctx context.Context, groups Memberships) error {
	if err := e.record(ctx, groups); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{e.access, e.conversations, e.calls, e.numbers} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) record(ctx context.Context, memberships Memberships) error {
	if err := e.put("user", e.user); err != nil {
		return err
	}
	teams, err := e.store.ListMembers(ctx, "", e.user.ID)
	if err := putAll(e, "membership", teams, err, nil); err != nil {
		return err
	}
	groups, err := memberships.GroupsOf(ctx, e.user.ID)
	if err := putAll(e, "group", groups, err, nil); err != nil {
		return err
	}
	for _, id := range e.user.Identities {
		person, err := e.store.GetPerson(ctx, id)
		if err == nil {
			err = e.put("identity", person)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("exporting what the identity provider said: %w", err)
		}
		if resource, ok := strings.CutPrefix(id, store.SCIMIdentity); ok {
			kept, err := e.store.GetSCIMUser(ctx, resource)
			if err == nil {
				err = e.put("directory", kept)
			}
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("exporting what the directory said: %w", err)
			}
		}
	}
	settings, err := e.store.ListSettings(ctx, e.user.ID)
	if err != nil {
		return fmt.Errorf("exporting each setting: %w", err)
	}
	if len(settings) == 0 {
		return nil
	}
	return e.put("settings", settings)
}

func (e *exporter) access(ctx context.Context) error {
	ids := e.known()
	for _, id := range ids {
		tokens, err := e.store.ListTokens(ctx, id)
		if err := putAll(e, "token", tokens, err, nil); err != nil {
			return err
		}
	}
	credentials, err := e.store.ListCredentials(ctx)
	if err := putAll(e, "credential", credentials, err, func(c store.Credential) bool { return c.Scope == "user" && c.Owner == e.user.ID }); err != nil {
		return err
	}
	learned, err := e.store.ListFeedback(ctx)
	for _, tool := range slices.Sorted(maps.Keys(learned)) {
		if err := putAll(e, "lesson", learned[tool], nil, func(f store.Feedback) bool { return slices.Contains(ids, f.User) }); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("exporting the relevance feedback: %w", err)
	}
	grants, err := e.store.ListGrants(ctx, e.user.ID)
	return putAll(e, "grant", grants, err, nil)
}

// ids returns the ids to query: the store finds a user's aliases itself, but not those of a
// removed user.
func (e *exporter) ids() []string {
	if len(e.user.Identities) > 0 {
		return []string{e.user.ID}
	}
	return e.known()
}

// known returns all ids of the person.
func (e *exporter) known() []string { return append([]string{e.user.ID}, e.user.Aliases...) }

func (e *exporter) conversations(ctx context.Context) error {
	for _, id := range e.ids() {
		threads, err := e.store.ListThreads(ctx, id, noLimit)
		if err != nil {
			return fmt.Errorf("exporting each conversation: %w", err)
		}
		for _, th := range threads {
			if err := e.put("conversation", th); err != nil {
				return err
			}
			turns, err := e.store.Turns(ctx, th.ID)
			if errors.Is(err, store.ErrNotFound) {
				continue // pruned in the meantime
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

// picture is a picture that came with a message.
type picture struct {
	Thread string `json:"thread"`
	Turn   int    `json:"turn"`
	ID     string `json:"id"`
	Name   string `json:"name"`
	Type   string `json:"type"`
	Data   []byte `json:"data"` // base64
}

// pictures sends a turn's pictures that are still stored.
func (e *exporter) pictures(ctx context.Context, t store.Turn) error {
	for _, f := range t.Files {
		if f.Kind != store.ImageFile && f.Kind != store.DocumentFile {
			continue
		}
		data, err := e.store.GetFile(ctx, t.Thread, f.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue // the oldest ones are deleted when there are too many
		}
		if err != nil {
			return fmt.Errorf("exporting each picture: %w", err)
		}
		if err := e.put("picture", picture{Thread: t.Thread, Turn: t.N, ID: f.ID, Name: f.Name, Type: f.Type, Data: data}); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) calls(ctx context.Context) error {
	for _, id := range e.ids() {
		calls, err := e.store.ListCalls(ctx, store.CallQuery{User: id, Limit: noLimit})
		if err := putAll(e, "call", calls, err, nil); err != nil {
			return err
		}
	}
	return nil
}

// numbers sends the usage and the audit trail.
func (e *exporter) numbers(ctx context.Context) error {
	for _, id := range e.ids() {
		usage, err := e.store.Usage(ctx, store.UsageQuery{By: "day", User: id})
		if err := putAll(e, "usage", usage.Rows, err, nil); err != nil {
			return err
		}
		for after := uint64(0); ; {
			page, err := e.store.Events(ctx, store.EventQuery{User: id, Forward: true, After: after, Limit: eventPage})
			if err := putAll(e, "event", page, err, nil); err != nil {
				return err
			}
			if len(page) < eventPage {
				break
			}
			after = page[len(page)-1].Seq
		}
	}
	return nil
}
