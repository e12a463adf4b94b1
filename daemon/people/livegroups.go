package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/bots"
	"nize/daemon/monitor"
	"nize/store"
)

const (
	// groupEvery is when a group of a chat platform is looked at again: before
	// what was seen is too old to allow anything.
	groupEvery = store.GroupAge - time.Minute
	// groupPress is how old a look may be where somebody presses.
	groupPress = 10 * time.Second
	// groupRetry is when a look that failed is tried again, and how long nobody
	// waits for one meanwhile.
	groupRetry = 30 * time.Second
	// groupTime bounds one look. With Slack's limits it may take a while.
	groupTime = time.Minute
	// groupPatience is how long somebody who needs to know waits for it.
	groupPatience = 1500 * time.Millisecond
	groupTick     = 10 * time.Second
)

// liveGroups keeps the groups of chat platforms up to date, and is the one that
// everybody asks who is in which group. A look is taken in the
// background every few minutes, one at a time for each group; a call waits only
// where there is none yet that counts, and not for long. The store says what a
// look allows, by its age.
type liveGroups struct {
	db     liveStore
	roster func(at store.Surface) (bots.GroupDirectory, bool) // the groups of people on a surface
	log    *slog.Logger
	now    func() time.Time
	kick   chan struct{} // of one: the groups changed

	mu    sync.Mutex // guards what follows
	looks map[string]*look
	life  context.Context // of run, in which looks are taken; nil before and after
	wg    sync.WaitGroup  // the looks under way
}

type liveStore interface {
	store.Groups
	store.LiveGroups
}

// look is what is known of the looks at one group.
type look struct {
	source  string
	good    time.Time     // the last one that told
	failed  time.Time     // the last one, if it did not
	present chan struct{} // closed when the one under way ends; nil without
	began   time.Time     // of the present one
}

func newLiveGroups(d *Daemon) *liveGroups {
	return &liveGroups{
		db: d.db, roster: func(at store.Surface) (bots.GroupDirectory, bool) { return bots.On[bots.GroupDirectory](d.bots, at) }, log: d.log.With("component", "groups"), now: d.now,
		kick: make(chan struct{}, 1), looks: map[string]*look{},
	}
}

// run looks at every group again and again until ctx ends.
func (l *liveGroups) run(ctx context.Context) error {
	if err := l.load(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	l.life = ctx
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.life = nil
		l.mu.Unlock()
		l.wg.Wait()
	}()
	tick := time.NewTicker(groupTick)
	defer tick.Stop()
	for {
		l.due(groupEvery)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-l.kick:
		}
	}
}

// load reads which groups there are.
func (l *liveGroups) load(ctx context.Context) error {
	all, err := l.db.ListGroups(ctx)
	if err != nil {
		return fmt.Errorf("listing groups: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range all {
		if g.Live() {
			l.looks[g.Name] = &look{source: g.Source, good: g.Checked}
		}
	}
	return nil
}

// know begins to look at a group, forget ends it.
func (l *liveGroups) know(g store.Group) {
	l.mu.Lock()
	l.looks[g.Name] = &look{source: g.Source, good: g.Checked}
	l.mu.Unlock()
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

func (l *liveGroups) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.looks, name)
}

// due begins the looks that are due where one may be as old as age, at the
// groups named or at all. It returns those under way.
func (l *liveGroups) due(age time.Duration, only ...string) (under []<-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life == nil {
		return nil
	}
	now := l.now()
	for name, k := range l.looks {
		if len(only) > 0 && !slices.Contains(only, name) || !k.good.IsZero() && now.Sub(k.good) < age {
			continue
		}
		if k.present == nil {
			if now.Sub(k.failed) < groupRetry {
				continue
			}
			done, life := make(chan struct{}), l.life
			k.present, k.began = done, now
			l.wg.Go(func() {
				defer close(done)
				l.look(life, name, k)
			})
		}
		// Nobody waits for what failed just now, or hangs.
		if now.Sub(k.failed) >= groupRetry && now.Sub(k.began) < groupPatience {
			under = append(under, k.present)
		}
	}
	return under
}

// look takes one look and stores what it saw.
func (l *liveGroups) look(ctx context.Context, name string, k *look) {
	asking, cancel := context.WithTimeout(ctx, groupTime)
	defer cancel()
	surface, _, _ := strings.Cut(k.source, ":")
	seen := store.GroupCheck{Source: k.source}
	err := fmt.Errorf("no bot on %s: %w", surface, store.ErrNotFound)
	if on, ok := l.roster(store.Surface(surface)); ok {
		seen.Identities, err = on.InUserGroup(asking, k.source)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		seen = store.GroupCheck{Source: k.source, Error: monitor.ErrText(err)}
	}
	_, noted := l.db.RecordGroupCheck(ctx, store.System, name, seen)
	l.mu.Lock()
	was := k.failed
	k.present = nil
	k.failed = l.now()
	if err == nil && noted == nil {
		k.good, k.failed = k.failed, time.Time{}
	}
	l.mu.Unlock()
	switch {
	case errors.Is(noted, store.ErrNotFound): // it was removed meanwhile
		l.forget(name)
	case noted != nil && ctx.Err() == nil:
		l.log.Error("noting who is in a group", "group", name, "err", noted)
	case err != nil && was.IsZero():
		l.log.Warn("who is in a group can't be looked up; it opens nothing after five minutes", "group", name, "err", err)
	case err == nil && !was.IsZero():
		l.log.Info("who is in a group is known again", "group", name)
	}
}

// await waits a short time for looks under way.
func (l *liveGroups) await(ctx context.Context, under []<-chan struct{}) {
	if len(under) == 0 {
		return
	}
	patience := time.NewTimer(groupPatience)
	defer patience.Stop()
	for _, done := range under {
		select {
		case <-done:
		case <-patience.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// GroupsOf implements policy.Groups and llm.Groups.
func (l *liveGroups) GroupsOf(ctx context.Context, user string) ([]string, error) {
	l.await(ctx, l.due(store.GroupAge))
	return l.db.GroupsOf(ctx, user)
}

// refresh looks anew at the groups among who, as a press wants it.
func (l *liveGroups) refresh(ctx context.Context, who []string) {
	var names []string
	for _, w := range who {
		if name, ok := strings.CutPrefix(w, "group:"); ok {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		l.await(ctx, l.due(groupPress, names...))
	}
}

// InGroup implements policy.Groups.
func (l *liveGroups) InGroup(ctx context.Context, name, user string) (bool, error) {
	l.refresh(ctx, []string{"group:" + name})
	names, err := l.db.GroupsOf(ctx, user)
	return slices.Contains(names, name), err
}
