package bots

import (
	"context"
	"errors"
	"fmt"
	"strings"

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

// resume takes up what an earlier run showed, and returns the names of what is
// known to stand there.
func (s *screen) resume(ctx context.Context) (map[string]store.Address, error) {
	var places map[string]store.Address
	if s.c.o.Places != nil {
		var err error
		if places, err = s.c.o.Places.ListPlaces(ctx, s.thread); err != nil {
			return nil, fmt.Errorf("reading where messages stand: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed = true
	s.headed = places[headMark]
	for name, at := range places {
		if strings.HasPrefix(name, draftPrefix) {
			if s.drafts == nil {
				s.drafts = map[string]store.Address{}
			}
			s.drafts[name] = at
		}
	}
	return places, nil
}

// claim takes the draft of an earlier run that a text goes on with: its own,
// else one that is left.
func (s *screen) claim(id string) (name string, at store.Address, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name = draftPrefix + id
	if _, own := s.drafts[name]; !own {
		name = ""
		for other := range s.drafts {
			name = max(name, other)
		}
	}
	at, ok = s.drafts[name]
	delete(s.drafts, name)
	return name, at, ok
}

// placeText finds where a text stands that was shown before a restart, and the
// name under which that is noted.
func (s *screen) placeText(ctx context.Context, stored string, m store.Message) (noted string, at store.Address, ok bool, err error) {
	if s.c.o.Places == nil {
		return "", at, false, nil
	}
	intended := false // to be posted as what is stored
	if stored != "" {
		at, err = s.c.o.Places.GetPlace(ctx, s.thread, stored)
		intended = err == nil
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", at, false, fmt.Errorf("finding where a message stands: %w", err)
		}
		if intended && at.Message != "" {
			return stored, at, true, nil
		}
	}
	noted, draft, ok := s.claim(m.ID)
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
	at, stands, err := s.find(ctx, at, m)
	if err != nil && ok {
		s.unclaim(noted, draft)
	}
	if own := draftPrefix + m.ID; stands {
		s.movePlace(ctx, noted, own, at) // until all of it is there
		noted = own
	}
	return noted, at, stands, err
}

// unclaim leaves a draft to what comes next.
func (s *screen) unclaim(name string, at store.Address) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drafts[name] = at
}

// dropDrafts takes away what an earlier run began and nothing goes on with.
func (s *screen) dropDrafts(ctx context.Context) error {
	for {
		name, at, left := s.claim("")
		if !left {
			return nil
		}
		if err := s.dropDraft(ctx, name, at); err != nil {
			s.unclaim(name, at)
			return err
		}
	}
}

// dropDraft takes away one.
func (s *screen) dropDraft(ctx context.Context, name string, at store.Address) error {
	m := store.Message{ID: strings.TrimPrefix(name, draftPrefix), Kind: store.TextMessage, For: s.asked()}
	stands := at.Message != ""
	if !stands {
		var err error
		if at, stands, err = s.find(ctx, at, m); err != nil {
			return err
		}
	}
	if r, ok := s.platform.(Remover); ok && stands {
		if err := r.Remove(ctx, at, m); err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("taking away half an answer: %w", err)
		}
	}
	s.movePlace(ctx, name, "", at)
	return nil
}

// asked is whose message is being answered.
func (s *screen) asked() *store.Asker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asker
}
