package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/store"
	"nize/store/kv"
)

// Feedback implements [store.RelevanceFeedback].
type Feedback struct{ db kv.DB }

var _ store.RelevanceFeedback = Feedback{}

// RecordFeedback implements [store.RelevanceFeedback].
func (f Feedback) RecordFeedback(ctx context.Context, l store.Feedback) (kept []store.Feedback, err error) {
	server, name, ok := store.SplitToolID(l.Tool)
	if !ok {
		return nil, fmt.Errorf("%w tool id %q", store.ErrInvalid, l.Tool)
	}
	err = f.db.Update(ctx, "learning from a call of "+l.Tool, func(tx kv.Tx) error {
		k := server + "\x00" + name
		if _, err := tx.Get("tools", []byte(k)); err != nil {
			return err
		}
		have, err := kv.GetJSON[[]store.Feedback](tx, "lessons", k)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		kept = store.MergeFeedback(have, l)
		return kv.PutJSON(tx, "lessons", k, kept)
	})
	if err != nil {
		return nil, err
	}
	for i := range kept {
		kept[i].Tool = l.Tool
	}
	return kept, nil
}

// eachFeedback calls do with the feedback of each tool, by its key.
func eachFeedback(r kv.Reader, do func(k []byte, list []store.Feedback) error) error {
	return r.Each("lessons", nil, nil, func(k, v []byte) error {
		list, err := kv.DecodeJSON[[]store.Feedback](v)
		if err != nil {
			return err
		}
		return do(k, list)
	})
}

// ListFeedback implements [store.RelevanceFeedback].
func (f Feedback) ListFeedback(ctx context.Context) (out map[string][]store.Feedback, err error) {
	err = f.db.View(ctx, "reading what was learned", func(r kv.Reader) error {
		out = map[string][]store.Feedback{}
		return eachFeedback(r, func(k []byte, list []store.Feedback) error {
			tool := string(bytes.Replace(k, []byte{0}, []byte(":"), 1))
			for i := range list {
				list[i].Tool = tool
			}
			out[tool] = list
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ForgetFeedback implements [store.RelevanceFeedback].
func (f Feedback) ForgetFeedback(ctx context.Context, by store.Caller, user string) (n int, err error) {
	err = f.db.Update(ctx, "forgetting what was learned", func(tx kv.Tx) error {
		if n, err = ForgetFeedback(tx, user); err != nil {
			return err
		}
		return tx.Event(by, store.Event{Kind: "lessons.forget", Subject: user}, struct {
			Feedback int `json:"lessons"`
		}{n})
	})
	return n, err
}

// ForgetFeedback deletes the feedback of one person, or all if user is "".
func ForgetFeedback(tx kv.Tx, user string) (n int, err error) {
	left := map[string][]store.Feedback{}
	err = eachFeedback(tx, func(k []byte, have []store.Feedback) error {
		rest := slices.DeleteFunc(slices.Clone(have), func(l store.Feedback) bool { return user == "" || l.User == user })
		if len(rest) < len(have) {
			n += len(have) - len(rest)
			left[string(k)] = rest
		}
		return nil
	})
	for k, rest := range left {
		switch {
		case err != nil:
		case len(rest) == 0:
			err = tx.Delete("lessons", []byte(k))
		default:
			err = kv.PutJSON(tx, "lessons", k, rest)
		}
	}
	return n, err
}
