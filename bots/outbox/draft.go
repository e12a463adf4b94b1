package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"nize/store"
)

// A text is shown before it is stored, so a process that dies leaves half of it
// in the chat. Until all of it stands there it is a draft, and its place is
// noted as one; then it is noted as that of the turn, and the draft is no more.
// A note without a place says that it was about to be posted. After a restart
// the first text goes on in the draft's place, whatever it is called then, and
// anything else that is shown first takes it away.

// draftPrefix heads the names under which the places of drafts are noted.
const draftPrefix = "draft/"

// drafts are those of one thread that an earlier run left.
type drafts struct {
	ledger *ledger

	mu sync.Mutex // guards of; taken while the screen's is held, never before
	of map[string]store.Address
}

// take takes up the drafts among places.
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

// left says how many there are, and whether that is one of them.
func (d *drafts) left(name string) (n int, is bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, is = d.of[name]
	return len(d.of), is
}

// claim takes the draft of an earlier run that a text goes on with: its own,
// else one that is left.
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

// placeText finds where a text stands that was shown before a restart, and the
// name under which that is noted.
func (d *drafts) placeText(ctx context.Context, stored string, m store.Message) (noted string, at store.Address, ok bool, err error) {
	if d.ledger.places == nil {
		return "", at, false, nil
	}
	intended := false // to be posted as what is stored
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
		d.ledger.movePlace(ctx, noted, own, at) // until all of it is there
		noted = own
	}
	return noted, at, stands, err
}

// unclaim leaves a draft to what comes next.
func (d *drafts) unclaim(name string, at store.Address) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of[name] = at
}

// dropDrafts takes away what an earlier run began and nothing goes on with.
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

// dropDraft takes away one.
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
