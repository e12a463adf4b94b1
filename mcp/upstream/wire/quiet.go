package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"time"

	"nize/store"
)

// A server that writes text to standard output while a request is open may just be chatty,
// so the text is skipped. But if nothing follows, the text was all that it had to say, and
// waiting for the whole timeout is useless: the request fails after a part of its timeout.
// If the text names a failure or an error in how the command was started, that wait is half
// as long. Any activity of the server restarts the wait: more text, a line on standard
// error, a notification. Once a server has answered a call after such text, its calls get
// their full timeout.

// minQuiet is the minimum wait for more output.
const minQuiet = 3 * time.Second

// complaint matches text in which a program reports that it can't continue, or that it is
// not a server on standard input and output.
var complaint = regexp.MustCompile(`(?i)\b(error|exception|traceback|panic|fatal|fail(ed|ure)?|invalid|unknown|unrecognized|unexpected|unsupported|not found|no such|can(no|')t|could not|unable|denied|refused|missing|required)\b|` +
	`\busage:|\b(listening|running|serving|started|available)\b.*(https?://|\bport \d)|^\s*[{<]|[?:>]\s*$`)

// quietTime returns how long to wait for more output after text; 0 means no limit. total is
// the request's timeout.
func quietTime(total time.Duration, text []byte) time.Duration {
	part := total / 3
	switch {
	case total <= 0:
		return 0
	case complaint.Match(text):
		part /= 2
	}
	return max(part, minQuiet) // the request may time out earlier
}

// noisy is implemented by frames that report text which is not a message, and the server's
// activity as a number that changes with it.
type noisy interface {
	onNoise(func(text []byte))
	activity() uint64
}

// QuietError is the error of a request that was abandoned after text that is not a message.
type QuietError struct{ text string }

func (e *QuietError) Error() string { return e.text }

// heardNoise restarts the wait of every open request.
func (p *Peer) heardNoise(text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.earlier = bytes.Clone(text[:min(len(text), 1000)])
	for n, w := range p.waiting {
		p.watchLocked(n, w, p.earlier)
	}
}

// watchLocked starts the wait of one request. p.mu must be held.
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

// heardMessage ends the wait of the open requests if the message shows that the server is
// working on them. An answer to another request only restarts it.
func (p *Peer) heardMessage(answer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.earlier, p.greeted = nil, true
	for n, w := range p.waiting {
		switch {
		case w.quiet == nil:
		case answer: // to another request
			p.watchLocked(n, w, w.noise)
		default:
			w.quiet.Stop()
			w.quiet, w.noise = nil, nil
		}
	}
}

// activity returns a number that changes with each visible activity of the server.
func (p *Peer) activity() uint64 {
	if f, ok := p.frames.(noisy); ok {
		return f.activity()
	}
	return 0
}

// endQuiet fails a request after the wait. While other requests are open the wait is
// restarted, because the text may have been about one of them.
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
	p.wg.Go(func() { // the wait group is not waited for before closed is set
		text := cmp.Or(p.said(), p.Hide.quote(w.noise))
		err := &QuietError{fmt.Sprintf("in place of an answer it wrote %s to standard output, and then nothing for %s", text, store.SpanText(limit.Round(100*time.Millisecond)))}
		_ = p.deliver(w, envelope{broken: err}) // deliver returns no error for a broken answer
	})
	p.mu.Unlock()
	if w.answer != nil {
		p.abandon(n, "timed out")
	}
}
