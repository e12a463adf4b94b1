package people

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
	"nize/store"
)

const (
	// checkInterval is when a group of a chat platform is checked again: before
	// what was seen is too old to allow anything.
	checkInterval = store.GroupAge - time.Minute
	// pressAge is how old a check may be where somebody presses a button.
	pressAge = 10 * time.Second
	// checkRetry is when a check that failed is tried again, and how long nobody
	// waits for one meanwhile.
	checkRetry = 30 * time.Second
	// checkTimeout bounds one check. With a platform's limits it may take a while.
	checkTimeout = time.Minute
	// maxWait is how long a caller that needs to know waits for a check.
	maxWait   = 1500 * time.Millisecond
	checkTick = 10 * time.Second
)

// LiveGroups keeps the groups of chat platforms up to date; everybody asks it
// who is in which group. A check is made in the background every few minutes,
// one at a time for each group; a call waits only where there is none yet that
// counts, and not for long. The store says what a check allows, by its age.
type LiveGroups struct {
	store liveStore
	bots  *bots.Registry
	log   *slog.Logger
	now   func() time.Time
	kick  chan struct{} // of one: the groups changed

	mu     sync.Mutex // guards what follows
	checks map[string]*checks
	life   context.Context // of Run, in which checks are made; nil before and after
	wg     sync.WaitGroup  // the checks under way
}

type liveStore interface {
	store.Groups
	store.LiveGroups
}

// checks are what is known of the checks of one group.
type checks struct {
	source  string
	good    time.Time     // the last one that succeeded
	failed  time.Time     // the last one, if it failed
	running chan struct{} // closed when the one under way ends; nil without
	began   time.Time     // of the running one
}

// NewLiveGroups returns one that checks nothing before Run.
func NewLiveGroups(db liveStore, platforms *bots.Registry, log *slog.Logger, now func() time.Time) *LiveGroups {
	return &LiveGroups{store: db, bots: platforms, log: log, now: now, kick: make(chan struct{}, 1), checks: map[string]*checks{}}
}

// Run checks every group again and again until ctx ends.
func (l *LiveGroups) Run(ctx context.Context) error {
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
	tick := time.NewTicker(checkTick)
	defer tick.Stop()
	for {
		l.startDue(checkInterval)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-l.kick:
		}
	}
}

// load reads which groups there are.
func (l *LiveGroups) load(ctx context.Context) error {
	all, err := l.store.ListGroups(ctx)
	if err != nil {
		return fmt.Errorf("listing groups: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range all {
		if g.Live() {
			l.checks[g.Name] = &checks{source: g.Source, good: g.Checked}
		}
	}
	return nil
}

// add begins to check a group, remove ends it.
func (l *LiveGroups) add(g store.Group) {
	l.mu.Lock()
	l.checks[g.Name] = &checks{source: g.Source, good: g.Checked}
	l.mu.Unlock()
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

func (l *LiveGroups) remove(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.checks, name)
}

// startDue starts the checks that are due where one may be as old as age, of
// the groups named or of all. It returns those under way.
func (l *LiveGroups) startDue(age time.Duration, only ...string) (underWay []<-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life == nil {
		return nil
	}
	now := l.now()
	for name, c := range l.checks {
		if len(only) > 0 && !slices.Contains(only, name) || !c.good.IsZero() && now.Sub(c.good) < age {
			continue
		}
		if c.running == nil {
			if now.Sub(c.failed) < checkRetry {
				continue
			}
			done, life := make(chan struct{}), l.life
			c.running, c.began = done, now
			l.wg.Go(func() {
				defer close(done)
				l.check(life, name, c)
			})
		}
		// Nobody waits for what failed just now, or hangs.
		if now.Sub(c.failed) >= checkRetry && now.Sub(c.began) < maxWait {
			underWay = append(underWay, c.running)
		}
	}
	return underWay
}

// check asks the platform once and stores what it saw.
func (l *LiveGroups) check(ctx context.Context, name string, c *checks) {
	asking, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	surface, _, _ := strings.Cut(c.source, ":")
	seen := store.GroupCheck{Source: c.source}
	err := fmt.Errorf("no bot on %s: %w", surface, store.ErrNotFound)
	if on, ok := bots.On[bots.GroupDirectory](l.bots, store.Surface(surface)); ok {
		seen.Identities, err = on.InUserGroup(asking, c.source)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		seen = store.GroupCheck{Source: c.source, Error: store.ErrText(err)}
	}
	_, stored := l.store.RecordGroupCheck(ctx, store.System, name, seen)
	l.mu.Lock()
	was := c.failed
	c.running = nil
	c.failed = l.now()
	if err == nil && stored == nil {
		c.good, c.failed = c.failed, time.Time{}
	}
	l.mu.Unlock()
	switch {
	case errors.Is(stored, store.ErrNotFound): // it was removed meanwhile
		l.remove(name)
	case stored != nil && ctx.Err() == nil:
		l.log.Error("noting who is in a group", "group", name, "err", stored)
	case err != nil && was.IsZero():
		l.log.Warn("who is in a group can't be looked up; it opens nothing after five minutes", "group", name, "err", err)
	case err == nil && !was.IsZero():
		l.log.Info("who is in a group is known again", "group", name)
	}
}

// wait waits a short time for checks under way.
func (l *LiveGroups) wait(ctx context.Context, underWay []<-chan struct{}) {
	if len(underWay) == 0 {
		return
	}
	patience := time.NewTimer(maxWait)
	defer patience.Stop()
	for _, done := range underWay {
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
func (l *LiveGroups) GroupsOf(ctx context.Context, user string) ([]string, error) {
	l.wait(ctx, l.startDue(store.GroupAge))
	return l.store.GroupsOf(ctx, user)
}

// Refresh checks the groups among who again, as a press wants it.
func (l *LiveGroups) Refresh(ctx context.Context, who []string) {
	var names []string
	for _, w := range who {
		if name, ok := strings.CutPrefix(w, "group:"); ok {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		l.wait(ctx, l.startDue(pressAge, names...))
	}
}

// InGroup implements policy.Groups.
func (l *LiveGroups) InGroup(ctx context.Context, name, user string) (bool, error) {
	l.Refresh(ctx, []string{"group:" + name})
	names, err := l.store.GroupsOf(ctx, user)
	return slices.Contains(names, name), err
}
