package storetest

import (
	"sync/atomic"
	"time"

	"nize/store"
)

// incidentsMade keeps the ids of two in one millisecond in order.
var incidentsMade atomic.Int64

func newIncident(subject string) store.Incident {
	at := time.Now().Add(time.Duration(incidentsMade.Add(1)) * time.Millisecond)
	return store.Incident{ID: store.NewID(at), Kind: "server.down", Subject: subject, Title: store.Plain(subject + " is down"), Text: store.Plain("it ended"), Cure: "nizectl servers test " + subject, Users: []string{"bert"}}
}

func incidents(e *env) {
	ctx := e.Context()
	first := must(e.OpenIncident(ctx, ada, newIncident("box")))(e)
	if first.State != store.IncidentOpen || first.Opened.IsZero() || !first.Due() || !first.Active() {
		e.Fatalf("opened: %+v", first)
	}
	again, err := e.OpenIncident(ctx, ada, newIncident("box"))
	e.is(err, store.ErrExists)
	e.same(again, first)
	other := must(e.OpenIncident(ctx, ada, newIncident("far")))(e)
	for _, bad := range []store.Incident{{}, {ID: "x", Kind: "k"}, {ID: "x", Kind: "k", Subject: "a\x00b"}} {
		_, err = e.OpenIncident(ctx, ada, bad)
		e.is(err, store.ErrInvalid)
	}
	_, err = e.OpenIncident(ctx, store.Caller{}, newIncident("nobody"))
	e.is(err, store.ErrInvalid)

	next := time.Now().UTC().Add(time.Minute)
	e.ok(e.NoteDelivery(ctx, store.System, first.ID, store.Delivery{Tries: 2, Next: next, Error: "it answered 500"}))
	e.reopen() // an incident and how often it was sent survive a restart
	due := must(e.ListIncidents(ctx, store.IncidentQuery{Due: true}))(e)
	if len(due) != 2 || due[0].ID != first.ID || due[1].ID != other.ID || due[0].Delivery.Tries != 2 || !due[0].Delivery.Next.Equal(next) {
		e.Fatalf("due: %+v", due)
	}
	e.ok(e.NoteDelivery(ctx, store.System, first.ID, store.Delivery{Sent: store.IncidentOpen, Handle: "m1"}))
	e.same(len(must(e.ListIncidents(ctx, store.IncidentQuery{Due: true}))(e)), 1)

	acked := must(e.AckIncident(ctx, ada, first.ID))(e)
	if acked.State != store.IncidentAcked || acked.AckedBy != "ada" || acked.Acked.IsZero() || acked.Due() || !acked.Active() {
		e.Fatalf("acked: %+v", acked)
	}
	got, err := e.AckIncident(ctx, bert, first.ID)
	e.is(err, store.ErrDecided)
	e.same(got, acked)
	_, err = e.AckIncident(ctx, ada, "none")
	e.is(err, store.ErrNotFound)
	e.is(e.NoteDelivery(ctx, store.System, "none", store.Delivery{}), store.ErrNotFound)

	over := must(e.RecoverIncident(ctx, store.System, first.ID))(e)
	if over.State != store.IncidentRecovered || over.Recovered.IsZero() || !over.Due() || over.Delivery.Handle != "m1" {
		e.Fatalf("over: %+v", over)
	}
	_, err = e.RecoverIncident(ctx, store.System, first.ID)
	e.is(err, store.ErrDecided)
	_, err = e.AckIncident(ctx, ada, first.ID)
	e.is(err, store.ErrDecided)

	// The next of the kind is another one; what is noted of the first one
	// leaves it alone.
	second := must(e.OpenIncident(ctx, ada, newIncident("box")))(e)
	e.ok(e.NoteDelivery(ctx, store.System, first.ID, store.Delivery{Sent: store.IncidentRecovered}))
	again, err = e.OpenIncident(ctx, ada, newIncident("box"))
	e.is(err, store.ErrExists)
	e.same(again.ID, second.ID)

	ids := func(q store.IncidentQuery) (out []string) {
		for _, i := range must(e.ListIncidents(ctx, q))(e) {
			out = append(out, i.ID)
		}
		return out
	}
	e.same(ids(store.IncidentQuery{}), []string{second.ID, other.ID})
	e.same(ids(store.IncidentQuery{All: true}), []string{second.ID, other.ID, first.ID})
	e.same(ids(store.IncidentQuery{All: true, Limit: 1}), []string{second.ID})

	// By kind and counted, only active ones; a kind isn't a prefix of another.
	longer := newIncident("box")
	longer.Kind = "server.downhill"
	must(e.OpenIncident(ctx, ada, longer))(e)
	active, counted, err := e.CountIncidents(ctx)
	e.ok(err)
	e.same(active, 3)
	e.same(counted, len(must(e.ListIncidents(ctx, store.IncidentQuery{Due: true}))(e)))
	e.same(ids(store.IncidentQuery{Kinds: []string{"server.down", "none"}}), []string{second.ID, other.ID})
	e.same(ids(store.IncidentQuery{Kinds: []string{"server.down", "server.downhill"}, Limit: 2}), []string{longer.ID, second.ID})
	must(e.RecoverIncident(ctx, store.System, longer.ID))(e)
	e.ok(e.NoteDelivery(ctx, store.System, longer.ID, store.Delivery{Sent: store.IncidentRecovered}))
	active, _, err = e.CountIncidents(ctx)
	e.ok(err)
	e.same(active, 2)
	e.same(len(ids(store.IncidentQuery{Kinds: []string{"server.downhill"}})), 0)

	// One that gave up is tried again when it is over.
	e.ok(e.NoteDelivery(ctx, store.System, other.ID, store.Delivery{Tries: 9, GaveUp: true, Error: "no"}))
	e.same(ids(store.IncidentQuery{Due: true}), []string{second.ID})
	must(e.RecoverIncident(ctx, store.System, other.ID))(e)
	e.same(ids(store.IncidentQuery{Due: true}), []string{other.ID, second.ID})

	must(e.Prune(ctx, store.Retention{Audit: time.Nanosecond}))(e)
	e.same(ids(store.IncidentQuery{All: true}), []string{second.ID}) // what still is stays
	e.same(ids(store.IncidentQuery{Due: true}), []string{second.ID})
}

// Of one kind and subject there is one, however many see it at once, and one
// person acknowledges it.
func incidentRace(e *env) {
	ctx := e.Context()
	got := e.race(20, func(int) error {
		_, err := e.OpenIncident(ctx, store.System, newIncident("box"))
		return err
	})
	e.same(got, map[string]int{"ok": 1, store.ErrExists.Error(): 19})
	list := must(e.ListIncidents(ctx, store.IncidentQuery{}))(e)
	e.same(len(list), 1)
	got = e.race(20, func(int) error {
		_, err := e.AckIncident(ctx, ada, list[0].ID)
		return err
	})
	e.same(got, map[string]int{"ok": 1, store.ErrDecided.Error(): 19})
}
