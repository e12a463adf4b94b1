package posting

import (
	"context"
	"fmt"

	"nize/store"
)

// notePart notes where the next message of a text stands, before it is posted
// and after. The first one is noted by who shows the text.
func (tx *texts) notePart(ctx context.Context, at store.Address, t *writing, ts string) {
	n := len(t.parts)
	if n == 0 {
		return
	}
	at.Message = ts
	tx.messages.sent.NotePart(ctx, at, t.id, t.parts[0].ts, n)
}

// partsAt are the messages of a text that an earlier run wrote, the first one
// at at.Message. What they say is not known.
func (tx *texts) partsAt(ctx context.Context, at store.Address, text string) (parts []part, err error) {
	list, err := tx.messages.sent.Parts(ctx, at, text)
	for _, ts := range list {
		parts = append(parts, part{ts: ts})
	}
	return parts, err
}

// Remove takes a text away, see [outbox.Remover].
func (tx *texts) Remove(ctx context.Context, at store.Address, m store.Message) error {
	parts, err := tx.partsAt(ctx, at, m.ID)
	if err != nil {
		return err
	}
	t := &writing{parts: parts, open: true}
	if err := tx.closeStream(ctx, at, t, false); err != nil && !t.dirty {
		return err
	}
	t.id = m.ID
	return tx.deletePartsFrom(ctx, at, t, 0)
}

// deletePartsFrom deletes the messages of a text from the nth on, the last first.
func (tx *texts) deletePartsFrom(ctx context.Context, at store.Address, t *writing, n int) error {
	for len(t.parts) > n {
		last := len(t.parts) - 1
		if err := tx.messages.deleteMessage(ctx, at, t.parts[last].ts); err != nil {
			return err
		}
		if last > 0 {
			if err := tx.messages.sent.DropPart(ctx, at, t.id, t.parts[0].ts, last); err != nil {
				return fmt.Errorf("forgetting a part of an answer: %w", err)
			}
		}
		t.parts = t.parts[:last]
	}
	return nil
}

// addLostPart adds to a text the message that was begun after its last one, if
// nobody knows whether it got there and it did.
func (tx *texts) addLostPart(ctx context.Context, at store.Address, t *writing) error {
	id := partID(t.id, len(t.parts))
	ts, lost, err := tx.messages.sent.Lost(ctx, at, id)
	if err != nil || !lost {
		return err
	}
	tx.messages.sent.Settle(at, id, ts)
	if ts != "" {
		t.parts = append(t.parts, part{ts: ts})
	}
	return nil
}
