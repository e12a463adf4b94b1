package database

import (
	"context"
	"fmt"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/record"
)

// The keys of the bucket incidents: the record by its id, the id of the active
// one by kind and subject, and the ids of those whose message is due.
func incidentKey(id string) []byte       { return []byte("i" + id) }
func incidentDueKey(id string) []byte    { return []byte("d" + id) }
func incidentOf(i store.Incident) []byte { return append([]byte("a"), key(i.Kind, i.Subject)...) }

const incidentLimit = 1000

// OpenIncident implements [store.Incidents].
func (d *DB) OpenIncident(ctx context.Context, by store.Caller, i store.Incident) (out store.Incident, err error) {
	err = d.doUrgent(ctx, "opening incident "+i.Kind, func(t *tx) error {
		if err := checkIDs("incident", i.ID, "kind", i.Kind, "subject", i.Subject); err != nil {
			return err
		}
		if id := t.get("incidents", incidentOf(i)); id != nil {
			if out, err = t.incident(string(id)); err != nil {
				return err
			}
			return store.ErrExists
		}
		if t.get("incidents", incidentKey(i.ID)) != nil {
			return store.ErrExists
		}
		out = i
		out.State, out.Acked, out.AckedBy, out.Recovered, out.Delivery = store.IncidentOpen, time.Time{}, "", time.Time{}, store.Delivery{}
		if out.Opened.IsZero() {
			out.Opened = t.now
		}
		return t.putIncident(by, "open", out)
	})
	return out, err
}

// AckIncident implements [store.Incidents].
func (d *DB) AckIncident(ctx context.Context, by store.Caller, id string) (store.Incident, error) {
	return d.moveIncident(ctx, by, "ack", id, func(i *store.Incident, now time.Time) error {
		if i.State != store.IncidentOpen {
			return store.ErrDecided
		}
		i.State, i.Acked, i.AckedBy = store.IncidentAcked, now, by.User
		return nil
	})
}

// RecoverIncident implements [store.Incidents].
func (d *DB) RecoverIncident(ctx context.Context, by store.Caller, id string) (store.Incident, error) {
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
func (d *DB) NoteDelivery(ctx context.Context, by store.Caller, id string, delivery store.Delivery) error {
	_, err := d.moveIncident(ctx, by, "deliver", id, func(i *store.Incident, _ time.Time) error {
		i.Delivery = delivery
		return nil
	})
	return err
}

// moveIncident changes one incident; where change errs, the incident is
// returned as it is.
func (d *DB) moveIncident(ctx context.Context, by store.Caller, what, id string, change func(*store.Incident, time.Time) error) (out store.Incident, err error) {
	err = d.doUrgent(ctx, "incident "+id, func(t *tx) error {
		if out, err = t.incident(id); err != nil {
			return err
		}
		if err := change(&out, t.now); err != nil {
			return err
		}
		return t.putIncident(by, what, out)
	})
	return out, err
}

func (t *tx) incident(id string) (store.Incident, error) {
	r, err := getJSON[record.Incident](t, "incidents", incidentKey(id))
	return r.Value(), err
}

// putIncident stores the record, its two indexes and the event.
func (t *tx) putIncident(by store.Caller, what string, i store.Incident) error {
	if err := t.putJSON("incidents", incidentKey(i.ID), record.OfIncident(i)); err != nil {
		return err
	}
	// What is noted of an incident that is over must not take the place of the
	// next of its kind and subject.
	if active := incidentOf(i); i.Active() || string(t.get("incidents", active)) == i.ID {
		if err := t.mark(active, []byte(i.ID), i.Active()); err != nil {
			return err
		}
	}
	if err := t.mark(incidentDueKey(i.ID), nil, i.Due()); err != nil {
		return err
	}
	t.change(store.Change{Kind: "incident", ID: i.ID})
	return t.event(auditNote{by: by, kind: "incident." + what, subject: i.ID, data: i})
}

// mark puts or deletes a key of an index.
func (t *tx) mark(k, v []byte, put bool) error {
	if put {
		return t.put("incidents", k, v)
	}
	return t.del("incidents", k)
}

// ListIncidents implements [store.Incidents].
func (d *DB) ListIncidents(ctx context.Context, q store.IncidentQuery) (list []store.Incident, err error) {
	if q.Limit <= 0 {
		q.Limit = incidentLimit
	}
	err = d.view(ctx, "listing incidents", func(t *tx) error {
		list = nil
		if q.Due {
			for _, k := range t.keys("incidents", []byte("d"), q.Limit) {
				i, err := t.incident(string(k[1:]))
				if err != nil {
					return err
				}
				list = append(list, i)
			}
			return nil
		}
		for _, v := range t.scan("incidents", kv.Range{Prefix: []byte("i"), Reverse: true}) {
			if len(list) == q.Limit {
				break
			}
			r, err := decodeJSON[record.Incident](v)
			if err != nil {
				return err
			}
			i := r.Value()
			if q.All || i.Active() {
				list = append(list, i)
			}
		}
		return nil
	})
	return list, err
}

// pruneIncidents deletes a chunk of the incidents that were over before.
func (t *tx) pruneIncidents(before time.Time) (n int, more bool, err error) {
	keys := t.keys("incidents", []byte("i"), pruneChunk)
	for _, k := range keys {
		i, err := t.incident(string(k[1:]))
		if err != nil {
			return n, false, fmt.Errorf("incident %s: %w", k[1:], err)
		}
		if i.Active() || !i.Recovered.Before(before) {
			continue
		}
		if err := t.del("incidents", k); err != nil {
			return n, false, err
		}
		if err := t.del("incidents", incidentDueKey(i.ID)); err != nil {
			return n, false, err
		}
		n++
	}
	return n, n > 0 && len(keys) == pruneChunk, nil
}
