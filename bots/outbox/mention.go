package outbox

import (
	"context"
	"strconv"
	"time"

	"nize/bots/phrases"
	"nize/store"
)

// Mentioner is implemented by a [Platform] whose readers aren't always watching: if an
// answer took long, or became possible through another person's approval, it mentions the
// requester. See [store.Message.Mention].
type Mentioner interface {
	// Mentions reports whether that is so in a thread.
	Mentions(in store.Address) bool
}

// lateAnswer is the time after which the requester is assumed to have stopped watching.
const lateAnswer = time.Minute

// mention is the state of a screen's mentions. A person is mentioned once, and once more if
// a card made them wait again.
type mention struct {
	others bool // another person decided a call
	done   bool
}

// headMark is the name under which a conversation records, before the post, that a text
// begins with a mention, so that the requester isn't mentioned again after a crash. A
// separate line after an answer needs no record, because it is found by its id. The address
// has the text in Thread and the asker in Message.
const headMark = "mentioned"

// markOf returns the requester's form in such a record.
func markOf(a *store.Asker) string {
	if a == nil {
		return ""
	}
	return a.User + " " + strconv.FormatInt(a.At.UnixNano(), 10)
}

// mark records that the text called name is about to mention the requester.
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

// unmark deletes that record, since a card made the requester wait again.
func (s *Screen) unmark(ctx context.Context) {
	s.mu.Lock()
	had := s.headed.Message != ""
	s.headed = store.Address{}
	s.mu.Unlock()
	if had {
		s.ledger.movePlace(ctx, headMark, "", store.Address{})
	}
}

// dueLocked reports whether the requester should be mentioned now; s.mu is held.
func (s *Screen) dueLocked() bool {
	p, ok := s.Platform.(Mentioner)
	if !ok || s.mention.done || s.asker == nil || s.asker.At.IsZero() || !p.Mentions(s.To) {
		return false
	}
	return s.mention.others || s.o.Now().Sub(s.asker.At) > lateAnswer
}

// headsLocked reports whether a new text should begin with a mention; s.mu is held. A text
// that continues a draft doesn't, since platforms send no notification for an edit.
func (s *Screen) headsLocked(m store.Message) bool {
	if m.Kind != store.TextMessage || m.For != s.asker {
		return false
	}
	drafts, goesOn := s.drafts.left(s.headed.Thread)
	if goesOn && drafts == 1 && s.headed.Message == markOf(s.asker) {
		return true // the posted text has the mention and keeps it
	}
	if drafts > 0 || !s.dueLocked() {
		return false
	}
	s.mention.done = true
	return true
}

// Decided records who decided a call.
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

// Answered mentions the requester in a separate line if the answer's text began too early
// for a mention; turn is the answer's id, and only is its only reader, if it has one.
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

// AnsweredBefore does the same for an answer posted by an earlier run, which may have ended
// before it mentioned the requester.
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

// mentionPrefix is the prefix of the ids of messages that mention the requester.
const mentionPrefix = "mention/"
