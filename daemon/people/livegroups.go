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
	// checkInterval is the interval of checks of a chat platform's group. It is short
	// enough that the last check is never too old to count.
	checkInterval = store.GroupAge - time.Minute
	// pressAge is the maximum age of a check when a person presses a button.
	pressAge = 10 * time.Second
	// checkRetry is the delay before a failed check is retried. Until then no caller waits
	// for one.
	checkRetry = 30 * time.Second
	// checkTimeout is the timeout of one check, which a platform's rate limits may slow
	// down.
	checkTimeout = time.Minute
	// maxWait is how long a caller waits for a check.
	maxWait   = 1500 * time.Millisecond
	checkTick = 10 * time.Second
)

// LiveGroups keeps the members of chat platforms' groups up to date and returns who is in
// which group. Checks run in the background every few minutes, one at a time per group. A
// caller waits for a check only if there is no valid one, and only briefly. The store
// decides by a check's age what it allows.
type LiveGroups struct {
	// Confirm, if set, makes a user's groups at the identity provider current, or returns why
	// they don't count. It must be set before the first decision.
	Confirm func(ctx context.Context, user string) error

	store liveStore
	bots  *bots.Registry
	log   *slog.Logger
	now   func() time.Time
	kick  chan struct{} // capacity 1: the groups changed

	mu     sync.Mutex // guards the fields below
	checks map[string]*checks
	life   context.Context // Run's context, for checks; nil before and after Run
	wg     sync.WaitGroup  // running checks
}

type liveStore interface {
	store.Groups
	store.LiveGroups
	GetUser(ctx context.Context, id string) (store.User, error)
}

// checks is the state of one group's checks.
type checks struct {
	source  string
	good    time.Time     // the last success
	failed  time.Time     // the last check, if it failed
	running chan struct{} // closed when the running check ends; nil if none is running
	began   time.Time     // start of the running check
}

// NewLiveGroups returns a LiveGroups that checks nothing until Run is called.
func NewLiveGroups(db liveStore, platforms *bots.Registry, log *slog.Logger, now func() time.Time) *LiveGroups {
	return &LiveGroups{store: db, bots: platforms, log: log, now: now, kick: make(chan struct{}, 1), checks: map[string]*checks{}}
}

// Run checks every group periodically until ctx ends.
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

// load reads the list of groups.
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

// add starts checking a group, and remove stops it.
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

// startDue starts checks of the named groups, or of all, whose last check is older than
// age. It returns the running checks.
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
		// Don't wait for a check that failed just now, or hangs.
		if now.Sub(c.failed) >= checkRetry && now.Sub(c.began) < maxWait {
			underWay = append(underWay, c.running)
		}
	}
	return underWay
}

// check queries the platform once and stores the result.
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
	case errors.Is(stored, store.ErrNotFound): // the group was removed in the meantime
		l.remove(name)
	case stored != nil && ctx.Err() == nil:
		l.log.Error("storing a group's members", "group", name, "err", stored)
	case err != nil && was.IsZero():
		l.log.Warn("a group's members can't be looked up; it grants nothing after five minutes", "group", name, "err", err)
	case err == nil && !was.IsZero():
		l.log.Info("a group's members can be looked up again", "group", name)
	}
}

// wait waits briefly for running checks.
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

// Refresh checks the groups in who again, for a button press.
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

// StillInGroup implements policy.Groups.
func (l *LiveGroups) StillInGroup(ctx context.Context, name, user string) (bool, error) {
	in, err := l.InGroup(ctx, name, user)
	if err != nil || !in {
		return false, err
	}
	provided, err := l.store.IsProvided(ctx, name)
	if err != nil || !provided || l.Confirm == nil {
		return err == nil, err
	}
	if err := l.Confirm(ctx, user); err != nil {
		return false, err
	}
	names, err := l.store.GroupsOf(ctx, user)
	return slices.Contains(names, name), err
}

// StillAdmin implements policy.Groups.
func (l *LiveGroups) StillAdmin(ctx context.Context, user string) (bool, error) {
	if l.Confirm != nil {
		if err := l.Confirm(ctx, user); err != nil {
			return false, err
		}
	}
	u, err := l.store.GetUser(ctx, user)
	return err == nil && u.Role == store.Admin, err
}
