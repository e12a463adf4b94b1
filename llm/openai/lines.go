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

// lines passes on only the data of an event stream, one line for each event, each
// followed by an empty one, and documents that stand in no event. The library counts every other line, and reads a line that begins
// with an error object in its own way, differently from one where the error
// stands later: a space behind the brace keeps it from that.
type lines struct {
	src     io.ReadCloser
	buf     *bufio.Reader
	plain   bool   // the answer is one JSON document
	part    []byte // data of an event, or a document, whose lines have not all come
	bare    bool   // part is a document that stands in no event
	ended   bool   // by [DONE], or with the one document
	pending []byte
	err     error
}

func newLines(src io.ReadCloser, plain bool) *lines {
	return &lines{src: src, buf: bufio.NewReader(newlines{src}), plain: plain}
}

// newlines ends every line with a line feed: event streams may end them with a
// carriage return alone, which JSON has nowhere but between its tokens.
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

// maxHead is how much of an answer is looked at before it is read.
const maxHead = 512

// head is how the answer begins, as far as it has come. An event stream that is said
// to be JSON is read as what it is.
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

// fill reads the next data line, or the end.
func (l *lines) fill() {
	if l.plain {
		l.fillPlain()
		return
	}
	line, err := readLine(l.buf)
	l.err = err
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff"))) // a byte order mark stands before some streams
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	switch {
	case ok:
		l.addData(bytes.TrimSpace(data), err != nil)
	case len(line) == 0:
		if len(l.part) > 0 && !l.bare { // the event ends, whatever it was
			l.pending, l.part = event(l.part), nil
		}
	case line[0] == '{' && len(l.part) == 0, len(l.part) > 0 && l.bare:
		l.addBare(line)
	}
	if err != nil {
		l.part = nil // what broke off has said nothing
	}
}

// addData takes one data line. An event may have several; most have one, which is
// passed on at once. last says that no more comes.
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
	case data[0] == '{' && json.Valid(data): // the one before it has no end
		l.pending, l.part = append(event(l.part), event(data)...), nil
	default:
		l.keep(whole)
	}
}

// addBare takes one line of JSON that stands in no event: a document for each line, or
// one document in several.
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

// compact puts a document that came in several lines on one.
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
		if out[i] == '\n' { // of what is no JSON
			out[i] = ' '
		}
	}
	return append(out, "\n\n"...)
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
