// Package feedback is learning from use: who searches, is shown a tool and then
// calls it with success has said in their own words what it does. Those words
// that some tool's definition has too, and nothing else of the request, are kept
// for the tool; they move it in later searches and are shown to nobody.
// index.learn turns it off.
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
	learnWithin  = 5 * time.Minute // from the search to the call
	maxSearches  = 4               // that are remembered of one conversation or session
	maxSearchers = 1000
)

// Index is what an index does with what was learned.
type Index interface {
	FeedbackWords(text string) (words []string, values int)
	SetFeedback(tool string, learned []store.Feedback)
	ClearFeedback()
}

// searcher is who searches and calls, and where: one conversation, or one
// token's sessions.
type searcher struct{ user, thread, token string }

// pastSearch is one search as it is remembered, in memory only.
type pastSearch struct {
	at     time.Time
	words  []string
	values int
	tools  []string // that were found and not called yet
}

// Learner remembers searches until their tools are called, and what was learned
// from them.
type Learner struct {
	Store  store.RelevanceFeedback
	Index  Index
	Config store.Config
	Log    *slog.Logger
	Now    func() time.Time
	Run    func(func()) // in the background

	mu     sync.Mutex
	recent map[searcher][]pastSearch // the newest last
	forgot int                       // how often something was forgotten

	keep sync.Mutex // store and index change together
}

// NoteSearch notes the tools that a search in a conversation answered.
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

// dropOldestLocked drops who has not searched for learnWithin, or anybody but
// one if all have; the caller holds f.mu.
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

// takeSearch returns what the last search that led to the call taught, once, and how
// often something had been forgotten until then.
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

// LearnFrom keeps what led to a call, once that did what it was asked for. It
// does not hold up the call.
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
			return // it may be this one's person who was forgotten
		}
		kept, err := f.Store.RecordFeedback(ctx, learned)
		if err != nil {
			f.Log.Warn("learning from a call failed", "call", c.ID, "tool", learned.Tool, "err", err)
			return
		}
		f.Index.SetFeedback(learned.Tool, kept)
	})
}

// Load gives the index what the store has learned, at start and after
// something of it was forgotten.
func (f *Learner) Load(ctx context.Context) error {
	f.keep.Lock()
	defer f.keep.Unlock()
	return f.loadLocked(ctx)
}

// loadLocked is Load; the caller holds f.keep.
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

// DropSearches forgets the searches of people who are about to be forgotten, so
// that nothing more is learned from them. What was learned goes with them from
// the store; then Load.
func (f *Learner) DropSearches(users ...string) {
	f.keep.Lock() // whoever is storing something now goes first
	defer f.keep.Unlock()
	f.dropSearches(func(id string) bool { return slices.Contains(users, id) })
}

// dropSearches forgets searches, and makes what is about to be learned from them
// void.
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

// Forget erases what was learned from one person, or from all if user is "",
// and the searches from which more would be. It returns how many requests
// that were.
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
