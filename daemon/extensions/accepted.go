package extensions

import (
	"context"
	"time"

	"nize/store"
	"nize/store/kv"
)

// acceptance is the state of one extension that an admin accepted. It applies to exactly that
// code.
type acceptance struct {
	Name  string            `json:"name"`
	Pin   string            `json:"pin"`   // of its tool: definition and files
	Files map[string]string `json:"files"` // the hash of each file, by path
	At    time.Time         `json:"at"`
}

var acceptances = kv.Noun{Kind: "extension", Bucket: "extensions"}

// Buckets are the buckets of extensions. Acceptances of removed extensions stay, so that they are
// not accepted again automatically when they are reinstalled.
var Buckets = []kv.Bucket{{Name: acceptances.Bucket, Key: "name", Value: "JSON: the accepted definition"}}

// accepted returns ErrNotFound for an extension that was never accepted.
func (l *Extensions) accepted(ctx context.Context, name string) (acceptance, error) {
	return kv.ReadJSON[acceptance](ctx, l.opt.DB, "reading what was accepted of extension "+name, acceptances.Bucket, name)
}

// accept accepts exactly that pin and appends an event.
func (l *Extensions) accept(ctx context.Context, by store.Caller, a acceptance) error {
	return l.opt.DB.Update(ctx, "accepting extension "+a.Name, func(tx kv.Tx) error {
		a := a
		if err := kv.CheckID("extension", a.Name); err != nil {
			return err
		}
		a.At = tx.Now()
		if err := kv.PutJSON(tx, acceptances.Bucket, a.Name, a); err != nil {
			return err
		}
		tx.Change(store.Change{Kind: acceptances.Kind, ID: a.Name})
		return tx.Event(by, store.Event{Kind: "extension.accept", Subject: "native:" + a.Name}, struct {
			Pin string `json:"pin"`
		}{a.Pin})
	})
}
