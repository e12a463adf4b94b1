// Package feedback learns from the use of tools.
//
// A caller who searches, gets a tool and then calls it successfully has described in their
// own words what it does. The words that also occur in some tool's definition, and nothing
// else of the request, are stored for the tool; they affect its rank in later searches and
// are never displayed. index.learn disables it.
package feedback

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"nize/store"
)

const (
	learnWithin  = 5 * time.Minute // maximum time from the search to the call
	maxSearches  = 4               // searches kept per conversation or session
	maxSearchers = 1000
)

// Index is the part of an index that uses the feedback.
type Index interface {
	FeedbackWords(text string) (words []string, values int)
	SetFeedback(tool string, learned []store.Feedback)
	ClearFeedback()
}

// searcher identifies who searches and calls, and where: one conversation, or one token's
// sessions.
type searcher struct{ user, thread, token string }

// pastSearch is one recent search, in memory only.
type pastSearch struct {
	at     time.Time
	words  []string
	values int
	tools  []string // tools found and not called yet
}

// Learner keeps searches until their tools are called, and the feedback from them.
type Learner struct {
	Store  store.RelevanceFeedback
	Index  Index
	Config store.Config
	Log    *slog.Logger
	Now    func() time.Time
	Run    func(func()) // runs a function in the background

	mu     sync.Mutex
	recent map[searcher][]pastSearch // newest last
	forgot int                       // number of times that data was erased

	keep sync.Mutex // held while store and index are changed together
}

// NoteSearch records the tools that a search in a conversation returned.
func (f *Learner) NoteSearch(by store.Caller, thread, query string, tools []string) {
	if len(tools) == 0 || !store.GetBool(f.Config, "", "index.learn") {
		return
	}
	s := pastSearch{at: f.Now(), tools: tools}
	if s.words, s.values = f.Index.FeedbackWords(query); len(s.words) == 0 {
		return
	}
	who := searcher{by.User, thread, by.Token}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.recent == nil {
		f.recent = map[searcher][]pastSearch{}
	}
	list := append(f.recent[who], s)
	f.recent[who] = list[max(0, len(list)-maxSearches):]
	if len(f.recent) > maxSearchers {
		f.dropOldestLocked(who)
	}
}

// dropOldestLocked removes searchers without a search within learnWithin, or, if there are
// none, any searcher except but. f.mu must be held.
func (f *Learner) dropOldestLocked(but searcher) {
	now := f.recent[but][len(f.recent[but])-1].at
	var some searcher
	for who, list := range f.recent {
		if now.Sub(list[len(list)-1].at) > learnWithin {
			delete(f.recent, who)
		} else if who != but {
			some = who
		}
	}
	if len(f.recent) > maxSearchers {
		delete(f.recent, some)
	}
}

// takeSearch removes and returns the feedback of the last search that led to the call, and
// the value of forgot at that time.
func (f *Learner) takeSearch(c *store.Call) (_ store.Feedback, forgot int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.recent[searcher{c.By, c.Thread, c.Token}]
	for i := len(list) - 1; i >= 0; i-- {
		s := &list[i]
		at := slices.Index(s.tools, c.ToolID())
		if at >= 0 && c.Created.Sub(s.at) <= learnWithin {
			s.tools = slices.Delete(s.tools, at, at+1)
			return store.Feedback{Tool: c.ToolID(), User: c.By, Words: s.words, Values: s.values, At: c.Created}, f.forgot, true
		}
	}
	return store.Feedback{}, 0, false
}

func (f *Learner) forgotten() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.forgot
}

// LearnFrom stores the feedback from a successful call. It doesn't delay the call.
func (f *Learner) LearnFrom(c *store.Call) {
	if c.State != store.Done || c.Result != nil && c.Result.IsError || !store.GetBool(f.Config, "", "index.learn") {
		return
	}
	learned, forgot, ok := f.takeSearch(c)
	if !ok {
		return
	}
	f.Run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		f.keep.Lock()
		defer f.keep.Unlock()
		if f.forgotten() != forgot {
			return // the erased data may be this user's
		}
		kept, err := f.Store.RecordFeedback(ctx, learned)
		if err != nil {
			f.Log.Warn("learning from a call failed", "call", c.ID, "tool", learned.Tool, "err", err)
			return
		}
		f.Index.SetFeedback(learned.Tool, kept)
	})
}

// Load passes the stored feedback to the index, at start and after some of it was erased.
func (f *Learner) Load(ctx context.Context) error {
	f.keep.Lock()
	defer f.keep.Unlock()
	return f.loadLocked(ctx)
}

// loadLocked is Load. f.keep must be held.
func (f *Learner) loadLocked(ctx context.Context) error {
	all, err := f.Store.ListFeedback(ctx)
	if err != nil {
		return fmt.Errorf("reading what was learned: %w", err)
	}
	f.Index.ClearFeedback()
	for tool, learned := range all {
		f.Index.SetFeedback(tool, learned)
	}
	return nil
}

// DropSearches removes the searches of users who are about to be erased, so that nothing
// more is learned from them. Their feedback is erased with them from the store; call Load
// afterwards.
func (f *Learner) DropSearches(users ...string) {
	f.keep.Lock() // wait for a concurrent write to the store
	defer f.keep.Unlock()
	f.dropSearches(func(id string) bool { return slices.Contains(users, id) })
}

// dropSearches removes searches, and invalidates feedback from them that is about to be
// stored.
func (f *Learner) dropSearches(of func(user string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgot++
	for who := range f.recent {
		if of(who.user) {
			delete(f.recent, who)
		}
	}
}

// Forget erases the feedback of one user, or of all if user is "", and the searches that
// would lead to more. It returns the number of erased requests.
func (f *Learner) Forget(ctx context.Context, by store.Caller, user string) (int, error) {
	f.dropSearches(func(id string) bool { return user == "" || id == user })
	f.keep.Lock()
	defer f.keep.Unlock()
	n, err := f.Store.ForgetFeedback(ctx, by, user)
	if err != nil {
		return 0, fmt.Errorf("forgetting what was learned: %w", err)
	}
	return n, f.loadLocked(ctx)
}
