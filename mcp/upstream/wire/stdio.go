package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"nize/mcp/upstream/process"
	"nize/store"
)

// StdioFrames are messages as lines over the pipes of a child process.
type StdioFrames struct {
	proc        process.Child
	stdin       *os.File
	stdout      *os.File
	stderr      *os.File
	stderrEnded chan struct{} // closed when standard error has ended
	drained     sync.Once     // reads what was left in it
	out         stdoutReader
	said        saidLog
	noted       func(text []byte) // gets text that is no message; set before read; nil is nobody
	ending      sync.Once
	ended       chan struct{} // closed when the reader has come to the end of standard output
	log         *StderrLog
	budget      *Budget
	warn        func(string)
	noise       int
	killed      atomic.Pointer[error] // why Kill ended it

	queue  chan *outgoing // to the writer; unbuffered: what is in it is sent next
	quit   chan struct{}  // ends the writer
	once   sync.Once
	wg     sync.WaitGroup // writer, stderr reader
	closed chan struct{}  // closed when close has finished
}

// outgoing is one message on its way into the pipe.
type outgoing struct {
	msg  []byte
	done chan error // 1: the writer never waits for who has left
}

// StartStdio wires a spawned process up. The pipes are our ends of its standard
// input, output and error. Lines that are no messages are paid for out of the
// budget; those that are, by whoever reads them.
func StartStdio(proc process.Child, pipes [3]*os.File, log *StderrLog, budget *Budget, warn func(string)) *StdioFrames {
	stdin, stdout, stderr := pipes[0], pipes[1], pipes[2]
	f := &StdioFrames{proc: proc, stdin: stdin, stdout: stdout, stderr: stderr, log: log, budget: budget, warn: warn, stderrEnded: make(chan struct{}), ended: make(chan struct{}),
		out: stdoutReader{r: stdout, patience: stallTime}, queue: make(chan *outgoing), quit: make(chan struct{}), closed: make(chan struct{})}
	f.out.waits = f.noteOpen
	f.wg.Go(f.writer)
	f.wg.Go(func() {
		defer close(f.stderrEnded)
		if err := log.readFrom(stderr, log.budget, f.quit); errors.As(err, new(*NoiseError)) {
			f.Kill(err)
		}
	})
	return f
}

// Kill ends the process and everything that descends from it; the reader finds the
// end of its output and returns why.
func (f *StdioFrames) Kill(why error) {
	f.killed.CompareAndSwap(nil, &why)
	f.signal(syscall.SIGKILL)
}

func (f *StdioFrames) Child() process.Child { return f.proc }

// write hands the message to the writer and waits until it is in the pipe, the
// context ends, or the session does.
func (f *StdioFrames) write(ctx context.Context, msg []byte) error {
	o := &outgoing{msg: append(msg, '\n'), done: make(chan error, 1)}
	select {
	case f.queue <- o:
	case <-ctx.Done():
		return &Fault{Reach: Never, Err: ctx.Err()}
	case <-f.quit:
		return &Fault{Reach: Never, Drop: true, Err: ErrEnded}
	case <-f.proc.Done():
		return &Fault{Reach: Never, Drop: true, Err: f.exitError("it closed its standard input")}
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return &Fault{Reach: Maybe, Err: ctx.Err()}
	}
}

// writer puts messages into the pipe. A server that has stopped reading would
// block it for ever: at the deadline it is killed, with its group, and the
// reader finds the end of its output.
func (f *StdioFrames) writer() {
	for {
		select {
		case o := <-f.queue:
			o.done <- f.writeLine(o.msg)
		case <-f.quit:
			return
		}
	}
}

func (f *StdioFrames) writeLine(line []byte) error {
	if err := f.stdin.SetWriteDeadline(time.Now().Add(WriteTime)); err != nil {
		return &Fault{Reach: Never, Drop: true, Err: fmt.Errorf("its standard input: %w", err)}
	}
	n, err := f.stdin.Write(line)
	if err == nil {
		return nil
	}
	reached := Maybe
	if n < len(line)-1 {
		reached = Never // a line without its end is no message
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("it has stopped reading its standard input; it was killed after %s", WriteTime)
	}
	if errors.Is(err, syscall.EPIPE) { // how it ended says more, and is known a moment later
		err = f.exitError("it closed its standard input")
	} else {
		f.warn(err.Error())
	}
	f.signal(syscall.SIGKILL)
	return &Fault{Reach: reached, Drop: true, Err: err}
}

func (f *StdioFrames) onNoise(noted func(text []byte)) { f.noted = noted }
func (f *StdioFrames) activity() uint64                { return f.log.written() }

func (f *StdioFrames) note(text []byte) {
	if f.noted != nil {
		f.noted(text)
	}
}

// noteOpen keeps what was read of a line that has not ended. A prompt has no end, and
// neither has a message of which only the beginning comes; watch looks after answers.
func (f *StdioFrames) noteOpen(open []byte) {
	f.said.setOpen(open)
	if text := bytes.TrimSpace(open[:min(len(open), 4<<10)]); len(text) > 0 && len(open) < 4<<10 && !attemptsAnswer(text) {
		f.note(text)
	}
}

// unreadableError is an answer that can't be read.
type unreadableError struct{ text string }

func (e *unreadableError) Error() string {
	return "it wrote an answer that is not valid JSON to standard output: " + e.text
}

// read returns the next message. Other text is noise: skipped, reported in words,
// and fatal only after maxNoise lines of it. An answer that can't be read is an
// *unreadableError, after which there may be more to read.
func (f *StdioFrames) read() (msg []byte, afterText bool, err error) {
	for {
		p, err := f.out.next()
		switch {
		case errors.Is(err, errLineTooLong):
			return nil, false, err
		case errors.Is(err, errStalled):
			return nil, false, &unreadableError{Hide(f.log.hide).quote(f.out.buf) + ", and then nothing"}
		case err != nil:
			f.ending.Do(func() { close(f.ended) })
			return nil, false, f.exitError("it closed its standard output")
		case p.msg != nil && !isStray(p.msg):
			f.said.clear()
			return p.msg, p.afterText, nil
		}
		if err := f.budget.Spend(p.size+lineCost, f.quit); err != nil {
			return nil, false, err
		}
		text := bytes.TrimSpace(append(p.noise, p.msg...)) // it is one of them
		if len(text) == 0 {
			continue
		}
		f.said.add(text)
		if attemptsAnswer(text) {
			return nil, false, &unreadableError{Hide(f.log.hide).quote(text)}
		}
		f.note(text)
		if p.msg != nil {
			continue // a log in JSON
		}
		f.noise++
		words := fmt.Sprintf("it wrote a line that is not JSON to standard output: %q", store.Clip(string(text), 80))
		if f.noise > maxNoise {
			return nil, false, fmt.Errorf("%s, the %dth; it must log to standard error", words, f.noise)
		}
		if f.noise <= 3 || f.noise == maxNoise {
			f.warn(words)
		}
	}
}

// isStray reports whether valid JSON is an object that is no JSON-RPC message, such as
// a line of a log.
func isStray(msg []byte) bool {
	if len(msg) > 4<<10 || msg[0] != '{' {
		return false
	}
	e, err := openEnvelope(msg)
	return err == nil && e.method == "" && e.id == nil && e.result == nil && e.fault == nil
}

// saidLog keeps the last lines that a command wrote to standard output and that
// are no messages, since the last message.
type saidLog struct {
	mu    sync.Mutex
	lines []string
	open  string // a line that has not ended
}

// maxSaid is how many lines are kept: a stack trace goes on after its cause.
const maxSaid = 40

func (l *saidLog) add(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(text) {
		l.lines = append(l.lines, string(line[:min(len(line), 1000)]))
	}
	l.lines = l.lines[max(0, len(l.lines)-maxSaid):]
	l.open = ""
}

// setOpen keeps what was read of a line that has not ended.
func (l *saidLog) setOpen(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = string(text[:min(len(text), 1000)])
}

func (l *saidLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines, l.open = nil, ""
}

// Said is what the command wrote to standard output in place of a message, quoted
// for an error; "" is nothing.
func (f *StdioFrames) Said() string {
	f.said.mu.Lock()
	lines := slices.Clone(f.said.lines)
	if strings.TrimSpace(f.said.open) != "" {
		lines = append(lines, f.said.open)
	}
	f.said.mu.Unlock()
	for i := range lines {
		lines[i] = strings.TrimSpace(string(escapeCodes.ReplaceAll([]byte(f.log.hide(lines[i])), nil)))
	}
	lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" })
	if len(lines) == 0 {
		return ""
	}
	text := tellingLine(lines)
	if text == "" {
		text = strings.Join(lines[max(0, len(lines)-4):], " | ")
	}
	return quoted(store.Clip(text, 300))
}

// exitError says how the process ended, with its last words. It is asked when a pipe
// has ended, which comes a moment before the exit is known; open is what is said
// of a process that lives on without it.
func (f *StdioFrames) exitError(open string) error {
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-f.proc.Done():
	case <-f.quit:
		return ErrEnded
	case <-timer.C:
		return errors.New(open)
	}
	f.awaitStderr()
	if why := f.killed.Load(); why != nil {
		return *why
	}
	if over := new(process.MemoryError); errors.As(f.proc.Err(), &over) {
		return fmt.Errorf("it ended with %w", over)
	}
	how := "it exited"
	if err := f.proc.Err(); err != nil {
		how = "it ended with " + err.Error()
	}
	if last := f.log.LastWords(); last != "" {
		how += "; its last words: " + last
	}
	f.awaitStdout()
	if said := f.Said(); said != "" {
		how += "; to standard output it wrote " + said
	}
	return errors.New(how)
}

// awaitStdout waits for the reader, which may not have read yet what the process
// wrote before it ended. A grandchild can keep the pipe open.
func (f *StdioFrames) awaitStdout() {
	timer := time.NewTimer(stderrSilence)
	defer timer.Stop()
	select {
	case <-f.ended:
	case <-timer.C:
	}
}

// awaitStderr waits for what the process wrote last to standard error, which may still
// be on its way when its end is known. A grandchild can keep the pipe open, so
// a moment in which nothing comes ends the wait, and stopTime does; what is in
// the pipe then is taken out.
func (f *StdioFrames) awaitStderr() {
	defer f.drained.Do(f.drainStderr)
	moment := time.NewTicker(stderrSilence)
	defer moment.Stop()
	heard := f.log.written()
	for range stopTime / stderrSilence {
		select {
		case <-f.stderrEnded:
			return
		case <-moment.C:
		}
		now := f.log.written()
		if now == heard {
			return
		}
		heard = now
	}
}

// drainStderr stops the reader of standard error, which on a busy machine may have
// been held up for longer than a moment, and reads what it has not.
func (f *StdioFrames) drainStderr() {
	if err := f.stderr.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return // it is closed
	}
	<-f.stderrEnded
	conn, err := f.stderr.SyscallConn()
	if err == nil {
		err = f.stderr.SetReadDeadline(time.Time{})
	}
	if err == nil {
		_ = f.log.readFrom(io.LimitReader(leftover{conn}, 1<<20), nil, nil) // a grandchild may go on writing; without a budget nothing fails
	}
}

// leftover reads what is in a pipe, and never waits for more.
type leftover struct{ conn syscall.RawConn }

func (l leftover) Read(p []byte) (n int, err error) {
	broken := l.conn.Read(func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), p)
		return true
	})
	if broken != nil || err != nil || n <= 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Terminate ends the process as the MCP specification asks: standard input closed,
// then SIGTERM, then SIGKILL, always to the whole group.
func (f *StdioFrames) Terminate(kill bool) {
	f.once.Do(func() {
		defer close(f.closed)
		close(f.quit)
		f.stdin.Close()
		if !kill && !f.awaitExit() {
			f.signal(syscall.SIGTERM)
			kill = !f.awaitExit()
		}
		if kill {
			f.signal(syscall.SIGKILL)
			f.awaitExit()
		}
		f.signal(syscall.SIGKILL) // who is left of the group
		f.awaitStderr()
		f.stdout.Close()
		f.stderr.Close()
		f.wg.Wait()
	})
	<-f.closed
}

// awaitExit waits for the end of the process, at most stopTime.
func (f *StdioFrames) awaitExit() bool {
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-f.proc.Done():
		return true
	case <-timer.C:
		return false
	}
}

func (f *StdioFrames) signal(sig syscall.Signal) {
	select {
	case <-f.proc.Done():
		return
	default:
	}
	if err := f.proc.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		f.warn(fmt.Sprintf("sending %s: %v", sig, err))
	}
}
