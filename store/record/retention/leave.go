package retention

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/record"
	"nize/store/record/access"
	"nize/store/record/calls"
	"nize/store/record/people"
	"nize/store/record/threads"
)

// ForgetUser implements [store.Leavers].
func (d Retention) ForgetUser(ctx context.Context, by store.Caller, user string, erase store.Eraser) (store.Forgotten, error) {
	var f store.Forgotten
	user = d.db.Alias(user)
	if err := people.Over(d.db).RemoveUser(ctx, by, user); err != nil && !errors.Is(err, store.ErrNotFound) {
		return f, err
	}
	var g people.Gone
	err := d.db.Read(ctx, "forgetting user "+user, func(t *commit.Tx) (err error) {
		g, err = commit.GetJSON[people.Gone](t, "removed", []byte(user))
		return err
	})
	if err != nil {
		return f, err
	}
	if err := d.db.Flush(ctx); err != nil { // so that their newest calls are included
		return f, err
	}
	for _, step := range []func(context.Context, people.Gone, *store.Forgotten) error{d.forgetThreads, d.forgetCalls, d.forgetTurns, d.forgetLearned} {
		if err := step(ctx, g, &f); err != nil {
			return f, err
		}
	}
	if erase != nil {
		if err := erase(ctx, g.IDs, &f); err != nil {
			return f, err
		}
	}
	for _, id := range g.IDs {
		err := d.db.Write(ctx, "forgetting user "+user, func(t *commit.Tx) error {
			if t.Get("erasures", []byte(id)) != nil { // an earlier erasure was interrupted
				return nil
			}
			return t.PutJSON("erasures", []byte(id), commit.Erasure{Identities: g.Identities})
		})
		if err != nil {
			return f, err
		}
		n, err := d.trail.EraseEvents(ctx, by, id)
		f.Events += n
		if err != nil {
			return f, err
		}
	}
	if f.Running > 0 {
		return f, nil // something is left for the next attempt
	}
	return f, d.db.Write(ctx, "forgetting user "+user, func(t *commit.Tx) error {
		if err := forgetTokens(t, g.IDs); err != nil {
			return err
		}
		if err := t.Delete("removed", []byte(user)); err != nil {
			return err
		}
		return t.Event(commit.Note{By: by, Kind: "user.forget", Subject: user, Data: f})
	})
}

// forgetTokens deletes the revoked tokens, whose names may be personal data.
func forgetTokens(t *commit.Tx, users []string) error {
	for _, user := range users {
		list, err := access.TokensOf(t, user, "")
		if err != nil {
			return err
		}
		for _, tok := range list {
			if err := access.DeleteToken(t, tok); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetThreads deletes the conversations that the user began, but not their calls, which
// [Retention.forgetCalls] handles.
func (d Retention) forgetThreads(ctx context.Context, g people.Gone, f *store.Forgotten) error {
	for _, id := range g.IDs {
		for more := true; more; {
			whole := false
			err := d.db.Write(ctx, "forgetting conversations", func(t *commit.Tx) error {
				prefix := []byte("u" + id + "\x00")
				next := t.Keys("threads_by", prefix, 1)
				if more, whole = len(next) > 0, false; !more {
					return nil
				}
				th, err := commit.GetJSON[store.Thread](t, "threads", next[0][len(prefix)+8:])
				if err != nil {
					return err
				}
				whole, err = threads.DeleteThread(t, th)
				return err
			})
			if err != nil {
				return err
			}
			if whole {
				f.Conversations++
			}
		}
	}
	return nil
}

// walk calls visit for every key of a bucket in pages, each in a transaction of its own;
// visit may change its entry. n counts the changed entries.
func (d Retention) walk(ctx context.Context, bucket string, visit func(t *commit.Tx, k, v []byte) (changed bool, err error)) (n int, err error) {
	after := []byte(nil)
	for more := true; more; {
		var found [][]byte
		page := after
		err := d.db.Read(ctx, "looking through "+bucket, func(t *commit.Tx) error {
			for k := range t.Scan(bucket, kv.Range{From: page, Limit: commit.Chunk}) {
				found = append(found, commit.CloneBytes(k))
			}
			more = len(found) == commit.Chunk
			return nil
		})
		if err != nil {
			return n, err
		}
		changed := 0
		err = d.db.Write(ctx, "looking through "+bucket, func(t *commit.Tx) error {
			changed = 0
			for _, k := range found {
				v := t.Get(bucket, k)
				if v == nil { // deleted meanwhile
					continue
				}
				did, err := visit(t, k, commit.CloneBytes(v))
				if err != nil {
					return err
				}
				if did {
					changed++
				}
			}
			return nil
		})
		if n += changed; err != nil {
			return n, err
		}
		if len(found) > 0 {
			after = append(found[len(found)-1], 0)
		}
	}
	return n, nil
}

// forgetCalls removes arguments and results from the user's calls, and their name from
// other people's calls that they decided.
func (d Retention) forgetCalls(ctx context.Context, g people.Gone, f *store.Forgotten) error {
	running := map[string]bool{}
	n, err := d.walk(ctx, "calls", func(t *commit.Tx, k, v []byte) (bool, error) {
		s, err := calls.DecodeCall(string(k), v)
		if err != nil {
			return false, err
		}
		theirs := slices.Contains(g.IDs, s.Head.By)
		if theirs && !s.Head.State.Final() {
			running[s.Head.ID] = true
			return false, nil
		}
		names := func(dec store.Decision) bool {
			return slices.Contains(g.IDs, dec.By) && (dec.Name != "" || dec.Reason != store.Text{})
		}
		if !theirs && !slices.ContainsFunc(s.Head.Decisions, names) {
			return false, nil
		}
		was, err := calls.EncodeCall(t, s) // v may be in another form
		if err != nil {
			return false, err
		}
		for i := range s.Head.Decisions {
			if dec := &s.Head.Decisions[i]; names(*dec) {
				dec.Name, dec.Reason = "", store.Text{}
			}
		}
		if theirs {
			if err := stripCall(t, &s); err != nil {
				return false, err
			}
		}
		b, err := calls.EncodeCall(t, s)
		if err != nil || bytes.Equal(b, was) {
			return false, err
		}
		return theirs, t.Put("calls", k, b)
	})
	f.Calls, f.Running = n, len(running)
	return err
}

// stripCall reduces a call to what is counted: the tool, the time and the outcome.
func stripCall(t *commit.Tx, s *calls.StoredCall) error {
	if err := forgetView(t, s.Head); err != nil {
		return err
	}
	if len(s.Result) > 0 {
		for _, k := range calls.CallKeys(*s) {
			if k[0] == 'r' {
				if err := t.Delete("calls_by", k); err != nil {
					return err
				}
			}
		}
		s.Result = nil
	}
	h := &s.Head
	h.ByName, h.Why, h.Reason, h.RunsAs, h.Warnings = "", "", store.Text{}, store.Text{}, nil
	for i := range h.Decisions {
		h.Decisions[i].Name, h.Decisions[i].Reason = "", store.Text{}
	}
	return s.EmptyArgs(t)
}

// forgetLearned deletes what the index learned from the user's requests.
func (d Retention) forgetLearned(ctx context.Context, g people.Gone, f *store.Forgotten) error {
	return d.db.Write(ctx, "forgetting what was learned", func(t *commit.Tx) error {
		n := 0
		for _, id := range g.IDs {
			one, err := record.ForgetFeedback(t.KV(), id)
			if err != nil {
				return err
			}
			n += one
		}
		f.Feedback = n // assigned, not added, because this may run again
		return nil
	})
}

// forgetTurns removes the user's words from other people's conversations.
func (d Retention) forgetTurns(ctx context.Context, g people.Gone, f *store.Forgotten) (err error) {
	f.Turns, err = d.walk(ctx, "turns", func(t *commit.Tx, k, v []byte) (bool, error) {
		p, err := commit.UnpackN(v, 2)
		if err != nil {
			return false, err
		}
		r, err := commit.DecodeJSON[record.Turn](p[0])
		turn := r.Value()
		if err != nil {
			return false, err
		}
		said := slices.Contains(g.IDs, turn.By.User) && (turn.Text != "" || turn.By.Name != "")
		read := slices.Contains(g.IDs, turn.For) && turn.Text+argsOf(turn)+string(p[1]) != ""
		brought, err := threads.ForgetBrought(t, &turn, g.Identities, said)
		if err != nil || !said && !read && !brought {
			return false, err
		}
		opaque := commit.CloneBytes(p[1])
		if said || read {
			turn.Text, turn.Said = "", store.Text{}
		}
		if said {
			turn.By = store.Caller{User: turn.By.User, Role: turn.By.Role, Surface: turn.By.Surface}
		}
		if read { // it was only for them
			opaque = nil
			for i := range turn.Calls {
				turn.Calls[i].Args = ""
			}
		}
		head, err := json.Marshal(record.OfTurn(turn))
		if err != nil {
			return false, err
		}
		return true, t.Put("turns", k, commit.Pack(head, opaque))
	})
	return err
}

// argsOf returns the arguments of a turn's calls.
func argsOf(t store.Turn) (all string) {
	for _, c := range t.Calls {
		all += c.Args
	}
	return all
}
