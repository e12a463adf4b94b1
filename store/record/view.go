package record

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"nize/store"
	"nize/store/kv"
)

// Views stores data that views of calls send: context for the model with the viewer's next
// message, and their own state for when they are opened again. Both are deleted with their
// call.
type Views struct{ db kv.DB }

// maxTold limits how many views' contexts one message carries.
const maxTold = 8

func contextKey(thread, call string) []byte { return []byte(thread + "\x00" + call) }

// PutViewContext stores the context of the view of a call in a conversation and replaces
// the previous one; an empty text deletes it. It returns ErrNotFound if the call or the
// conversation doesn't exist, and ErrConflict if maxTold other views have stored a context
// since that person's last message.
func (v Views) PutViewContext(ctx context.Context, thread string, told store.ViewContext) error {
	return v.update(ctx, "keeping what a view told", thread, told.Call, func(tx kv.Tx) error {
		key := contextKey(thread, told.Call)
		if told.Text == "" {
			return tx.Delete("view_contexts", key)
		}
		have, err := kv.ListJSON[store.ViewContext](tx, "view_contexts", thread+"\x00")
		if err != nil {
			return err
		}
		if len(slices.DeleteFunc(have, func(o store.ViewContext) bool { return o.User != told.User || o.Call == told.Call })) >= maxTold {
			return store.ErrConflict
		}
		return kv.PutJSON(tx, "view_contexts", string(key), told)
	})
}

// update runs fn in a transaction if the view's conversation and call exist.
func (v Views) update(ctx context.Context, what, thread, call string, fn func(kv.Tx) error) error {
	if err := v.db.Sync(ctx); err != nil {
		return err
	}
	return v.db.Update(ctx, what, func(tx kv.Tx) error {
		if _, err := tx.Get("calls", []byte(call)); err != nil {
			return err
		}
		if _, err := tx.Get("threads", []byte(thread)); err != nil {
			return err
		}
		return fn(tx)
	})
}

// TakeViewContexts adds the stored contexts to the message that carries them, in the order
// of their calls, and deletes them. For each view the last context counts.
func TakeViewContexts(tx kv.Tx, t *store.Turn) error {
	told, err := kv.ListJSON[store.ViewContext](tx, "view_contexts", t.Thread+"\x00")
	told = slices.DeleteFunc(told, func(c store.ViewContext) bool { return c.User != t.By.User })
	if err != nil || len(told) == 0 {
		return err
	}
	var e store.Earlier
	if t.Earlier != nil {
		e = *t.Earlier
	}
	e.Views = slices.DeleteFunc(slices.Clone(e.Views), func(old store.ViewContext) bool {
		return slices.ContainsFunc(told, func(c store.ViewContext) bool { return c.Call == old.Call })
	})
	e.Views = append(e.Views, told...)
	t.Earlier = &e
	for _, c := range told {
		if err := tx.Delete("view_contexts", contextKey(t.Thread, c.Call)); err != nil {
			return err
		}
	}
	return nil
}

// PutViewState stores the state of the view of a call in a conversation for its viewer;
// null deletes it. It returns ErrNotFound if the call or the conversation doesn't exist.
func (v Views) PutViewState(ctx context.Context, thread, call, user string, state json.RawMessage) error {
	return v.update(ctx, "keeping what a view keeps", thread, call, func(tx kv.Tx) error {
		key := []byte(call + "\x00" + user)
		if bytes.Equal(state, []byte("null")) {
			return tx.Delete("view_states", key)
		}
		return tx.PutSealed("view_states", key, state)
	})
}

// GetViewState returns the state. It returns ErrNotFound if there is none.
func (v Views) GetViewState(ctx context.Context, call, user string) (state json.RawMessage, err error) {
	err = v.db.View(ctx, "reading what a view keeps", func(r kv.Reader) error {
		state, err = r.Unseal("view_states", []byte(call+"\x00"+user))
		return err
	})
	return state, err
}
