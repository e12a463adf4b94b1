// Package alert sends operators one message when a problem begins and one when it is over.
//
// A [Manager] checks every few seconds. A check returns a [Result]: all current problems,
// and those that it can't determine. From that the manager opens and ends incidents in the
// store, which keeps at most one per kind and subject, so that a problem that persists
// across a restart is reported once. It doesn't consume events: an incident is a state, and
// each check compares the complete state.
//
// Hysteresis (kinds): for example, a server must be down for five minutes before that is an
// incident, and up for one minute before the incident ends; a brief recovery restarts
// neither time. If a problem recurs, the recovery must last longer each time, up to an
// hour, so that a flapping server does not cause a flood of messages.
//
// Delivery is separate from checking, so that a hanging destination doesn't block anything.
// A message is retried with backoff until the destination accepts it, and given up after
// [maxTries]; the progress is stored with the incident. Delivery is at least once: after a
// crash between the destination's response and its record, a webhook gets the message again
// with the same id; in a chat the message is found by that id and sent only once.
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

// Kinds of incidents. They are on the wire and never change.
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
	Test        = "test" // a test message; never stored
)

// pace is how long a problem must last before it is an incident, and how long a recovery
// must last to end it.
type pace struct{ wrong, well time.Duration }

// paces lists the kinds that need more than one check.
var paces = map[string]pace{
	ServerDown: {5 * time.Minute, time.Minute},
	BotDown:    {2 * time.Minute, time.Minute},
	LoginLost:  {time.Minute, time.Minute},
	Disk:       {0, time.Minute},
}

const (
	// flapTime is for how long an incident lengthens the recovery of later ones of the same
	// subject.
	flapTime = 6 * time.Hour
	maxCalm  = time.Hour

	maxTitle, maxText, maxCure = 200, 2000, 1000 // bytes
)

// Key names the subject of an incident. In Result.Unknown, an empty Subject means all of
// the kind.
type Key struct{ Kind, Subject string }

// Symptom is a current problem. Its texts may contain untrusted text; the manager truncates
// them.
type Symptom struct {
	Key
	Title, Text store.Text
	Cure        string
	Users       []string // ids of the people whom it concerns, besides admins
}

// Result is the result of one check. Anything that is in neither list is fine.
type Result struct {
	Wrong   []Symptom
	Unknown []Key // keeps its previous state
}

// Notifier is a destination of alerts: [Webhook], or a chat platform's.
type Notifier interface {
	// Notify sends the incident's current state, and returns the destination's handle for
	// the message. A destination that can edit messages edits the one in i.Delivery.Handle,
	// if there is one. The error is one line for people; if it wraps ErrPermanent, it is
	// not retried.
	Notify(ctx context.Context, i store.Incident) (handle string, err error)
}

// ErrPermanent marks a failure that a retry won't fix.
var ErrPermanent = errors.New("it is not tried again")

// Options are a Manager's dependencies.
type Options struct {
	Incidents store.Incidents
	// To returns the current destination, nil for none.
	To func(ctx context.Context) (Notifier, error)
	// Check returns the current problems.
	Check func(ctx context.Context) Result
	Now   func() time.Time
	Log   *slog.Logger
}

// Manager keeps incidents and sends alerts about them. Run starts it.
type Manager struct {
	opt  Options
	wake chan struct{} // capacity 1: signals that messages are due

	again atomic.Bool // retry failed messages from the start

	mu    sync.Mutex // guards the fields below
	marks map[Key]*mark
	past  map[Key][]time.Time // start times of recent incidents; nil until they are read
}

// mark is the observed state of one key.
type mark struct {
	wrong time.Time // start of the problem
	well  time.Time // start of the recovery; zero while the problem lasts
}

// New returns a Manager that does nothing until Run is called.
func New(opt Options) *Manager {
	return &Manager{opt: opt, wake: make(chan struct{}, 1), marks: map[Key]*mark{}}
}

// checkEvery is the interval of checks.
const checkEvery = 15 * time.Second

// Run checks and delivers until ctx ends, and then waits for the goroutines it started.
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

// Update opens and ends incidents according to a check's result.
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

// activeLocked reads the active incidents and, the first time, recent ones.
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

// calmLocked returns how long k's recovery must last: it doubles with every recent incident
// before the current one.
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

// poke signals that a message may be due.
func (a *Manager) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// head truncates a text to a number of bytes.
func head(t store.Text, limit int) store.Text {
	if short := store.Head(t.String(), limit); short != t.String() {
		return store.Plain(short)
	}
	return t
}

// Over returns the text that an incident is over, without the description of the problem.
func Over(i store.Incident) store.Text {
	return store.Textf("It is over; it lasted %s.", i.Recovered.Sub(i.Opened).Round(time.Second))
}
