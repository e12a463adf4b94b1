package chat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"nize/bots"

	"golang.org/x/sys/unix"
)

// input reads a terminal, or another reader, in a goroutine that can be cancelled: for a
// file, poll waits for input or for a pipe that ends it. That lets an editor have the
// terminal for a while. Reading from anything but a file can't be cancelled; then the
// goroutine ends with the reader.
type input struct {
	chunks chan []byte // unbuffered: unread input stays in the terminal. Closed at the end
	r      io.Reader
	file   *os.File
	wakeR  *os.File
	wakeW  *os.File
	done   chan struct{}
	wg     sync.WaitGroup
	once   sync.Once
}

func openInput(r io.Reader) (*input, error) {
	in := &input{chunks: make(chan []byte), r: r, done: make(chan struct{})}
	if f, ok := r.(*os.File); ok {
		var err error
		if in.wakeR, in.wakeW, err = os.Pipe(); err != nil {
			return nil, fmt.Errorf("opening the terminal: %w", err)
		}
		in.file = f
	}
	in.wg.Go(in.loop)
	return in, nil
}

// close cancels the goroutine and, for a file, waits for it.
func (in *input) close() {
	in.once.Do(func() {
		close(in.done)
		if in.file == nil {
			return
		}
		in.wakeW.Close()
		in.wg.Wait()
		in.wakeR.Close()
	})
}

func (in *input) loop() {
	defer close(in.chunks)
	for {
		b := make([]byte, 4096)
		n, err := in.read(b)
		if n > 0 {
			select {
			case in.chunks <- b[:n]:
			case <-in.done:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (in *input) read(b []byte) (int, error) {
	if in.file == nil {
		return in.r.Read(b)
	}
	fds := []unix.PollFd{
		{Fd: int32(in.file.Fd()), Events: unix.POLLIN},
		{Fd: int32(in.wakeR.Fd()), Events: unix.POLLIN},
	}
	for {
		if _, err := unix.Poll(fds, -1); err != nil {
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return 0, err
		}
		if fds[1].Revents != 0 {
			return 0, io.EOF
		}
		if fds[0].Revents != 0 {
			return in.file.Read(b)
		}
	}
}

// lineReader splits an input into lines. A line longer than a message may be is returned in
// pieces, which the daemon then refuses.
type lineReader struct {
	in  *input
	buf []byte
	eof bool
}

// take appends input to the rest of the line and returns complete lines.
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
