package mcp

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"nize/mcp/index"
	"nize/store"
)

// Learning from use: who searches, is shown a tool and then calls it
// with success has said in their own words what it does. Those words that some
// tool's definition has too, and nothing else of the request, are kept for the
// tool; they move it in later searches and are shown to nobody. index.learn
// turns it off.
const (
	learnWithin  = 5 * time.Minute // from the search to the call
	maxSearches  = 4               // that are remembered of one conversation or session
	maxSearchers = 1000
)

// FeedbackIndex is what an index does with what was learned.
type FeedbackIndex interface {
	FeedbackWords(text string) (words []string, values int)
	SetFeedback(tool string, learned []store.Feedback)
	ClearFeedback()
}

// searcher is who searches and calls, and where: one conversation, or one
// token's sessions.
type searcher struct{ user, thread, token string }

// searched is one search as it is remembered, in memory only.
type searched struct {
	at     time.Time
	words  []string
	values int
	tools  []string // that were found and not called yet
}

// learner remembers searches until their tools are called.
type learner struct {
	mu     sync.Mutex
	recent map[searcher][]searched // the newest last
	forgot int                     // how often something was forgotten
	keep   sync.Mutex              // store and index change together
}

// remember notes what a search answered.
func (g *Gateway) remember(inv *Invocation, query string, a index.Answer) {
	if len(a.Hits) == 0 || !store.GetBool(g.opt.Config, "", "index.learn") {
		return
	}
	s := searched{at: g.opt.Now()}
	if s.words, s.values = g.opt.Index.FeedbackWords(query); len(s.words) == 0 {
		return
	}
	for _, h := range a.Hits {
		s.tools = append(s.tools, h.Tool.ID())
	}
	who := searcher{inv.By.User, inv.Scope.Thread, inv.By.Token}
	l := &g.learner
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recent == nil {
		l.recent = map[searcher][]searched{}
	}
	list := append(l.recent[who], s)
	l.recent[who] = list[max(0, len(list)-maxSearches):]
	if len(l.recent) > maxSearchers {
		l.dropOldestLocked(who)
	}
}

// dropOldestLocked drops who has not searched for learnWithin, or anybody but
// one if all have; the caller holds l.mu.
func (l *learner) dropOldestLocked(but searcher) {
	now := l.recent[but][len(l.recent[but])-1].at
	var some searcher
	for who, list := range l.recent {
		if now.Sub(list[len(list)-1].at) > learnWithin {
			delete(l.recent, who)
		} else if who != but {
			some = who
		}
	}
	if len(l.recent) > maxSearchers {
		delete(l.recent, some)
	}
}

// take returns what the last search that led to the call taught, once, and how
// often something had been forgotten until then.
func (l *learner) take(c *store.Call) (_ store.Feedback, forgot int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.recent[searcher{c.By, c.Thread, c.Token}]
	for i := len(list) - 1; i >= 0; i-- {
		s := &list[i]
		at := slices.Index(s.tools, c.ToolID())
		if at >= 0 && c.Created.Sub(s.at) <= learnWithin {
			s.tools = slices.Delete(s.tools, at, at+1)
			return store.Feedback{Tool: c.ToolID(), User: c.By, Words: s.words, Values: s.values, At: c.Created}, l.forgot, true
		}
	}
	return store.Feedback{}, 0, false
}

func (l *learner) forgotten() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forgot
}

// learn keeps what led to a call, once that did what it was asked for. It does
// not hold up the call.
func (g *Gateway) learn(c *store.Call) {
	if c.State != store.Done || c.Result != nil && c.Result.IsError || !store.GetBool(g.opt.Config, "", "index.learn") {
		return
	}
	feedback, forgot, ok := g.learner.take(c)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	g.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		g.learner.keep.Lock()
		defer g.learner.keep.Unlock()
		if g.learner.forgotten() != forgot {
			return // it may be this one's person who was forgotten
		}
		kept, err := g.opt.Store.RecordFeedback(ctx, feedback)
		if err != nil {
			g.opt.Log.Warn("learning from a call failed", "call", c.ID, "tool", feedback.Tool, "err", err)
			return
		}
		g.opt.Index.SetFeedback(feedback.Tool, kept)
	})
}

// LoadUsage tells the index what the store has learned, at start and after
// something of it was forgotten.
func (g *Gateway) LoadFeedback(ctx context.Context) error {
	g.learner.keep.Lock()
	defer g.learner.keep.Unlock()
	return g.loadUsageLocked(ctx)
}

// loadUsageLocked is LoadUsage; the caller holds g.learner.keep.
func (g *Gateway) loadUsageLocked(ctx context.Context) error {
	all, err := g.opt.Store.ListFeedback(ctx)
	if err != nil {
		return fmt.Errorf("reading what was learned: %w", err)
	}
	g.opt.Index.ClearFeedback()
	for tool, learned := range all {
		g.opt.Index.SetFeedback(tool, learned)
	}
	return nil
}

// DropSearches forgets the searches of people who are about to be forgotten, so
// that nothing more is learned from them. What was learned goes with them from
// the store; then LoadUsage.
func (g *Gateway) DropSearches(users ...string) {
	g.learner.keep.Lock() // whoever is storing something now goes first
	defer g.learner.keep.Unlock()
	g.learner.drop(func(id string) bool { return slices.Contains(users, id) })
}

// drop forgets searches, and makes what is about to be learned from them void.
func (l *learner) drop(of func(user string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgot++
	for who := range l.recent {
		if of(who.user) {
			delete(l.recent, who)
		}
	}
}

// ForgetUsage erases what was learned from one person, or from all if user is
// "", and the searches from which more would be. It returns how many requests
// that were.
func (g *Gateway) ForgetFeedback(ctx context.Context, by store.Caller, user string) (int, error) {
	g.learner.drop(func(id string) bool { return user == "" || id == user })
	g.learner.keep.Lock()
	defer g.learner.keep.Unlock()
	n, err := g.opt.Store.ForgetFeedback(ctx, by, user)
	if err != nil {
		return 0, fmt.Errorf("forgetting what was learned: %w", err)
	}
	return n, g.loadUsageLocked(ctx)
}
