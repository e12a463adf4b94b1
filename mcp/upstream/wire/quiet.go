package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"time"

	"nize/store"
)

// A server that writes text to standard output while it is asked something may only
// be chatty, and the text is skipped. If nothing follows, the text was all that it had
// to say, and waiting for the whole timeout is of no use: the request fails a part of
// its time after the text. A text that names a failure or a mistake of how the command
// was started is waited on for half as long as others. Whatever the server does
// meanwhile begins that wait anew: another text, a line on standard error, a
// notification. The calls of a server that has answered one behind such text are
// waited for to their end.

// minQuiet is the least time in which a server may say nothing more.
const minQuiet = 3 * time.Second

// complaint finds text in which a program says that it can't go on, or that it is
// no server that speaks on its standard input and output.
var complaint = regexp.MustCompile(`(?i)\b(error|exception|traceback|panic|fatal|fail(ed|ure)?|invalid|unknown|unrecognized|unexpected|unsupported|not found|no such|can(no|')t|could not|unable|denied|refused|missing|required)\b|` +
	`\busage:|\b(listening|running|serving|started|available)\b.*(https?://|\bport \d)|^\s*[{<]|[?:>]\s*$`)

// quietTime returns for how long a server may say nothing more after text; 0 is for
// ever. total is the time that the request has.
func quietTime(total time.Duration, text []byte) time.Duration {
	part := total / 3
	switch {
	case total <= 0:
		return 0
	case complaint.Match(text):
		part /= 2
	}
	return max(part, minQuiet) // the request may end earlier by itself
}

// noisy are frames that report text which is no message, and what else shows that the
// server is at work: a number that changes with it.
type noisy interface {
	onNoise(func(text []byte))
	activity() uint64
}

// QuietError is why a request was given up after text that is no message.
type QuietError struct{ text string }

func (e *QuietError) Error() string { return e.text }

// heardNoise begins the wait of every open request anew.
func (p *Peer) heardNoise(text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.earlier = bytes.Clone(text[:min(len(text), 1000)])
	for n, w := range p.waiting {
		p.watchLocked(n, w, p.earlier)
	}
}

// watchLocked begins the wait of one request. It needs p.mu.
func (p *Peer) watchLocked(n uint64, w *waiter, text []byte) {
	w.noise = text
	limit := quietTime(w.total, text)
	if limit == 0 || p.chatty && w.call {
		return
	}
	if w.quiet != nil {
		w.quiet.Stop()
	}
	seen := p.activity()
	w.quiet = time.AfterFunc(limit, func() { p.endQuiet(n, w, limit, seen) })
}

// heardMessage ends the wait for requests that are still open, if the message shows
// that the server goes on with them.
func (p *Peer) heardMessage(answer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.earlier, p.greeted = nil, true
	for n, w := range p.waiting {
		switch {
		case w.quiet == nil:
		case answer: // of another one
			p.watchLocked(n, w, w.noise)
		default:
			w.quiet.Stop()
			w.quiet, w.noise = nil, nil
		}
	}
}

// activity changes if the server does something that can be seen.
func (p *Peer) activity() uint64 {
	if f, ok := p.frames.(noisy); ok {
		return f.activity()
	}
	return 0
}

// endQuiet fails a request after the wait. While others are open it goes on: the text
// may have been about one of them.
func (p *Peer) endQuiet(n uint64, w *waiter, limit time.Duration, seen uint64) {
	p.mu.Lock()
	if p.waiting[n] != w || p.closed || p.failure != nil {
		p.mu.Unlock()
		return
	}
	if p.activity() != seen || len(p.waiting) > 1 {
		p.watchLocked(n, w, w.noise)
		p.mu.Unlock()
		return
	}
	delete(p.waiting, n)
	p.late++         // it may still be answered
	p.wg.Go(func() { // nobody waits for the group before closed is set
		text := cmp.Or(p.said(), p.Hide.quote(w.noise))
		err := &QuietError{fmt.Sprintf("in place of an answer it wrote %s to standard output, and then nothing for %s", text, store.SpanText(limit.Round(100*time.Millisecond)))}
		_ = p.deliver(w, envelope{broken: err}) // it has no error of its own
	})
	p.mu.Unlock()
	if !w.sdk.IsValid() {
		p.abandon(n, "timed out")
	}
}
