package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"nize/store"
)

// A text is shown before it is stored, so a process that dies leaves a partial text in the
// chat. Until the text is complete it is a draft, and its place is recorded as a draft's;
// then the place is recorded as the turn's. A record without a message means that the draft
// was about to be posted. After a restart, the first text reuses the draft's message,
// whatever its id is then; anything else that is shown first deletes the draft.

// draftPrefix is the prefix of the names under which the places of drafts are recorded.
const draftPrefix = "draft/"

// drafts are the drafts that an earlier run left in one thread.
type drafts struct {
	ledger *ledger

	mu sync.Mutex // guards the fields below; may be locked while the screen's is held, never before it
	of map[string]store.Address
}

// take loads the drafts among places.
func (d *drafts) take(places map[string]store.Address) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, at := range places {
		if strings.HasPrefix(name, draftPrefix) {
			if d.of == nil {
				d.of = map[string]store.Address{}
			}
			d.of[name] = at
		}
	}
}

// left returns how many drafts there are, and whether name is one of them.
func (d *drafts) left(name string) (n int, is bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, is = d.of[name]
	return len(d.of), is
}

// claim takes the earlier run's draft that a text continues: its own if there is one,
// otherwise any.
func (d *drafts) claim(id string) (name string, at store.Address, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name = draftPrefix + id
	if _, own := d.of[name]; !own {
		name = ""
		for other := range d.of {
			name = max(name, other)
		}
	}
	at, ok = d.of[name]
	delete(d.of, name)
	return name, at, ok
}

// placeText returns where a text was shown before a restart, and the name under which that
// place is recorded.
func (d *drafts) placeText(ctx context.Context, stored string, m store.Message) (noted string, at store.Address, ok bool, err error) {
	if d.ledger.places == nil {
		return "", at, false, nil
	}
	intended := false // about to be posted under its stored name
	if stored != "" {
		at, err = d.ledger.places.GetPlace(ctx, d.ledger.thread, stored)
		intended = err == nil
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", at, false, fmt.Errorf("finding where a message stands: %w", err)
		}
		if intended && at.Message != "" {
			return stored, at, true, nil
		}
	}
	noted, draft, ok := d.claim(m.ID)
	switch {
	case ok && draft.Message != "":
		return noted, draft, true, nil
	case ok:
		at = draft
	case intended:
		noted = stored
	default:
		return "", at, false, nil
	}
	at, stands, err := d.ledger.find(ctx, at, m)
	if err != nil && ok {
		d.unclaim(noted, draft)
	}
	if own := draftPrefix + m.ID; stands {
		d.ledger.movePlace(ctx, noted, own, at) // until the text is complete
		noted = own
	}
	return noted, at, stands, err
}

// unclaim gives a draft back for the next text.
func (d *drafts) unclaim(name string, at store.Address) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of[name] = at
}

// dropDrafts deletes the drafts that no text continues.
func (d *drafts) dropDrafts(ctx context.Context, asker *store.Asker) error {
	for {
		name, at, left := d.claim("")
		if !left {
			return nil
		}
		if err := d.dropDraft(ctx, asker, name, at); err != nil {
			d.unclaim(name, at)
			return err
		}
	}
}

// dropDraft deletes one draft.
func (d *drafts) dropDraft(ctx context.Context, asker *store.Asker, name string, at store.Address) error {
	m := store.Message{ID: strings.TrimPrefix(name, draftPrefix), Kind: store.TextMessage, For: asker}
	stands := at.Message != ""
	if !stands {
		var err error
		if at, stands, err = d.ledger.find(ctx, at, m); err != nil {
			return err
		}
	}
	if r, ok := d.ledger.platform.(Remover); ok && stands {
		if err := r.Remove(ctx, at, m); err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("taking away half an answer: %w", err)
		}
	}
	d.ledger.movePlace(ctx, name, "", at)
	return nil
}
