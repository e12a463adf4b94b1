package spending

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/plan"
)

// planStore stores plans.
type planStore struct{ db kv.DB }

var (
	plans           = kv.Noun{Kind: "plan", Bucket: "plans"}
	planAssignments = kv.Noun{Kind: "plan", Bucket: "plan_assignments"}
)

const messageBucket = "plan_messages"

var planBuckets = []kv.Bucket{
	{Name: plans.Bucket, Key: "id", Value: "JSON"},
	{Name: planAssignments.Bucket, Key: "subject", Value: "JSON"},
	{Name: messageBucket, Key: "counter 0 month", Value: "JSON: the number, and the newest keys"},
}

// planMessages is the number of messages counted in a month. A repeated message is
// recognized by its key if that is among the newest keys.
type planMessages struct {
	Used int64    `json:"used"`
	Keys []string `json:"keys"`
}

const maxPlanKeys = 256

// put stores a new or changed plan.
func (s planStore) put(ctx context.Context, by store.Caller, p plan.Plan) error {
	if err := p.Check(); err != nil {
		return err
	}
	return s.db.Update(ctx, "storing the plan "+p.ID, func(tx kv.Tx) error {
		p := p
		p.Created = tx.Now()
		if old, err := kv.GetJSON[plan.Plan](tx, plans.Bucket, p.ID); err == nil {
			p.Created = old.Created
		} else if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return plans.Put(tx, by, p.ID, p)
	})
}

// list returns all plans.
func (s planStore) list(ctx context.Context) ([]plan.Plan, error) {
	return kv.ReadAllJSON[plan.Plan](ctx, s.db, "listing plans", plans.Bucket)
}

// assignments returns the plans of all subjects.
func (s planStore) assignments(ctx context.Context) ([]plan.Assignment, error) {
	return kv.ReadAllJSON[plan.Assignment](ctx, s.db, "listing who has a plan", planAssignments.Bucket)
}

// delete removes a plan. It returns store.ErrRefused while the plan is assigned.
func (s planStore) delete(ctx context.Context, by store.Caller, id string) error {
	return s.db.Update(ctx, "removing the plan "+id, func(tx kv.Tx) error {
		if _, err := tx.Get(plans.Bucket, []byte(id)); err != nil {
			return err
		}
		given, err := kv.ListJSON[plan.Assignment](tx, planAssignments.Bucket, "")
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(given, func(a plan.Assignment) bool { return a.Plan == id }); i >= 0 {
			return store.Mark(fmt.Errorf("%s has the plan %s", given[i].Subject, id), store.ErrRefused)
		}
		if err := tx.Delete(plans.Bucket, []byte(id)); err != nil {
			return err
		}
		tx.Change(store.Change{Kind: plans.Kind, ID: id})
		return tx.Event(by, store.Event{Kind: "plan.delete", Subject: id}, nil)
	})
}

// assign assigns a plan to a subject and replaces its previous one; "" removes it.
func (s planStore) assign(ctx context.Context, by store.Caller, subject, id string) error {
	return s.db.Update(ctx, "giving a plan to "+subject, func(tx kv.Tx) error {
		if err := kv.CheckID("subject", subject); err != nil {
			return err
		}
		if id != "" {
			if _, err := tx.Get(plans.Bucket, []byte(id)); err != nil {
				return err
			}
			if err := kv.PutJSON(tx, planAssignments.Bucket, subject, plan.Assignment{Subject: subject, Plan: id, Set: tx.Now()}); err != nil {
				return err
			}
		} else {
			if _, err := tx.Get(planAssignments.Bucket, []byte(subject)); err != nil {
				return err
			}
			if err := tx.Delete(planAssignments.Bucket, []byte(subject)); err != nil {
				return err
			}
		}
		tx.Change(store.Change{Kind: planAssignments.Kind, ID: subject})
		return tx.Event(by, store.Event{Kind: "plan.assign", Subject: subject}, map[string]string{"plan": id})
	})
}

// planOf returns the effective plan and its use.
func planOf(r kv.Reader, user string, subjects []string) (u plan.Usage, counted planMessages, err error) {
	for _, subject := range subjects {
		a, err := kv.GetJSON[plan.Assignment](r, planAssignments.Bucket, subject)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return u, counted, err
		}
		if u.Plan, err = kv.GetJSON[plan.Plan](r, plans.Bucket, a.Plan); err != nil {
			return u, counted, err
		}
		u.Subject = subject
		_, u.Ends = store.Monthly.Bounds(r.Now())
		counted, err = kv.GetJSON[planMessages](r, messageBucket, monthOf(u, user, r.Now()))
		if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		u.Used = counted.Used
		return u, counted, err
	}
	return u, counted, store.ErrNotFound
}

func monthOf(u plan.Usage, user string, now time.Time) string {
	return u.Counter(user) + "\x00" + now.UTC().Format("2006-01")
}

// find returns the plan of the first of the subjects that has one, with the user's use of it.
// It returns store.ErrNotFound if none has one.
func (s planStore) find(ctx context.Context, user string, subjects []string) (u plan.Usage, err error) {
	err = s.db.View(ctx, "reading the plan of "+user, func(r kv.Reader) (err error) {
		u, _, err = planOf(r, user, subjects)
		return err
	})
	return u, err
}

// count counts a message in the effective plan, once for each key. It returns a
// [*plan.UsedUpError] if no message is left.
func (s planStore) count(ctx context.Context, user string, subjects []string, key string) error {
	if _, err := s.find(ctx, user, subjects); errors.Is(err, store.ErrNotFound) {
		return nil // true of most messages
	}
	sum := sha256.Sum256([]byte(key))
	mark := hex.EncodeToString(sum[:8])
	return s.db.Update(ctx, "counting a message", func(tx kv.Tx) error {
		u, counted, err := planOf(tx, user, subjects)
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && slices.Contains(counted.Keys, mark):
			return nil
		case err != nil:
			return err
		case u.Plan.Messages != nil && counted.Used >= *u.Plan.Messages:
			return &plan.UsedUpError{Usage: u}
		}
		if counted.Used == 0 {
			if err := forgetMonths(tx, u.Counter(user)); err != nil {
				return err
			}
		}
		counted.Used++
		counted.Keys = append(counted.Keys, mark)
		counted.Keys = counted.Keys[max(0, len(counted.Keys)-maxPlanKeys):]
		return kv.PutJSON(tx, messageBucket, monthOf(u, user, tx.Now()), counted)
	})
}

// forgetMonths deletes the counts of past months.
func forgetMonths(tx kv.Tx, counter string) error {
	var gone [][]byte
	err := tx.Each(messageBucket, []byte(counter+"\x00"), nil, func(k, _ []byte) error {
		gone = append(gone, bytes.Clone(k))
		return nil
	})
	for _, k := range gone {
		err = errors.Join(err, tx.Delete(messageBucket, k))
	}
	return err
}
