package calls

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"nize/store"
	"nize/store/commit"
)

// waiting is an index, in memory, of the calls that wait. A process has its database
// alone, so what its commits changed since the calls were read once is all that differs:
// the changed ones are read again when the index is asked next.
type waiting struct {
	refreshing sync.Mutex // held by who reads them again; taken before mu

	mu      sync.Mutex // guards what follows
	loaded  bool
	changed map[string]bool // ids
	byID    map[string]waits
	same    map[sameCall]map[string]bool // ids
	count   map[string]int               // by requester, whom others may have become since
}

// waits is what is known of a call that waits.
type waits struct {
	by   string
	same sameCall
}

// sameCall is what two calls have in common if the second is the first, sent again.
type sameCall struct {
	token   string
	surface store.Surface
	tool    string
	args    [sha256.Size]byte
}

func sameAs(c store.Call) sameCall {
	return sameCall{c.Token, c.Surface, c.ToolID(), sha256.Sum256(c.Args)}
}

// note notes which calls have to be read again.
func (w *waiting) note(changes []store.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range changes {
		if c.Kind == "call" && c.Waited {
			w.setLocked(&w.changed, c.ID)
		}
	}
}

func (w *waiting) setLocked(set *map[string]bool, id string) {
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[id] = true
}

func (w *waiting) removeLocked(id string) {
	was, ok := w.byID[id]
	if !ok {
		return
	}
	delete(w.byID, id)
	if delete(w.same[was.same], id); len(w.same[was.same]) == 0 {
		delete(w.same, was.same)
	}
	if w.count[was.by]--; w.count[was.by] == 0 {
		delete(w.count, was.by)
	}
}

func (w *waiting) addLocked(c store.Call) {
	w.removeLocked(c.ID)
	e := waits{c.By, sameAs(c)}
	w.byID[c.ID] = e
	ids := w.same[e.same]
	w.setLocked(&ids, c.ID)
	w.same[e.same] = ids
	w.count[e.by]++
}

// refresh reads what the index lacks. It returns with w.mu locked, unless it fails. Of
// those who come meanwhile, each waits until the index has what it lacked when they came.
func (d Calls) refresh(ctx context.Context) error {
	const what = "reading waiting calls"
	w := d.index
	// Nothing is answered from memory while another process may have the database.
	if err := d.db.ReadRecent(ctx, what, func(*commit.Tx) error { return nil }); err != nil {
		return err
	}
	w.refreshing.Lock()
	defer w.refreshing.Unlock()
	w.mu.Lock()
	for !w.loaded || len(w.changed) > 0 {
		all, changed := !w.loaded, w.changed
		w.loaded, w.changed = true, nil // what changes from now on is read later
		w.mu.Unlock()
		var list []store.Call
		var err error
		if all {
			list, err = d.ListCalls(ctx, store.CallQuery{Waiting: true, Limit: most})
		}
		for id := range changed {
			if all || err != nil {
				break
			}
			var c store.Call
			switch c, err = d.GetCall(ctx, id); {
			case err == nil:
				list = append(list, c)
			case errors.Is(err, store.ErrNotFound): // it ended, and was erased
				err = nil
			}
		}
		w.mu.Lock()
		if err != nil {
			for id := range changed {
				w.setLocked(&w.changed, id)
			}
			w.loaded = w.loaded && !all
			w.mu.Unlock()
			return fmt.Errorf("%s: %w", what, err)
		}
		if all {
			w.byID, w.same, w.count = map[string]waits{}, map[sameCall]map[string]bool{}, map[string]int{}
		}
		for id := range changed {
			w.removeLocked(id)
		}
		for _, c := range list {
			if c.Waiting() {
				w.addLocked(c)
			}
		}
	}
	return nil
}

// most is more than there can be.
const most = 1 << 30

// FindWaiting implements [store.Calls].
func (d Calls) FindWaiting(ctx context.Context, like store.Call) (found []store.Call, err error) {
	if err := d.refresh(ctx); err != nil {
		return nil, err
	}
	var ids []string
	for id := range d.index.same[sameAs(like)] {
		ids = append(ids, id)
	}
	d.index.mu.Unlock()
	slices.Sort(ids)
	for _, id := range slices.Backward(ids) {
		c, err := d.GetCall(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue // as in refresh
		}
		if err != nil {
			return nil, fmt.Errorf("reading call %s: %w", id, err)
		}
		if c.Waiting() && c.By == like.By && bytes.Equal(c.Args, like.Args) {
			found = append(found, c)
		}
	}
	return found, nil
}

// CountWaiting implements [store.Calls].
func (d Calls) CountWaiting(ctx context.Context, user string) (own, all int, err error) {
	if err := d.refresh(ctx); err != nil {
		return 0, 0, err
	}
	defer d.index.mu.Unlock()
	for _, id := range d.db.AllIDs(user) {
		own += d.index.count[id]
	}
	return own, len(d.index.byID), nil
}
