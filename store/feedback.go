package store

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Feedback is what one request taught that led to a successful call of a tool.
// It changes the ranking of later searches and
// nothing else, and stands in no answer, log or event.
type Feedback struct {
	Tool   string    `json:"-"`
	User   string    `json:"user"`   // whose request it was, so that it goes when the person is forgotten
	Words  []string  `json:"words"`  // stems of the request that some tool's definition has; no names, no values
	Values int       `json:"values"` // how many values (quotes, ids, paths) stood beside them
	At     time.Time `json:"at"`
}

// RelevanceFeedback keeps what is learned from use.
type RelevanceFeedback interface {
	// RecordFeedback keeps feedback with the rest of its tool's ([MergeFeedback]) and
	// returns them. It leaves no event. ErrNotFound if there is no such tool.
	RecordFeedback(ctx context.Context, l Feedback) ([]Feedback, error)
	// ListFeedback returns all, by tool.
	ListFeedback(ctx context.Context) (map[string][]Feedback, error)
	// ForgetFeedback deletes those of one person, or all if user is "", and
	// returns how many there were.
	ForgetFeedback(ctx context.Context, by Caller, user string) (int, error)
}

// Bounds of what is learned.
const (
	MaxFeedback      = 20 // of one tool
	MaxFeedbackWords = 16
	maxWordBytes     = 48
)

// MergeFeedback adds l to the feedback of its tool. What the person gave before
// is renewed. Beyond [MaxFeedback] the person with the most loses their oldest,
// so that nobody drowns out the others.
func MergeFeedback(have []Feedback, l Feedback) []Feedback {
	l.Words = slices.Clone(l.Words)
	slices.Sort(l.Words)
	l.Words = slices.DeleteFunc(slices.Compact(l.Words), func(w string) bool { return w == "" || len(w) > maxWordBytes })
	l.Words = l.Words[:min(len(l.Words), MaxFeedbackWords)]
	out := slices.DeleteFunc(slices.Clone(have), func(o Feedback) bool {
		return o.User == l.User && o.Values == l.Values && slices.Equal(o.Words, l.Words)
	})
	out = append(out, l)
	slices.SortStableFunc(out, func(a, b Feedback) int { return a.At.Compare(b.At) })
	for len(out) > MaxFeedback {
		taught := map[string]int{}
		for _, o := range out {
			taught[o.User]++
		}
		most := slices.MaxFunc(out, func(a, b Feedback) int { return cmp.Compare(taught[a.User], taught[b.User]) })
		at := slices.IndexFunc(out, func(o Feedback) bool { return taught[o.User] == taught[most.User] })
		out = slices.Delete(out, at, at+1)
	}
	return out
}
