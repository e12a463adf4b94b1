package daemon

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"nize/daemon/api"
	"nize/store"
)

const (
	// trailPage is how many events of the trail are in memory at once.
	trailPage = 1000
	// shownCheckpoints is how many of the newest ones a verification tells.
	shownCheckpoints = 10
)

// eventQuery reads what a request selects; without a limit that is none.
func (d *Daemon) eventQuery(ctx context.Context, p url.Values) (store.EventQuery, error) {
	q := store.EventQuery{
		Tool: p.Get("tool"), Server: p.Get("server"), Outcome: store.State(p.Get("outcome")), Surface: store.Surface(p.Get("surface")), Kind: p.Get("kind"),
	}
	var err error
	if q.Since, err = sinceOf(p.Get("since")); err != nil {
		return q, err
	}
	if q.Until, err = sinceOf(p.Get("until")); err != nil {
		return q, err
	}
	if who := p.Get("user"); who != "" {
		if q.User, err = d.actorOf(ctx, who); err != nil {
			return q, err
		}
	}
	if v := p.Get("before"); v != "" {
		if q.Before, err = strconv.ParseUint(v, 10, 64); err != nil || q.Before == 0 {
			return q, fmt.Errorf("%w event %q: use its number", store.ErrInvalid, v)
		}
	}
	if v := p.Get("limit"); v != "" {
		if q.Limit, err = strconv.Atoi(v); err != nil || q.Limit < 1 {
			return q, fmt.Errorf("%w limit %q: use 1 or more", store.ErrInvalid, v)
		}
	}
	return q, nil
}

// actorOf finds whose events are meant. Nize itself has events too, and so has
// who is no user any more: of them there is the id.
func (d *Daemon) actorOf(ctx context.Context, who string) (string, error) {
	if who == store.System.User || who == store.System.Name {
		return store.System.User, nil
	}
	u, err := d.directory.Find(ctx, who)
	if errors.Is(err, store.ErrNotFound) && store.ValidID(who) {
		return who, nil
	}
	return u.ID, err
}

// audit yields the newest events that match, oldest first, and then, with
// follow, what comes.
func (d *Daemon) audit(ctx context.Context, _ store.Caller, r *http.Request, send func(any) error) error {
	p := r.URL.Query()
	q, err := d.eventQuery(ctx, p)
	if err != nil {
		return err
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	if err := d.db.Flush(ctx); err != nil {
		return fmt.Errorf("writing what waits: %w", err)
	}
	newest, err := d.newestEvent(ctx)
	if err != nil {
		return err
	}
	if err := d.sendNewest(ctx, q, newest.Seq, send); err != nil {
		return err
	}
	if p.Get("follow") == "" {
		return nil
	}
	q.Before = 0
	return d.followAudit(ctx, q, newest.Seq, send)
}

// newestEvent is the zero event where there is none.
func (d *Daemon) newestEvent(ctx context.Context) (store.Event, error) {
	newest, err := d.db.Events(ctx, store.EventQuery{Limit: 1})
	if err != nil {
		return store.Event{}, fmt.Errorf("reading the audit trail: %w", err)
	}
	if len(newest) == 0 {
		return store.Event{}, nil
	}
	return newest[0], nil
}

// sendNewest sends the newest q.Limit events up to number last, oldest first.
// It goes back page by page to where they begin and sends from there, so that
// no more than a page is in memory.
func (d *Daemon) sendNewest(ctx context.Context, q store.EventQuery, last uint64, send func(any) error) error {
	back := q
	if back.Before == 0 || back.Before > last {
		back.Before = last + 1
	}
	end := back.Before
	var page []store.Event
	pages := 0
	for left := q.Limit; left > 0; left -= len(page) {
		back.Limit = min(left, trailPage)
		next, err := d.db.Events(ctx, back)
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
	return d.eachEvent(ctx, q, func(e store.Event) error { return send(e) })
}

// eachEvent visits what q selects after q.After, oldest first.
func (d *Daemon) eachEvent(ctx context.Context, q store.EventQuery, visit func(store.Event) error) error {
	q.Forward, q.Limit = true, trailPage
	for {
		page, err := d.db.Events(ctx, q)
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

// followAudit reads on in the trail whenever there is more.
func (d *Daemon) followAudit(ctx context.Context, q store.EventQuery, last uint64, send func(any) error) error {
	for {
		if err := d.db.WaitEvents(ctx, last); err != nil {
			return fmt.Errorf("following the audit trail: %w", err)
		}
		newest, err := d.newestEvent(ctx)
		if err != nil {
			return err
		}
		q.After, q.Before = last, newest.Seq+1
		if err := d.eachEvent(ctx, q, func(e store.Event) error { return send(e) }); err != nil {
			return err
		}
		last = newest.Seq
	}
}

// verifyAudit verifies the chain and tells how far it is.
func (d *Daemon) verifyAudit(ctx context.Context, _ store.Caller, r *http.Request, send func(any) error) error {
	list, err := d.db.Checkpoints(ctx, shownCheckpoints)
	if err != nil {
		return fmt.Errorf("reading checkpoints: %w", err)
	}
	out := api.Verified{Checkpoints: checkpoints(list), ExportKey: d.signKey().ExportKey}
	if r.URL.Query().Get("since_checkpoint") != "" && len(list) > 0 {
		out.After = list[0].Seq
	}
	if err := d.db.Flush(ctx); err != nil {
		return fmt.Errorf("writing what waits: %w", err)
	}
	var gone error // the client has left
	out.Events, err = d.db.VerifyFrom(ctx, out.After, func(done, all int) {
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

// checkpoints says of each why it was made.
func checkpoints(list []store.Event) []api.Checkpoint {
	out := make([]api.Checkpoint, len(list))
	for i, e := range list {
		var data struct{ Events, Deleted int }
		if len(e.Data) > 0 {
			_ = json.Unmarshal(e.Data, &data) // the store wrote it; without it the checkpoint is one all the same
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

func (d *Daemon) auditKey(context.Context, store.Caller, *http.Request) (any, error) {
	return d.signKey(), nil
}

func (d *Daemon) signKey() api.AuditKey {
	_, key := d.db.SignExport(nil)
	return api.AuditKey{ExportKey: hex.EncodeToString(key)}
}

// resumeErasures ends what a kill interrupted: nobody may have to ask twice to
// be forgotten.
func (d *Daemon) resumeErasures(ctx context.Context) {
	n, err := d.db.ResumeErasures(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		d.log.Error("resuming an erasure", "err", err)
	case n > 0:
		d.log.Info("resumed an erasure", "events", n)
	}
}
