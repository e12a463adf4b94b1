package wire

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nize/mcp/upstream/process"
	"nize/store"
)

// pipes are the two ends of a child's standard input, output and error.
func pipes(t testing.TB) (ours, theirs [3]*os.File) {
	t.Helper()
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if ours[i], theirs[i] = r, w; i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	return ours, theirs
}

// What a command writes while it ends is kept, also what is still in the pipe
// when its end is known.
func TestLastWordsOfAStop(t *testing.T) {
	for range 10 {
		ours, theirs := pipes(t)
		proc, err := process.SpawnDirect(process.Command{Path: "/bin/sh", Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Files: theirs,
			Args: []string{"-c", `cat >/dev/null; head -c 60000 /dev/zero | tr '\0' x >&2; echo >&2; echo goodbye >&2`}})
		for _, f := range theirs {
			f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		log := NewStderrLog(slog.New(slog.DiscardHandler))
		f := StartStdio(proc, ours, log, nil, func(msg string) { t.Error(msg) })
		f.Terminate(false)
		if got := log.lastLines(1); !strings.Contains(got, "goodbye") {
			t.Fatalf("its last words are %q", got)
		}
	}
}

// What stands in the pipe when a reader was held up is read by who closes it.
func TestLastWordsOfASlowReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close() // a grandchild keeps it open
	log := NewStderrLog(slog.New(slog.DiscardHandler))
	f := &StdioFrames{stderr: r, log: log, stderrEnded: make(chan struct{})}
	go func() {
		defer close(f.stderrEnded)
		var b [6]byte
		for {
			if _, err := r.Read(b[:]); err != nil {
				return
			}
			log.addLine(string(b[:]))
			if _, err := w.WriteString("second\nthird\n"); err != nil {
				t.Error(err)
			}
			if err := r.SetReadDeadline(time.Unix(1, 0)); err != nil { // it comes to no more
				t.Error(err)
			}
		}
	}()
	if _, err := w.WriteString("first\n"); err != nil {
		t.Fatal(err)
	}
	<-f.stderrEnded
	f.awaitStderr()
	f.awaitStderr()
	if got := log.lastLines(5); got != "first | second | third" {
		t.Errorf("its last words are %q", got)
	}
}

// lateEnd is a process whose pipes have ended, and whose own end is known only
// when it is asked for a second time.
type lateEnd struct {
	asked atomic.Int32
	done  chan struct{}
}

func (p *lateEnd) PID() int                    { return 1 }
func (p *lateEnd) Signal(syscall.Signal) error { return nil }
func (p *lateEnd) Limit(store.Size) bool       { return false }
func (p *lateEnd) Err() error                  { return errors.New("exit status 3") }

func (p *lateEnd) Done() <-chan struct{} {
	if p.asked.Add(1) == 2 {
		close(p.done)
	}
	return p.done
}

// A command that ends before it has read anything is reported with its exit
// status and last words, whether the reader or the writer finds out first.
func TestWriteAfterTheEnd(t *testing.T) {
	ours, theirs := pipes(t)
	if _, err := theirs[2].WriteString("cannot open the database\n"); err != nil {
		t.Fatal(err)
	}
	for _, f := range theirs {
		f.Close()
	}
	f := StartStdio(&lateEnd{done: make(chan struct{})}, ours, NewStderrLog(slog.New(slog.DiscardHandler)), nil, func(msg string) { t.Errorf("a warning: %s", msg) })
	defer f.Terminate(true)
	err := f.write(t.Context(), []byte(`{}`))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "cannot open the database") {
		t.Errorf("error %v, want its exit status and its last words", err)
	}
	if fault := AsFault(err); fault.Reach != Never || !fault.Drop {
		t.Errorf("%+v", fault)
	}
}
