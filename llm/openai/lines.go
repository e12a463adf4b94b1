package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// lines passes on only the data of an event stream: one line for each event, followed by an
// empty one, and documents outside events. The library counts every other line, and handles
// a line that begins with an error object differently from one that contains the error
// later: a space after the brace prevents that.
type lines struct {
	src     io.ReadCloser
	buf     *bufio.Reader
	plain   bool   // the response is one JSON document
	part    []byte // incomplete data of an event, or an incomplete document
	bare    bool   // part is a document outside an event
	ended   bool   // by [DONE], or with the only document
	pending []byte
	err     error
}

func newLines(src io.ReadCloser, plain bool) *lines {
	return &lines{src: src, buf: bufio.NewReader(newlines{src}), plain: plain}
}

// newlines ends every line with a line feed: event streams may use carriage returns alone,
// which JSON contains only between its tokens.
type newlines struct{ io.Reader }

func (n newlines) Read(p []byte) (int, error) {
	got, err := n.Reader.Read(p)
	for i, b := range p[:got] {
		if b == '\r' {
			p[i] = '\n'
		}
	}
	return got, err
}

// maxHead is how much of a response is examined before it is read.
const maxHead = 512

// head returns the beginning of the response, as far as it has arrived. An event stream
// declared as JSON is read as an event stream.
func (l *lines) head() ([]byte, error) {
	_, err := l.buf.Peek(1)
	head, _ := l.buf.Peek(min(l.buf.Buffered(), maxHead))
	start := bytes.TrimLeft(head, "\ufeff \t\r\n")
	if bytes.HasPrefix(start, []byte("data:")) || bytes.HasPrefix(start, []byte("event:")) || bytes.HasPrefix(start, []byte(":")) {
		l.plain = false
	}
	return head, err
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

// fill reads the next data line or the end.
func (l *lines) fill() {
	if l.plain {
		l.fillPlain()
		return
	}
	line, err := readLine(l.buf)
	l.err = err
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff"))) // some streams begin with a byte order mark
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	switch {
	case ok:
		l.addData(bytes.TrimSpace(data), err != nil)
	case len(line) == 0:
		if len(l.part) > 0 && !l.bare { // the end of an event
			l.pending, l.part = event(l.part), nil
		}
	case line[0] == '{' && len(l.part) == 0, len(l.part) > 0 && l.bare:
		l.addBare(line)
	}
	if err != nil {
		l.part = nil // an incomplete event is dropped
	}
}

// addData adds one data line. An event may have several; most have one, which is passed on
// at once. last says that no more follow.
func (l *lines) addData(data []byte, last bool) {
	if l.bare {
		l.part, l.bare = nil, false
	}
	if len(data) == 0 {
		return
	}
	if len(l.part) == 0 {
		switch {
		case bytes.EqualFold(data, []byte("[DONE]")):
			l.ended = true
			l.pending = event([]byte("[DONE]"))
		case data[0] == '{' && !json.Valid(data):
			l.part = bytes.Clone(data)
		case !last || json.Valid(data):
			l.pending = event(data)
		}
		return
	}
	whole := slices.Concat(l.part, []byte("\n"), data)
	switch {
	case json.Valid(whole):
		l.pending, l.part = event(compact(whole)), nil
	case data[0] == '{' && json.Valid(data): // the previous one has no end
		l.pending, l.part = append(event(l.part), event(data)...), nil
	default:
		l.keep(whole)
	}
}

// addBare adds one line of JSON outside an event: a document per line, or one document in
// several lines.
func (l *lines) addBare(line []byte) {
	whole := line
	if l.bare && len(l.part) > 0 {
		whole = slices.Concat(l.part, []byte("\n"), line)
	}
	if json.Valid(whole) {
		l.pending, l.part, l.bare = event(compact(whole)), nil, false
		return
	}
	l.bare = true
	l.keep(whole)
}

func (l *lines) keep(part []byte) {
	if l.part = bytes.Clone(part); len(part) > maxLine {
		l.err, l.part = errLongLine, nil
	}
}

// compact puts a document of several lines on one line.
func compact(doc []byte) []byte {
	if bytes.IndexByte(doc, '\n') < 0 {
		return doc
	}
	var out bytes.Buffer
	if json.Compact(&out, doc) != nil {
		return doc
	}
	return out.Bytes()
}

// fillPlain turns a plain JSON response into one event. It reads the whole response first;
// an incomplete document is an error.
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
	l.pending, l.err, l.ended = event(out.Bytes()), io.EOF, true
}

// event writes one data line.
func event(data []byte) []byte {
	out := make([]byte, 0, len(data)+len("data: ")+3)
	out = append(out, "data: "...)
	if data[0] == '{' {
		out = append(out, '{', ' ')
		data = data[1:]
	}
	at := len(out)
	out = append(out, data...)
	for i := at; i < len(out); i++ {
		if out[i] == '\n' { // if it isn't JSON
			out[i] = ' '
		}
	}
	return append(out, "\n\n"...)
}

// readLine reads up to the next line feed, at most maxLine bytes. At the end it returns the
// rest together with the error.
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
