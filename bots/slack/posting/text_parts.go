package posting

import (
	"context"
	"fmt"
	"strconv"

	"nize/bots/slack/view"
	"nize/store"
)

// partName is the name under which a further message of a text is noted, by
// the place of its first one.
func partName(first string, n int) string { return "part/" + first + "/" + strconv.Itoa(n) }

// notePart notes where the next message of a text stands, before it is posted
// and after. The first one is noted by who shows the text.
func (s *texts) notePart(ctx context.Context, at store.Address, t *writing, ts string) {
	n := len(t.parts)
	if n == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	owner, err := s.messages.ownerOf(ctx, at, t.id)
	if err == nil && owner != "" {
		at.Message = ts
		err = s.messages.store.PutPlace(ctx, owner, partName(t.parts[0].ts, n), at)
	}
	if err != nil {
		s.messages.log.Error("noting where a part of an answer stands", "err", err)
	}
}

// partsAt are the messages of a text that an earlier run wrote, the first one
// at at.Message. What they say is not known.
func (s *texts) partsAt(ctx context.Context, at store.Address, text string) ([]part, error) {
	parts := []part{{ts: at.Message}}
	places, err := s.messages.placesOf(ctx, at, text)
	if err != nil {
		return nil, err
	}
	for {
		p, ok := places[partName(at.Message, len(parts))]
		if !ok {
			return parts, nil
		}
		if p.Message == "" { // it was about to be posted
			if p.Message, err = s.unknownText(ctx, at, places); err != nil {
				return nil, err
			}
			if p.Message == "" {
				return parts, nil
			}
			s.notePart(ctx, at, &writing{id: text, parts: parts}, p.Message)
			places[partName(at.Message, len(parts))] = p
		}
		parts = append(parts, part{ts: p.Message})
	}
}

// unknownText is a text in a thread, newer than at.Message, that no place is
// noted of.
func (s *texts) unknownText(ctx context.Context, at store.Address, places map[string]store.Address) (string, error) {
	list, err := s.messages.List(ctx, at, at.Message)
	if err != nil {
		return "", err
	}
	known := namedBy(places)
	for _, m := range list {
		if m.User == s.messages.self && m.Timestamp > at.Message && view.IsText(m) && !known[m.Timestamp] {
			return m.Timestamp, nil
		}
	}
	return "", nil
}

// Remove takes a text away, see [bots.Remover].
func (s *texts) Remove(ctx context.Context, at store.Address, m store.Message) error {
	parts, err := s.partsAt(ctx, at, m.ID)
	if err != nil {
		return err
	}
	t := &writing{parts: parts, open: true}
	if err := s.closeStream(ctx, at, t, false); err != nil && !t.dirty {
		return err
	}
	t.id = m.ID
	return s.unpostFrom(ctx, at, t, 0)
}

// unpostFrom deletes the messages of a text from the nth on, the last first.
func (s *texts) unpostFrom(ctx context.Context, at store.Address, t *writing, n int) error {
	for len(t.parts) > n {
		last := len(t.parts) - 1
		if err := s.messages.unpost(ctx, at, t.parts[last].ts); err != nil {
			return err
		}
		if last > 0 {
			owner, err := s.messages.ownerOf(ctx, at, t.id)
			if err == nil && owner != "" {
				err = s.messages.store.MovePlace(ctx, owner, partName(t.parts[0].ts, last), "", at)
			}
			if err != nil {
				return fmt.Errorf("forgetting a part of an answer: %w", err)
			}
		}
		t.parts = t.parts[:last]
	}
	return nil
}

// takeLost adds to a text the message that was begun after its last one, if
// nobody knows whether it got there and it did.
func (s *texts) takeLost(ctx context.Context, at store.Address, t *writing) error {
	u := &s.messages.unsure
	id := partID(t.id, len(t.parts))
	u.mu.Lock()
	since, lost := u.since[unsureKey(at, id)]
	u.mu.Unlock()
	if !lost {
		return nil
	}
	ts, err := s.messages.found(ctx, at, id, since)
	if err != nil {
		return err
	}
	u.settled(unsureKey(at, id), ts)
	if ts != "" {
		t.parts = append(t.parts, part{ts: ts})
	}
	return nil
}
