package store

import (
	"context"
	"nize/store/printable"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// KeepUnmetRequests is how long an unmet request counts.
const KeepUnmetRequests = 30 * 24 * time.Hour

// maxUnmetRequest limits the text of an unmet request, in bytes.
const maxUnmetRequest = 200

// UnmetRequest is a request that no tool could satisfy. The requester is not stored.
type UnmetRequest struct {
	Text  string    `json:"text"` // the first wording, without text that looks like a secret or an address
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// MaxUnmetRequests is how many unmet requests of one person count on one day.
const MaxUnmetRequests = 20

// UnmetRequests stores the requests that no tool could satisfy.
type UnmetRequests interface {
	// RecordUnmetRequest counts text, together with nearly equal requests. Beyond
	// [MaxUnmetRequests] of a user on one day it does nothing, so that one user's requests
	// don't displace those of others. It appends no event and stores no user, so that
	// requests can't be traced to a person. It returns at once; the record is on disk
	// within 250 ms.
	RecordUnmetRequest(user, text string)
	// ListUnmetRequests returns the requests of the last [KeepUnmetRequests], most frequent
	// first.
	ListUnmetRequests(ctx context.Context) ([]UnmetRequest, error)
	// DeleteUnmetRequests deletes the request that text would count for, or all for "", and
	// returns the number deleted. It returns ErrNotFound if there is none.
	DeleteUnmetRequests(ctx context.Context, by Caller, text string) (int, error)
}

// personal matches personal data: email addresses, handles, long numbers.
var personal = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[\pL\pN._%+-]+@[\pL\pN.-]+|@[\pL\pN._-]+|\+?\d[\d ()/-]{5,}\d`)
})

// UnmetRequestText returns a request as it is stored: one line, short, without secrets,
// addresses and long numbers.
func UnmetRequestText(text string) string {
	if len(text) > 4<<10 { // more than is stored, and more than is worth scanning
		text = text[:4<<10]
	}
	text = strings.Join(strings.Fields(strings.Map(dropUnseen, strings.ToValidUTF8(text, ""))), " ")
	text = personal().ReplaceAllString(RedactText(text), dots)
	for range 8 { // removing a number, or cutting, may leave text that looks like a key
		text = RedactText(text)
		if len(text) <= maxUnmetRequest {
			return text
		}
		text = strings.ToValidUTF8(text[:maxUnmetRequest-len("…")], "") + "…"
	}
	return dots
}

// dropUnseen removes invisible characters, which could otherwise split a key so that it
// isn't detected.
func dropUnseen(r rune) rune {
	if !printable.Is(r) && !unicode.IsSpace(r) {
		return -1
	}
	return r
}

// idle words don't describe the request.
var idle = map[string]bool{
	"a": true, "an": true, "and": true, "are": true, "be": true, "can": true, "could": true, "do": true, "for": true, "from": true,
	"get": true, "give": true, "have": true, "how": true, "i": true, "in": true, "is": true, "it": true, "me": true, "my": true,
	"need": true, "of": true, "on": true, "our": true, "please": true, "some": true, "that": true, "the": true, "this": true,
	"to": true, "tool": true, "us": true, "want": true, "we": true, "what": true, "with": true, "would": true, "you": true, "your": true,
}

// RequestWords returns the significant words of a request, sorted, each once, at most 24.
// In a script without spaces each letter is a word.
func RequestWords(text string) []string {
	var words []string
	add := func(w string) {
		if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
			w = w[:len(w)-1]
		}
		if w != "" && !idle[w] {
			words = append(words, w)
		}
	}
	for part := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		rest := part
		for rest != "" {
			i := strings.IndexFunc(rest, spaceless)
			if i < 0 {
				add(rest)
				break
			}
			add(rest[:i])
			r := []rune(rest[i:])[0]
			add(string(r))
			rest = rest[i+len(string(r)):]
		}
	}
	slices.Sort(words)
	words = slices.Compact(words)
	return words[:min(len(words), 24)]
}

func spaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}
