package slack

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/bots"
	"nize/bots/slack/incoming"
	"nize/bots/slack/view"
	"nize/store"
)

// A Home that somebody looked at lately is drawn anew when what it shows
// changes elsewhere: a call begins to wait for them, is decided or expires; a
// grant, a setting, a token or a credential is changed by words or by nizectl.
// The store's feed tells of it, so that whoever makes the change waits for
// nothing; changes in a row are drawn once, and what looks the same is not sent.
// Which Homes are open Slack does not tell: those count that were opened, or
// used, within [store.HomeOpen]. The store keeps them, so that after a restart
// they are drawn with what changed meanwhile, and follow again.

const (
	// homeSoon is how long a change waits for others, and for the card of a
	// new call to stand where the Home leads to.
	homeSoon = 500 * time.Millisecond
	// homeGap is the least time between two of these drawings of one Home.
	homeGap = 2 * time.Second
	// homeLooks is how often a Home is looked at again for cards that stand nowhere
	// yet: 2 s, 4 s, 8 s … apart, for about eight minutes.
	homeLooks = 8
	// homeKept is how much older than the truth may be what is kept of a Home
	// that is used and looks the same.
	homeKept = 5 * time.Minute
)

// lately are the Homes that are drawn anew.
type lately struct {
	mu   sync.Mutex // guards what follows
	of   map[string]*openedHome
	poke chan struct{} // holds 1: something is due sooner
}

// openedHome is one of them, as it was drawn last.
type openedHome struct {
	seen   time.Time // when its person opened or used it
	st     view.HomeState
	notice string
	sum    string    // of the view
	calls  []string  // that it shows
	due    time.Time // when it is drawn anew, zero if nothing changed
	drawn  time.Time // when that was done last
	looks  int       // how often again, for cards that had no place yet
	kept   time.Time // what of seen is in the store
	state  string    // what of st is there
}

// opened notes that somebody looks at their Home.
func (r *lately) opened(user string, st view.HomeState, notice string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.of[user]
	if h == nil {
		if len(r.of) >= store.MaxHomes {
			r.forgetLocked(now)
		}
		if len(r.of) >= store.MaxHomes {
			return // it is drawn when it is opened or used
		}
		h = &openedHome{}
		r.of[user] = h
	}
	h.seen, h.st, h.notice = now, st, notice
}

// forgetLocked forgets who has not looked for long; r.mu is held.
func (r *lately) forgetLocked(now time.Time) {
	for user, h := range r.of {
		if now.Sub(h.seen) > store.HomeOpen {
			delete(r.of, user)
		}
	}
}

func (r *lately) drop(user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, user)
}

// shows notes what somebody's Home shows now.
func (r *lately) shows(user, sum string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.of[user]; h != nil {
		h.sum = sum
	}
}

// same says whether somebody's Home shows just that.
func (r *lately) same(user, sum string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[user] != nil && r.of[user].sum == sum
}

// waits notes which calls a Home shows. One whose card stands nowhere yet is
// looked at again: it is about to, and where it comes to stand no change tells.
func (r *lately) waits(user string, list []bots.WaitingCall, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.of[user]
	if h == nil {
		return
	}
	h.calls = nil
	bare := false
	for _, w := range list {
		h.calls = append(h.calls, w.Call)
		bare = bare || w.At.Message == ""
	}
	if bare && h.looks < homeLooks && h.due.IsZero() {
		h.due = now.Add(homeGap << h.looks)
		h.looks++
		r.wake()
	}
}

// changed makes the Homes due that a change may matter to. It is called for each
// change of the store and looks at what is in memory only.
func (r *lately) changed(c store.Change, now time.Time) {
	all := slices.Contains([]string{"grant", "setting", "token", "credential", "server"}, c.Kind) || c.Kind == "call" && c.State == store.Pending
	if !all && c.Kind != "call" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.of) == 0 {
		return
	}
	sooner := false
	for _, h := range r.of {
		if now.Sub(h.seen) > store.HomeOpen || !all && !slices.Contains(h.calls, c.ID) {
			continue
		}
		h.looks = 0
		due := now.Add(homeSoon)
		if next := h.drawn.Add(homeGap); due.Before(next) {
			due = next
		}
		if h.due.IsZero() || due.Before(h.due) {
			h.due, sooner = due, true
		}
	}
	if sooner {
		r.wake()
	}
}

// all makes every Home due: nobody knows what changed.
func (r *lately) all(now time.Time) {
	r.changed(store.Change{Kind: "setting"}, now)
}

func (r *lately) wake() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// next is whose Home is due first, and when; "" for none.
func (r *lately) next() (user string, due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for u, h := range r.of {
		if !h.due.IsZero() && (user == "" || h.due.Before(due)) {
			user, due = u, h.due
		}
	}
	return user, due
}

// take is what of a Home is drawn anew.
func (r *lately) take(user string, now time.Time) (st view.HomeState, notice string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.of[user]
	if h == nil {
		return view.HomeState{}, "", false
	}
	h.due, h.drawn = time.Time{}, now
	return h.st, h.notice, now.Sub(h.seen) <= store.HomeOpen
}

// newest is where the feed stands, from which [live.followFeed] goes on.
func (l *live) newest() (s store.Seq) {
	if l.b.o.Feed != nil {
		s = l.b.o.Feed.Last()
	}
	return s
}

// followFeed hears what changes after a point, until ctx ends.
func (l *live) followFeed(ctx context.Context, after store.Seq) {
	feed := l.b.o.Feed
	if feed == nil {
		return
	}
	for ctx.Err() == nil {
		for change, err := range feed.Watch(ctx, after) {
			if err != nil {
				if !errors.Is(err, store.ErrNotFound) {
					l.log.Error("following the feed; Homes are drawn when they are opened", "err", err)
					return
				}
				after = feed.Last() // slower than the feed's window
				l.homes.lately.all(l.b.o.Now())
				break
			}
			after = change.Seq
			l.homes.lately.changed(change, l.b.o.Now())
		}
	}
}

// toKeep says since when somebody's Home is open, if that or how it was drawn is
// to be kept anew; it counts as kept then.
func (r *lately) toKeep(user, state string) (seen time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.of[user]
	if h == nil || h.state == state && h.seen.Sub(h.kept) < homeKept {
		return time.Time{}, false
	}
	h.kept, h.state = h.seen, state
	return h.seen, true
}

// reopen takes up a Home that was open before, unless somebody used it since.
func (r *lately) reopen(user string, st view.HomeState, seen time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[user] == nil && len(r.of) < store.MaxHomes {
		r.of[user] = &openedHome{seen: seen, st: st}
	}
}

// keepOpen keeps that somebody's Home is open, and how it was drawn.
func (l *live) keepOpen(ctx context.Context, p person, st view.HomeState) {
	state, err := json.Marshal(st)
	if err != nil || len(state) > store.MaxHomeState {
		return // it can't be followed without
	}
	seen, ok := l.homes.lately.toKeep(p.id, string(state))
	if !ok {
		return
	}
	h := store.OpenHome{Identity: p.identity(), Team: l.account.Team, Seen: seen, State: state}
	if err := l.b.o.Store.PutHome(ctx, h); err != nil && ctx.Err() == nil {
		l.log.Warn("after a restart an open Home would not follow what changes", "user", p.id, "err", err)
	}
}

// reopenHomes takes up the Homes that were open before a restart, and has them
// drawn with what changed meanwhile.
func (l *live) reopenHomes(ctx context.Context) {
	if l.b.o.Keeper == nil || l.b.o.Feed == nil {
		return
	}
	now := l.b.o.Now()
	list, err := l.b.o.Store.ListHomes(ctx, "slack:", now.Add(-store.HomeOpen))
	if err != nil {
		if ctx.Err() == nil {
			l.log.Error("reading which Homes are open; they are drawn when they are opened", "err", err)
		}
		return
	}
	for _, h := range list {
		if user := h.Identity[strings.LastIndexByte(h.Identity, ':')+1:]; h.Team == l.account.Team && incoming.IdForm.MatchString(user) {
			l.homes.lately.reopen(user, view.ReadHomeState(string(h.State)), h.Seen)
		}
	}
	l.homes.lately.all(now)
}

// keepHomes draws Homes anew that are due, until ctx ends.
func (l *live) keepHomes(ctx context.Context) {
	l.reopenHomes(ctx)
	r := &l.homes.lately
	for ctx.Err() == nil {
		user, due := r.next()
		if user == "" {
			select {
			case <-r.poke:
			case <-ctx.Done():
			}
			continue
		}
		timer := time.NewTimer(due.Sub(l.b.o.Now()))
		select {
		case <-timer.C:
			err := bots.Guard(func() error { return l.redraw(ctx, user) })
			if err != nil && ctx.Err() == nil {
				l.log.Warn("a Home is not drawn anew", "user", user, "err", err)
			}
		case <-r.poke:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// redraw draws somebody's Home as it was, if it looks different by now. The
// picture of usage stays until the Home is opened.
func (l *live) redraw(ctx context.Context, user string) error {
	lock := l.homes.lock(user)
	lock.Lock()
	defer lock.Unlock()
	st, notice, ok := l.homes.lately.take(user, l.b.o.Now()) // as whoever drew it just now left it
	if !ok {
		l.homes.lately.drop(user)
		return nil
	}
	p, err := l.who(ctx, user, keepPerson)
	if err != nil {
		return err
	}
	if p.user.ID == "" { // they see that when they open it
		l.homes.lately.drop(user)
		return nil
	}
	draw, err := l.gatherHome(ctx, p, st, notice)
	if err != nil {
		return err
	}
	if draw.Data.Picture != nil {
		draw.Picture = l.homes.picture(p.id, st)
	}
	if l.homes.lately.same(user, draw.Digest(draw.View())) {
		return nil
	}
	return l.publishHome(ctx, p, &draw)
}
