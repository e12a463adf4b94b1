package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// lineReader cuts an input into lines. What is longer than a message may be
// comes in pieces, which the daemon then refuses.
type lineReader struct {
	in  *input
	buf []byte
	eof bool
}

// take puts what was read to the rest of the line and returns whole lines.
func (l *lineReader) take(b []byte) []string {
	l.buf = append(l.buf, b...)
	var out []string
	for {
		i := bytes.IndexByte(l.buf, '\n')
		if i < 0 && len(l.buf) <= 2*bots.MaxMessage {
			return out
		}
		if i < 0 {
			i = len(l.buf) - 1
		}
		out = append(out, strings.TrimSuffix(string(l.buf[:i]), "\r"))
		l.buf = l.buf[i+1:]
	}
}

// end returns a last line without a line break.
func (l *lineReader) end() []string {
	if l.eof = true; len(l.buf) == 0 {
		return nil
	}
	last := string(l.buf)
	l.buf = nil
	return []string{last}
}

// asker asks about cards line by line.
type asker struct {
	s   *session
	w   io.Writer
	now string // the prompt's state: "" or "args"
}

// prompt asks for the answer to a card that has been shown.
func (a *asker) prompt(card store.Card) {
	if a.now == "args" {
		fmt.Fprint(a.w, a.s.words().Say(phrases.TermArgsLine))
		return
	}
	fmt.Fprintf(a.w, "%s: ", cardKeys(card, a.s.words()))
}

// cardKeys names the keys of a card; those that would do nothing are left out.
func cardKeys(card store.Card, words phrases.Catalogue) string {
	keys := words.Say(phrases.TermKeys)
	if card.Together > 0 {
		keys += words.Say(phrases.TermKeyAll, itoa(card.Together+1))
	}
	keys += words.Say(phrases.TermKeysEdit)
	if card.Always {
		keys += words.Say(phrases.TermKeyAlways)
	}
	return keys + words.Say(phrases.TermKeysRest)
}

// answer reads an answer. again asks once more; show shows the card first.
func (a *asker) answer(card store.Card, line string) (d api.Decide, done, show bool) {
	line = strings.TrimSpace(line)
	if a.now == "args" {
		a.now = ""
		if line == "" {
			return d, false, false
		}
		args, err := checkArguments(line)
		if err != nil {
			fmt.Fprintln(a.w, a.s.problem(err))
			a.now = "args"
			return d, false, false
		}
		return api.Decide{Verb: store.Edit, Args: args}, true, false
	}
	if line == "Y" && card.Together > 0 {
		return api.Decide{Verb: store.RunAll}, true, false
	}
	switch strings.ToLower(line) {
	case "y", "yes":
		return api.Decide{Verb: store.Approve}, true, false
	case "n", "no":
		return api.Decide{Verb: store.Deny}, true, false
	case "a", "always":
		if card.Always {
			return api.Decide{Verb: store.Approve, Always: true}, true, false
		}
		fmt.Fprintln(a.w, a.s.words().Say(phrases.TermNotAlways))
	case "d", "deny":
		return api.Decide{Verb: store.Deny, Always: true}, true, false
	case "e", "edit":
		a.now = "args"
	case "?":
		return d, false, true
	}
	return d, false, false
}

// checkArguments refuses what the daemon would refuse, before it is asked. An
// object is what every tool takes (MCP).
func checkArguments(text string) (json.RawMessage, error) {
	args, err := store.Canonical([]byte(text))
	if err != nil {
		return nil, err
	}
	if len(args) == 0 || args[0] != '{' {
		return nil, fmt.Errorf("%w arguments: want a JSON object, {…}", store.ErrInvalid)
	}
	return args, nil
}

func printLines(w io.Writer, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
}

// linesFront is the chat without any escape sequence.
type linesFront struct {
	s     *session
	asker *asker
	in    lineReader
	queue []string // lines that were read and not taken yet
	text  *textOut
	cards []store.Card // that wait for an answer, the first is being asked about
	style style
}

func runLines(ctx context.Context, s *session) error {
	interrupts := make(chan os.Signal, 2) // two: one stops, the second leaves
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	in, err := openInput(s.o.In)
	if err != nil {
		return err
	}
	defer in.close()
	f := &linesFront{
		s: s, asker: &asker{s: s, w: s.o.Out}, in: lineReader{in: in},
		text: &textOut{w: s.o.Out}, style: s.o.style(),
	}
	if line := s.offline(); line != "" {
		f.note(line)
	}
	if s.o.TTY {
		f.note(s.words().Say(phrases.TermGreetPlain))
	}
	if s.o.Resume != "" {
		if err := f.resume(ctx, s.o.Resume); err != nil {
			return err
		}
	}
	return f.loop(ctx, interrupts)
}

func (f *linesFront) loop(ctx context.Context, interrupts <-chan os.Signal) error {
	stopping := false
	f.prompt()
	for {
		if leave, err := f.work(ctx); leave || err != nil {
			return err
		}
		chunks := f.in.in.chunks
		if f.in.eof || len(f.queue) > 0 {
			chunks = nil // what was read comes first
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
			f.note(f.s.words().Say(phrases.TermStopping))
			if err := f.s.stop(ctx); err != nil {
				f.note(f.s.problem(err))
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// work takes the lines that can be taken now. From a pipe, one turn follows
// the other; on a terminal a person may write while a turn runs.
func (f *linesFront) work(ctx context.Context) (leave bool, err error) {
	for len(f.queue) > 0 && (f.s.o.TTY || !f.s.busy || len(f.cards) > 0) {
		line := f.queue[0]
		f.queue = f.queue[1:]
		if leave, err = f.line(ctx, line); leave || err != nil {
			return leave, err
		}
	}
	return f.in.eof && len(f.queue) == 0 && (f.s.o.TTY || !f.s.busy), nil
}

// prompt asks for the next line, on a terminal only.
func (f *linesFront) prompt() {
	switch {
	case len(f.cards) > 0:
		f.asker.prompt(f.cards[0])
	case f.s.o.TTY && !f.s.busy:
		fmt.Fprint(f.s.o.Out, "> ")
	}
}

func (f *linesFront) note(lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(f.s.o.Err, f.style.ours(line))
	}
}

// line takes one line of input.
func (f *linesFront) line(ctx context.Context, line string) (leave bool, err error) {
	defer f.prompt()
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
		f.note(f.s.problem(err))
	}
	f.note(r.lines...)
	if r.fresh {
		f.cards = nil
	}
	if r.resume != "" {
		if err := f.resume(ctx, r.resume); err != nil {
			f.note(f.s.problem(err))
		}
	}
	return r.leave, nil
}

// fatal shows an error that the chat survives and returns one that it doesn't:
// without a daemon there is no first message.
func (f *linesFront) fatal(err error) error {
	if err == nil || errors.Is(err, api.ErrNoDaemon) {
		return err
	}
	f.note(bots.Plain(f.s.problem(err)))
	return nil
}

func (f *linesFront) answer(ctx context.Context, line string) {
	card := f.cards[0]
	d, done, show := f.asker.answer(card, line)
	switch {
	case show:
		printLines(f.s.o.Out, bots.CardLines(card, f.s.reader()))
	case done:
		f.cards = f.cards[1:]
		if err := f.s.decide(ctx, card, d); err != nil {
			f.note(f.s.problem(err))
		}
	}
}

func (f *linesFront) resume(ctx context.Context, id string) error {
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
			f.note("> " + strings.ReplaceAll(bots.Plain(turn.Text), "\n", "\n> "))
		default:
			f.show(ctx, m)
		}
	}
	for _, card := range view.Cards {
		f.show(ctx, store.Message{ID: card.Call, Kind: store.CardMessage, Card: &card})
	}
	return nil
}

func (f *linesFront) event(ctx context.Context, e event) {
	switch {
	case e.lost != nil && e.thread == f.s.thread.ID:
		f.note(f.s.words().Say(phrases.TermLost, bots.Escape(e.lost.Error())))
	case e.back != nil && e.thread == f.s.thread.ID:
		f.note(f.s.words().Say(phrases.TermBack))
	}
	show, ended, err := f.s.take(ctx, e)
	for _, m := range show {
		f.show(ctx, m)
	}
	if err != nil {
		f.note(f.s.problem(err))
	}
	if ended {
		if err := f.text.end(); err != nil {
			f.note(f.s.problem(err))
		}
		f.prompt()
	}
}

// show prints what is new of a message.
func (f *linesFront) show(ctx context.Context, m store.Message) {
	if m.Kind == store.TextMessage {
		if err := f.text.show(&f.s.script, m); err != nil {
			f.note(f.s.problem(err))
		}
		return
	}
	if !f.s.script.changed(m) {
		return
	}
	switch {
	case m.Kind == store.ToolMessage && m.Tool != nil:
		if !f.s.script.carded(m) {
			f.note(toolLine(*m.Tool, f.s.words()))
		}
	case m.Kind == store.CardMessage && m.Card != nil:
		f.card(ctx, *m.Card)
	case m.Kind == store.ErrorMessage:
		f.note(f.s.words().Say(phrases.TermError, bots.Plain(m.Text)))
	default:
		f.note(bots.Plain(m.Text))
	}
}

// card asks about a card that waits, or answers as --approve says.
func (f *linesFront) card(ctx context.Context, card store.Card) {
	if !waits(&card) {
		asked := len(f.cards) > 0 && f.cards[0].Call == card.Call
		f.cards = withoutCard(f.cards, card.Call)
		f.s.settled = card
		f.note(settledLine(card, f.s.o.Locale))
		if asked {
			f.asker.now = ""
			f.prompt()
		}
		return
	}
	printLines(f.s.o.Out, bots.CardLines(card, f.s.reader()))
	if f.s.o.Approve == "ask" {
		if f.cards = append(f.cards, card); len(f.cards) == 1 {
			f.prompt()
		}
		return
	}
	d := api.Decide{Verb: store.Deny, Reason: "nobody was there to ask: --approve none"}
	if f.s.o.Approve == "all" {
		d = api.Decide{Verb: store.Approve, Reason: "--approve all"}
	}
	if err := f.s.decide(ctx, card, d); err != nil {
		f.note(f.s.problem(err))
	}
}

func withoutCard(cards []store.Card, call string) []store.Card {
	var out []store.Card
	for _, c := range cards {
		if c.Call != call {
			out = append(out, c)
		}
	}
	return out
}
