package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// lines passes on only the data lines of an event stream, each followed by an
// empty one. The library counts every other line, and reads a line that begins
// with an error object in its own way, differently from one where the error
// stands later: a space behind the brace keeps it from that.
type lines struct {
	src     io.ReadCloser
	buf     *bufio.Reader
	plain   bool // the answer is one JSON document
	pending []byte
	err     error
}

func newLines(src io.ReadCloser, plain bool) *lines {
	return &lines{src: src, buf: bufio.NewReader(src), plain: plain}
}

func (l *lines) Close() error { return l.src.Close() }

func (l *lines) Read(p []byte) (int, error) {
	for len(l.pending) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		l.fill()
	}
	n := copy(p, l.pending)
	l.pending = l.pending[n:]
	return n, nil
}

// fill reads the next data line, or the end.
func (l *lines) fill() {
	if l.plain {
		l.fillPlain()
		return
	}
	line, err := readLine(l.buf)
	l.err = err
	line = bytes.TrimPrefix(line, []byte("\ufeff")) // a byte order mark stands before some streams
	data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
	if !ok {
		return
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 || err != nil && !json.Valid(data) {
		return // a line that broke off has said nothing
	}
	l.pending = event(data)
}

// fillPlain makes one event of a plain JSON answer. It is read whole before
// anything is passed on; half a document is an error.
func (l *lines) fillPlain() {
	doc, err := io.ReadAll(l.buf)
	if err != nil {
		l.err = err
		return
	}
	var out bytes.Buffer
	if err := json.Compact(&out, doc); err != nil {
		l.err = fmt.Errorf("reading a plain JSON answer: %w", err)
		return
	}
	l.pending, l.err = event(out.Bytes()), io.EOF
}

// event writes one data line.
func event(data []byte) []byte {
	out := make([]byte, 0, len(data)+len("data: ")+3)
	out = append(out, "data: "...)
	if data[0] == '{' {
		out = append(out, '{', ' ')
		data = data[1:]
	}
	return append(append(out, data...), "\n\n"...)
}

// readLine reads up to the next line feed, at most maxLine bytes. At the end
// it returns what is there, and the error.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, errLongLine
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
