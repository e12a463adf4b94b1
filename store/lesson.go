package store

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Lesson is what one request taught that led to a successful call of a tool.
// It changes the ranking of later searches and
// nothing else, and stands in no answer, log or event.
type Lesson struct {
	Tool   string    `json:"-"`
	User   string    `json:"user"`   // whose request it was, so that it goes when the person is forgotten
	Words  []string  `json:"words"`  // stems of the request that some tool's definition has; no names, no values
	Values int       `json:"values"` // how many values (quotes, ids, paths) stood beside them
	At     time.Time `json:"at"`
}

// Lessons keeps what is learned from use.
type Lessons interface {
	// AddLesson keeps a lesson with the others of its tool ([Remember]) and
	// returns them. It leaves no event. ErrNotFound if there is no such tool.
	AddLesson(ctx context.Context, l Lesson) ([]Lesson, error)
	// ListLessons returns all, by tool.
	ListLessons(ctx context.Context) (map[string][]Lesson, error)
	// ForgetLessons deletes those of one person, or all if user is "", and
	// returns how many there were.
	ForgetLessons(ctx context.Context, by Caller, user string) (int, error)
}

// Bounds of what is learned.
const (
	MaxLessons     = 20 // of one tool
	MaxLessonWords = 16
	maxWordBytes   = 48
)

// Remember adds a lesson to those of its tool. One that the person gave before
// is renewed. Beyond [MaxLessons] whoever taught most loses their oldest, so
// that nobody drowns out the others.
func Remember(have []Lesson, l Lesson) []Lesson {
	l.Words = slices.Clone(l.Words)
	slices.Sort(l.Words)
	l.Words = slices.DeleteFunc(slices.Compact(l.Words), func(w string) bool { return w == "" || len(w) > maxWordBytes })
	l.Words = l.Words[:min(len(l.Words), MaxLessonWords)]
	out := slices.DeleteFunc(slices.Clone(have), func(o Lesson) bool {
		return o.User == l.User && o.Values == l.Values && slices.Equal(o.Words, l.Words)
	})
	out = append(out, l)
	slices.SortStableFunc(out, func(a, b Lesson) int { return a.At.Compare(b.At) })
	for len(out) > MaxLessons {
		taught := map[string]int{}
		for _, o := range out {
			taught[o.User]++
		}
		most := slices.MaxFunc(out, func(a, b Lesson) int { return cmp.Compare(taught[a.User], taught[b.User]) })
		at := slices.IndexFunc(out, func(o Lesson) bool { return taught[o.User] == taught[most.User] })
		out = slices.Delete(out, at, at+1)
	}
	return out
}
