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

// input reads a terminal, or anything else, in a goroutine that can be called
// off: a read of a file waits in poll beside a pipe that ends it. That lets an
// editor have the terminal for a while. What is no file can't be called off;
// then the goroutine ends with the reader.
type input struct {
	chunks chan []byte // unbuffered: what nobody took stays in the terminal. Closed at the end
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

// close calls the goroutine off and, for a file, waits for it.
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

// lineReader cuts an input into lines. What is longer than a message may be
// comes in pieces, which the daemon then refuses.
type lineReader struct {
	in  *input
	buf []byte
	eof bool
}

// take puts what was read to the rest of the line and returns whole lines.
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
