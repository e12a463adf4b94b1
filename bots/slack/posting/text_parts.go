package posting

import (
	"context"
	"fmt"

	"nize/store"
)

// notePart records the place of the next message of a text, before it is posted and after.
// The caller of showText records the first one.
func (tx *texts) notePart(ctx context.Context, at store.Address, t *writing, ts string) {
	n := len(t.parts)
	if n == 0 {
		return
	}
	at.Message = ts
	tx.messages.sent.NotePart(ctx, at, t.id, t.parts[0].ts, n)
}

// partsAt returns the messages of a text that an earlier run wrote, beginning with
// at.Message. Their contents are unknown.
func (tx *texts) partsAt(ctx context.Context, at store.Address, text string) (parts []part, err error) {
	list, err := tx.messages.sent.Parts(ctx, at, text)
	for _, ts := range list {
		parts = append(parts, part{ts: ts})
	}
	return parts, err
}

// Remove deletes a text, see [outbox.Remover].
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

// deletePartsFrom deletes the messages of a text from the nth on, the last one first.
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

// addLostPart adds the message that was begun after a text's last known one, if its post
// got no response but succeeded.
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
