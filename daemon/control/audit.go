package control

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/store"
)

// Audit implements the operations on the audit trail.
type Audit struct {
	Store     auditStore
	Directory *people.Directory
	Now       func() time.Time
}

// Mount registers the operations.
func (a *Audit) Mount(m *mux.Mux) {
	mux.HandleStream(m, api.ReadAudit, a.Read)
	mux.HandleStream(m, api.ExportAudit, a.Export)
	mux.Handle(m, api.GetAuditKey, a.Key)
	mux.HandleStream(m, api.VerifyAudit, a.Verify)
}

type auditStore interface {
	AddEvent(by store.Caller, e store.Event)
	Flush(ctx context.Context) error
	Events(ctx context.Context, q store.EventQuery) ([]store.Event, error)
	WaitEvents(ctx context.Context, after uint64) error
	VerifyFrom(ctx context.Context, after uint64, progress func(done, all int)) (int, error)
	Checkpoints(ctx context.Context, limit int) ([]store.Event, error)
	SignExport(message []byte) (signature []byte, key ed25519.PublicKey)
}

const (
	// eventPage is how many events are held in memory at once.
	eventPage = 1000
	// shownCheckpoints is how many of the newest checkpoints a verification returns.
	shownCheckpoints = 10
)

// query returns the query for a request; if the request has no limit, neither has the
// query.
func (a *Audit) query(ctx context.Context, req api.AuditRequest) (q store.EventQuery, err error) {
	if req.Limit < 0 {
		return q, fmt.Errorf("%w limit %d: use 1 or more", store.ErrInvalid, req.Limit)
	}
	q = store.EventQuery{
		Since: req.Since, Until: req.Until, Tool: req.Tool, Server: req.Server, Outcome: req.Outcome, Surface: req.Surface, Kind: req.Kind, Before: req.Before, Limit: req.Limit,
	}
	if req.User != "" {
		q.User, err = a.actor(ctx, req.User)
	}
	return q, err
}

// actor returns the id of a person, of nize itself, or of a removed user, who is named by
// id.
func (a *Audit) actor(ctx context.Context, who string) (string, error) {
	if who == store.System.User || who == store.System.Name {
		return store.System.User, nil
	}
	u, err := a.Directory.Find(ctx, who)
	if errors.Is(err, store.ErrNotFound) && store.ValidID(who) {
		return who, nil
	}
	return u.ID, err
}

// Read sends the newest events that match, oldest first, and then, with Follow, new ones as
// they are recorded.
//
// The contents of other people's calls, questions and settings are omitted unless the
// request has a reason, which is recorded as an event before anything is read.
func (a *Audit) Read(ctx context.Context, by store.Caller, req api.AuditRequest, send func(store.Event) error) error {
	q, err := a.query(ctx, req)
	if err != nil {
		return err
	}
	if req.Reason == "" {
		whole := send
		send = func(e store.Event) error { return whole(withoutContents(by, e)) }
	} else if err := people.NoteReading(ctx, a.Store, by, "audit.read", "events", req.Reason); err != nil {
		return err
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	late, err := writeWaiting(ctx, a.Store)
	if err != nil {
		return err
	}
	newest, err := a.newest(ctx)
	if err != nil {
		return err
	}
	if err := a.sendNewest(ctx, q, newest.Seq, send); err != nil {
		return err
	}
	if late != "" {
		data, err := json.Marshal(struct {
			Reason string `json:"reason"`
		}{late})
		if err != nil {
			return fmt.Errorf("encoding why records are late: %w", err)
		}
		if err := send(store.Event{At: a.Now(), Kind: api.LateKind, Data: data}); err != nil {
			return err
		}
	}
	if !req.Follow {
		return nil
	}
	q.Before = 0
	return a.follow(ctx, q, newest.Seq, send)
}

// writeWaiting flushes buffered events, so that a reader sees the newest. If they can't be
// written now, for example because the disk is full, the trail is read without them and
// late is the reason.
func writeWaiting(ctx context.Context, s interface {
	Flush(ctx context.Context) error
}) (late string, err error) {
	err = s.Flush(ctx)
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() != nil || errors.Is(err, store.ErrNotOpen):
		return "", fmt.Errorf("writing what waits: %w", err)
	}
	return err.Error(), nil
}

// newest returns the newest event, or the zero event if there is none.
func (a *Audit) newest(ctx context.Context) (store.Event, error) {
	newest, err := a.Store.Events(ctx, store.EventQuery{Limit: 1})
	if err != nil {
		return store.Event{}, fmt.Errorf("reading the audit trail: %w", err)
	}
	if len(newest) == 0 {
		return store.Event{}, nil
	}
	return newest[0], nil
}

// sendNewest sends the newest q.Limit events up to sequence number last, oldest first. It
// pages back to the first of them and sends from there, so that at most one page is in
// memory.
func (a *Audit) sendNewest(ctx context.Context, q store.EventQuery, last uint64, send func(store.Event) error) error {
	back := q
	if back.Before == 0 || back.Before > last {
		back.Before = last + 1
	}
	end := back.Before
	var page []store.Event
	pages := 0
	for left := q.Limit; left > 0; left -= len(page) {
		back.Limit = min(left, eventPage)
		next, err := a.Store.Events(ctx, back)
		if err != nil {
			return fmt.Errorf("reading the audit trail: %w", err)
		}
		if len(next) == 0 {
			break
		}
		page, pages = next, pages+1
		back.Before = page[len(page)-1].Seq
		if len(page) < back.Limit {
			break
		}
	}
	for i := len(page) - 1; i >= 0; i-- {
		if err := send(page[i]); err != nil {
			return err
		}
	}
	if pages < 2 {
		return nil
	}
	q.After, q.Before = page[0].Seq, end
	return a.each(ctx, q, send)
}

// each calls visit for the events that q selects after q.After, oldest first.
func (a *Audit) each(ctx context.Context, q store.EventQuery, visit func(store.Event) error) error {
	q.Forward, q.Limit = true, eventPage
	for {
		page, err := a.Store.Events(ctx, q)
		if err != nil {
			return fmt.Errorf("reading the audit trail: %w", err)
		}
		for _, e := range page {
			if err := visit(e); err != nil {
				return err
			}
			q.After = e.Seq
		}
		if len(page) < q.Limit {
			return nil
		}
	}
}

// follow sends new events as they are recorded.
func (a *Audit) follow(ctx context.Context, q store.EventQuery, last uint64, send func(store.Event) error) error {
	for {
		if err := a.Store.WaitEvents(ctx, last); err != nil {
			return fmt.Errorf("following the audit trail: %w", err)
		}
		newest, err := a.newest(ctx)
		if err != nil {
			return err
		}
		q.After, q.Before = last, newest.Seq+1
		if err := a.each(ctx, q, send); err != nil {
			return err
		}
		last = newest.Seq
	}
}

// Verify verifies the chain and sends its progress.
func (a *Audit) Verify(ctx context.Context, _ store.Caller, req api.VerifyAuditRequest, send func(api.VerifyLine) error) error {
	list, err := a.Store.Checkpoints(ctx, shownCheckpoints)
	if err != nil {
		return fmt.Errorf("reading checkpoints: %w", err)
	}
	out := api.Verified{Checkpoints: checkpoints(list), ExportKey: a.key().ExportKey}
	if req.SinceCheckpoint && len(list) > 0 {
		out.After = list[0].Seq
	}
	if out.Late, err = writeWaiting(ctx, a.Store); err != nil {
		return err
	}
	var gone error // the client has disconnected
	out.Events, err = a.Store.VerifyFrom(ctx, out.After, func(done, all int) {
		if gone == nil {
			gone = send(api.VerifyLine{Done: done, All: all})
		}
	})
	if err = errors.Join(gone, ctx.Err(), err); gone != nil || ctx.Err() != nil {
		return err
	}
	out.OK = err == nil
	if err != nil {
		out.Error = err.Error()
		var bad *store.TamperedError
		if errors.As(err, &bad) {
			out.Error, out.Failed = bad.Why, bad.Seq
		}
	}
	return send(api.VerifyLine{Done: out.Events, All: out.Events, Result: &out})
}

// checkpoints returns the checkpoints with the reason of each.
func checkpoints(list []store.Event) []api.Checkpoint {
	out := make([]api.Checkpoint, len(list))
	for i, e := range list {
		var data struct{ Events, Deleted int }
		if len(e.Data) > 0 {
			_ = json.Unmarshal(e.Data, &data) // the store wrote it; the checkpoint is valid even without it
		}
		out[i] = api.Checkpoint{Seq: e.Seq, At: e.At, Why: "daily", Events: data.Events}
		switch e.Kind {
		case "audit.prune":
			out[i].Why, out[i].Events = "pruning", data.Deleted
		case "audit.erased":
			out[i].Why, out[i].Subject = "erasure", e.Subject
		}
	}
	return out
}

// Key returns the public key of exports.
func (a *Audit) Key(context.Context, store.Caller, api.Empty) (api.AuditKey, error) {
	return a.key(), nil
}

func (a *Audit) key() api.AuditKey {
	_, key := a.Store.SignExport(nil)
	return api.AuditKey{ExportKey: hex.EncodeToString(key)}
}
