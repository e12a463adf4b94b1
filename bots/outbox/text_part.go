package outbox

import (
	"context"
	"strconv"
	"time"

	"nize/store"
)

// A long text is split into several messages. The caller records the place of the first;
// the others are recorded here, under names that contain the first one's place.

// noteTime limits how long recording a place may take, also during a shutdown.
const noteTime = 5 * time.Second

// partName returns the name under which the nth message of a text is recorded.
func partName(first string, n int) string { return "part/" + first + "/" + strconv.Itoa(n) }

// NotePart records the place of the nth message of a text that begins with first; at has no
// message before it is posted. ctx may have ended.
func (s *Sent) NotePart(ctx context.Context, at store.Address, text, first string, n int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	owner, err := s.owner(ctx, at, text)
	if err == nil && owner != "" {
		err = s.store.PutPlace(ctx, owner, partName(first, n), at)
	}
	if err != nil {
		s.log.Error("noting where a part of an answer stands", "err", err)
	}
}

// DropPart deletes the record of the nth message of a text.
func (s *Sent) DropPart(ctx context.Context, at store.Address, text, first string, n int) error {
	owner, err := s.owner(ctx, at, text)
	if err != nil || owner == "" {
		return err
	}
	return s.store.MovePlace(ctx, owner, partName(first, n), "", at)
}

// Parts returns the messages of a text that an earlier run posted, beginning with
// at.Message. Their contents are unknown.
func (s *Sent) Parts(ctx context.Context, at store.Address, text string) ([]string, error) {
	parts := []string{at.Message}
	places, err := s.places(ctx, at, text)
	if err != nil {
		return nil, err
	}
	for {
		p, ok := places[partName(at.Message, len(parts))]
		if !ok {
			return parts, nil
		}
		if p.Message == "" { // it was about to be posted
			known := named(places)
			p.Message, err = s.findBefore(ctx, at, time.Time{}, at.Message, text, func(m SentMessage) bool { return m.Text && !known[m.ID] })
			if err != nil {
				return nil, err
			}
			if p.Message == "" {
				return parts, nil
			}
			to := at
			to.Message = p.Message
			s.NotePart(ctx, to, text, at.Message, len(parts))
			places[partName(at.Message, len(parts))] = p
		}
		parts = append(parts, p.Message)
	}
}
