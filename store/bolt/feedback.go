package bolt

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"nize/store"
)

// RecordFeedback implements [store.RelevanceFeedback].
func (d *DB) RecordFeedback(ctx context.Context, l store.Feedback) (kept []store.Feedback, err error) {
	server, name, ok := store.SplitToolID(l.Tool)
	if !ok {
		return nil, fmt.Errorf("%w tool id %q", store.ErrInvalid, l.Tool)
	}
	err = d.update(ctx, "learning from a call of "+l.Tool, func(t *tx) error {
		k := key(server, name)
		if t.get("tools", k) == nil {
			return store.ErrNotFound
		}
		have, err := t.feedback(k)
		if err != nil {
			return err
		}
		kept = store.MergeFeedback(have, l)
		return t.putJSON("lessons", k, kept)
	})
	if err != nil {
		return nil, err
	}
	for i := range kept {
		kept[i].Tool = l.Tool
	}
	return kept, nil
}

func (t *tx) feedback(k []byte) ([]store.Feedback, error) {
	v := t.get("lessons", k)
	if v == nil {
		return nil, nil
	}
	return decodeJSON[[]store.Feedback](v)
}

// ListFeedback implements [store.RelevanceFeedback].
func (d *DB) ListFeedback(ctx context.Context) (map[string][]store.Feedback, error) {
	out := map[string][]store.Feedback{}
	err := d.view(ctx, "reading what was learned", func(t *tx) error {
		return t.each("lessons", nil, func(k, v []byte) error {
			list, err := decodeJSON[[]store.Feedback](v)
			tool := string(bytes.Replace(k, []byte{0}, []byte(":"), 1))
			for i := range list {
				list[i].Tool = tool
			}
			out[tool] = list
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ForgetFeedback implements [store.RelevanceFeedback].
func (d *DB) ForgetFeedback(ctx context.Context, by store.Caller, user string) (n int, err error) {
	err = d.update(ctx, "forgetting what was learned", func(t *tx) error {
		if n, err = t.forgetFeedback(user); err != nil {
			return err
		}
		return t.event(auditNote{by: by, kind: "lessons.forget", subject: user, data: struct {
			Feedback int `json:"lessons"`
		}{n}})
	})
	return n, err
}

// forgetFeedback deletes the feedback of one person, or all if user is "".
func (t *tx) forgetFeedback(user string) (n int, err error) {
	for _, k := range t.keys("lessons", nil, 0) {
		have, err := t.feedback(k)
		if err != nil {
			return n, err
		}
		rest := slices.DeleteFunc(slices.Clone(have), func(l store.Feedback) bool { return user == "" || l.User == user })
		n += len(have) - len(rest)
		switch {
		case len(rest) == len(have):
		case len(rest) == 0:
			err = t.del("lessons", k)
		default:
			err = t.putJSON("lessons", k, rest)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
