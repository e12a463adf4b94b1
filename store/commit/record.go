package commit

import "nize/store"

// Record is a plain record: its kind in feed and trail, its bucket, its key.
type Record struct{ Kind, Bucket, ID string }

// PutRecord stores it, tells the feed, and leaves an event.
func (t *Tx) PutRecord(by store.Caller, th Record, v any) error {
	if err := t.PutJSON(th.Bucket, []byte(th.ID), v); err != nil {
		return err
	}
	t.Change(store.Change{Kind: th.Kind, ID: th.ID})
	return t.Event(Note{By: by, Kind: th.Kind + ".put", Subject: th.ID, Data: v})
}

// RemoveRecord does the same with one that goes. ErrNotFound if it is not there.
func (t *Tx) RemoveRecord(by store.Caller, th Record) error {
	if err := t.Delete(th.Bucket, []byte(th.ID)); err != nil {
		return err
	}
	t.Change(store.Change{Kind: th.Kind, ID: th.ID})
	return t.Event(Note{By: by, Kind: th.Kind + ".delete", Subject: th.ID})
}
