package store

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Feedback is one request that led to a successful call of a tool. It changes only the
// ranking of later searches and never appears in an answer, log or event.
type Feedback struct {
	Tool   string    `json:"-"`
	User   string    `json:"user"`   // the requester, so that it is deleted when they are forgotten
	Words  []string  `json:"words"`  // stems of the request that occur in a tool's definition; no names, no values
	Values int       `json:"values"` // the number of values (quotes, ids, paths) beside them
	At     time.Time `json:"at"`
}

// RelevanceFeedback stores the feedback.
type RelevanceFeedback interface {
	// RecordFeedback merges l into the feedback of its tool ([MergeFeedback]) and returns
	// the result. It appends no event. It returns ErrNotFound if there is no such tool.
	RecordFeedback(ctx context.Context, l Feedback) ([]Feedback, error)
	// ListFeedback returns all feedback, by tool.
	ListFeedback(ctx context.Context) (map[string][]Feedback, error)
	// ForgetFeedback deletes the feedback of one person, or all if user is "", and returns
	// the number of deleted requests.
	ForgetFeedback(ctx context.Context, by Caller, user string) (int, error)
}

// Limits of feedback.
const (
	MaxFeedback      = 20 // of one tool
	MaxFeedbackWords = 16
	maxWordBytes     = 48
)

// MergeFeedback adds l to the feedback of its tool. An equal entry of the same person is
// renewed. Beyond [MaxFeedback], the person with the most entries loses their oldest, so
// that no person displaces the others.
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
