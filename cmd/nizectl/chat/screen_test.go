package chat

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/creack/pty"

	"nize/daemon/api"
	"nize/store"
)

// console is a pseudo-terminal with a chat in it.
type console struct {
	t     *testing.T
	ptmx  *os.File
	done  chan error
	ahead atomic.Int64 // of the chat's clock, which stands still otherwise

	mu     sync.Mutex // guards what follows
	text   strings.Builder
	change chan struct{} // closed and replaced when text grows
	from   int           // where the next await begins to look
}

func openConsole(t *testing.T, o Options, env map[string]string) *console {
	t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	if err := pty.Setsize(ptmx, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	o.In, o.Out, o.Err, o.TTY = tty, tty, tty, true
	if o.History == "" {
		o.History = filepath.Join(t.TempDir(), "history")
	}
	o.Getenv = func(name string) string { return env[name] }
	c := &console{t: t, ptmx: ptmx, done: make(chan error, 1), change: make(chan struct{})}
	began := time.Now()
	o.Now = func() time.Time { return began.Add(time.Duration(c.ahead.Load())) }
	ctx, cancel := context.WithCancel(context.Background())
	var run, read sync.WaitGroup
	run.Go(func() { c.done <- Run(ctx, o) })
	read.Go(c.read)
	t.Cleanup(func() {
		cancel()
		run.Wait()
		tty.Close()
		ptmx.Close()
		read.Wait()
	})
	return c
}

func (c *console) read() {
	b := make([]byte, 4096)
	for {
		n, err := c.ptmx.Read(b)
		c.mu.Lock()
		c.text.Write(b[:n])
		close(c.change)
		c.change = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await waits until want has been written since the last await.
func (c *console) await(want string) {
	c.t.Helper()
	c.until(want, func(all string) bool {
		i := strings.Index(all[c.from:], want)
		if i >= 0 {
			c.from += i + len(want)
		}
		return i >= 0
	})
}

// until waits until all that was written satisfies ok.
func (c *console) until(what string, ok func(all string) bool) {
	c.t.Helper()
	timeout := time.After(time.Minute)
	for {
		c.mu.Lock()
		found, change := ok(c.text.String()), c.change
		c.mu.Unlock()
		if found {
			return
		}
		select {
		case <-change:
		case <-timeout:
			c.t.Fatalf("waiting for %q; the terminal got %q", what, c.all())
		}
	}
}

func (c *console) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

func (c *console) send(text string) {
	c.t.Helper()
	if _, err := c.ptmx.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

// answer presses a key for the card on the screen, which has stood there for long
// enough.
func (c *console) answer(key, want string) {
	c.t.Helper()
	c.ahead.Add(int64(cardDelay))
	c.send(key)
	c.await(want)
}

func (c *console) end() error {
	c.t.Helper()
	select {
	case err := <-c.done:
		return err
	case <-time.After(time.Minute):
		c.t.Fatalf("the chat does not end; the terminal got %q", c.all())
		return nil
	}
}

func TestScreen(t *testing.T) {
	d := newDaemon(t)
	history := filepath.Join(t.TempDir(), "state", "history")
	c := openConsole(t, Options{Client: d.client(), History: history}, nil)
	c.await("No model provider")
	c.send("say hello **bold** and `code`\r")
	c.await("\x1b[1mbold\x1b[0m")
	c.send(`call toolbox:greet {"name":"Bo","raw":"a` + "\\u202e" + `b"}` + "\r")
	c.await("Run toolbox:greet?")
	c.await(`a\u202eb`)
	c.await("y run, n decline")
	c.answer("y", "· Done")
	c.await("toolbox:greet is done")
	c.send("/hel\t\r")
	c.await("my conversations, newest first")
	c.send("/qut\r")
	c.await("did you mean /quit?")
	c.send("\x04")
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	c.await("--resume") // how to come back; the terminal may read it a moment later
	info, err := os.Stat(history)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("history: %v, %v; want mode 0600", info, err)
	}
}

// shown is what stands on a terminal that got that much.
func shown(stream string) string {
	lines, row, col := [][]rune{nil}, 0, 0
	for rest := []rune(stream); len(rest) > 0; {
		r := rest[0]
		rest = rest[1:]
		switch r {
		case '\r':
			col = 0
		case '\n':
			if row++; row == len(lines) {
				lines = append(lines, nil)
			}
		case 0x1b:
			end := slices.IndexFunc(rest, unicode.IsLetter)
			n := max(1, atoi(strings.TrimLeft(string(rest[1:end]), "?")))
			switch rest[end] {
			case 'A':
				row = max(row-n, 0)
			case 'C':
				col += n
			case 'J':
				lines = lines[:row+1]
				lines[row] = lines[row][:min(col, len(lines[row]))]
			}
			rest = rest[end+1:]
		default:
			for len(lines[row]) <= col {
				lines[row] = append(lines[row], ' ')
			}
			lines[row][col] = r
			col++
		}
	}
	var out strings.Builder
	for _, l := range lines {
		out.WriteString(string(l) + "\n")
	}
	return out.String()
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s) // the empty text is none
	return n
}

// One line takes the place of a card; a card that is higher than the terminal
// stands above, where it can be scrolled to.
func TestScreenCardIsReplaced(t *testing.T) {
	d := newDaemon(t)
	c := openConsole(t, Options{Client: d.client()}, nil)
	c.await("No model provider")
	c.send("call toolbox:greet {\"name\":\"Bo\"}\r")
	c.await("y run, n decline")
	if now := shown(c.all()); strings.Count(now, "Run toolbox:greet?") != 1 || strings.Contains(now, "call: ") {
		t.Errorf("a card that waits:\n%s", now)
	}
	c.ahead.Add(int64(cardDelay))
	c.send("?")
	c.await("? details, Ctrl-C")
	if now := shown(c.all()); strings.Count(now, "Run toolbox:greet?") != 1 || strings.Count(now, "call: ") != 1 || strings.Count(now, "digest: ") != 1 || strings.Contains(now, "…\ncall: ") {
		t.Errorf("its details:\n%s", now)
	}
	c.answer("y", "toolbox:greet is done")
	if now := shown(c.all()); strings.Contains(now, "╭") || strings.Count(now, "toolbox:greet · Done · approved by ann") != 1 {
		t.Errorf("after the decision:\n%s", now)
	}
	c.send("/details\r")
	c.await(`name: Bo`)
	c.send("call toolbox:greet {\"a\":[" + strings.Repeat("1,", 40) + "2]}\r")
	c.await("y run, n decline")
	c.answer("n", "toolbox:greet is refused")
	if now := shown(c.all()); strings.Count(now, "╭") != 1 || strings.Count(now, "|   1,") != 40 {
		t.Errorf("a card that is too high:\n%s", now)
	}
}

// Always and never ask before anything is kept; the narrowest stands chosen.
func TestScreenStanding(t *testing.T) {
	d := newDaemon(t)
	c := openConsole(t, Options{Client: d.client()}, nil)
	c.await("providers add")
	c.send("call toolbox:greet {\"name\":\"Bo\"}\r")
	c.await("y run, n decline")
	c.answer("a", "Escape goes back")
	if now := shown(c.all()); !strings.Contains(now, "> For whose calls: [mine]") || !strings.Contains(now, "  With which arguments: [exactly those of this call]") || !strings.Contains(now, "  For how long: [for 1h]") {
		t.Errorf("asked:\n%s", now)
	}
	c.send("\x1b")
	c.await("y run, n decline")
	c.answer("a", "Escape goes back")
	c.send("\x1b[B\x1b[C\x1b[B\x1b[D\r")
	c.await("toolbox:greet is done")
	calls, err := d.db.ListCalls(t.Context(), store.CallQuery{})
	if err != nil || len(calls) != 1 || len(calls[0].Decisions) != 1 {
		t.Fatalf("%+v, %v", calls, err)
	}
	got := calls[0].Decisions[0]
	if !got.Always || got.For != store.ForMe || got.Exact || !got.Until.IsZero() || got.Verb != store.Approve {
		t.Errorf("decided: %+v", got)
	}
}

func TestScreenEarlyKey(t *testing.T) {
	d := newDaemon(t)
	c := openConsole(t, Options{Client: d.client()}, nil)
	c.await("No model provider")
	c.send("call toolbox:greet {}\ryyyy?") // typed ahead: no answer to a card that nobody has seen
	c.await("Run toolbox:greet?")
	c.await("y run, n decline")
	c.until("what the last key does", func(all string) bool { // in the line that was there before the card, or to the card
		return strings.Contains(all, "yyyy?") || strings.Contains(all, "Ctrl-C stop the turn")
	})
	c.answer("n", "toolbox:greet is refused")
}

func TestScreenStop(t *testing.T) {
	d := newDaemon(t)
	c := openConsole(t, Options{Client: d.client()}, nil)
	c.await("No model provider")
	c.send("slow thinking hard\r")
	c.await("thinking hard") // what was typed
	c.await("\x1b[Jthinking hard")
	c.send("\x03")
	c.await("Stopped.")
	c.send("slow again\r\x03") // before it has begun
	c.await("Stopped.")
	c.send("say on we go\r")
	c.await("on we go")
	c.await("on we go")
	c.send("\x03")
	c.await("once more")
	c.send("\x03")
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
}

func TestScreenEdit(t *testing.T) {
	d := newDaemon(t)
	c := openConsole(t, Options{Client: d.client()}, nil)
	c.await("No model provider")
	c.send("call toolbox:greet {\"n\":1}\r")
	c.await("y run, n decline")
	c.answer("e", "arguments>")
	c.send("\x15{broken\r")
	c.await("invalid JSON")
	c.send("\x15{\"n\":42}\r")
	c.await("toolbox:greet is done")
	c.send("/details\r")
	c.await(`ran with {"n":42}`)
}

func TestScreenRetry(t *testing.T) {
	d := newDaemon(t)
	c := openConsole(t, Options{Client: d.client()}, nil)
	c.await("No model provider")
	c.send("/retry\r")
	c.await("No call here failed")
	c.send("call toolbox:fail {\"n\":7}\r")
	c.await("y run, n decline")
	c.answer("y", "(/retry repeats it)")
	c.send("/retry\r")
	c.await("toolbox:fail is being repeated")
	c.await("· Done")
	c.send("/details\r")
	c.await(`ran with {"n":7}`)
	c.send("/retry\r")
	c.await("No call here failed")
}

func TestScreenEditor(t *testing.T) {
	d := newDaemon(t)
	program := filepath.Join(t.TempDir(), "ed")
	script := "#!/bin/sh\nprintf 'editing %s' \"$(stat -c %a \"$1\")\"\nprintf '{\"n\":43}' > \"$1\"\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := openConsole(t, Options{Client: d.client()}, map[string]string{"EDITOR": program})
	c.await("No model provider")
	c.send("call toolbox:greet {\"n\":1}\r")
	c.await("y run, n decline")
	c.answer("e", "editing 600")
	c.await(" is done")
	c.send("/details\r")
	c.await(`ran with {"n":43}`)
	c.send("say the keys are back\r")
	c.await("the keys are back")
}

// What was typed and does not fit is there again when the call is edited next.
func TestScreenEditorAgain(t *testing.T) {
	d := newDaemon(t)
	program := filepath.Join(t.TempDir(), "ed")
	script := "#!/bin/sh\ncase \"$(cat \"$1\")\" in\n*broken*) printf '{\"n\":44}' > \"$1\";;\n*) printf '{broken' > \"$1\";;\nesac\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := openConsole(t, Options{Client: d.client()}, map[string]string{"VISUAL": program, "EDITOR": "/nowhere"})
	c.await("providers add")
	c.send("call toolbox:greet {\"n\":1}\r")
	c.await("y run, n decline")
	c.answer("e", "what you typed is kept")
	c.await("y run, n decline")
	c.answer("e", " is done")
	c.send("/details\r")
	c.await(`ran with {"n":44}`)
}

func TestScreenResize(t *testing.T) {
	d := newDaemon(t)
	c := openConsole(t, Options{Client: d.client()}, nil)
	c.await("No model provider")
	if err := pty.Setsize(c.ptmx, &pty.Winsize{Rows: 10, Cols: 40}); err != nil {
		t.Fatal(err)
	}
	// The chat has no controlling terminal here, so the signal is sent by hand.
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	c.send("say " + strings.Repeat("word ", 30))
	c.await("> \x1b[0msay " + strings.Repeat("word ", 6) + "wor\r\n") // the line is broken anew: the chat has heard of it
	c.send("\r")
	c.await(strings.TrimSpace(strings.Repeat("word ", 8)) + "\r\n" + "word")
}

func TestScreenReconnect(t *testing.T) {
	d := newDaemon(t)
	c := openConsole(t, Options{Client: d.client()}, nil)
	c.await("No model provider")
	c.send("call toolbox:greet {}\r")
	c.await("y run, n decline")
	d.stop()
	c.await("connection lost")
	d.start()
	c.await("connected again")
	c.answer("y", "· Done")
	c.await("toolbox:greet is done")
}

func TestScreenResume(t *testing.T) {
	d := newDaemon(t)
	out, _, err := runChat(t, Options{Client: d.client(), Message: "say remember me"})
	if err != nil {
		t.Fatal(out, err)
	}
	threads, err := d.db.ListThreads(t.Context(), "", 1)
	if err != nil || len(threads) != 1 {
		t.Fatal(threads, err)
	}
	c := openConsole(t, Options{Client: d.client(), Resume: threads[0].ID}, map[string]string{"NO_COLOR": "1"})
	c.await("> say remember me")
	c.await("remember me")
	c.send("say again\r")
	c.await("again")
	if strings.Contains(c.all(), "\x1b[3") {
		t.Error("colours despite NO_COLOR")
	}
	c2 := openConsole(t, Options{Client: d.client(), Resume: store.NewID(time.Now())}, nil)
	if got := api.ExitCode(c2.end()); got != api.ExitNotFound {
		t.Errorf("resuming what is not there: exit %d", got)
	}
}

func TestDumbTerminal(t *testing.T) {
	d := newDaemon(t)
	c := openConsole(t, Options{Client: d.client()}, map[string]string{"TERM": "dumb"})
	c.await("> ")
	c.send("call toolbox:greet {\"a\":1}\n")
	c.await("d never")
	c.send("e\n")
	c.await("new arguments")
	c.send("nonsense\n")
	c.await("invalid JSON")
	c.send("{\"a\":2}\n")
	c.await("toolbox:greet is done")
	c.send("/details\n")
	c.await(`ran with {"a":2}`)
	c.send("/quit\n")
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(c.all(), "\x1b") {
		t.Errorf("an escape sequence on a dumb terminal: %q", c.all())
	}
}
