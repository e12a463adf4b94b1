package reply

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
)

// The SDK decodes an id to a float64 and that to an integer: 1.5 is returned as 1, and
// numbers beyond 2^53 change. Such ids, and progress tokens, are passed to it as a string
// that contains them, and restored in the response.

// heldPrefix is the prefix of a string that replaces an id.
const heldPrefix = "nize:held:"

// edit replaces a part of a document.
type edit struct {
	from, to int
	by       []byte
}

// apply returns doc with the edits, which must not overlap.
func apply(doc []byte, edits []edit) []byte {
	if len(edits) == 0 {
		return doc
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Or(a.from-b.from, a.to-b.to) }) // insertions first
	out := make([]byte, 0, len(doc)+32*len(edits))
	last := 0
	for _, e := range edits {
		out = append(append(out, doc[last:e.from]...), e.by...)
		last = e.to
	}
	return append(out, doc[last:]...)
}

// Request is the information that is needed about the body of a request.
type Request struct {
	Method string // of the message; for a batch "" or that of one of its messages
	Batch  bool
	Held   bool // ids or arguments were replaced in Body: the response must pass through [Restore]
	Body   []byte
}

// Hold reads the body of a request, and replaces the ids that the SDK would change and the
// arguments that it would ignore. Invalid JSON is left unchanged.
func Hold(body []byte) Request {
	r := Request{Body: body}
	var edits []edit
	start := skipBlanks(body, 0)
	if start < len(body) && body[start] == '[' {
		r.Batch = true
		for at := skipBlanks(body, start+1); at < len(body) && body[at] == '{'; {
			end := skipJSON(body, at)
			r.Method = holdMessage(body, at, end, &edits)
			if at = skipBlanks(body, end); at < len(body) && body[at] == ',' {
				at = skipBlanks(body, at+1)
			}
		}
	} else {
		r.Method = holdMessage(body, start, len(body), &edits)
	}
	r.Held = len(edits) > 0
	r.Body = apply(body, edits)
	return r
}

// holdMessage finds the ids of the message in doc[at:end], and the members beside the
// arguments of a tool. It returns its method.
func holdMessage(doc []byte, at, end int, edits *[]edit) (method string) {
	hold := func(m position) {
		if raw := doc[m.from:m.to]; isHeld(raw) {
			*edits = append(*edits, edit{m.from, m.to, strconv.AppendQuote(nil, heldPrefix+hex.EncodeToString(raw))})
		}
	}
	var top, params []position
	object := -1
	positions(doc, at, end, func(m position) {
		top = append(top, m)
		switch string(doc[m.key+1 : m.keyEnd-1]) {
		case "id":
			hold(m)
		case "method":
			if s, err := strconv.Unquote(string(doc[m.from:m.to])); err == nil {
				method = s
			}
		case "params":
			object, params = m.from, nil
			positions(doc, m.from, m.to, func(m position) {
				params = append(params, m)
				switch string(doc[m.key+1 : m.keyEnd-1]) {
				case "requestId":
					hold(m)
				case "_meta":
					positions(doc, m.from, m.to, func(m position) {
						if string(doc[m.key+1:m.keyEnd-1]) == "progressToken" {
							hold(m)
						}
					})
				}
			})
		}
	})
	if (method == "tools/call" || method == promptMethod) && len(params) > 0 {
		holdArguments(doc, method, top, params, object, edits)
	}
	return method
}

// isHeld reports whether an id has to be held: a number that is not an integer or that a
// float64 can't represent, or a string that has the form of a held id.
func isHeld(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	if raw[0] == '"' {
		return bytes.HasPrefix(raw[1:], []byte(heldPrefix)) && json.Valid(raw)
	}
	if raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return false // null, or not an id
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return (err != nil || n > 1<<53 || n < -(1<<53) || raw[0] == '-' && n == 0) && json.Valid(raw)
}

// Restore restores the ids in a message, or a batch, for the client.
func Restore(msg []byte) []byte {
	if !bytes.Contains(msg, []byte(heldPrefix)) {
		return msg
	}
	var edits []edit
	restore := func(at, end int) {
		members(msg, at, end, func(key []byte, from, to int) {
			switch string(key) {
			case "id":
				restoreID(msg, from, to, &edits)
			case "params":
				members(msg, from, to, func(key []byte, from, to int) {
					if string(key) == "progressToken" {
						restoreID(msg, from, to, &edits)
					}
				})
			}
		})
	}
	start := skipBlanks(msg, 0)
	if start < len(msg) && msg[start] == '[' {
		for at := skipBlanks(msg, start+1); at < len(msg) && msg[at] == '{'; {
			end := skipJSON(msg, at)
			restore(at, end)
			if at = skipBlanks(msg, end); at < len(msg) && msg[at] == ',' {
				at = skipBlanks(msg, at+1)
			}
		}
	} else {
		restore(start, len(msg))
	}
	return apply(msg, edits)
}

func restoreID(msg []byte, from, to int, edits *[]edit) {
	text, found := bytes.CutPrefix(msg[from:to], []byte(`"`+heldPrefix))
	if !found {
		return
	}
	if raw, err := hex.DecodeString(string(bytes.TrimSuffix(text, []byte(`"`)))); err == nil && isHeld(raw) {
		*edits = append(*edits, edit{from, to, raw})
	}
}

// members calls f for each member of the object in doc[at:end], with its key as written and
// the position of its value. It stops at the first syntax error.
func members(doc []byte, at, end int, f func(key []byte, from, to int)) {
	positions(doc, at, end, func(m position) { f(doc[m.key+1:m.keyEnd-1], m.from, m.to) })
}

// positions is members with the position of the key, including its quotes.
func positions(doc []byte, at, end int, f func(position)) {
	if at = skipBlanks(doc, at); at >= end || doc[at] != '{' {
		return
	}
	at = skipBlanks(doc, at+1)
	for at < end && doc[at] == '"' {
		m := position{key: at, keyEnd: skipJSON(doc, at)}
		colon := skipBlanks(doc, m.keyEnd)
		if colon >= end || doc[colon] != ':' {
			return
		}
		m.from = skipBlanks(doc, colon+1)
		m.to = skipJSON(doc, m.from)
		if m.to > end || m.to <= m.from {
			return
		}
		f(m)
		if at = skipBlanks(doc, m.to); at >= end || doc[at] != ',' {
			return
		}
		at = skipBlanks(doc, at+1)
	}
}

func skipBlanks(doc []byte, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\t' || doc[i] == '\n' || doc[i] == '\r') {
		i++
	}
	return i
}

// skipJSON returns the index after the value that begins at i, or the end of doc if the
// value has no end.
func skipJSON(doc []byte, i int) int {
	depth := 0
	for ; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			for i++; i < len(doc) && doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			continue
		default:
			if depth == 0 { // inside a number or a literal
				continue
			}
		}
		if depth == 0 {
			return min(i+1, len(doc))
		}
	}
	return len(doc)
}

// HoldLines holds the ids in the lines that are read from conn, and restores them in the
// lines that are written to it. Each line must be written in one call.
func HoldLines(conn io.ReadWriteCloser) io.ReadWriteCloser {
	return &heldLines{ReadWriteCloser: conn, lines: bufio.NewReader(conn)}
}

type heldLines struct {
	io.ReadWriteCloser
	lines *bufio.Reader
	rest  []byte // of the current line
	long  bool   // the current line is too long, and its rest is passed on unchanged
}

// Read returns a line without such an id unchanged, and also a line that is longer than a
// request may be.
func (h *heldLines) Read(p []byte) (int, error) {
	if len(h.rest) == 0 {
		line, err := h.readLine()
		if len(line) == 0 {
			return 0, err
		}
		if h.rest = line; !h.long {
			h.rest = Hold(line).Body
		}
		h.long = !bytes.HasSuffix(line, []byte("\n"))
	}
	n := copy(p, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}

// readLine reads a line, up to the maximum size of a request.
func (h *heldLines) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := h.lines.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxHeld {
			return line, err
		}
	}
}

func (h *heldLines) Write(p []byte) (int, error) {
	if _, err := h.ReadWriteCloser.Write(Restore(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
