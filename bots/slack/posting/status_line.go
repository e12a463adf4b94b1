package posting

import (
	"context"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/bots/queue"
	"nize/bots/slack/wire"
	"nize/store"
)

// The status line of an older assistant thread ("is working…"). Slack removes it after two
// minutes and whenever the app posts, so it is set again as long as nize works. Nothing is
// needed after a restart, which presents every active thread again.

const (
	// lineTime is how often the line is set again: well within Slack's two minutes, even if
	// Slack asks to wait.
	lineTime = 80 * time.Second
	// lineAgain is the delay before the line is set again after a post: several posts in a
	// row remove only one line.
	lineAgain = 3 * time.Second
	// lineRetry is the delay before a retry.
	lineRetry = 10 * time.Second
)

// statusLine is the line of one thread.
type statusLine struct {
	mu   sync.Mutex // held while the line is set, so that the last value set is the one shown
	at   store.Address
	text string
}

// statusLines are the current lines, keyed by channel and thread.
type statusLines struct {
	again *queue.Queue[string] // schedule of when each is set again

	mu sync.Mutex // guards the fields below
	of map[string]*statusLine
}

func lineKey(at store.Address) string { return at.Channel + "/" + at.Thread }

// open returns the line of a thread, creating it if needed.
func (s *statusLines) open(at store.Address) *statusLine {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.of[lineKey(at)]
	if line == nil {
		line = &statusLine{at: at}
		s.of[lineKey(at)] = line
	}
	return line
}

// keep schedules the time at which a line is set again; drop cancels it.
func (s *statusLines) keep(line *statusLine, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[lineKey(line.at)] = line
	s.again.Set(lineKey(line.at), due)
}

func (s *statusLines) drop(line *statusLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, lineKey(line.at))
	s.again.Drop(lineKey(line.at))
}

// posted records that nize posted in a thread, which removed its line.
func (s *statusLines) posted(at store.Address, now time.Time) {
	if _, stands := s.again.Due(lineKey(at)); stands {
		s.again.Advance(lineKey(at), now.Add(lineAgain))
	}
}

// KeepStatusLines sets lines again until ctx ends.
func (pr *presence) KeepStatusLines(ctx context.Context) {
	pr.status.again.Run(ctx, 1, func(ctx context.Context, key string) {
		pr.status.mu.Lock()
		line := pr.status.of[key]
		pr.status.mu.Unlock()
		if line != nil {
			pr.setAgain(ctx, line)
		}
	})
}

// setAgain sets a line that is due, unless it was removed in the meantime.
func (pr *presence) setAgain(ctx context.Context, line *statusLine) {
	line.mu.Lock()
	defer line.mu.Unlock()
	if line.text == "" {
		return // and keep has dropped it
	}
	next := lineTime
	if err := pr.setLine(ctx, line.at, line.text); err != nil {
		pr.messages.log.Debug("a thread's line is not set again", "channel", line.at.Channel, "err", err)
		if wire.Code(err) != "" {
			pr.status.drop(line)
			return
		}
		next = lineRetry
	}
	pr.status.keep(line, pr.messages.now().Add(next))
}

func (pr *presence) setLine(ctx context.Context, at store.Address, text string) error {
	return pr.messages.wire.Call(ctx, func(ctx context.Context) error {
		return pr.messages.wire.API.SetAssistantThreadsStatusContext(ctx, slackgo.AssistantThreadsSetStatusParameters{ChannelID: at.Channel, ThreadTS: at.Thread, Status: text})
	})
}

// setAssistant sets the line and the title of an older assistant thread. Other threads have
// neither; Slack returns an error code for them.
func (pr *presence) setAssistant(ctx context.Context, to store.Address, s outbox.State, th store.Thread) error {
	if to.Channel == "" || to.Channel[0] != 'D' {
		return nil
	}
	err := pr.presentLine(ctx, to, s, th)
	if err == nil && th.Title != "" && pr.newTitle(to.Channel+"/"+to.Thread, th.Title) {
		err = pr.messages.wire.Call(ctx, func(ctx context.Context) error {
			return pr.messages.wire.API.SetAssistantThreadsTitleContext(ctx, slackgo.AssistantThreadsSetTitleParameters{ChannelID: to.Channel, ThreadTS: to.Thread, Title: th.Title})
		})
	}
	if wire.Code(err) != "" {
		return nil
	}
	return err
}

// presentLine sets the line while nize works, and removes it otherwise. The caller of
// Present retries failures.
func (pr *presence) presentLine(ctx context.Context, to store.Address, s outbox.State, th store.Thread) error {
	line := pr.status.open(to)
	line.mu.Lock()
	defer line.mu.Unlock()
	line.text = ""
	if s == outbox.Working {
		line.text = phrases.For(th.Locale).Say(phrases.Working)
	}
	if line.text == "" {
		pr.status.drop(line)
		return pr.setLine(ctx, to, "")
	}
	if err := pr.setLine(ctx, to, line.text); err != nil {
		pr.status.drop(line)
		return err
	}
	pr.status.keep(line, pr.messages.now().Add(lineTime))
	return nil
}
