package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// escapeWait is how long an Escape waits for the rest of a sequence.
const escapeWait = 60 * time.Millisecond

func runScreen(ctx context.Context, s *session) error {
	in, ok := s.opt.In.(*os.File)
	if !ok {
		return fmt.Errorf("%w: the input is not a terminal", store.ErrInvalid)
	}
	raw, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("taking hold of the terminal: %w", err)
	}
	defer term.Restore(int(in.Fd()), raw)
	keys, err := openInput(in)
	if err != nil {
		return err
	}
	path := s.opt.History
	if path == "" {
		path = historyPath()
	}
	hist, histErr := openHistory(path)
	f := &screen{s: s, style: s.opt.style(), in: keys, raw: raw, hist: hist, cardDelay: cardDelay}
	defer func() { f.in.close() }()
	f.editor = &editor{prompt: "> ", history: hist}
	f.region = newRegion(s.opt.Out, 80, 24)
	f.measure()
	f.region.w.WriteString("\x1b[?2004h") // bracketed paste
	defer func() {
		f.region.erase()
		f.region.w.WriteString("\x1b[?2004l")
		f.region.w.Flush()
	}()
	f.greet(histErr)
	if s.opt.Resume != "" {
		if err := f.resume(ctx, s.opt.Resume); err != nil {
			return err
		}
	}
	return f.loop(ctx)
}

func (f *screen) loop(ctx context.Context) error {
	signals := make(chan os.Signal, 4) // a burst of resizes may be merged
	signal.Notify(signals, syscall.SIGWINCH, os.Interrupt, syscall.SIGCONT)
	defer signal.Stop(signals)
	var escape <-chan time.Time
	for {
		if err := f.draw(); err != nil {
			return fmt.Errorf("writing to the terminal: %w", err)
		}
		var leave bool
		var err error
		select {
		case b, ok := <-f.in.chunks:
			if !ok {
				return nil // the terminal is gone
			}
			leave, err = f.keys(ctx, f.decoder.feed(b))
			escape = nil
			if len(f.decoder.buf) > 0 {
				escape = time.After(escapeWait)
			}
		case <-escape:
			leave, err = f.keys(ctx, f.decoder.flush())
			escape = nil
		case e := <-f.s.events:
			f.event(ctx, e)
		case sig := <-signals:
			switch sig {
			case os.Interrupt:
				leave = f.interrupt(ctx)
			case syscall.SIGCONT: // continued after a stop
				_, err = term.MakeRaw(int(f.s.opt.In.(*os.File).Fd()))
				f.measure()
			default:
				f.measure()
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if leave {
			f.bye()
			return f.draw()
		}
	}
}

// bye prints how to resume the conversation.
func (f *screen) bye() {
	f.editor.set("")
	f.cards, f.args = nil, nil
	if f.s.thread.ID == "" || f.s.opt.Ephemeral {
		return
	}
	line := f.s.words().Say(phrases.TermResumes, "nizectl chat --resume "+f.s.thread.ID)
	if f.s.busy {
		line = f.s.words().Say(phrases.TermGoesOn, line)
	}
	f.printLines(f.style.dim(line))
}

// keys handles typed keys.
func (f *screen) keys(ctx context.Context, keys []key) (leave bool, err error) {
	for _, k := range keys {
		if k.r != ctrlC {
			f.interrupted = time.Time{}
		}
		f.hint = ""
		switch {
		case f.standing != nil && len(f.cards) > 0:
			f.standingKey(ctx, k)
		case f.args != nil && f.answers != nil && len(f.cards) > 0:
			f.fieldKey(ctx, k)
		case f.args != nil:
			f.argsKey(ctx, k)
		case len(f.cards) > 0 && k.r != ctrlC && k.r != ctrlD && k.r != ctrlL:
			err = f.cardKey(ctx, k)
		default:
			leave, err = f.editKey(ctx, k)
		}
		if leave || err != nil {
			return leave, err
		}
	}
	return false, nil
}

func (f *screen) editKey(ctx context.Context, k key) (leave bool, err error) {
	switch f.editor.press(k) {
	case actSubmit:
		text := strings.TrimSpace(f.editor.value())
		f.editor.set("")
		if text == "" {
			return false, nil
		}
		return f.submit(ctx, text)
	case actInterrupt:
		return f.interrupt(ctx), nil
	case actLeave:
		return true, nil
	case actRedraw:
		f.region.clear()
	case actComplete:
		f.complete()
	}
	return false, nil
}

// interrupt handles Ctrl-C: it clears the line, stops the turn, or, pressed twice, ends the
// chat.
func (f *screen) interrupt(ctx context.Context) (leave bool) {
	now := f.s.opt.Now()
	twice := !f.interrupted.IsZero() && now.Sub(f.interrupted) < 3*time.Second
	f.interrupted = now
	switch {
	case twice:
		return true
	case f.s.busy || len(f.cards) > 0:
		f.hint = f.s.words().Say(phrases.TermStopping)
		if err := f.s.stop(ctx); err != nil {
			f.printText(f.style.red, f.s.problem(err))
		}
	case f.editor.value() != "":
		f.editor.set("")
		f.interrupted = time.Time{}
	default:
		f.hint = f.s.words().Say(phrases.TermLeave)
	}
	return false
}

// complete completes a / command.
func (f *screen) complete() {
	text := f.editor.value()
	if !strings.HasPrefix(text, "/") || strings.Contains(text, " ") {
		return
	}
	var fits []string
	for _, name := range commandNames() {
		if strings.HasPrefix(name, text) {
			fits = append(fits, name)
		}
	}
	switch len(fits) {
	case 0:
	case 1:
		f.editor.set(fits[0] + " ")
	default:
		f.hint = strings.Join(fits, "  ")
	}
}

// submit sends a message or runs a command.
func (f *screen) submit(ctx context.Context, text string) (leave bool, err error) {
	if err := f.hist.add(text); err != nil {
		f.printText(f.style.yellow, f.s.problem(err))
		f.hist.path = "" // report it once
	}
	f.endText()
	for i, line := range strings.Split(bots.Plain(text), "\n") {
		head := "> "
		if i > 0 {
			head = "  "
		}
		f.printLines(f.style.wrap(paint(cells(line), lookBold), f.region.width-1, f.style.bold(head), "  ")...)
	}
	if !strings.HasPrefix(text, "/") {
		if err := f.s.say(ctx, text); err != nil {
			if errors.Is(err, context.Canceled) {
				return false, err
			}
			f.printText(f.style.red, f.s.problem(err))
		}
		return false, nil
	}
	r, err := f.s.command(ctx, text)
	if err != nil {
		f.printText(f.style.red, f.s.problem(err))
		return false, nil
	}
	for _, line := range r.lines {
		f.printLines(f.style.wrap(cells(line), f.region.width-1, "", "    ")...)
	}
	if r.fresh {
		f.reset()
	}
	if r.resume != "" {
		if err := f.resume(ctx, r.resume); err != nil {
			f.printText(f.style.red, f.s.problem(err))
		}
	}
	return r.leave, nil
}

// cardKey answers the card on the screen. Keys pressed before the card could be read don't
// count.
func (f *screen) cardKey(ctx context.Context, k key) error {
	now := f.s.opt.Now()
	early := now.Sub(f.cardSince) < f.cardDelay
	c := f.cards[0]
	var d api.DecideCallRequest
	switch {
	case k.r == '?':
		f.details(c)
		return nil
	case early:
		f.cardSince = now
		f.hint = f.s.words().Say(phrases.TermReadFirst)
		return nil
	case c.Question != nil:
		f.questionKey(ctx, c, k)
		return nil
	case k.r == 'y':
		d = api.DecideCallRequest{Verb: store.Approve}
	case k.r == 'Y' && c.Together > 0:
		d = api.DecideCallRequest{Verb: store.RunAll}
	case k.r == 'n':
		d = api.DecideCallRequest{Verb: store.Deny}
	case k.r == 'r':
		f.args, f.declines = &editor{prompt: f.s.words().Say(phrases.TermReason)}, true
		f.hint = f.s.words().Say(phrases.TermReasonHint)
		return nil
	case k.r == 'a' && c.Always:
		f.standing = newStanding(store.Approve, bots.ScopesOf(c, false, true), f.s.words())
		return nil
	case k.r == 'd':
		f.standing = newStanding(store.Deny, bots.StandingScopes{Everyone: true}, f.s.words())
		return nil
	case k.r == 'e':
		return f.editArgs(ctx, c)
	default:
		f.hint = f.s.words().Say(phrases.TermCallWaits)
		return nil
	}
	f.decide(ctx, c, d)
	return nil
}
