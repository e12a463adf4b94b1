package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"nize/store"
)

// Messages are not indexed. A search reads the newest turns of the newest conversations,
// within the time that a person waits while typing.
const (
	searchedThreads = 100
	searchedTurns   = 100 // of each
	searchTime      = 500 * time.Millisecond
	snippetBefore   = 30 // runes
	snippetLength   = 120
)

// search finds words, ignoring case.
type search struct {
	words []string
	ends  time.Time
	now   func() time.Time
}

func newSearch(words string, now func() time.Time) search {
	list := strings.Fields(lower(words))
	slices.SortStableFunc(list, func(a, b string) int { return len(b) - len(a) }) // the snippet is around the longest word
	return search{list, now().Add(searchTime), now}
}

// lower converts to lower case without changing the number of runes.
func lower(text string) string { return strings.Map(unicode.ToLower, text) }

// in reports whether all the words are in a text.
func (s search) in(text string) bool {
	text = lower(text)
	for _, w := range s.words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// said returns a snippet of the newest message in a conversation that has all the words and
// that its reader may read. n is the conversation's position from the newest. It returns ""
// if there is none, or if n or the time exceeds the search's limits.
func (s search) said(ctx context.Context, of turnReader, by store.Caller, thread string, n int) (string, error) {
	if n >= searchedThreads || s.now().After(s.ends) {
		return "", nil
	}
	turns, err := of.TurnsBefore(ctx, thread, 0, searchedTurns)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil // erased in the meantime
	}
	if err != nil {
		return "", fmt.Errorf("searching conversations: %w", err)
	}
	turns = store.InForce(turns)
	for i := len(turns) - 1; i >= 0; i-- {
		if t := turns[i].SeenBy(by.User); (t.Role == store.FromUser || t.Role == store.FromModel) && s.in(t.Text) {
			return s.snippet(t.Text), nil
		}
	}
	return "", nil
}

// snippet returns the part of a text around the words.
func (s search) snippet(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	low, runes := lower(text), []rune(text)
	from := max(0, utf8.RuneCountInString(low[:max(0, strings.Index(low, s.words[0]))])-snippetBefore)
	cut := runes[from:min(len(runes), from+snippetLength)]
	out := string(cut)
	if from > 0 {
		out = "…" + out
	}
	if from+len(cut) < len(runes) {
		out += "…"
	}
	return out
}
