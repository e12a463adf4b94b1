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

// reconnectTimeout is how long one turn waits for a daemon that went away.
const reconnectTimeout = 30 * time.Second

// one runs one turn for a script: text to Out, everything else to Err.
type turn struct {
	s       *session
	text    *textOut
	failed  string       // what an error message said
	refused string       // the tool that was refused, with no success after it
	prompt  *cardPrompt  // of --approve ask
	in      lineReader   // of --approve ask
	cards   []store.Card // being asked about, one after the other
	pressed map[string]bool
}

// jsonEvent is one line of --json.
type jsonEvent struct {
	Thread string `json:"thread"`
	api.ChatEvent
}

func runTurn(ctx context.Context, s *session) error {
	interrupts := make(chan os.Signal, 2) // two: one stops, the second leaves
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	o := &turn{s: s, text: &textOut{w: s.o.Out}, pressed: map[string]bool{}}
	if s.o.Approve == "ask" {
		in, err := openInput(s.o.In)
		if err != nil {
			return err
		}
		defer in.close()
		o.prompt, o.in = &cardPrompt{s: s, w: s.o.Err}, lineReader{in: in}
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
			s.transcript.seen[m.ID] = m
		}
	}
	if err := s.say(ctx, s.o.Message); err != nil {
		return err
	}
	return o.loop(ctx, interrupts)
}

func (o *turn) loop(ctx context.Context, interrupts <-chan os.Signal) error {
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
			case e.disconnected != nil:
				fmt.Fprintln(o.s.o.Err, o.s.words().Say(phrases.TermLost, bots.Escape(e.disconnected.Error())))
				gone = time.After(reconnectTimeout)
			case e.reconnected != nil:
				fmt.Fprintln(o.s.o.Err, o.s.words().Say(phrases.TermBack))
				gone = nil
			}
			ended, err := o.handleEvent(ctx, e)
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

// handleEvent shows an event and answers its cards.
func (o *turn) handleEvent(ctx context.Context, e event) (ended bool, err error) {
	if o.s.o.JSON && e.thread == o.s.thread.ID && (e.chat.Message != nil || e.chat.State != "") {
		line, err := json.Marshal(jsonEvent{e.thread, e.chat})
		if err != nil {
			return false, fmt.Errorf("encoding an event: %w", err)
		}
		if _, err := o.s.o.Out.Write(append(line, '\n')); err != nil {
			return false, fmt.Errorf("writing an event: %w", err)
		}
	}
	show, ended, err := o.s.handleEvent(ctx, e)
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

func (o *turn) show(ctx context.Context, m store.Message) error {
	if m.Kind == store.TextMessage {
		if o.s.o.JSON {
			return nil
		}
		return o.text.show(&o.s.transcript, m)
	}
	if !o.s.transcript.changed(m) {
		return nil
	}
	note := o.s.o.Err
	if o.s.o.JSON {
		note = io.Discard // the events say it all
	}
	switch {
	case m.Kind == store.ToolMessage && m.Tool != nil:
		if m.Tool.State.Final() {
			o.recordOutcome(m.Tool.Name, m.Tool.State)
		}
		if !o.s.transcript.carded(m) {
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

// recordOutcome remembers what became of a call, for the exit code. Meta-tools have
// no colon in their names and don't count.
func (o *turn) recordOutcome(tool string, state store.State) {
	switch {
	case !strings.Contains(tool, ":"):
	case state == store.Refused || state == store.Cancelled || state == store.Expired:
		o.refused = tool
	case state == store.Done:
		o.refused = ""
	}
}

// card answers a card as --approve says.
func (o *turn) card(ctx context.Context, note io.Writer, card store.Card) error {
	if !waits(&card) {
		o.cards = withoutCard(o.cards, card.Call)
		if card.State.Final() {
			o.recordOutcome(card.Tool, card.State)
			fmt.Fprintln(note, outcomeLine(card, o.s.o.Locale))
		}
		return nil
	}
	if o.pressed[card.Call] {
		return nil
	}
	o.pressed[card.Call] = true
	printCard(note, card, o.s.reader())
	d := api.Decide{Verb: store.Deny, Reason: "nobody was there to ask: --approve none"}
	switch o.s.o.Approve {
	case "all":
		d = api.Decide{Verb: store.Approve, Reason: "--approve all"}
	case "ask":
		if o.cards = append(o.cards, card); len(o.cards) == 1 {
			o.prompt.print(card)
		}
		return nil
	}
	o.decide(ctx, card, d)
	return nil
}

func (o *turn) decide(ctx context.Context, card store.Card, d api.Decide) {
	if err := o.s.decide(ctx, card, d); err != nil {
		fmt.Fprintln(o.s.o.Err, err) // somebody else was first, or we may not: the card will say
	}
}

// answers takes what was typed for the cards; the end of the input is a no.
func (o *turn) answers(ctx context.Context, b []byte, more bool) error {
	lines := o.in.take(b)
	if !more {
		lines = append(lines, o.in.end()...)
	}
	for _, line := range lines {
		if len(o.cards) == 0 {
			break
		}
		card := o.cards[0]
		d, done, show := o.prompt.parse(card, line)
		if show {
			printCard(o.s.o.Err, card, o.s.reader())
		}
		if done {
			o.cards = o.cards[1:]
			o.decide(ctx, card, d)
		}
		if len(o.cards) > 0 {
			o.prompt.print(o.cards[0])
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
func (o *turn) result(stopped bool) error {
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
