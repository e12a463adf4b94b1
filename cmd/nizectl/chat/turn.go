package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// patience is how long one turn waits for a daemon that went away.
const patience = 30 * time.Second

// one runs one turn for a script: text to Out, everything else to Err.
type one struct {
	s       *session
	text    *textOut
	failed  string       // what an error message said
	refused string       // the tool that was refused, with no success after it
	asker   *asker       // of --approve ask
	in      lineReader   // of --approve ask
	cards   []store.Card // being asked about, one after the other
	pressed map[string]bool
}

// jsonEvent is one line of --json.
type jsonEvent struct {
	Thread string `json:"thread"`
	api.ChatEvent
}

func runOne(ctx context.Context, s *session) error {
	interrupts := make(chan os.Signal, 2) // two: one stops, the second leaves
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	o := &one{s: s, text: &textOut{w: s.o.Out}, pressed: map[string]bool{}}
	if s.o.Approve == "ask" {
		in, err := openInput(s.o.In)
		if err != nil {
			return err
		}
		defer in.close()
		o.asker, o.in = &asker{s: s, w: s.o.Err}, lineReader{in: in}
	}
	if line := s.offline(); line != "" {
		fmt.Fprintln(s.o.Err, line)
	}
	if s.o.Resume != "" {
		view, err := s.resume(ctx, s.o.Resume)
		if err != nil {
			return err
		}
		if err := s.awaitFirst(ctx); err != nil {
			return err
		}
		for _, m := range missedMessages(view, s.words()) { // they are no news
			s.script.seen[m.ID] = m
		}
	}
	if err := s.say(ctx, s.o.Message); err != nil {
		return err
	}
	return o.loop(ctx, interrupts)
}

func (o *one) loop(ctx context.Context, interrupts <-chan os.Signal) error {
	var gone <-chan time.Time // fires when the daemon was away too long
	stops := 0
	for {
		var chunks <-chan []byte
		if len(o.cards) > 0 && !o.in.eof {
			chunks = o.in.in.chunks
		}
		select {
		case b, ok := <-chunks:
			if err := o.answers(ctx, b, ok); err != nil {
				return err
			}
		case e := <-o.s.events:
			switch {
			case e.lost != nil:
				fmt.Fprintln(o.s.o.Err, o.s.words().Say(phrases.TermLost, bots.Escape(e.lost.Error())))
				gone = time.After(patience)
			case e.back != nil:
				fmt.Fprintln(o.s.o.Err, o.s.words().Say(phrases.TermBack))
				gone = nil
			}
			ended, err := o.take(ctx, e)
			if err != nil {
				return err
			}
			if ended {
				return o.result(stops > 0)
			}
		case <-interrupts:
			if stops++; stops > 1 {
				return fmt.Errorf("the turn was left: %w", api.ErrCancelled)
			}
			fmt.Fprintln(o.s.o.Err, o.s.words().Say(phrases.TermStopping))
			if err := o.s.stop(ctx); err != nil {
				return err
			}
		case <-gone:
			return fmt.Errorf("%w: it went away during the turn; `nizectl chat --resume %s` goes on", api.ErrNoDaemon, o.s.thread.ID)
		case <-ctx.Done():
			_ = o.s.stop(ctx) // we leave in any case
			return context.Cause(ctx)
		}
	}
}

// take shows an event and answers its cards.
func (o *one) take(ctx context.Context, e event) (ended bool, err error) {
	if o.s.o.JSON && e.thread == o.s.thread.ID && (e.chat.Message != nil || e.chat.State != "") {
		line, err := json.Marshal(jsonEvent{e.thread, e.chat})
		if err != nil {
			return false, fmt.Errorf("encoding an event: %w", err)
		}
		if _, err := o.s.o.Out.Write(append(line, '\n')); err != nil {
			return false, fmt.Errorf("writing an event: %w", err)
		}
	}
	show, ended, err := o.s.take(ctx, e)
	if err != nil {
		return true, err
	}
	for _, m := range show {
		if err := o.show(ctx, m); err != nil {
			return false, err
		}
	}
	return ended, nil
}

func (o *one) show(ctx context.Context, m store.Message) error {
	if m.Kind == store.TextMessage {
		if o.s.o.JSON {
			return nil
		}
		return o.text.show(&o.s.script, m)
	}
	if !o.s.script.changed(m) {
		return nil
	}
	note := o.s.o.Err
	if o.s.o.JSON {
		note = io.Discard // the events say it all
	}
	switch {
	case m.Kind == store.ToolMessage && m.Tool != nil:
		if m.Tool.State.Final() {
			o.settled(m.Tool.Name, m.Tool.State)
		}
		if !o.s.script.carded(m) {
			fmt.Fprintln(note, toolLine(*m.Tool, o.s.words()))
		}
	case m.Kind == store.CardMessage && m.Card != nil:
		return o.card(ctx, note, *m.Card)
	case m.Kind == store.ErrorMessage:
		o.failed = m.Text
	default:
		fmt.Fprintln(note, bots.Plain(m.Text))
	}
	return nil
}

// settled remembers what became of a call, for the exit code. Meta-tools have
// no colon in their names and don't count.
func (o *one) settled(tool string, state store.State) {
	switch {
	case !strings.Contains(tool, ":"):
	case state == store.Refused || state == store.Cancelled || state == store.Expired:
		o.refused = tool
	case state == store.Done:
		o.refused = ""
	}
}

// card answers a card as --approve says.
func (o *one) card(ctx context.Context, note io.Writer, card store.Card) error {
	if !waits(&card) {
		o.cards = withoutCard(o.cards, card.Call)
		if card.State.Final() {
			o.settled(card.Tool, card.State)
			fmt.Fprintln(note, settledLine(card, o.s.o.Locale))
		}
		return nil
	}
	if o.pressed[card.Call] {
		return nil
	}
	o.pressed[card.Call] = true
	for _, line := range bots.CardLines(card, o.s.reader()) {
		fmt.Fprintln(note, line)
	}
	d := api.Decide{Verb: store.Deny, Reason: "nobody was there to ask: --approve none"}
	switch o.s.o.Approve {
	case "all":
		d = api.Decide{Verb: store.Approve, Reason: "--approve all"}
	case "ask":
		if o.cards = append(o.cards, card); len(o.cards) == 1 {
			o.asker.prompt(card)
		}
		return nil
	}
	o.decide(ctx, card, d)
	return nil
}

func (o *one) decide(ctx context.Context, card store.Card, d api.Decide) {
	if err := o.s.decide(ctx, card, d); err != nil {
		fmt.Fprintln(o.s.o.Err, err) // somebody else was first, or we may not: the card will say
	}
}

// answers takes what was typed for the cards; the end of the input is a no.
func (o *one) answers(ctx context.Context, b []byte, more bool) error {
	lines := o.in.take(b)
	if !more {
		lines = append(lines, o.in.end()...)
	}
	for _, line := range lines {
		if len(o.cards) == 0 {
			break
		}
		card := o.cards[0]
		d, done, show := o.asker.answer(card, line)
		if show {
			printLines(o.s.o.Err, bots.CardLines(card, o.s.reader()))
		}
		if done {
			o.cards = o.cards[1:]
			o.decide(ctx, card, d)
		}
		if len(o.cards) > 0 {
			o.asker.prompt(o.cards[0])
		}
	}
	if more {
		return nil
	}
	for _, card := range o.cards {
		o.decide(ctx, card, api.Decide{Verb: store.Deny, Reason: "the input ended"})
	}
	o.cards = nil
	return nil
}

// result is how the turn ended.
func (o *one) result(stopped bool) error {
	if err := o.text.end(); err != nil {
		return err
	}
	switch {
	case o.failed != "":
		return fmt.Errorf("the turn could not go on: %s", bots.Escape(o.failed))
	case stopped:
		return fmt.Errorf("the turn was stopped: %w", api.ErrCancelled)
	case o.refused != "":
		return fmt.Errorf("the turn ended after %s was %w", bots.Escape(o.refused), store.ErrRefused)
	}
	return nil
}

// textOut prints the assistant's words as they come, as they are but for what
// would steer a terminal.
type textOut struct {
	w    io.Writer
	id   string // of the message that is being printed
	open bool   // its last line has not ended
}

func (t *textOut) show(script *transcript, m store.Message) error {
	more, again, changed := script.fresh(m)
	if !changed {
		return nil
	}
	if t.id != m.ID || again {
		if err := t.end(); err != nil {
			return err
		}
		t.id = m.ID
	}
	if _, err := io.WriteString(t.w, bots.Plain(more)); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	if more != "" {
		t.open = !strings.HasSuffix(more, "\n")
	}
	if m.Final {
		return t.end()
	}
	return nil
}

// end ends the line that is open.
func (t *textOut) end() error {
	if !t.open {
		return nil
	}
	t.open = false
	if _, err := io.WriteString(t.w, "\n"); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}
