package database

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/record"
)

// gone is what is kept of a user who was removed, so that the rest can be
// found and forgotten.
type gone struct {
	IDs        []string  `json:"ids"` // the user's and those joined with it
	Identities []string  `json:"identities"`
	Removed    time.Time `json:"removed"`
}

// RemoveUser implements [store.Leavers].
func (d *DB) RemoveUser(ctx context.Context, by store.Caller, user string) error {
	err := d.update(ctx, "removing user "+user, func(t *tx) error {
		u, err := getJSON[store.User](t, "users", []byte(d.alias(user)))
		if err != nil {
			return err
		}
		if u.CanAdminister() {
			if err := t.checkAdmins(u.ID); err != nil {
				return err
			}
		}
		return t.removeUser(by, u)
	})
	if err != nil {
		return err
	}
	return d.loadAliases(ctx)
}

func (t *tx) removeUser(by store.Caller, u store.User) error {
	steps := []func() error{
		func() error { return t.offboard(by, u.ID, store.Textf("its requester was removed")) },
		func() error { return t.moveSettings(u.ID, "") },
		func() error { return t.moveBudgets(by, u.ID, "") },
		func() error { return t.moveMembers(by, u.ID, "") },
		func() error { return t.reshare(by, "user:"+u.ID, "") },
		func() error { return t.del("link_tries", []byte(u.ID)) },
		func() error { return t.del("users", []byte(u.ID)) },
		func() error {
			return t.putJSON("removed", []byte(u.ID), gone{append([]string{u.ID}, u.Aliases...), u.Identities, t.now})
		},
	}
	for _, id := range u.Identities {
		steps = append(steps, func() error { return t.del("identities", []byte(id)) }, func() error { return t.del("homes", []byte(id)) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	t.change(store.Change{Kind: "user", ID: u.ID})
	return t.event(auditNote{by: by, kind: "user.remove", subject: u.ID, data: u})
}

// RemovedUser implements [store.Leavers].
func (d *DB) RemovedUser(ctx context.Context, user string) (ids []string, ok bool, err error) {
	err = d.view(ctx, "looking for a removed user", func(t *tx) error {
		g, err := getJSON[gone](t, "removed", []byte(user))
		ids = g.IDs
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	return ids, err == nil, err
}

// ForgetUser implements [store.Leavers].
func (d *DB) ForgetUser(ctx context.Context, by store.Caller, user string) (store.Forgotten, error) {
	var f store.Forgotten
	user = d.alias(user)
	if err := d.RemoveUser(ctx, by, user); err != nil && !errors.Is(err, store.ErrNotFound) {
		return f, err
	}
	var g gone
	err := d.view(ctx, "forgetting user "+user, func(t *tx) (err error) {
		g, err = getJSON[gone](t, "removed", []byte(user))
		return err
	})
	if err != nil {
		return f, err
	}
	if err := d.Flush(ctx); err != nil { // their newest calls, too
		return f, err
	}
	for _, step := range []func(context.Context, gone, *store.Forgotten) error{d.forgetThreads, d.forgetCalls, d.forgetTurns, d.forgetLearned} {
		if err := step(ctx, g, &f); err != nil {
			return f, err
		}
	}
	if f.Documents, err = record.EraseDocumentsOf(ctx, d, g.IDs); err != nil {
		return f, err
	}
	for _, id := range g.IDs {
		err := d.update(ctx, "forgetting user "+user, func(t *tx) error {
			if t.get("erasures", []byte(id)) != nil { // one that was interrupted
				return nil
			}
			return t.putJSON("erasures", []byte(id), erasure{Identities: g.Identities})
		})
		if err != nil {
			return f, err
		}
		n, err := d.EraseEvents(ctx, by, id)
		f.Events += n
		if err != nil {
			return f, err
		}
	}
	if f.Running > 0 {
		return f, nil // there is something left to come back for
	}
	return f, d.update(ctx, "forgetting user "+user, func(t *tx) error {
		if err := t.forgetTokens(g.IDs); err != nil {
			return err
		}
		if err := t.del("removed", []byte(user)); err != nil {
			return err
		}
		return t.event(auditNote{by: by, kind: "user.forget", subject: user, data: f})
	})
}

// forgetTokens deletes the revoked tokens, whose names may tell something.
func (t *tx) forgetTokens(users []string) error {
	for _, user := range users {
		list, err := t.tokensOf(user, "")
		if err != nil {
			return err
		}
		for _, tok := range list {
			err := errors.Join(t.del("tokens_name", key(tok.User, tok.Name, tok.ID)), t.del("tokens_hash", tok.Hash[:]), t.del("tokens", []byte(tok.ID)))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetThreads deletes the conversations that they began. What was called in
// them is [DB.forgetCalls]' matter.
func (d *DB) forgetThreads(ctx context.Context, g gone, f *store.Forgotten) error {
	for _, id := range g.IDs {
		for more := true; more; {
			whole := false
			err := d.update(ctx, "forgetting conversations", func(t *tx) error {
				prefix := []byte("u" + id + "\x00")
				next := t.keys("threads_by", prefix, 1)
				if more, whole = len(next) > 0, false; !more {
					return nil
				}
				th, err := getJSON[store.Thread](t, "threads", next[0][len(prefix)+8:])
				if err != nil {
					return err
				}
				whole, err = t.deleteThread(th)
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

// deleteThread deletes a conversation, or a chunk of its turns if it has more.
func (t *tx) deleteThread(th store.Thread) (whole bool, err error) {
	turns := t.keys("turns", key(th.ID, ""), pruneChunk)
	for _, k := range turns {
		if err := t.del("turns", k); err != nil {
			return false, err
		}
	}
	if len(turns) == pruneChunk {
		return false, nil
	}
	if err := errors.Join(t.dropFiles(th.ID), t.delPrefix("view_contexts", key(th.ID, ""))); err != nil {
		return false, err
	}
	for _, k := range threadKeys(th) {
		if err := t.del("threads_by", k); err != nil {
			return false, err
		}
	}
	if err := t.forgetPlaces(th); err != nil {
		return false, err
	}
	t.change(store.Change{Kind: "thread", ID: th.ID, Thread: th.ID})
	return true, t.del("threads", []byte(th.ID))
}

// walk visits every key of a bucket in pages, each a transaction of its own,
// and lets visit change what it is shown. n counts what it changed.
func (d *DB) walk(ctx context.Context, bucket string, visit func(t *tx, k, v []byte) (changed bool, err error)) (n int, err error) {
	after := []byte(nil)
	for more := true; more; {
		var found [][]byte
		page := after
		err := d.view(ctx, "looking through "+bucket, func(t *tx) error {
			for k := range t.scan(bucket, kv.Range{From: page, Limit: pruneChunk}) {
				found = append(found, cloneBytes(k))
			}
			more = len(found) == pruneChunk
			return nil
		})
		if err != nil {
			return n, err
		}
		changed := 0
		err = d.update(ctx, "looking through "+bucket, func(t *tx) error {
			changed = 0
			for _, k := range found {
				v := t.get(bucket, k)
				if v == nil { // deleted meanwhile
					continue
				}
				did, err := visit(t, k, cloneBytes(v))
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

// forgetCalls takes out of their calls what was asked and answered, and out of
// other people's the name under which they decided.
func (d *DB) forgetCalls(ctx context.Context, g gone, f *store.Forgotten) error {
	running := map[string]bool{}
	n, err := d.walk(ctx, "calls", func(t *tx, k, v []byte) (bool, error) {
		s, err := decodeCall(v)
		if err != nil {
			return false, err
		}
		theirs := slices.Contains(g.IDs, s.head.By)
		if theirs && !s.head.State.Final() {
			running[s.head.ID] = true
			return false, nil
		}
		named := false
		for i := range s.head.Decisions {
			if dec := &s.head.Decisions[i]; slices.Contains(g.IDs, dec.By) && (dec.Name != "" || dec.Reason != store.Text{}) {
				dec.Name, dec.Reason, named = "", store.Text{}, true
			}
		}
		if !theirs && !named {
			return false, nil
		}
		if theirs {
			if err := t.stripCall(&s); err != nil {
				return false, err
			}
		}
		b, err := encodeCall(s)
		if err != nil || bytes.Equal(b, v) {
			return false, err
		}
		return theirs, t.put("calls", k, b)
	})
	f.Calls, f.Running = n, len(running)
	return err
}

// stripCall leaves of a call what is counted: which tool, when, how it ended.
func (t *tx) stripCall(s *storedCall) error {
	if err := forgetView(t, s.head); err != nil {
		return err
	}
	if len(s.result) > 0 {
		for _, k := range callKeys(*s) {
			if k[0] == 'r' {
				if err := t.del("calls_by", k); err != nil {
					return err
				}
			}
		}
		s.result = nil
	}
	h := &s.head
	h.ByName, h.Why, h.Reason, h.RunsAs, h.Warnings = "", "", store.Text{}, store.Text{}, nil
	for i := range h.Decisions {
		h.Decisions[i].Name, h.Decisions[i].Reason = "", store.Text{}
	}
	plain, err := t.db.unseal("calls/args", h.ID, s.args)
	if err != nil {
		return err
	}
	if empty := pack(nil); !bytes.Equal(plain, empty) {
		s.args = t.seal("calls/args", h.ID, empty)
	}
	return nil
}

// forgetLearned takes out what their requests taught the index.
func (d *DB) forgetLearned(ctx context.Context, g gone, f *store.Forgotten) error {
	return d.update(ctx, "forgetting what was learned", func(t *tx) error {
		n := 0
		for _, id := range g.IDs {
			one, err := record.ForgetFeedback(kvTx{t}, id)
			if err != nil {
				return err
			}
			n += one
		}
		f.Feedback = n // set, not added: this may run again
		return nil
	})
}

// forgetTurns takes their words out of other people's conversations.
func (d *DB) forgetTurns(ctx context.Context, g gone, f *store.Forgotten) (err error) {
	f.Turns, err = d.walk(ctx, "turns", func(t *tx, k, v []byte) (bool, error) {
		p, err := unpackN(v, 2)
		if err != nil {
			return false, err
		}
		r, err := decodeJSON[record.Turn](p[0])
		turn := r.Value()
		if err != nil {
			return false, err
		}
		said := slices.Contains(g.IDs, turn.By.User) && (turn.Text != "" || turn.By.Name != "")
		read := slices.Contains(g.IDs, turn.For) && turn.Text+argsOf(turn)+string(p[1]) != ""
		brought, err := t.forgetBrought(&turn, g, said)
		if err != nil || !said && !read && !brought {
			return false, err
		}
		opaque := cloneBytes(p[1])
		if said || read {
			turn.Text, turn.Said = "", store.Text{}
		}
		if said {
			turn.By = store.Caller{User: turn.By.User, Role: turn.By.Role, Surface: turn.By.Surface}
		}
		if read { // what was for them alone
			opaque = nil
			for i := range turn.Calls {
				turn.Calls[i].Args = ""
			}
		}
		head, err := json.Marshal(record.OfTurn(turn))
		if err != nil {
			return false, err
		}
		return true, t.put("turns", k, pack(head, opaque))
	})
	return err
}

// argsOf is what a turn's calls were made with.
func argsOf(t store.Turn) (all string) {
	for _, c := range t.Calls {
		all += c.Args
	}
	return all
}
