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

// The SDK decodes an id into a float64 and that into an integer: 1.5 comes back as
// 1, and what is beyond 2^53 as another number. Such ids, and progress tokens, go
// to it as a text that holds them, and come back as they stood.

// heldPrefix begins the text that stands for an id.
const heldPrefix = "nize:held:"

// edit replaces a part of a document.
type edit struct {
	from, to int
	by       []byte
}

// apply returns doc with edits, which don't overlap.
func apply(doc []byte, edits []edit) []byte {
	if len(edits) == 0 {
		return doc
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Or(a.from-b.from, a.to-b.to) }) // an insertion first
	out := make([]byte, 0, len(doc)+32*len(edits))
	last := 0
	for _, e := range edits {
		out = append(append(out, doc[last:e.from]...), e.by...)
		last = e.to
	}
	return append(out, doc[last:]...)
}

// A Request is what has to be known of the body of a request.
type Request struct {
	Method string // of the message; of a batch "" or that of one of them
	Batch  bool
	Held   bool // ids, or arguments, were replaced in Body: the answer goes through [Restore]
	Body   []byte
}

// Hold reads the body of a request, and replaces in it the ids that the SDK would
// change, and arguments that it would ignore. What is no JSON stays as it is.
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

// holdMessage finds the ids of the message in doc[at:end], and what stands beside
// the arguments of a tool. It returns its method.
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

// isHeld says whether an id has to be held: a number that is no integer, or that a
// float64 does not hold, or a text that would pass for one that is.
func isHeld(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	if raw[0] == '"' {
		return bytes.HasPrefix(raw[1:], []byte(heldPrefix)) && json.Valid(raw)
	}
	if raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return false // null, or nothing that is an id
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return (err != nil || n > 1<<53 || n < -(1<<53) || raw[0] == '-' && n == 0) && json.Valid(raw)
}

// Restore puts the ids back into a message, or a batch, for the client.
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

// members calls f for each member of the object in doc[at:end], with its key as it
// stands and where its value is. It stops at the first mistake.
func members(doc []byte, at, end int, f func(key []byte, from, to int)) {
	positions(doc, at, end, func(m position) { f(doc[m.key+1:m.keyEnd-1], m.from, m.to) })
}

// positions is members with where the key is, in its quotes.
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

// skipJSON returns the index after the value that begins at i, or the end of doc if
// it has none.
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
			if depth == 0 { // inside a number or a word
				continue
			}
		}
		if depth == 0 {
			return min(i+1, len(doc))
		}
	}
	return len(doc)
}

// HoldLines holds the ids in the lines that are read from conn, and restores them in
// those that are written to it. A line is written in one call.
func HoldLines(conn io.ReadWriteCloser) io.ReadWriteCloser {
	return &heldLines{ReadWriteCloser: conn, lines: bufio.NewReader(conn)}
}

type heldLines struct {
	io.ReadWriteCloser
	lines *bufio.Reader
	rest  []byte // of the line that is being read
	long  bool   // the rest of a line that is too long to be looked at is passed on
}

// Read returns a line that holds no id of the kind as it comes, and so does one that
// is longer than a request may be.
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

// readLine reads a line, or so much of it as a request may have.
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
