// Package chat is the terminal chat client of `nizectl chat`.
//
// The daemon has a bots.Platform for it that sends messages as api.ChatEvents; this package
// renders them and reads keys.
//
// # Three front ends on one session
//
//	screen  a terminal: editing, streaming Markdown, cards with keys   terminal.go, screen.go and what they use
//	lines   --plain, TERM=dumb, or no terminal: line by line            linemode.go
//	turn    -m TEXT: one turn, for scripts                              turn.go
//
// A [session] follows one conversation over the control socket and outlives the connection:
// when the connection drops, it reports that, dials again, reads the stored thread and
// continues; an unacknowledged message is sent again with the same key. The [transcript]
// computes from messages, whose text is always the whole text so far, the part that was not
// shown yet.
//
// # The screen
//
// Finished output is printed once and scrolls away: it belongs to the terminal. Only the
// live region (the line being written, running tools, the prompt) is redrawn in place, so
// the scrollback stays complete and a resize changes nothing above it. One goroutine owns
// all of it; it receives keys, events and signals through channels.
//
// # No text from outside controls the terminal
//
// Every text of a model, a tool or a server passes bots.Plain or bots.Escape before it is
// measured or painted. A card is shown whole before any key counts as its answer, and keys
// typed before it was on the screen do not count.
//
// # Why no framework
//
// Bubble Tea with its text area, Lip Gloss and a Markdown parser would add 2.3 MB and
// replace about 700 lines, and three things would be worse: its lines above the live region
// are printed by separate goroutines, in any order; a print of more lines than the terminal
// has leaves the prompt and a page of blanks in the scrollback; and the text area has no
// kill ring. This package costs nothing at startup: no regular expressions, no tables built
// at init, golang.org/x/term for raw mode only.
package chat

import (
	"context"
	"os"
	"time"
)

// Run chats until the person leaves or, with Message, until the turn ends. While it runs it
// handles SIGINT itself: one stops the turn, two end the chat. The error wraps a sentinel
// that api.ExitCode knows: store.ErrInvalid (2) for wrong use, store.ErrRefused (6) if a
// turn ended because of a refusal, api.ErrNoDaemon (3) if no daemon runs.
func Run(ctx context.Context, o Options) error {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.Zone == "" {
		o.Zone = LocalZone(o.Getenv)
	}
	if o.Locale == "" {
		o.Locale = localeOf(o.Getenv)
	}
	o.Client.Language = o.Locale
	s := newSession(ctx, o)
	defer s.close()
	if err := s.open(ctx); err != nil {
		return err
	}
	switch {
	case o.Message != "":
		return runTurn(ctx, s)
	case o.TTY && !o.Plain && o.Getenv("TERM") != "dumb":
		return runScreen(ctx, s)
	}
	return runLineMode(ctx, s)
}
