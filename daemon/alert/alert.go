// Package alert tells operators, once, that something is wrong, and once that
// it is over.
//
// A [Manager] checks every few seconds. What it finds is a [Result]: all that
// is wrong now, and what cannot be told. From that it opens and ends incidents
// in the store, which keeps at most one of a kind and subject; so what is wrong
// across a restart is told once. It never hears of events: an incident is a
// state of affairs, and each check compares the whole.
//
// Hysteresis (kinds): a server must be down for five minutes, and well for one
// before that counts as over; a moment of being well in between starts neither
// time anew. What came back again and again must be well for longer each time,
// up to an hour, so that a flapping server does not flood.
//
// Delivery is apart from checking, so that a destination that hangs holds up
// nothing. A message is tried until the destination took it, with a growing
// pause, and given up after [maxTries]; how far it came stands with the
// incident. It is delivered at least once: after a crash between the
// destination's yes and its note a webhook gets it again, under the same id; in a
// chat it is found by that and said once.
package alert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"nize/store"
)

// Kinds of incidents; they are on the wire and never change.
const (
	ServerDown  = "server.down"
	BotDown     = "bot.down"
	LoginLost   = "login.lost"
	ToolHeld    = "tool.held"
	TokenEnds   = "token.expiring"
	BudgetLow   = "budget.warned"
	BudgetOut   = "budget.exceeded"
	Disk        = "disk"
	Backup      = "backup"
	Migration   = "migration"
	AuditFailed = "audit"
	Clock       = "clock"
	SignIn      = "signin"
	Test        = "test" // of a message that tests the destination; never stored
)

// pace is how long what is wrong must be wrong, and then well, until that
// counts.
type pace struct{ wrong, well time.Duration }

// paces lists the kinds that need more than one check.
var paces = map[string]pace{
	ServerDown: {5 * time.Minute, time.Minute},
	BotDown:    {2 * time.Minute, time.Minute},
	LoginLost:  {time.Minute, time.Minute},
	Disk:       {0, time.Minute},
}

const (
	// flapTime is how long an incident counts against the next of its subject.
	flapTime = 6 * time.Hour
	maxCalm  = time.Hour

	maxTitle, maxText, maxCure = 200, 2000, 1000 // bytes
)

// Key names what an incident is about. As something that cannot be told, an
// empty Subject is all of the kind.
type Key struct{ Kind, Subject string }

// Symptom is something that is wrong now. Its texts may hold what strangers
// wrote; they are cut here.
type Symptom struct {
	Key
	Title, Text store.Text
	Cure        string
	Users       []string // ids of those whom it concerns, besides admins
}

// Result is everything that one check found. What is in neither list is well.
type Result struct {
	Wrong   []Symptom
	Unknown []Key // stays as it was
}

// Notifier is a destination of alerts: [Webhook]; chat platforms have theirs.
type Notifier interface {
	// Notify tells of the incident as it is, and returns the destination's name
	// for the message. A destination that can edit changes the message that
	// i.Delivery.Handle names, if there is one. The error is one line for
	// people; one that wraps ErrPermanent is not tried again.
	Notify(ctx context.Context, i store.Incident) (handle string, err error)
}

// ErrPermanent marks a failure that trying again does not mend.
var ErrPermanent = errors.New("it is not tried again")

// Options are what a Manager needs.
type Options struct {
	Incidents store.Incidents
	// To is the destination now; nil is nobody.
	To func(ctx context.Context) (Notifier, error)
	// Check says what is wrong now.
	Check func(ctx context.Context) Result
	Now   func() time.Time
	Log   *slog.Logger
}

// Manager keeps incidents and tells of them. Run makes it work.
type Manager struct {
	opt  Options
	wake chan struct{} // holds one: deliver what is due, however often it was asked for

	again atomic.Bool // what failed begins anew

	mu    sync.Mutex // guards what follows
	marks map[Key]*mark
	past  map[Key][]time.Time // when incidents of late began; nil until they were read
}

// mark is what was seen of one key.
type mark struct {
	wrong time.Time // since when
	well  time.Time // since when; zero while it is wrong
}

// New returns a manager that does nothing until Run.
func New(opt Options) *Manager {
	return &Manager{opt: opt, wake: make(chan struct{}, 1), marks: map[Key]*mark{}}
}

// checkEvery is how often the manager checks.
const checkEvery = 15 * time.Second

// Run checks and delivers until ctx ends, and ends what it started.
func (a *Manager) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { a.deliver(ctx) })
	defer running.Wait()
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		if err := a.Update(ctx, a.opt.Check(ctx)); err != nil && ctx.Err() == nil {
			a.opt.Log.Error("keeping incidents", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Update opens and ends incidents by what one check found.
func (a *Manager) Update(ctx context.Context, s Result) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	active, err := a.activeLocked(ctx)
	if err != nil {
		return err
	}
	now, wrong := a.opt.Now(), map[Key]bool{}
	var errs []error
	for _, symptom := range s.Wrong {
		wrong[symptom.Key] = true
		errs = append(errs, a.wrongLocked(ctx, symptom, active, now))
	}
	unknown := map[Key]bool{}
	for _, k := range s.Unknown {
		unknown[k] = true
	}
	for k := range active {
		if a.marks[k] == nil {
			a.marks[k] = &mark{wrong: now} // from before a restart
		}
	}
	for k, m := range a.marks {
		if !wrong[k] && !unknown[k] && !unknown[Key{Kind: k.Kind}] {
			errs = append(errs, a.wellLocked(ctx, k, m, active, now))
		}
	}
	return errors.Join(errs...)
}

// activeLocked reads the active incidents, and at first those of late.
func (a *Manager) activeLocked(ctx context.Context) (map[Key]string, error) {
	list, err := a.opt.Incidents.ListIncidents(ctx, store.IncidentQuery{All: a.past == nil})
	if err != nil {
		return nil, fmt.Errorf("reading incidents: %w", err)
	}
	active := map[Key]string{}
	if a.past == nil {
		a.past = map[Key][]time.Time{}
		for _, i := range list {
			a.beganLocked(Key{i.Kind, i.Subject}, i.Opened)
		}
	}
	for _, i := range list {
		if i.Active() {
			active[Key{i.Kind, i.Subject}] = i.ID
		}
	}
	return active, nil
}

func (a *Manager) wrongLocked(ctx context.Context, s Symptom, active map[Key]string, now time.Time) error {
	m := a.marks[s.Key]
	if m == nil {
		m = &mark{wrong: now}
		a.marks[s.Key] = m
	}
	m.well = time.Time{}
	if active[s.Key] != "" || now.Sub(m.wrong) < paces[s.Kind].wrong {
		return nil
	}
	i, err := a.opt.Incidents.OpenIncident(ctx, store.System, store.Incident{
		ID: store.NewID(now), Kind: s.Kind, Subject: s.Subject, Title: head(s.Title, maxTitle), Text: head(s.Text, maxText), Cure: store.Head(s.Cure, maxCure), Opened: now, Users: s.Users,
	})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("opening an incident (%s): %w", head(s.Title, maxTitle), err)
	}
	a.beganLocked(s.Key, now)
	a.opt.Log.Warn("incident", "kind", i.Kind, "subject", i.Subject, "title", i.Title.String(), "id", i.ID)
	a.poke()
	return nil
}

func (a *Manager) wellLocked(ctx context.Context, k Key, m *mark, active map[Key]string, now time.Time) error {
	if m.well.IsZero() {
		m.well = now
	}
	if now.Sub(m.well) < a.calmLocked(k, now) {
		return nil
	}
	if id := active[k]; id != "" {
		i, err := a.opt.Incidents.RecoverIncident(ctx, store.System, id)
		if err != nil && !errors.Is(err, store.ErrDecided) {
			return fmt.Errorf("ending incident %s: %w", id, err)
		}
		a.opt.Log.Info("incident is over", "kind", i.Kind, "subject", i.Subject, "title", i.Title.String(), "id", i.ID)
		a.poke()
	}
	delete(a.marks, k)
	return nil
}

// calmLocked is how long k must be well: twice as long for every incident of
// late before the present one.
func (a *Manager) calmLocked(k Key, now time.Time) time.Duration {
	n := 0
	for _, at := range a.past[k] {
		if now.Sub(at) < flapTime {
			n++
		}
	}
	calm := paces[k.Kind].well
	for range n - 1 {
		calm = min(max(2*calm, time.Minute), maxCalm)
	}
	return calm
}

func (a *Manager) beganLocked(k Key, at time.Time) {
	var kept []time.Time
	for _, t := range a.past[k] {
		if at.Sub(t).Abs() < flapTime {
			kept = append(kept, t)
		}
	}
	a.past[k] = append(kept, at)
}

// poke says that something may be due.
func (a *Manager) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// head is a text that is not longer than so many bytes.
func head(t store.Text, limit int) store.Text {
	if short := store.Head(t.String(), limit); short != t.String() {
		return store.Plain(short)
	}
	return t
}

// Over says that an incident is over; what was wrong is not said any more.
func Over(i store.Incident) store.Text {
	return store.Textf("It is over; it lasted %s.", i.Recovered.Sub(i.Opened).Round(time.Second))
}
