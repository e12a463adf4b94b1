// Package mask removes the secrets that a server was given from the data that it returns.
//
// A server may echo its credential in a result, an error or a description, by mistake or on
// purpose, and from there it would reach models, chats, clients and the database.
//
// A [Mask] knows exact values and the encodings in which programs repeat them: verbatim, in
// base64 (both alphabets, also as a part of a longer value, whose beginning shifts it by
// one or two bytes), percent-encoded, and escaped as JSON. A malicious server can still
// send a secret in another encoding, such as hex.
//
// Everything else is left byte for byte unchanged. The search costs a few nanoseconds per
// byte, whatever the server sends, and nothing if there is no secret.
package mask

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Dots replaces a secret.
const Dots = "••••"

const (
	// headSize is the length of the prefix that is compared first; no form is shorter.
	headSize = 8
	// maxCompared limits the work per position. A longer form is masked by its prefix,
	// which is as secret as the whole.
	maxCompared = 256
	// maxValues limits the values per server; the oldest are dropped.
	maxValues = 4096
)

// Mask holds the secrets that one server was given. It is safe for concurrent use. The zero
// value has none.
type Mask struct {
	mu     sync.Mutex // guards values
	values []string   // in order of addition
	set    atomic.Pointer[set]
}

// Add adds values, each of which may contain several secrets. It ignores values that can't
// be distinguished from ordinary words ([Counts]).
func (m *Mask) Add(values ...string) {
	set := m.set.Load()
	if !slices.ContainsFunc(values, func(v string) bool { return v != "" && (set == nil || !set.known[v]) }) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range values {
		if v != "" && !slices.Contains(m.values, v) {
			m.values = append(m.values, v)
		}
	}
	m.values = m.values[max(0, len(m.values)-maxValues):]
	m.set.Store(newSet(m.values))
}

// Text masks a text. It returns text itself if there is nothing to mask.
func (m *Mask) Text(text string) string {
	set := m.set.Load()
	if set == nil || len(set.heads) == 0 {
		return text
	}
	var out strings.Builder
	last := 0
	set.find([]byte(text), func(from, to int) {
		out.WriteString(text[last:from])
		out.WriteString(Dots)
		last = to
	})
	if last == 0 {
		return text
	}
	out.WriteString(text[last:])
	return out.String()
}

// JSON masks the strings of a document, including keys and in any escaping, and numbers
// that contain a secret, which become strings. It returns masked true if it has masked
// something, and otherwise raw itself. Invalid JSON is masked as text.
func (m *Mask) JSON(raw json.RawMessage) (out json.RawMessage, masked bool) {
	set := m.set.Load()
	if set == nil || len(set.heads) == 0 {
		return raw, false
	}
	last := 0
	replace := func(from, to int, by string) {
		out = append(append(out, raw[last:from]...), by...)
		last, masked = to, true
	}
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			end, escapes := stringEnd(raw, i+1)
			set.findIn(raw[i+1:end], escapes, func(from, to int) { replace(i+1+from, i+1+to, Dots) })
			i = end + 1
		case isNumber(c):
			end := i + 1
			for end < len(raw) && isNumber(raw[end]) {
				end++
			}
			found := false
			set.find(raw[i:end], func(int, int) { found = true })
			if found {
				replace(i, end, `"`+Dots+`"`)
			}
			i = end
		default:
			i++
		}
	}
	if !masked {
		return raw, false
	}
	return append(out, raw[last:]...), true
}

// Error masks the text of an error; errors.Is and As work as on the original.
func (m *Mask) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if safe := m.Text(text); safe != text {
		return &maskedError{safe, err}
	}
	return err
}

type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// set is an immutable set of forms to search for.
type set struct {
	known  map[string]bool     // the values from which it was built
	heads  map[uint64][]string // forms by their first bytes, longest first
	filter [1 << 10]uint64     // a bit for each hash of a head: most positions need no further check
}

func newSet(values []string) *set {
	s := &set{known: map[string]bool{}, heads: map[uint64][]string{}}
	for _, v := range values {
		s.known[v] = true
		for _, secret := range secretsIn(v) {
			for _, form := range formsOf(secret) {
				s.add(form)
			}
		}
	}
	for _, list := range s.heads {
		slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	}
	return s
}

func (s *set) add(form string) {
	if len(form) < headSize {
		return
	}
	head := binary.LittleEndian.Uint64([]byte(form[:headSize]))
	if slices.Contains(s.heads[head], form) {
		return
	}
	s.heads[head] = append(s.heads[head], form)
	h := hash(head)
	s.filter[h>>6] |= 1 << (h & 63)
}

func hash(head uint64) uint64 { return head * 0x9E3779B97F4A7C15 >> 48 }

// find calls f for each range of b that contains a secret, in order.
func (s *set) find(b []byte, f func(from, to int)) {
	for i := 0; i+headSize <= len(b); {
		head := binary.LittleEndian.Uint64(b[i:])
		if h := hash(head); s.filter[h>>6]&(1<<(h&63)) != 0 {
			if n := longest(s.heads[head], b[i:]); n > 0 {
				f(i, i+n)
				i += n
				continue
			}
		}
		i++
	}
}

// longest returns the length of the longest form that is a prefix of b.
func longest(forms []string, b []byte) int {
	for _, form := range forms {
		n := min(len(form), maxCompared)
		if len(b) < n || string(b[:n]) != form[:n] {
			continue
		}
		for n < len(form) && n < len(b) && b[n] == form[n] {
			n++
		}
		return n
	}
	return 0
}
