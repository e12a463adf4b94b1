package slack

import (
	"context"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/wire"
	"nize/store"
)

// The line of an older assistant's thread ("is working…"). Slack takes it away
// after two minutes, and whenever the app posts there, so it is set again for as
// long as nize works. A start needs nothing of this: it presents every thread
// anew that was not at rest.

const (
	// lineTime is after how long a line is set again: well before Slack's two
	// minutes are over, also where it asks to wait.
	lineTime = 80 * time.Second
	// lineAgain is after how long it is set again where nize posted: several
	// posts in a row take one line away.
	lineAgain = 3 * time.Second
	// lineRetry is after how long it is tried again.
	lineRetry = 10 * time.Second
)

// statusLine is the line of one thread.
type statusLine struct {
	mu   sync.Mutex // held while it is set, so that what was set last is what stands there
	at   store.Address
	text string

	due time.Time // guarded by statusLines.mu
}

// statusLines are the lines that stand, by channel and thread.
type statusLines struct {
	mu   sync.Mutex // guards of and the due of each
	of   map[string]*statusLine
	poke chan struct{} // holds 1: a line is due sooner
}

// open is the line of a thread, made if there is none.
func (s *statusLines) open(at store.Address) *statusLine {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := at.Channel + "/" + at.Thread
	if s.of[key] == nil {
		s.of[key] = &statusLine{at: at}
	}
	return s.of[key]
}

// keep sees that a line is set again after d; drop that it is not.
func (s *statusLines) keep(line *statusLine, due time.Time) {
	s.mu.Lock()
	s.of[line.at.Channel+"/"+line.at.Thread] = line
	line.due = due
	s.mu.Unlock()
	s.wake()
}

func (s *statusLines) drop(line *statusLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, line.at.Channel+"/"+line.at.Thread)
}

// posted notes that nize posted in a thread, which took its line away.
func (s *statusLines) posted(at store.Address, now time.Time) {
	s.mu.Lock()
	line := s.of[at.Channel+"/"+at.Thread]
	sooner := line != nil && !line.due.IsZero() && line.due.After(now.Add(lineAgain))
	if sooner {
		line.due = now.Add(lineAgain)
	}
	s.mu.Unlock()
	if sooner {
		s.wake()
	}
}

func (s *statusLines) wake() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// next is the line that is due first, nil if there is none.
func (s *statusLines) next() (first *statusLine, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.of {
		if !line.due.IsZero() && (first == nil || line.due.Before(due)) {
			first, due = line, line.due
		}
	}
	return first, due
}

// keepLines sets lines again until ctx ends.
func (l *live) keepLines(ctx context.Context) {
	for ctx.Err() == nil {
		line, due := l.status.next()
		if line == nil {
			select {
			case <-l.status.poke:
			case <-ctx.Done():
			}
			continue
		}
		timer := time.NewTimer(due.Sub(l.b.o.Now()))
		select {
		case <-timer.C:
			l.setAgain(ctx, line)
		case <-l.status.poke:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// setAgain sets a line that is due, unless it was taken away meanwhile.
func (l *live) setAgain(ctx context.Context, line *statusLine) {
	line.mu.Lock()
	defer line.mu.Unlock()
	if line.text == "" {
		return // and keep made it nobody's
	}
	next := lineTime
	if err := l.setLine(ctx, line.at, line.text); err != nil {
		l.log.Debug("a thread's line is not set again", "channel", line.at.Channel, "err", err)
		if wire.Code(err) != "" {
			l.status.drop(line)
			return
		}
		next = lineRetry
	}
	l.status.keep(line, l.b.o.Now().Add(next))
}

func (l *live) setLine(ctx context.Context, at store.Address, text string) error {
	return l.wire.Call(ctx, func(ctx context.Context) error {
		return l.wire.API.SetAssistantThreadsStatusContext(ctx, slackgo.AssistantThreadsSetStatusParameters{ChannelID: at.Channel, ThreadTS: at.Thread, Status: text})
	})
}

// setAssistant sets the line and the title of an older assistant's thread.
// Other threads have neither, which Slack says with a code.
func (l *live) setAssistant(ctx context.Context, to store.Address, s bots.State, th store.Thread) error {
	if to.Channel == "" || to.Channel[0] != 'D' {
		return nil
	}
	err := l.presentLine(ctx, to, s, th)
	if err == nil && th.Title != "" && l.stages.first(to.Channel+"/"+to.Thread) {
		err = l.wire.Call(ctx, func(ctx context.Context) error {
			return l.wire.API.SetAssistantThreadsTitleContext(ctx, slackgo.AssistantThreadsSetTitleParameters{ChannelID: to.Channel, ThreadTS: to.Thread, Title: th.Title})
		})
	}
	if wire.Code(err) != "" {
		return nil
	}
	return err
}

// presentLine sets the line while nize works, and takes it away when not. What
// did not get there is tried again by who presents.
func (l *live) presentLine(ctx context.Context, to store.Address, s bots.State, th store.Thread) error {
	line := l.status.open(to)
	line.mu.Lock()
	defer line.mu.Unlock()
	line.text = ""
	if s == bots.Working {
		line.text = phrases.For(th.Locale).Say(phrases.Working)
	}
	if line.text == "" {
		l.status.drop(line)
		return l.setLine(ctx, to, "")
	}
	if err := l.setLine(ctx, to, line.text); err != nil {
		l.status.drop(line)
		return err
	}
	l.status.keep(line, l.b.o.Now().Add(lineTime))
	return nil
}
