package threads

import (
	"context"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
)

// StartThread implements [store.Threads].
func (d Threads) StartThread(ctx context.Context, _ store.Caller, th store.Thread, q store.ThreadQuota) error {
	return d.db.Write(ctx, "storing conversation "+th.ID, func(t *commit.Tx) error {
		if t.Get("threads", []byte(th.ID)) != nil {
			return store.ErrExists
		}
		if err := d.makeThreadRoom(t, th.User, q); err != nil {
			return err
		}
		_, err := putThread(t, th)
		return err
	})
}

// makeThreadRoom deletes empty conversations of a user until one more fits the quota.
func (d Threads) makeThreadRoom(t *commit.Tx, user string, q store.ThreadQuota) error {
	u := d.use(t, user)
	for _, id := range u.empty {
		if u.n < q.Count.Each {
			break
		}
		th, err := commit.GetJSON[store.Thread](t, "threads", []byte(id))
		if err != nil {
			return err
		}
		if th.Open || t.First("calls_by", []byte("t"+id+"\x00")) != nil {
			continue
		}
		whole, err := DeleteThread(t, th)
		if err != nil {
			return err
		}
		if whole {
			u.n--
		}
	}
	return u.check(q, true)
}

// CheckThreads implements [store.Threads].
func (d Threads) CheckThreads(ctx context.Context, user string, q store.ThreadQuota, another bool) (err error) {
	var u use
	if err := d.db.Read(ctx, "counting conversations", func(t *commit.Tx) error {
		u = d.use(t, user)
		return nil
	}); err != nil {
		return err
	}
	u.n -= int64(len(u.empty)) // deleting these would make room
	return u.check(q, another)
}

// use is how much of a quota a user's conversations take.
type use struct {
	n, size int64
	empty   []string // ids of conversations without turns for longer than a message may wait, oldest first
}

func (d Threads) use(t *commit.Tx, user string) (u use) {
	for _, p := range d.db.EntriesOf(user) {
		for k, v := range t.Scan("threads_by", kv.Range{Prefix: []byte(p)}) {
			u.n++
			if len(v) != 8 || len(k) < len(p)+8 {
				continue
			}
			size := commit.DecodeSeq(v)
			u.size += int64(size)
			if size == 0 && d.db.Now().Sub(commit.TimeOf(k[len(p):len(p)+8])) > KeepKeys {
				u.empty = append(u.empty, string(k[len(p)+8:]))
			}
		}
	}
	return u
}

func (u use) check(q store.ThreadQuota, another bool) error {
	switch {
	case another && u.n >= q.Count.Each:
		return store.Mark(store.Errorf("you have %d conversations, and one person may have %d (the setting %s); delete some first", int(u.n), int(q.Count.Each), q.Count.Limit), store.ErrRefused)
	case u.size >= q.Size.Each:
		return store.Mark(store.Errorf("your conversations hold %s, and one person's may hold %s (the setting %s); delete some first", store.Size(u.size).String(), store.Size(q.Size.Each).String(), q.Size.Limit), store.ErrRefused)
	}
	return nil
}
