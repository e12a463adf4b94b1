package record

import (
	"context"

	"nize/store"
	"nize/store/kv"
	"nize/store/trust"
)

// Trust implements [trust.Store].
type Trust struct{ db kv.DB }

var _ trust.Store = Trust{}

var extensions = kv.Noun{Kind: "extension", Bucket: "extensions"}

// GetAccepted implements [trust.Store].
func (t Trust) GetAccepted(ctx context.Context, name string) (trust.Extension, error) {
	return kv.ReadJSON[trust.Extension](ctx, t.db, "reading what was accepted of extension "+name, extensions.Bucket, name)
}

// PutAccepted implements [trust.Store].
func (t Trust) PutAccepted(ctx context.Context, by store.Caller, e trust.Extension) error {
	return t.db.Update(ctx, "accepting extension "+e.Name, func(tx kv.Tx) error {
		e := e
		if err := kv.CheckID("extension", e.Name); err != nil {
			return err
		}
		e.At = tx.Now()
		if err := kv.PutJSON(tx, extensions.Bucket, e.Name, e); err != nil {
			return err
		}
		tx.Change(store.Change{Kind: extensions.Kind, ID: e.Name})
		return tx.Event(by, store.Event{Kind: "extension.accept", Subject: "native:" + e.Name}, struct {
			Pin string `json:"pin"`
		}{e.Pin})
	})
}
