package record

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"nize/store"
	"nize/store/kv"
)

// Views keep what views of calls say: to the model with the next message of who looks
// at them, and for themselves when they are opened again. Both go with their call.
type Views struct{ db kv.DB }

// maxTold bounds the views that are heard with one message.
const maxTold = 8

func contextKey(thread, call string) []byte { return []byte(thread + "\x00" + call) }

// PutViewContext keeps what the view of a call in a conversation tells, in place of what
// it told before; nothing where the text is "". ErrNotFound if either is gone,
// ErrConflict where so many other views have told something since that person's last
// message that no more is heard.
func (v Views) PutViewContext(ctx context.Context, thread string, told store.ViewContext) error {
	return v.update(ctx, "keeping what a view told", thread, told.Call, func(tx kv.Tx) error {
		key := contextKey(thread, told.Call)
		if told.Text == "" {
			return tx.Delete("view_contexts", key)
		}
		have, err := list[store.ViewContext](tx, "view_contexts", thread+"\x00")
		if err != nil {
			return err
		}
		if len(slices.DeleteFunc(have, func(o store.ViewContext) bool { return o.User != told.User || o.Call == told.Call })) >= maxTold {
			return store.ErrConflict
		}
		return put(tx, "view_contexts", string(key), told)
	})
}

// update is that of something said by the view of a call, while its conversation is there.
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

// TakeViewContexts adds what views told to the message with which it goes, in the order
// of their calls, and forgets it; of each view the last counts.
func TakeViewContexts(tx kv.Tx, t *store.Turn) error {
	told, err := list[store.ViewContext](tx, "view_contexts", t.Thread+"\x00")
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

// PutViewState keeps what the view of a call in a conversation keeps for who looks at it;
// nothing where that is null. ErrNotFound if either is gone.
func (v Views) PutViewState(ctx context.Context, thread, call, user string, state json.RawMessage) error {
	return v.update(ctx, "keeping what a view keeps", thread, call, func(tx kv.Tx) error {
		key := []byte(call + "\x00" + user)
		if bytes.Equal(state, []byte("null")) {
			return tx.Delete("view_states", key)
		}
		return tx.PutSealed("view_states", key, state)
	})
}

// GetViewState returns it. ErrNotFound where there is none.
func (v Views) GetViewState(ctx context.Context, call, user string) (state json.RawMessage, err error) {
	err = v.db.View(ctx, "reading what a view keeps", func(r kv.Reader) error {
		state, err = r.Unseal("view_states", []byte(call+"\x00"+user))
		return err
	})
	return state, err
}
