package chat

import (
	"context"
	"encoding/json"
	"errors"
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
	"nize/store/printable"
)

// reconnectTimeout is how long one turn waits for a daemon that went away.
const reconnectTimeout = 30 * time.Second

// turn runs one turn for a script: text to Out, everything else to Err.
type turn struct {
	s       *session
	text    *textOut
	failed  string       // the text of an error message
	refused string       // the tool that was refused, if no call succeeded afterwards
	limited string       // set if the turn reached its step limit
	partial string       // why the answer is incomplete
	prompt  *cardPrompt  // for --approve ask
	in      lineReader   // for --approve ask
	cards   []store.Card // prompted for one after the other
	pressed map[string]bool
}

// jsonEvent is one line of --json.
type jsonEvent struct {
	Thread string `json:"thread"`
	api.ChatEvent
	Warnings []string `json:"warnings,omitempty"`
}

// splitRemark splits nize's remark off the end of an answer.
func splitRemark(m store.Message) (text, warning string) {
	if m.Remark == "" {
		return m.Text, ""
	}
	text, _ = strings.CutSuffix(m.Text, m.Remark)
	return strings.TrimSuffix(text, "\n\n"), strings.Trim(m.Remark, "[]")
}

func runTurn(ctx context.Context, s *session) error {
	interrupts := make(chan os.Signal, 2) // two: one stops the turn, the second ends the chat
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	t := &turn{s: s, text: &textOut{w: s.opt.Out, whole: !s.opt.TTY}, pressed: map[string]bool{}}
	defer func() {
		_ = t.text.rest(&s.transcript) // the turn's own error counts
		_ = t.text.end()
	}()
	if s.opt.Approve == "ask" {
		in, err := openInput(s.opt.In)
		if err != nil {
			return err
		}
		defer in.close()
		t.prompt, t.in = &cardPrompt{s: s, w: s.opt.Err}, lineReader{in: in}
	}
	if line := s.offline(); line != "" {
		fmt.Fprintln(s.opt.Err, line)
	}
	if s.opt.Resume != "" {
		view, err := s.resume(ctx, s.opt.Resume)
		if err != nil {
			return err
		}
		if err := s.awaitFirst(ctx); err != nil {
			return err
		}
		for _, m := range missedMessages(view, s.words()) { // they are not new
			s.transcript.seen[m.ID] = m
		}
	}
	if err := s.say(ctx, s.opt.Message); err != nil {
		return err
	}
	return t.loop(ctx, interrupts)
}

func (t *turn) loop(ctx context.Context, interrupts <-chan os.Signal) error {
	var gone <-chan time.Time // fires if the daemon was away too long
	stops := 0
	for {
		var chunks <-chan []byte
		if len(t.cards) > 0 && !t.in.eof {
			chunks = t.in.in.chunks
		}
		select {
		case b, ok := <-chunks:
			if err := t.answers(ctx, b, ok); err != nil {
				return err
			}
		case e := <-t.s.events:
			switch {
			case e.disconnected != nil:
				fmt.Fprintln(t.s.opt.Err, t.s.words().Say(phrases.TermLost, bots.Escape(e.disconnected.Error())))
				gone = time.After(reconnectTimeout)
			case e.reconnected != nil:
				fmt.Fprintln(t.s.opt.Err, t.s.words().Say(phrases.TermBack))
				gone = nil
			}
			ended, err := t.handleEvent(ctx, e)
			if err != nil {
				return err
			}
			if ended {
				return t.result(stops > 0)
			}
		case <-interrupts:
			if stops++; stops > 1 {
				return fmt.Errorf("the turn was left: %w", api.ErrCancelled)
			}
			fmt.Fprintln(t.s.opt.Err, t.s.words().Say(phrases.TermStopping))
			if err := t.s.stop(ctx); err != nil {
				return err
			}
		case <-gone:
			return fmt.Errorf("%w: it went away during the turn; continue with `nizectl chat --resume %s`", api.ErrNoDaemon, t.s.thread.ID)
		case <-ctx.Done():
			_ = t.s.stop(ctx) // we leave in any case
			return context.Cause(ctx)
		}
	}
}

// handleEvent shows an event and answers its cards.
func (t *turn) handleEvent(ctx context.Context, e event) (ended bool, err error) {
	if t.s.opt.JSON && e.thread == t.s.thread.ID && (e.chat.Message != nil || e.chat.State != "") {
		event := jsonEvent{Thread: e.thread, ChatEvent: e.chat}
		if m := e.chat.Message; m != nil && m.Remark != "" {
			clean, warning := *m, ""
			clean.Text, warning = splitRemark(*m)
			clean.Remark, event.Message, event.Warnings = "", &clean, []string{warning}
		}
		line, err := json.Marshal(event)
		if err != nil {
			return false, fmt.Errorf("encoding an event: %w", err)
		}
		if _, err := t.s.opt.Out.Write(append(printable.JSON(line), '\n')); err != nil {
			return false, fmt.Errorf("writing an event: %w", err)
		}
	}
	show, ended, err := t.s.handleEvent(ctx, e)
	if err != nil {
		return true, err
	}
	for _, m := range show {
		if err := t.show(ctx, m); err != nil {
			return false, err
		}
	}
	return ended, nil
}

func (t *turn) show(ctx context.Context, m store.Message) error {
	if m.Kind == store.TextMessage {
		var warning string
		if m.Text, warning = splitRemark(m); m.Final {
			t.partial = warning
		}
		if t.s.opt.JSON {
			return nil
		}
		return t.text.show(&t.s.transcript, m)
	}
	if !t.s.transcript.changed(m) {
		return nil
	}
	note := t.s.opt.Err
	if t.s.opt.JSON {
		note = io.Discard // the events contain everything
	}
	switch {
	case m.Kind == store.ToolMessage && m.Tool != nil:
		if m.Tool.State.Final() {
			t.recordOutcome(m.Tool.Name, m.Tool.State)
		}
		if !t.s.transcript.carded(m) && (m.Tool.State.Final() || t.s.opt.Approve != "all") {
			fmt.Fprintln(note, toolLine(*m.Tool, t.s.words()))
		}
	case m.Kind == store.CardMessage && m.Card != nil:
		return t.card(ctx, note, *m.Card)
	case m.Kind == store.ErrorMessage:
		t.failed = m.Text
	default:
		if m.Limit {
			t.limited = m.Text
		}
		fmt.Fprintln(note, bots.Plain(m.Text))
	}
	return nil
}

// recordOutcome records the outcome of a call for the exit code. Meta-tools have no colon
// in their names and don't count; for agents, the calls that they make do.
func (t *turn) recordOutcome(tool string, state store.State) {
	switch {
	case !strings.Contains(tool, ":"), strings.HasPrefix(tool, "agent:"):
	case state == store.Refused || state == store.Cancelled || state == store.Expired:
		t.refused = tool
	case state == store.Done:
		t.refused = ""
	}
}

// card answers a card according to --approve.
func (t *turn) card(ctx context.Context, note io.Writer, card store.Card) error {
	if !waits(&card) {
		t.cards = withoutCard(t.cards, card.Call)
		if card.State.Final() {
			t.recordOutcome(card.Tool, card.State)
			line := outcomeLine
			if t.s.opt.Approve == "all" {
				line = ranLine
			}
			fmt.Fprintln(note, line(card, t.s.reader()))
		}
		return nil
	}
	if t.pressed[card.Call] {
		return nil
	}
	t.pressed[card.Call] = true
	if t.s.opt.Approve != "all" { // after the run, one line shows what ran
		printCard(note, card, t.s.reader())
	}
	d := api.DecideCallRequest{Verb: store.Deny, Reason: string(phrases.TermNobodyToAsk)}
	switch t.s.opt.Approve {
	case "all":
		return t.approve(ctx, card)
	case "ask":
		if t.cards = append(t.cards, card); len(t.cards) == 1 {
			t.prompt.print(card)
		}
		return nil
	}
	t.decide(ctx, card, d)
	return nil
}

// approve approves a call. If that is not enough, because others or several people decide,
// the caller can do no more: the turn is left running.
func (t *turn) approve(ctx context.Context, card store.Card) error {
	decided, err := t.s.decideCall(ctx, card, api.DecideCallRequest{Verb: store.Approve, Reason: "--approve all"})
	var why string
	switch {
	case errors.Is(err, store.ErrRefused):
		why = bots.Escape(err.Error())
	case err != nil:
		fmt.Fprintln(t.s.opt.Err, t.s.problem(err)) // another answer was first: the card will show it
		return nil
	case decided.Waiting() && decided.Approved.IsZero():
		why = fmt.Sprintf("%s needs another approval, by %s", bots.Escape(card.Tool), bots.Escape(card.Who().String()))
	default:
		return nil
	}
	if err := t.text.end(); err != nil {
		return err
	}
	return store.Mark(fmt.Errorf("%s; once it is decided, continue with nizectl chat --resume %s", why, t.s.thread.ID), store.ErrRefused)
}

func (t *turn) decide(ctx context.Context, card store.Card, d api.DecideCallRequest) {
	if err := t.s.decide(ctx, card, d); err != nil {
		fmt.Fprintln(t.s.opt.Err, t.s.problem(err)) // another answer was first, or we may not decide: the card will show it
	} else if d.Always {
		fmt.Fprintln(t.s.opt.Err, bots.Escape(t.s.kept(ctx, card, d)))
	}
}

// answers handles input for the cards; the end of the input denies them.
func (t *turn) answers(ctx context.Context, b []byte, more bool) error {
	lines := t.in.take(b)
	if !more {
		lines = append(lines, t.in.end()...)
	}
	for _, line := range lines {
		if len(t.cards) == 0 {
			break
		}
		card := t.cards[0]
		d, done, show := t.prompt.parse(card, line)
		if show {
			printCard(t.s.opt.Err, card, t.s.reader())
		}
		if done {
			t.cards = t.cards[1:]
			t.decide(ctx, card, d)
		}
		if len(t.cards) > 0 {
			t.prompt.print(t.cards[0])
		}
	}
	if more {
		return nil
	}
	for _, card := range t.cards {
		t.decide(ctx, card, api.DecideCallRequest{Verb: store.Deny, Reason: string(phrases.TermInputEnded)})
	}
	t.cards = nil
	return nil
}

// result returns how the turn ended.
func (t *turn) result(stopped bool) error {
	if err := t.text.end(); err != nil {
		return err
	}
	switch {
	case t.failed != "":
		return fmt.Errorf("the turn could not go on: %s", bots.Escape(t.failed))
	case stopped:
		return fmt.Errorf("the turn was stopped: %w", api.ErrCancelled)
	case t.limited != "":
		return fmt.Errorf("the turn was not finished: %s", bots.Escape(t.limited))
	case t.partial != "":
		return fmt.Errorf("the answer is not whole: %s", bots.Escape(t.partial))
	case t.refused != "":
		return fmt.Errorf("the turn ended after %s was %w", bots.Escape(t.refused), store.ErrRefused)
	}
	return nil
}
