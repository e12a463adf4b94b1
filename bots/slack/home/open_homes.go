package home

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/bots"
	"nize/bots/queue"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/store"
)

// A Home that somebody opened recently is redrawn when what it shows
// changes elsewhere: a call begins to wait for them, is decided or expires; a
// grant, a setting, a token or a credential is changed by words or by nizectl.
// The store's feed tells of it, so that anyone who makes the change waits for
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

// openHomes are the Homes that are redrawn, by person.
type openHomes struct {
	redraws *queue.Queue[string] // when each is redrawn

	mu sync.Mutex // guards of
	of map[string]*openedHome
}

// openedHome is one of them, as it was drawn last.
type openedHome struct {
	seen   time.Time // when its person opened or used it
	st     view.HomeState
	notice string
	sum    string    // of the view
	calls  []string  // that it shows
	drawn  time.Time // when it was redrawn last
	looks  int       // how often again, for cards that had no place yet
	kept   time.Time // what of seen is in the store
	state  string    // what of st is there
}

// setOpened notes that somebody looks at their Home.
func (r *openHomes) setOpened(user string, st view.HomeState, notice string, now time.Time) {
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
func (r *openHomes) forgetLocked(now time.Time) {
	for user, h := range r.of {
		if now.Sub(h.seen) > store.HomeOpen {
			delete(r.of, user)
		}
	}
}

func (r *openHomes) drop(user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, user)
	r.redraws.Drop(user)
}

// setDigest notes what somebody's Home shows now.
func (r *openHomes) setDigest(user, sum string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.of[user]; h != nil {
		h.sum = sum
	}
}

// hasDigest says whether somebody's Home shows just that.
func (r *openHomes) hasDigest(user, sum string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[user] != nil && r.of[user].sum == sum
}

// setCalls notes which calls a Home shows. One whose card stands nowhere yet is
// looked at again: it is about to, and where it comes to stand no change tells.
func (r *openHomes) setCalls(user string, list []bots.WaitingCall, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.of[user]
	if h == nil {
		return
	}
	h.calls = nil
	missing := false
	for _, w := range list {
		h.calls = append(h.calls, w.Call)
		missing = missing || w.At.Message == ""
	}
	if _, due := r.redraws.Due(user); missing && h.looks < homeLooks && !due {
		r.redraws.Set(user, now.Add(homeGap<<h.looks))
		h.looks++
	}
}

// scheduleFor makes the Homes due that a change may matter to. It is called for each
// change of the store and looks at what is in memory only.
func (r *openHomes) scheduleFor(c store.Change, now time.Time) {
	all := slices.Contains([]string{"grant", "setting", "token", "credential", "server"}, c.Kind) || c.Kind == "call" && c.State == store.Pending
	if !all && c.Kind != "call" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for user, h := range r.of {
		if now.Sub(h.seen) > store.HomeOpen || !all && !slices.Contains(h.calls, c.ID) {
			continue
		}
		h.looks = 0
		due := now.Add(homeSoon)
		if next := h.drawn.Add(homeGap); due.Before(next) {
			due = next
		}
		r.redraws.Advance(user, due)
	}
}

// scheduleAll makes every Home due: nobody knows what changed.
func (r *openHomes) scheduleAll(now time.Time) {
	r.scheduleFor(store.Change{Kind: "setting"}, now)
}

// beginRedraw is what of a Home is redrawn.
func (r *openHomes) beginRedraw(user string, now time.Time) (st view.HomeState, notice string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.redraws.Drop(user)
	h := r.of[user]
	if h == nil {
		return view.HomeState{}, "", false
	}
	h.drawn = now
	return h.st, h.notice, now.Sub(h.seen) <= store.HomeOpen
}

// Newest is where the feed stands, from which [Homes.Follow] goes on.
func (hs *Homes) Newest() (s store.Seq) {
	if hs.o.Feed != nil {
		s = hs.o.Feed.Last()
	}
	return s
}

// Follow hears what changes after a point, until ctx ends.
func (hs *Homes) Follow(ctx context.Context, after store.Seq) {
	feed := hs.o.Feed
	if feed == nil {
		return
	}
	for ctx.Err() == nil {
		for change, err := range feed.Watch(ctx, after) {
			if err != nil {
				if !errors.Is(err, store.ErrNotFound) {
					hs.o.Log.Error("following the feed; Homes are drawn when they are opened", "err", err)
					return
				}
				after = feed.Last() // slower than the feed's window
				hs.open.scheduleAll(hs.o.Now())
				break
			}
			after = change.Seq
			hs.open.scheduleFor(change, hs.o.Now())
		}
	}
}

// dueForStore says since when somebody's Home is open, if that or how it was drawn is
// to be kept again; it counts as kept then.
func (r *openHomes) dueForStore(user, state string) (seen time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.of[user]
	if h == nil || h.state == state && h.seen.Sub(h.kept) < homeKept {
		return time.Time{}, false
	}
	h.kept, h.state = h.seen, state
	return h.seen, true
}

// restore takes up a Home that was open before, unless somebody used it since.
func (r *openHomes) restore(user string, st view.HomeState, seen time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[user] == nil && len(r.of) < store.MaxHomes {
		r.of[user] = &openedHome{seen: seen, st: st}
	}
}

// storeOpenHome keeps that somebody's Home is open, and how it was drawn.
func (hs *Homes) storeOpenHome(ctx context.Context, p people.Person, st view.HomeState) {
	state, err := json.Marshal(st)
	if err != nil || len(state) > store.MaxHomeState {
		return // it can't be followed without
	}
	seen, ok := hs.open.dueForStore(p.ID, string(state))
	if !ok {
		return
	}
	h := store.OpenHome{Identity: p.Identity(), Team: hs.o.Team, Seen: seen, State: state}
	if err := hs.o.Store.PutHome(ctx, h); err != nil && ctx.Err() == nil {
		hs.o.Log.Warn("after a restart an open Home would not follow what changes", "user", p.ID, "err", err)
	}
}

// restoreOpenHomes takes up the Homes that were open before a restart, and has them
// drawn with what changed meanwhile.
func (hs *Homes) restoreOpenHomes(ctx context.Context) {
	if hs.o.Keeper == nil || hs.o.Feed == nil {
		return
	}
	now := hs.o.Now()
	list, err := hs.o.Store.ListHomes(ctx, "slack:", now.Add(-store.HomeOpen))
	if err != nil {
		if ctx.Err() == nil {
			hs.o.Log.Error("reading which Homes are open; they are drawn when they are opened", "err", err)
		}
		return
	}
	for _, h := range list {
		if user := h.Identity[strings.LastIndexByte(h.Identity, ':')+1:]; h.Team == hs.o.Team && incoming.IDForm.MatchString(user) {
			hs.open.restore(user, view.ReadHomeState(string(h.State)), h.Seen)
		}
	}
	hs.open.scheduleAll(now)
}

// KeepRedrawing draws Homes again that are due, until ctx ends.
func (hs *Homes) KeepRedrawing(ctx context.Context) {
	hs.restoreOpenHomes(ctx)
	hs.open.redraws.Run(ctx, 1, func(ctx context.Context, user string) {
		if err := queue.Guard(func() error { return hs.redraw(ctx, user) }); err != nil && ctx.Err() == nil {
			hs.o.Log.Warn("a Home is not redrawn", "user", user, "err", err)
		}
	})
}

// redraw draws somebody's Home as it was, if it looks different by now. The
// picture of usage stays until the Home is opened.
func (hs *Homes) redraw(ctx context.Context, user string) error {
	lock := hs.lock(user)
	lock.Lock()
	defer lock.Unlock()
	st, notice, ok := hs.open.beginRedraw(user, hs.o.Now()) // as anyone who drew it just now left it
	if !ok {
		hs.open.drop(user)
		return nil
	}
	p, err := hs.o.People.Who(ctx, user, people.Recent)
	if err != nil {
		return err
	}
	if p.User.ID == "" { // they see that when they open it
		hs.open.drop(user)
		return nil
	}
	draw, err := hs.gatherHome(ctx, p, st, notice)
	if err != nil {
		return err
	}
	if draw.Data.Picture != nil {
		draw.Picture = hs.picture(p.ID, st)
	}
	if hs.open.hasDigest(user, draw.Digest(draw.View())) {
		return nil
	}
	return hs.publishHome(ctx, p, &draw)
}
