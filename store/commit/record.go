package commit

import "nize/store"

// Record identifies a plain record: its kind in feed and trail, its bucket, its key.
type Record struct{ Kind, Bucket, ID string }

// PutRecord stores v, publishes the change, and appends an event.
func (t *Tx) PutRecord(by store.Caller, th Record, v any) error {
	if err := t.PutJSON(th.Bucket, []byte(th.ID), v); err != nil {
		return err
	}
	t.Change(store.Change{Kind: th.Kind, ID: th.ID})
	return t.Event(Note{By: by, Kind: th.Kind + ".put", Subject: th.ID, Data: v})
}

// RemoveRecord deletes the record, publishes the change, and appends an event. It returns
// ErrNotFound if there is no such record.
func (t *Tx) RemoveRecord(by store.Caller, th Record) error {
	if err := t.Delete(th.Bucket, []byte(th.ID)); err != nil {
		return err
	}
	t.Change(store.Change{Kind: th.Kind, ID: th.ID})
	return t.Event(Note{By: by, Kind: th.Kind + ".delete", Subject: th.ID})
}
