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

// StdioFrames carries messages as lines over the pipes of a child process.
type StdioFrames struct {
	proc        process.Child
	stdin       *os.File
	stdout      *os.File
	stderr      *os.File
	stderrEnded chan struct{} // closed when standard error has ended
	drained     sync.Once     // reads the rest of it
	out         stdoutReader
	said        saidLog
	noted       func(text []byte) // called with text that is not a message; set before read; may be nil
	ending      sync.Once
	ended       chan struct{} // closed when the reader has reached the end of standard output
	log         *StderrLog
	budget      *Budget
	warn        func(string)
	noise       int
	killed      atomic.Pointer[error] // the reason given to Kill

	queue  chan *outgoing // to the writer; unbuffered, so a message in it is sent next
	quit   chan struct{}  // ends the writer
	once   sync.Once
	wg     sync.WaitGroup // writer, stderr reader
	closed chan struct{}  // closed when close has finished
}

// outgoing is one message to be written into the pipe.
type outgoing struct {
	msg  []byte
	done chan error // capacity 1: the writer never blocks on a caller that left
}

// StartStdio starts the frames of a spawned process. pipes are our ends of its standard
// input, output and error. Lines that are not messages are charged to the budget here;
// messages are charged by their reader.
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

// Kill kills the process and its descendants. The reader then gets the end of the output
// and returns why.
func (f *StdioFrames) Kill(why error) {
	f.killed.CompareAndSwap(nil, &why)
	f.signal(syscall.SIGKILL)
}

func (f *StdioFrames) Child() process.Child { return f.proc }

// write passes the message to the writer and waits until it is in the pipe, or the context
// or the session ends.
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

// writer writes messages into the pipe. A server that has stopped reading would block it
// for ever, so at the deadline it kills the server and its process group, and the reader
// gets the end of the output.
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
		reached = Never // an incomplete line is not a message
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("it has stopped reading its standard input; it was killed after %s", WriteTime)
	}
	if errors.Is(err, syscall.EPIPE) { // the exit status says more, and is known shortly after
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

// noteOpen records the text of an unfinished line. A prompt has no end, and neither has a
// message that was only begun; watch handles unfinished answers.
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

// read returns the next message. Other text is noise: it is skipped and logged, and only
// maxNoise lines of it are fatal. For an answer that can't be read it returns an
// *unreadableError, after which reading may continue.
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
		text := bytes.TrimSpace(append(p.noise, p.msg...)) // one of them is empty
		if len(text) == 0 {
			continue
		}
		f.said.add(text)
		if attemptsAnswer(text) {
			return nil, false, &unreadableError{Hide(f.log.hide).quote(text)}
		}
		f.note(text)
		if p.msg != nil {
			continue // a JSON log line
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

// isStray reports whether valid JSON is an object that is not a JSON-RPC message, such as a
// log line.
func isStray(msg []byte) bool {
	if len(msg) > 4<<10 || msg[0] != '{' {
		return false
	}
	e, err := openEnvelope(msg)
	return err == nil && e.method == "" && e.id == nil && e.result == nil && e.fault == nil
}

// saidLog keeps the last lines of a command's standard output since the last message that
// are not messages.
type saidLog struct {
	mu    sync.Mutex
	lines []string
	open  string // an unfinished line
}

// maxSaid is how many lines are kept: a stack trace continues after its cause.
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

// setOpen records the text of an unfinished line.
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

// Said returns the command's output that was not a message, quoted for an error, or "".
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

// exitError returns how the process exited, with its stated reason. It is called when a
// pipe has ended, which happens shortly before the exit status is known. open is the error
// for a process that keeps running without the pipe.
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

// awaitStdout waits for the reader, which may not have read the last output of the process
// yet. A grandchild can keep the pipe open.
func (f *StdioFrames) awaitStdout() {
	timer := time.NewTimer(stderrSilence)
	defer timer.Stop()
	select {
	case <-f.ended:
	case <-timer.C:
	}
}

// awaitStderr waits for the last output of the process on standard error, which may still
// be in transit when the exit is known. A grandchild can keep the pipe open, so the wait
// ends after a short silence or after stopTime; then the rest is read from the pipe without
// waiting.
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

// drainStderr stops the reader of standard error, which may have been delayed for long on a
// busy machine, and reads the rest.
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
		_ = f.log.readFrom(io.LimitReader(leftover{conn}, 1<<20), nil, nil) // a grandchild may continue to write; without a budget this can't fail
	}
}

// leftover reads the content of a pipe without ever waiting for more.
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

// Terminate ends the process as the MCP specification requires: it closes standard input,
// then sends SIGTERM, then SIGKILL, always to the whole process group.
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
		f.signal(syscall.SIGKILL) // the rest of the group
		f.awaitStderr()
		f.stdout.Close()
		f.stderr.Close()
		f.wg.Wait()
	})
	<-f.closed
}

// awaitExit waits for the exit of the process, for at most stopTime, and reports whether it
// has exited.
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
