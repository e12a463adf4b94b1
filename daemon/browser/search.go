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

// There is no index of what was said: it is read, of the newest conversations and the
// newest of each, for as long as somebody waits for what they type.
const (
	searchedThreads = 100
	searchedTurns   = 100 // of each
	searchTime      = 500 * time.Millisecond
	snippetBefore   = 30 // runes
	snippetLength   = 120
)

// search looks for words, however they are capitalised.
type search struct {
	words []string
	ends  time.Time
	now   func() time.Time
}

func newSearch(words string, now func() time.Time) search {
	list := strings.Fields(lower(words))
	slices.SortStableFunc(list, func(a, b string) int { return len(b) - len(a) }) // what is shown is around the longest
	return search{list, now().Add(searchTime), now}
}

// lower keeps the number of runes.
func lower(text string) string { return strings.Map(unicode.ToLower, text) }

// in says whether all the words are in a text.
func (s search) in(text string) bool {
	text = lower(text)
	for _, w := range s.words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// said is the newest message of a conversation, the n-th from the newest, that has all
// the words, as far as its reader may read it, from a little before one of them;
// "" where there is none, or it is not looked for.
func (s search) said(ctx context.Context, of turnReader, by store.Caller, thread string, n int) (string, error) {
	if n >= searchedThreads || s.now().After(s.ends) {
		return "", nil
	}
	turns, err := of.TurnsBefore(ctx, thread, 0, searchedTurns)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil // it was forgotten meanwhile
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

// snippet is a part of a text that has the words.
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
