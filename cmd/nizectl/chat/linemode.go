package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// lineMode is the chat without escape sequences.
type lineMode struct {
	s      *session
	prompt *cardPrompt
	in     lineReader
	queue  []string // lines that were read but not handled yet
	text   *textOut
	cards  []store.Card // waiting cards; the first is the current one
	style  style
}

func runLineMode(ctx context.Context, s *session) error {
	interrupts := make(chan os.Signal, 2) // two: one stops the turn, the second ends the chat
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	in, err := openInput(s.opt.In)
	if err != nil {
		return err
	}
	defer in.close()
	f := &lineMode{
		s: s, prompt: &cardPrompt{s: s, w: s.opt.Out}, in: lineReader{in: in},
		text: &textOut{w: s.opt.Out, whole: !s.opt.TTY}, style: s.opt.style(),
	}
	if line := s.offline(); line != "" {
		f.printNote(line)
	}
	if s.opt.TTY {
		f.printNote(s.words().Say(phrases.TermGreetPlain))
	}
	if s.opt.Resume != "" {
		if err := f.resume(ctx, s.opt.Resume); err != nil {
			return err
		}
	}
	return f.loop(ctx, interrupts)
}

func (f *lineMode) loop(ctx context.Context, interrupts <-chan os.Signal) error {
	stopping := false
	f.printPrompt()
	for {
		if leave, err := f.work(ctx); leave || err != nil {
			return err
		}
		chunks := f.in.in.chunks
		if f.in.eof || len(f.queue) > 0 {
			chunks = nil // handle earlier input first
		}
		select {
		case b, ok := <-chunks:
			stopping = false
			if ok {
				f.queue = append(f.queue, f.in.take(b)...)
			} else {
				f.queue = append(f.queue, f.in.end()...)
			}
		case e := <-f.s.events:
			f.event(ctx, e)
			stopping = stopping && f.s.busy
		case <-interrupts:
			if stopping || !f.s.busy {
				return nil
			}
			stopping = true
			f.printNote(f.s.words().Say(phrases.TermStopping))
			if err := f.s.stop(ctx); err != nil {
				f.printNote(f.s.problem(err))
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// work handles the lines that can be handled now. From a pipe, turns run one after the
// other; on a terminal a person may write while a turn runs.
func (f *lineMode) work(ctx context.Context) (leave bool, err error) {
	for len(f.queue) > 0 && (f.s.opt.TTY || !f.s.busy || len(f.cards) > 0) {
		line := f.queue[0]
		f.queue = f.queue[1:]
		if leave, err = f.line(ctx, line); leave || err != nil {
			return leave, err
		}
	}
	return f.in.eof && len(f.queue) == 0 && (f.s.opt.TTY || !f.s.busy), nil
}

// printPrompt prompts for the next line, on a terminal only.
func (f *lineMode) printPrompt() {
	switch {
	case len(f.cards) > 0:
		f.prompt.print(f.cards[0])
	case f.s.opt.TTY && !f.s.busy:
		fmt.Fprint(f.s.opt.Out, "> ")
	}
}

func (f *lineMode) answer(ctx context.Context, line string) {
	card := f.cards[0]
	d, done, show := f.prompt.parse(card, line)
	switch {
	case show:
		printCard(f.s.opt.Out, card, f.s.reader())
	case done:
		f.cards = f.cards[1:]
		if err := f.s.decide(ctx, card, d); err != nil {
			f.printNote(f.s.problem(err))
		} else if d.Always {
			f.printNote(f.s.kept(ctx, card, d))
		}
	}
}

// printNote prints lines that are not part of the answer.
func (f *lineMode) printNote(lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(f.s.opt.Err, f.style.plainSigns(bots.Plain(line)))
	}
}

// line handles one line of input.
func (f *lineMode) line(ctx context.Context, line string) (leave bool, err error) {
	defer f.printPrompt()
	if len(f.cards) > 0 && !strings.HasPrefix(line, "/") {
		f.answer(ctx, line)
		return false, nil
	}
	if strings.TrimSpace(line) == "" {
		return false, nil
	}
	if !strings.HasPrefix(line, "/") {
		return false, f.fatal(f.s.say(ctx, line))
	}
	r, err := f.s.command(ctx, line)
	if err != nil {
		f.printNote(f.s.problem(err))
	}
	f.printNote(r.lines...)
	if r.fresh {
		f.cards = nil
	}
	if r.resume != "" {
		if err := f.resume(ctx, r.resume); err != nil {
			f.printNote(f.s.problem(err))
		}
	}
	return r.leave, nil
}

// fatal prints an error after which the chat continues, and returns one after which it
// can't: without a daemon there is no first message.
func (f *lineMode) fatal(err error) error {
	if err == nil || errors.Is(err, api.ErrNoDaemon) {
		return err
	}
	f.printNote(f.s.problem(err))
	return nil
}

func (f *lineMode) resume(ctx context.Context, id string) error {
	view, err := f.s.resume(ctx, id)
	if err != nil {
		return err
	}
	f.cards = nil
	for _, turn := range view.Turns {
		m, ok := turnMessage(turn, f.s.words())
		switch {
		case !ok:
		case turn.Role == store.FromUser:
			f.printNote("> " + strings.ReplaceAll(bots.Plain(turn.Text), "\n", "\n> "))
		default:
			f.show(ctx, m)
		}
	}
	for _, card := range view.Cards {
		f.show(ctx, store.Message{ID: card.Call, Kind: store.CardMessage, Card: &card})
	}
	return nil
}

func (f *lineMode) event(ctx context.Context, e event) {
	switch {
	case e.disconnected != nil && e.thread == f.s.thread.ID:
		f.printNote(f.s.words().Say(phrases.TermLost, bots.Escape(e.disconnected.Error())))
	case e.reconnected != nil && e.thread == f.s.thread.ID:
		f.printNote(f.s.words().Say(phrases.TermBack))
	}
	show, ended, err := f.s.handleEvent(ctx, e)
	for _, m := range show {
		f.show(ctx, m)
	}
	if err != nil {
		f.printNote(f.s.problem(err))
	}
	if ended {
		if err := f.text.rest(&f.s.transcript); err != nil {
			f.printNote(f.s.problem(err))
		}
		if err := f.text.end(); err != nil {
			f.printNote(f.s.problem(err))
		}
		f.printPrompt()
	}
}

// show prints the new part of a message.
func (f *lineMode) show(ctx context.Context, m store.Message) {
	if m.Kind == store.TextMessage {
		if err := f.text.show(&f.s.transcript, m); err != nil {
			f.printNote(f.s.problem(err))
		}
		return
	}
	if !f.s.transcript.changed(m) {
		return
	}
	switch {
	case m.Kind == store.ToolMessage && m.Tool != nil:
		if !f.s.transcript.carded(m) {
			f.printNote(toolLine(*m.Tool, f.s.words()))
		}
	case m.Kind == store.CardMessage && m.Card != nil:
		f.card(ctx, *m.Card)
	case m.Kind == store.ErrorMessage:
		f.printNote(f.s.words().Say(phrases.TermError, m.Text))
	default:
		f.printNote(m.Text)
	}
}

// card prompts for a waiting card, or answers it according to --approve.
func (f *lineMode) card(ctx context.Context, card store.Card) {
	if !waits(&card) {
		asked := len(f.cards) > 0 && f.cards[0].Call == card.Call
		f.cards = withoutCard(f.cards, card.Call)
		f.s.lastCall = card
		if card.State.Final() {
			f.printNote(outcomeLine(card, f.s.reader()))
		}
		if asked {
			f.prompt.mode, f.prompt.standing = "", nil
			f.printPrompt()
		}
		return
	}
	printCard(f.s.opt.Out, card, f.s.reader())
	if f.s.opt.Approve == "ask" {
		if f.cards = append(f.cards, card); len(f.cards) == 1 {
			f.printPrompt()
		}
		return
	}
	d := api.DecideCallRequest{Verb: store.Deny, Reason: string(phrases.TermNobodyToAsk)}
	if f.s.opt.Approve == "all" {
		d = api.DecideCallRequest{Verb: store.Approve, Reason: "--approve all"}
	}
	if err := f.s.decide(ctx, card, d); err != nil {
		f.printNote(f.s.problem(err))
	}
}
