package outbox

import (
	"context"
	"strconv"
	"time"

	"nize/bots/phrases"
	"nize/store"
)

// Mentioner is what a [Platform] implements too where a person does not read
// along all the time: an answer that took long, or that somebody else's yes
// made possible, mentions who asked. See [store.Message.Mention].
type Mentioner interface {
	// Mentions says whether that is so in a thread.
	Mentions(in store.Address) bool
}

// lateAnswer is after how long who asked does not wait any more.
const lateAnswer = time.Minute

// mention is who of a screen is to be mentioned, and whether that was done. A
// person is mentioned once, and once more after a card made them wait again.
type mention struct {
	others bool // somebody else decided about a call
	done   bool
}

// headMark is the name under which it is noted, with a conversation, that a text
// is headed by a mention, before it is posted: after a crash who asked is not
// mentioned a second time. A line after an answer needs none: it is found again
// by its id. The address names the text in Thread and the asker in Message.
const headMark = "mentioned"

// markOf is how a mark names who asked.
func markOf(a *store.Asker) string {
	if a == nil {
		return ""
	}
	return a.User + " " + strconv.FormatInt(a.At.UnixNano(), 10)
}

// mark notes that the text of that name is about to mention who asked.
func (s *Screen) mark(ctx context.Context, name string, m store.Message) {
	if !m.Mention || m.Kind != store.TextMessage {
		return
	}
	at := s.To
	at.Thread, at.Message = name, markOf(m.For)
	s.mu.Lock()
	s.headed = at
	s.mu.Unlock()
	s.ledger.notePlace(ctx, headMark, at)
}

// unmark forgets that, since a card made them wait again.
func (s *Screen) unmark(ctx context.Context) {
	s.mu.Lock()
	had := s.headed.Message != ""
	s.headed = store.Address{}
	s.mu.Unlock()
	if had {
		s.ledger.movePlace(ctx, headMark, "", store.Address{})
	}
}

// dueLocked says whether who asked is to be mentioned now; s.mu is held.
func (s *Screen) dueLocked() bool {
	p, ok := s.Platform.(Mentioner)
	if !ok || s.mention.done || s.asker == nil || s.asker.At.IsZero() || !p.Mentions(s.To) {
		return false
	}
	return s.mention.others || s.o.Now().Sub(s.asker.At) > lateAnswer
}

// heads says whether a text that begins now is headed by a mention; s.mu is
// held. One that goes on with a draft is not: nobody is told of an edit.
func (s *Screen) headsLocked(m store.Message) bool {
	if m.Kind != store.TextMessage || m.For != s.asker {
		return false
	}
	drafts, goesOn := s.drafts.left(s.headed.Thread)
	if goesOn && drafts == 1 && s.headed.Message == markOf(s.asker) {
		return true // it stands there, and stays
	}
	if drafts > 0 || !s.dueLocked() {
		return false
	}
	s.mention.done = true
	return true
}

// Decided notes who decided about a call.
func (s *Screen) Decided(c store.Call) {
	for _, d := range c.Decisions {
		by := d.By != "" && d.By != c.By && d.By != store.System.User
		if by && (d.Verb == store.Approve || d.Verb == store.Deny || d.Verb == store.RunAll) {
			s.mu.Lock()
			s.mention.others = true
			s.mu.Unlock()
		}
	}
}

// Answered tells who asked that the answer is there, where its text began too
// early for a mention; turn is the answer's id, only who alone may read it.
func (s *Screen) Answered(turn, only string) {
	s.mu.Lock()
	due := s.dueLocked()
	s.mention.done = s.mention.done || due
	s.mu.Unlock()
	if due {
		s.tellAnswered(turn, only)
	}
}

func (s *Screen) tellAnswered(turn, only string) {
	s.Put(store.Message{
		ID: mentionPrefix + turn, Kind: store.NoticeMessage, Mention: true, Final: true,
		Text: s.Words().Say(phrases.AnswerReady), Only: only,
	})
}

// AnsweredBefore does so for an answer that stands there since an earlier run,
// which may have ended before it told.
func (s *Screen) AnsweredBefore(turn store.Turn, placed map[string]store.Address) {
	id := store.TurnID(turn.Thread, turn.N)
	if turn.Role != store.FromModel || len(turn.Calls) > 0 || placed[mentionPrefix+id].Message != "" {
		return
	}
	s.mu.Lock()
	due := s.dueLocked() && (s.mention.others || turn.At.Sub(s.asker.At) > lateAnswer)
	s.mention.done = s.mention.done || due
	s.mu.Unlock()
	if due {
		s.tellAnswered(id, turn.For)
	}
}

// mentionPrefix heads the ids of messages that mention who asked.
const mentionPrefix = "mention/"
