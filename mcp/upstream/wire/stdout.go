package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"
)

// stdoutReader extracts the messages from a command's standard output. A message is a line,
// as MCP specifies. It is also recognized
//
//   - without the line break at its end, and if more text follows on its line,
//   - if it is spread over several lines (indented JSON, line breaks in strings),
//   - behind a byte order mark, escape codes, or Content-Length headers,
//   - behind other text on its line, if it is an answer.
//
// Everything else is noise, which is returned line by line.
type stdoutReader struct {
	r    io.Reader
	buf  []byte // read but not returned yet
	seen int    // prefix of buf that is known to contain no complete piece
	json jsonScan
	rest bool // a message ended on this line, of which only the line break may remain
	// searched counts the bytes of unfinished lines that were searched for an answer, over
	// all reads.
	searched int
	err      error
	// patience is how long an unfinished answer may be stalled, which is then reported once
	// (errStalled); 0 means no limit. It requires an r with deadlines.
	patience time.Duration
	reported bool
	// waits is called with the text of an unfinished line before the reader waits for more;
	// may be nil.
	waits func(open []byte)
}

// piece is a part of a command's output.
type piece struct {
	msg       []byte // a message; nil for noise
	afterText bool   // it does not begin its line
	noise     []byte // the text; empty for a blank line and for framing
	size      int    // its size in the output, in bytes
}

// jsonScan finds the end of a JSON object or array.
type jsonScan struct {
	depth             int
	inString, escaped bool
	code              int // state within a terminal escape code: 1 after ESC, 2 after ESC [
}

// scan returns the index after the end of the value, or -1 if it is not complete.
func (s *jsonScan) scan(b []byte) int {
	for i, c := range b {
		switch {
		case s.code == 1:
			s.code = 0
			if c == '[' {
				s.code = 2
			}
		case s.code == 2:
			if c >= '@' && c <= '~' {
				s.code = 0
			}
		case s.escaped:
			s.escaped = false
		case s.inString && c == '\\':
			s.escaped = true
		case c == '"':
			s.inString = !s.inString
		case c == 0x1b:
			s.code = 1
		case s.inString:
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			if s.depth--; s.depth <= 0 {
				return i + 1
			}
		}
	}
	return -1
}

// framing matches the headers of servers that frame messages like language servers.
var framing = regexp.MustCompile(`(?i)^content-(?:length|type):[^\n]*$`)

var errLineTooLong = fmt.Errorf("it wrote a line over %d MiB", MaxMessage>>20)

// next returns the next piece. At the end of the output it returns the rest as noise, or as
// a message if it is complete, before the error.
func (o *stdoutReader) next() (piece, error) {
	for {
		if p, ok := o.cut(); ok {
			return p, nil
		}
		if o.err != nil {
			if len(o.buf) == 0 {
				return piece{}, o.err
			}
			return o.take(len(o.buf), nil, o.buf), nil
		}
		if len(o.buf) > MaxMessage {
			return piece{}, errLineTooLong
		}
		if o.waits != nil {
			o.waits(o.buf)
		}
		if stalled := o.fill(); stalled {
			return piece{}, errStalled
		}
	}
}

// errStalled is returned for an unfinished answer that doesn't continue. It may continue
// afterwards.
var errStalled = errors.New("it wrote the beginning of an answer to standard output, and then nothing")

// watch sets the deadline of the next read, if there is one.
func (o *stdoutReader) watch() (watched bool) {
	r, ok := o.r.(interface{ SetReadDeadline(time.Time) error })
	if !ok || o.patience == 0 || o.reported || !attemptsAnswer(bytes.TrimSpace(o.buf[:min(len(o.buf), 4<<10)])) {
		return false
	}
	return r.SetReadDeadline(time.Now().Add(o.patience)) == nil
}

// fill reads once more. It returns stalled if nothing arrived in time.
func (o *stdoutReader) fill() (stalled bool) {
	if o.watch() {
		defer func() {
			_ = o.r.(interface{ SetReadDeadline(time.Time) error }).SetReadDeadline(time.Time{}) // setting it succeeded before
		}()
	}
	if cap(o.buf)-len(o.buf) < 16<<10 {
		grown := make([]byte, len(o.buf), 2*len(o.buf)+32<<10)
		copy(grown, o.buf)
		o.buf = grown
	}
	for range 100 { // like bufio, treat a reader that returns nothing 100 times as broken
		n, err := o.r.Read(o.buf[len(o.buf):cap(o.buf)])
		o.buf = o.buf[:len(o.buf)+n]
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && n == 0:
			o.reported = true
			return true
		case errors.Is(err, os.ErrDeadlineExceeded):
			return false
		case err != nil:
			o.err = err
			return false
		case n > 0:
			return false
		}
	}
	o.err = io.ErrNoProgress
	return false
}

// take removes the first n bytes of the buffer and returns them as one piece.
func (o *stdoutReader) take(n int, msg, noise []byte) piece {
	p := piece{size: n}
	if msg != nil {
		p.msg = bytes.Clone(msg)
	} else {
		p.noise = bytes.Clone(noise)
	}
	o.rest = msg != nil && !bytes.HasSuffix(o.buf[:n], []byte("\n"))
	o.buf = o.buf[n:]
	if len(o.buf) == 0 && cap(o.buf) > 64<<10 {
		o.buf = nil // don't keep one large message in memory
	}
	o.seen, o.json, o.reported, o.searched = 0, jsonScan{}, false, 0
	return p
}

// cut removes and returns the first piece of the buffer. It returns ok false if the piece
// may be incomplete.
func (o *stdoutReader) cut() (p piece, ok bool) {
	begin, whole := textStart(o.buf)
	if !whole && o.err == nil {
		return p, false // an incomplete escape code
	}
	if begin < len(o.buf) {
		switch o.buf[begin] {
		case '\n':
			if o.rest { // the end of a message's line
				o.buf, o.rest, o.seen = o.buf[begin+1:], false, 0
				return o.cut()
			}
			return o.take(begin+1, nil, nil), true
		case '{', '[':
			if p, ok, isJSON := o.cutJSON(begin); isJSON {
				return p, ok
			}
			o.seen, o.json = 0, jsonScan{}
		}
	}
	return o.cutText(begin)
}

// textStart returns the start of a line's text, after blanks, a byte order mark and escape
// codes. whole is false if the bytes there may be the beginning of one of those.
func textStart(b []byte) (begin int, whole bool) {
	for begin < len(b) {
		switch c := b[begin]; {
		case c == ' ' || c == '\t' || c == '\r' || c == 0:
			begin++
		case bytes.HasPrefix(b[begin:], byteOrderMark):
			begin += len(byteOrderMark)
		case c == 0x1b:
			at := escapeCodes.FindIndex(b[begin:])
			if at == nil || at[0] != 0 {
				return begin, bytes.IndexByte(b[begin:], '\n') >= 0 || len(b)-begin > 600
			}
			begin += at[1]
		default:
			return begin, len(b)-begin >= len(byteOrderMark) || !bytes.HasPrefix(byteOrderMark, b[begin:])
		}
	}
	return begin, true
}

// cutJSON removes and returns text that begins like a JSON message. It returns isJSON false
// if it is not JSON at all, for example a log line with its level in brackets.
func (o *stdoutReader) cutJSON(begin int) (p piece, ok, isJSON bool) {
	b := o.buf[begin:]
	inside := bytes.TrimLeft(b[1:], " \t\r\n")
	switch line := bytes.IndexByte(b, '\n'); {
	case len(inside) == 0:
		return p, false, line < 0 || o.err == nil
	case b[0] == '[' && (inside[0] != '{' && inside[0] != ']' || line >= 0 && !json.Valid(bytes.TrimSpace(b[:line]))):
		return p, false, false // a batch is on one line; other lists are noise
	case b[0] == '{' && !bytes.ContainsRune([]byte(`"'}`), rune(inside[0])):
		return p, false, false
	}
	for from := max(o.seen, begin); ; {
		line := o.buf[from:]
		n := bytes.IndexByte(line, '\n')
		if n >= 0 {
			line = line[:n+1]
		}
		if from > begin && o.buf[from-1] == '\n' {
			// If this line is a message by itself, the text before it was not a message.
			if n < 0 && o.err == nil && (bytes.HasPrefix(line, []byte(`{"`)) || bytes.HasPrefix([]byte(`{"`), line)) {
				o.seen = from
				return p, false, true
			}
			if bytes.HasPrefix(line, []byte(`{"`)) && isMessage(line) {
				return o.take(from, nil, o.buf[begin:from]), true, true
			}
		}
		if end := o.json.scan(line); end >= 0 {
			doc := o.buf[begin : from+end]
			if mended, ok := mend(doc); ok {
				return o.take(from+end, mended, nil), true, true
			}
			return o.take(from+end, nil, doc), true, true
		}
		if from += len(line); n < 0 {
			o.seen = from
			return p, false, true
		}
	}
}

// isMessage reports whether a line is a JSON-RPC message by itself.
func isMessage(line []byte) bool {
	e, err := openEnvelope(line)
	return err == nil && e.version
}

// maxSearched limits searched. A line that arrives in a few pieces stays far below it. A
// line that arrives byte by byte would be searched again for each byte; above the limit it
// is searched only at its end.
const maxSearched = 4 * MaxMessage

// cutText removes and returns a line that begins with other text.
func (o *stdoutReader) cutText(begin int) (p piece, ok bool) {
	line := bytes.IndexByte(o.buf[max(o.seen, begin):], '\n')
	if line >= 0 {
		line += max(o.seen, begin)
	}
	// A prompt without a line break is followed by the answer on the same line.
	whole := line >= 0 || o.err != nil
	text := o.buf[begin:]
	if line >= 0 {
		text = o.buf[begin:line]
	}
	if whole || o.searched <= maxSearched && bytes.HasSuffix(bytes.TrimRight(text, " \r"), []byte("}")) {
		o.searched += len(text)
		if framing.Match(bytes.TrimRight(text, "\r")) && line >= 0 {
			return o.take(line+1, nil, nil), true
		}
		if answer, end := answerAfterText(text); answer != nil {
			p := o.take(begin+end, answer, nil)
			p.afterText = true
			return p, true
		}
	}
	if line >= 0 {
		return o.take(line+1, nil, o.buf[begin:line]), true
	}
	o.seen = len(o.buf)
	return p, false
}
