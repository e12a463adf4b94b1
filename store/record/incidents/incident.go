package incidents

import (
	"context"
	"fmt"
	"slices"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/record"
)

// Incidents implements [store.Incidents].
type Incidents struct{ db *commit.DB }

// Over returns the incidents stored in db.
func Over(db *commit.DB) Incidents { return Incidents{db} }

// The keys of the bucket incidents: the record by its id, the id of the active incident by
// kind and subject, and the ids of incidents whose message is due.
func incidentKey(id string) []byte    { return []byte("i" + id) }
func incidentDueKey(id string) []byte { return []byte("d" + id) }
func incidentOf(i store.Incident) []byte {
	return append([]byte("a"), commit.Key(i.Kind, i.Subject)...)
}

const incidentLimit = 1000

// OpenIncident implements [store.Incidents].
func (d Incidents) OpenIncident(ctx context.Context, by store.Caller, i store.Incident) (out store.Incident, err error) {
	err = d.db.WriteUrgent(ctx, "opening incident "+i.Kind, func(t *commit.Tx) error {
		if err := commit.CheckIDs("incident", i.ID, "kind", i.Kind, "subject", i.Subject); err != nil {
			return err
		}
		if id := t.Get("incidents", incidentOf(i)); id != nil {
			if out, err = incident(t, string(id)); err != nil {
				return err
			}
			return store.ErrExists
		}
		if t.Get("incidents", incidentKey(i.ID)) != nil {
			return store.ErrExists
		}
		out = i
		out.State, out.Acked, out.AckedBy, out.Recovered, out.Delivery = store.IncidentOpen, time.Time{}, "", time.Time{}, store.Delivery{}
		if out.Opened.IsZero() {
			out.Opened = t.Now
		}
		return putIncident(t, by, "open", out)
	})
	return out, err
}

// AckIncident implements [store.Incidents].
func (d Incidents) AckIncident(ctx context.Context, by store.Caller, id string) (store.Incident, error) {
	return d.moveIncident(ctx, by, "ack", id, func(i *store.Incident, now time.Time) error {
		if i.State != store.IncidentOpen {
			return store.ErrDecided
		}
		i.State, i.Acked, i.AckedBy = store.IncidentAcked, now, by.User
		return nil
	})
}

// RecoverIncident implements [store.Incidents].
func (d Incidents) RecoverIncident(ctx context.Context, by store.Caller, id string) (store.Incident, error) {
	return d.moveIncident(ctx, by, "recover", id, func(i *store.Incident, now time.Time) error {
		if !i.Active() {
			return store.ErrDecided
		}
		i.State, i.Recovered = store.IncidentRecovered, now
		i.Delivery = store.Delivery{Sent: i.Delivery.Sent, Handle: i.Delivery.Handle}
		return nil
	})
}

// NoteDelivery implements [store.Incidents].
func (d Incidents) NoteDelivery(ctx context.Context, by store.Caller, id string, delivery store.Delivery) error {
	_, err := d.moveIncident(ctx, by, "deliver", id, func(i *store.Incident, _ time.Time) error {
		i.Delivery = delivery
		return nil
	})
	return err
}

// moveIncident changes one incident. If change returns an error, the incident is returned
// unchanged.
func (d Incidents) moveIncident(ctx context.Context, by store.Caller, what, id string, change func(*store.Incident, time.Time) error) (out store.Incident, err error) {
	err = d.db.WriteUrgent(ctx, "incident "+id, func(t *commit.Tx) error {
		if out, err = incident(t, id); err != nil {
			return err
		}
		if err := change(&out, t.Now); err != nil {
			return err
		}
		return putIncident(t, by, what, out)
	})
	return out, err
}

func incident(t *commit.Tx, id string) (store.Incident, error) {
	r, err := commit.GetJSON[record.Incident](t, "incidents", incidentKey(id))
	return r.Value(), err
}

// putIncident stores the record, its two indexes and the event.
func putIncident(t *commit.Tx, by store.Caller, what string, i store.Incident) error {
	if err := t.PutJSON("incidents", incidentKey(i.ID), record.OfIncident(i)); err != nil {
		return err
	}
	// Changing an incident that has ended must not replace the active one of the same kind
	// and subject.
	if active := incidentOf(i); i.Active() || string(t.Get("incidents", active)) == i.ID {
		if err := mark(t, active, []byte(i.ID), i.Active()); err != nil {
			return err
		}
	}
	if err := mark(t, incidentDueKey(i.ID), nil, i.Due()); err != nil {
		return err
	}
	t.Change(store.Change{Kind: "incident", ID: i.ID})
	return t.Event(commit.Note{By: by, Kind: "incident." + what, Subject: i.ID, Data: i})
}

// mark puts or deletes a key of an index.
func mark(t *commit.Tx, k, v []byte, put bool) error {
	if put {
		return t.Put("incidents", k, v)
	}
	return t.Delete("incidents", k)
}

// ListIncidents implements [store.Incidents].
func (d Incidents) ListIncidents(ctx context.Context, q store.IncidentQuery) (list []store.Incident, err error) {
	if q.Limit <= 0 {
		q.Limit = incidentLimit
	}
	err = d.db.Read(ctx, "listing incidents", func(t *commit.Tx) (err error) {
		list = nil
		if q.Due {
			for _, k := range t.Keys("incidents", []byte("d"), q.Limit) {
				i, err := incident(t, string(k[1:]))
				if err != nil {
					return err
				}
				list = append(list, i)
			}
			return nil
		}
		if len(q.Kinds) > 0 || !q.All {
			list, err = activeIncidents(t, q)
			return err
		}
		for _, v := range t.Scan("incidents", kv.Range{Prefix: []byte("i"), Reverse: true, Limit: q.Limit}) {
			r, err := commit.DecodeJSON[record.Incident](v)
			if err != nil {
				return err
			}
			list = append(list, r.Value())
		}
		return nil
	})
	return list, err
}

// activeIncidents returns the active incidents, of some kinds or of all, newest first.
func activeIncidents(t *commit.Tx, q store.IncidentQuery) (list []store.Incident, err error) {
	prefixes := [][]byte{[]byte("a")}
	if len(q.Kinds) > 0 {
		prefixes = nil
	}
	for _, kind := range q.Kinds {
		prefixes = append(prefixes, append([]byte("a"), commit.Key(kind, "")...))
	}
	var ids []string
	for _, prefix := range prefixes {
		for _, id := range t.Scan("incidents", kv.Range{Prefix: prefix}) {
			ids = append(ids, string(id))
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	for _, id := range ids[:min(len(ids), q.Limit)] {
		i, err := incident(t, id)
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	return list, nil
}

// CountIncidents implements [store.Incidents].
func (d Incidents) CountIncidents(ctx context.Context) (active, due int, err error) {
	err = d.db.Read(ctx, "counting incidents", func(t *commit.Tx) (err error) {
		if active, err = t.Count("incidents", []byte("a")); err == nil {
			due, err = t.Count("incidents", []byte("d"))
		}
		return err
	})
	return active, due, err
}

// PruneIncidents deletes a chunk of the incidents that ended before a time.
func PruneIncidents(t *commit.Tx, before time.Time) (n int, more bool, err error) {
	keys := t.Keys("incidents", []byte("i"), commit.Chunk)
	for _, k := range keys {
		i, err := incident(t, string(k[1:]))
		if err != nil {
			return n, false, fmt.Errorf("incident %s: %w", k[1:], err)
		}
		if i.Active() || !i.Recovered.Before(before) {
			continue
		}
		if err := t.Delete("incidents", k); err != nil {
			return n, false, err
		}
		if err := t.Delete("incidents", incidentDueKey(i.ID)); err != nil {
			return n, false, err
		}
		n++
	}
	return n, n > 0 && len(keys) == commit.Chunk, nil
}
