package botstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"nize/bots"
	"nize/bots/outbox"
	"nize/store"
)

// errKilled replaces responses that a dying process would not have received.
var errKilled = errors.New("killed")

// lasting is a platform whose messages persist, so that the next process can find them.
type lasting interface {
	bots.Platform
	outbox.Presence
	outbox.Finder
	outbox.Remover
	outbox.ImagePoster
}

// dying is a platform whose process dies right after its nth post or update: that arrived,
// but its response was lost. Nothing is sent afterwards.
type dying struct {
	lasting
	died chan struct{}

	mu   sync.Mutex // guards left
	left int        // requests left until then
}

func newDying(p lasting, n int) *dying { return &dying{lasting: p, died: make(chan struct{}), left: n} }

// next reports whether a request is still sent, and whether it is the last one.
func (d *dying) next() (sent, last bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left--
	return d.left >= 0, d.left == 0
}

func (d *dying) send(do func() error) error {
	sent, last := d.next()
	if !sent {
		return errKilled
	}
	err := do()
	if last {
		close(d.died)
		return errKilled
	}
	return err
}

// Post implements bots.Platform.
func (d *dying) Post(ctx context.Context, to store.Address, m store.Message) (at store.Address, err error) {
	at = to
	err = d.send(func() (err error) {
		at, err = d.lasting.Post(ctx, to, m)
		return err
	})
	if errors.Is(err, errKilled) {
		return to, err
	}
	return at, err
}

// Update implements bots.Platform.
func (d *dying) Update(ctx context.Context, at store.Address, m store.Message) error {
	return d.send(func() error { return d.lasting.Update(ctx, at, m) })
}

// Present implements outbox.Presence.
func (d *dying) Present(ctx context.Context, to store.Address, s outbox.State) error {
	d.mu.Lock()
	dead := d.left <= 0
	d.mu.Unlock()
	if dead {
		return errKilled
	}
	return d.lasting.Present(ctx, to, s)
}

// Find implements outbox.Finder.
func (d *dying) Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error) {
	return d.lasting.Find(ctx, in, m)
}

// Remove implements outbox.Remover.
func (d *dying) Remove(ctx context.Context, at store.Address, m store.Message) error {
	return d.send(func() error { return d.lasting.Remove(ctx, at, m) })
}

// testKilled checks that the next process completes the thread, wherever a process dies:
// the answer once, no partial answer, each card and result once, and the current state.
func testKilled(t *testing.T, h *fixture) {
	p, ok := h.platform.(lasting)
	if !ok {
		t.Skip("nothing stays on this platform")
	}
	defer func() { h.platform = p }()
	for i, test := range []struct{ say, answer string }{
		{"say the whole of it", "the whole of it"},
		{"cut half of what | another answer", "another answer"},
		{"cut half of what | -", ""}, // this time it says nothing
		{"fail", "The provider is out."},
		{"call toolbox:chart {}", "toolbox:chart is done"},
	} {
		for n := range 5 {
			h.killedOnce(fmt.Sprintf("k%d-%d", i, n), test.say, test.answer, n)
		}
	}
}

// killedOnce lets the process die after n posts and updates of a turn.
func (h *fixture) killedOnce(key, say, answer string, n int) {
	h.t.Helper()
	before, err := h.See(h.t.Context(), func([]store.Message) bool { return true })
	if err != nil {
		h.t.Fatal(err)
	}
	h.stop()
	p := h.platform.(lasting)
	d := newDying(p, n)
	h.platform = d
	h.start()
	h.say(key, say)
	h.until("the process dies", func() bool {
		select {
		case <-d.died:
			return h.said() // the platform redelivers an unaccepted message
		default:
			// Some turns end before that many requests.
			return n == 0 && h.said() || h.caughtUp() || h.half(say)
		}
	})
	h.stop()
	h.platform = p
	h.agentAgain = true
	h.start()
	h.agentAgain = false
	if strings.HasPrefix(say, "call") {
		card := h.see("the card", func(m store.Message) bool {
			return m.Kind == store.CardMessage && (m.Card.State == store.Pending || m.Card.State == store.Done) && !shows(before, m)
		}).Card
		if card.State == store.Pending {
			if err := h.press(card.Call, store.Decision{Verb: store.Approve, Digest: card.Digest}); err != nil && !errors.Is(err, store.ErrDecided) {
				h.t.Fatalf("%s %d: %v", say, n, err)
			}
		}
	}
	h.until("the chat has everything", h.caughtUp)
	after, err := h.See(h.t.Context(), func([]store.Message) bool { return true })
	if err != nil {
		h.t.Fatal(err)
	}
	answers, texts, cards, images := 0, 0, 0, 0
	for _, m := range after {
		switch {
		case shows(before, m):
			continue
		case m.Kind == store.CardMessage:
			cards++
		case m.Kind == store.TextMessage:
			texts++
		case m.Kind == store.ImagesMessage:
			images++
		}
		if strings.TrimSpace(m.Text) == answer && answer != "" {
			answers++
		}
		if m.Kind == store.TextMessage && !m.Final {
			h.t.Errorf("%q, killed after %d: left unfinished: %+v", say, n, m)
		}
	}
	want := 1
	if answer == "" {
		want = 0
	}
	wantImages := strings.Count(say, "chart")
	if answers != want || texts > want || cards > 1 || images != wantImages {
		h.t.Errorf("%q, killed after %d: %d answers, %d texts, %d cards, %d images: %+v", say, n, answers, texts, cards, images, after[min(len(before), len(after)):])
	}
}

// shows reports whether before contains the message.
func shows(before []store.Message, m store.Message) bool {
	for _, b := range before {
		if b.ID == m.ID {
			return true
		}
	}
	return false
}

// said reports whether every message is stored as a turn.
func (h *fixture) said() bool {
	turns, err := h.db.Turns(h.t.Context(), h.thread)
	n := 0
	for _, t := range turns {
		if t.Role == store.FromUser {
			n++
		}
	}
	return err == nil && n == h.asked
}

// caughtUp reports whether everything is answered and shown.
func (h *fixture) caughtUp() bool {
	behind, err := h.db.LaggingThreads(h.t.Context())
	return err == nil && len(behind) == 0 && h.said()
}

// half reports whether all of a text that will be cut is shown.
func (h *fixture) half(say string) bool {
	text, _, cut := strings.Cut(strings.TrimPrefix(say, "cut "), " | ")
	shown, err := h.See(h.t.Context(), func([]store.Message) bool { return true })
	return cut && err == nil && slices.ContainsFunc(shown, func(m store.Message) bool { return strings.TrimSpace(m.Text) == text })
}

// until calls ask until it returns true.
func (h *fixture) until(what string, ask func() bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	for !ask() {
		if ctx.Err() != nil {
			shown, _ := h.See(ctx, func([]store.Message) bool { return true })
			h.t.Fatalf("waiting until %s: %v; shown: %+v", what, ctx.Err(), shown)
		}
	}
}

// testAway checks that messages refused by the platform for longer than a process lives are
// shown by the next one, once.
func testAway(t *testing.T, h *fixture) {
	p, ok := h.platform.(lasting)
	if !ok {
		t.Skip("nothing stays on this platform")
	}
	h.stop()
	h.platform = newDying(p, 0)
	h.start()
	h.say("a1", "say first")
	h.say("a2", "fail")
	h.say("a3", "say third")
	h.until("all is stored", func() bool {
		open, err := h.db.Open(t.Context())
		turns, turnsErr := h.db.Turns(t.Context(), h.thread)
		return err == nil && turnsErr == nil && len(open) == 0 && len(turns) == 6
	})
	for range 2 { // the second time nothing is missing
		h.stop()
		h.platform = p
		h.start()
		h.until("the chat has everything", h.caughtUp)
		shown, err := h.See(t.Context(), func([]store.Message) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range shown {
			got = append(got, strings.TrimSpace(m.Text))
		}
		if s := strings.Join(got, "; "); s != "first; The provider is out.; third" {
			t.Errorf("the chat says %s", s)
		}
	}
}
