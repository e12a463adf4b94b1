package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// quiet is how long a card must have been on the screen, with no key pressed,
// before a key counts as its answer: what was typed for something else must
// not run anything.
const quiet = 400 * time.Millisecond

// escapeWait is how long an Escape waits for the rest of a sequence.
const escapeWait = 60 * time.Millisecond

// screen is the front on a terminal. One goroutine owns it.
type screen struct {
	s       *session
	style   style
	live    *live
	in      *input
	raw     *term.State
	decoder decoder
	editor  *editor
	hist    *history

	settled []string  // lines to print with the next draw
	md      *markdown // of the text that is being written
	textID  string
	tools   []toolRow    // at work
	cards   []store.Card // that wait; the first is on the screen
	cardAt  time.Time    // since when the first one can be seen, or the last key
	args    *editor      // the arguments of the first card are being edited
	away    string       // why the connection is lost
	stops   time.Time    // when Ctrl-C was last pressed
	hint    string
	quiet   time.Duration
}

type toolRow struct{ id, line string }

func itoa(n int) string { return strconv.Itoa(n) }

func runScreen(ctx context.Context, s *session) error {
	in, ok := s.o.In.(*os.File)
	if !ok {
		return fmt.Errorf("%w: the input is no terminal", store.ErrInvalid)
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
	path := s.o.History
	if path == "" {
		path = historyPath()
	}
	hist, histErr := openHistory(path)
	f := &screen{s: s, style: s.o.style(), in: keys, raw: raw, hist: hist, quiet: quiet}
	defer func() { f.in.close() }()
	f.editor = &editor{prompt: "> ", history: hist}
	f.live = newLive(s.o.Out, 80, 24)
	f.measure()
	f.live.w.WriteString("\x1b[?2004h") // pastes come marked
	defer func() {
		f.live.erase()
		f.live.w.WriteString("\x1b[?2004l")
		f.live.w.Flush()
	}()
	f.greet(histErr)
	if s.o.Resume != "" {
		if err := f.resume(ctx, s.o.Resume); err != nil {
			return err
		}
	}
	return f.loop(ctx)
}

func (f *screen) greet(histErr error) {
	f.note(f.style.dim, f.s.words().Say(phrases.TermGreet))
	if line := f.s.offline(); line != "" {
		f.note(f.style.yellow, line)
	}
	if histErr != nil {
		f.note(f.style.yellow, bots.Escape(histErr.Error()))
	}
}

// measure asks the terminal for its size; 80 by 24 where it has none.
func (f *screen) measure() {
	width, height := 80, 24
	if out, ok := f.s.o.Out.(*os.File); ok {
		if w, h, err := term.GetSize(int(out.Fd())); err == nil && w > 0 && h > 0 {
			width, height = max(w, 20), max(h, 4)
		}
	}
	f.live.resize(width, height)
	if f.md != nil {
		f.md.width = width
	}
}

func (f *screen) loop(ctx context.Context) error {
	signals := make(chan os.Signal, 4) // a burst of resizes may fold into fewer
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
			case syscall.SIGCONT: // we were stopped and are back
				_, err = term.MakeRaw(int(f.s.o.In.(*os.File).Fd()))
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

// bye says how to come back.
func (f *screen) bye() {
	f.editor.set("")
	f.cards, f.args = nil, nil
	if f.s.thread.ID == "" {
		return
	}
	line := f.s.words().Say(phrases.TermResumes, "nizectl chat --resume "+f.s.thread.ID)
	if f.s.busy {
		line = f.s.words().Say(phrases.TermGoesOn, line)
	}
	f.say(f.style.dim(line))
}

// say settles lines that are safe to print.
func (f *screen) say(lines ...string) {
	for _, line := range lines {
		f.settled = append(f.settled, f.style.ours(line))
	}
}

// note settles a line of plain words, wrapped.
func (f *screen) note(paint func(string) string, text string) {
	for line := range strings.SplitSeq(bots.Plain(text), "\n") {
		f.say(f.style.each(paint, f.style.wrap(cells(line), f.live.width-1, "", "  "))...)
	}
}

// draw brings the terminal up to date.
func (f *screen) draw() error {
	settled := f.settled
	f.settled = nil
	var rows []string
	if f.md != nil {
		rows = append(rows, f.md.partial()...)
	}
	room := f.live.width - 1
	for _, t := range f.tools {
		rows = append(rows, f.style.dim(f.style.ours(clip(t.line, room))))
	}
	switch {
	case f.away != "":
		rows = append(rows, f.style.yellow(f.style.ours(clip(f.s.words().Say(phrases.TermLost, f.away), room))))
	case f.s.busy && len(f.cards) == 0 && f.md == nil && len(f.tools) == 0:
		rows = append(rows, f.style.dim(f.style.ours(f.s.words().Say(phrases.TermWorking))))
	}
	if f.hint != "" {
		rows = append(rows, f.style.dim(clip(f.hint, room)))
	}
	edit := f.editor
	if len(f.cards) > 0 && f.args == nil {
		keys := f.style.each(f.style.bold, f.style.wrap(cells(cardKeys(f.cards[0], f.s.words())), room, "", ""))
		rows = append(rows, keys...)
		return f.live.draw(settled, rows, len(rows)-1, min(visible(keys[len(keys)-1])+1, room))
	}
	if f.args != nil {
		edit = f.args
	}
	lines, row, col := edit.rows(f.style, f.live.width)
	return f.live.draw(settled, append(rows, lines...), len(rows)+row, col)
}

// keys takes what was typed.
func (f *screen) keys(ctx context.Context, keys []key) (leave bool, err error) {
	for _, k := range keys {
		if k.r != ctrlC {
			f.stops = time.Time{}
		}
		f.hint = ""
		switch {
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
		f.live.clear()
	case actComplete:
		f.complete()
	}
	return false, nil
}

// interrupt is Ctrl-C: it clears the line, stops the turn, or leaves when it
// comes twice.
func (f *screen) interrupt(ctx context.Context) (leave bool) {
	now := f.s.o.Now()
	twice := !f.stops.IsZero() && now.Sub(f.stops) < 3*time.Second
	f.stops = now
	switch {
	case twice:
		return true
	case f.s.busy || len(f.cards) > 0:
		f.hint = f.s.words().Say(phrases.TermStopping)
		if err := f.s.stop(ctx); err != nil {
			f.note(f.style.red, f.s.problem(err))
		}
	case f.editor.value() != "":
		f.editor.set("")
		f.stops = time.Time{}
	default:
		f.hint = f.s.words().Say(phrases.TermLeave)
	}
	return false
}

// complete finishes a / command.
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
		f.note(f.style.yellow, f.s.problem(err))
		f.hist.path = "" // said once
	}
	f.endText()
	for i, line := range strings.Split(bots.Plain(text), "\n") {
		head := "> "
		if i > 0 {
			head = "  "
		}
		f.say(f.style.wrap(paint(cells(line), lookBold), f.live.width-1, f.style.bold(head), "  ")...)
	}
	if !strings.HasPrefix(text, "/") {
		if err := f.s.say(ctx, text); err != nil {
			if errors.Is(err, context.Canceled) {
				return false, err
			}
			f.note(f.style.red, f.s.problem(err))
		}
		return false, nil
	}
	r, err := f.s.command(ctx, text)
	if err != nil {
		f.note(f.style.red, f.s.problem(err))
		return false, nil
	}
	for _, line := range r.lines {
		f.say(f.style.wrap(cells(line), f.live.width-1, "", "    ")...)
	}
	if r.fresh {
		f.reset()
	}
	if r.resume != "" {
		if err := f.resume(ctx, r.resume); err != nil {
			f.note(f.style.red, f.s.problem(err))
		}
	}
	return r.leave, nil
}

// reset forgets the conversation that was left.
func (f *screen) reset() {
	f.endText()
	f.tools, f.cards, f.args, f.away = nil, nil, nil, ""
}

// resume shows a stored conversation and goes on with it.
func (f *screen) resume(ctx context.Context, id string) error {
	view, err := f.s.resume(ctx, id)
	if err != nil {
		return err
	}
	f.reset()
	for _, turn := range view.Turns {
		m, ok := turnMessage(turn, f.s.words())
		switch {
		case !ok:
		case turn.Role == store.FromUser:
			f.note(f.style.bold, "> "+turn.Text)
		default:
			f.show(m)
		}
	}
	for _, card := range view.Cards {
		f.show(store.Message{ID: card.Call, Kind: store.CardMessage, Card: &card})
	}
	return nil
}
