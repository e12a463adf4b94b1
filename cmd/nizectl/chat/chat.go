// Package chat is the client's half of the chat in a terminal, `nizectl
// chat`. The daemon's half is a bots.Platform that sends what it
// shows as api.ChatEvents; this half renders them and reads keys.
//
// # Three fronts on one session
//
//	screen  a terminal: editing, streaming Markdown, cards with keys   terminal.go, screen.go and what they use
//	lines   --plain, TERM=dumb, or no terminal: line by line            linemode.go
//	turn    -m TEXT: one turn, for scripts                              turn.go
//
// A [session] follows one conversation over the control socket and survives
// the connection: when it drops, it says so, dials again, reads the stored
// thread and goes on; a message that was not acknowledged is sent again under
// the same key. The [transcript] turns messages, whose text is always the
// whole text so far, into what has not been shown yet.
//
// # The screen
//
// What is finished is printed once and scrolls away: it belongs to the
// terminal. Only the live region (the line that is being written, tools at work,
// the prompt) is redrawn in place, so the scrollback stays whole and a resize
// can spoil nothing above it. One goroutine owns all of it; keys, events and
// signals come to it through channels.
//
// # Nothing from outside steers the terminal
//
// Every text of a model, a tool or a server passes bots.Plain or bots.Escape
// before it is measured or painted. A card is shown whole before any key
// counts for it, and keys that were typed before it was on the screen do not.
//
// # No framework for it
//
// Bubble Tea with its text area, Lip Gloss and a Markdown parser would cost 2.3
// MB and delete about 700 lines, and three things would be worse: its lines
// above the live region are printed by goroutines of their own, in any order; a
// print of more lines than the terminal has leaves the prompt and a page of
// blanks in the scrollback; and the text area has no kill ring. Nothing here
// costs at start: no regular expressions, no tables built at init,
// golang.org/x/term for raw mode only.
package chat

import (
	"context"
	"os"
	"time"
)

// Run chats until the person leaves or, with Message, until the turn ended. It
// handles SIGINT itself while it runs: once stops the turn, twice leaves. The
// error wraps a sentinel that api.ExitCode knows: store.ErrInvalid (2) for
// wrong use, store.ErrRefused (6) where a turn ended because of a refusal,
// api.ErrNoDaemon (3) where no daemon runs.
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
