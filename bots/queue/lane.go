package queue

import (
	"context"
	"slices"
	"sync"
)

// atWork is how many lanes work at the same time; the others wait.
const atWork = 64

// Lanes keep what belongs together in order: what comes into one lane is worked
// off one after another, different lanes at the same time. What a platform tells
// late, after what happened later, takes its place by its order while the other
// still waits; a lane is held while that is looked for.
type Lanes struct {
	slots chan struct{} // one for each lane that works
	wg    sync.WaitGroup

	mu   sync.Mutex // guards what follows
	open map[string][]*Ticket
	held map[string]*hold
}

// hold is a lane of which nothing is worked off.
type hold struct {
	n     int           // how many hold it
	ended chan struct{} // closed when nobody does any more
}

// Ticket is a place in a lane, taken before it is known whether there is
// anything to do.
type Ticket struct {
	order string
	ready chan struct{} // closed by SetWork
	run   func(context.Context)
}

// before says whether t comes before other although it was added later.
func (t *Ticket) before(other *Ticket) bool {
	return t.order != "" && (len(t.order) < len(other.order) || len(t.order) == len(other.order) && t.order < other.order)
}

// NewLanes returns some without anything in them.
func NewLanes() *Lanes {
	return &Lanes{slots: make(chan struct{}, atWork), open: map[string][]*Ticket{}, held: map[string]*hold{}}
}

// Add takes a place of a lane: before what waits there and has a later order, a
// number in digits; behind everything where order is "". Its SetWork must be called.
func (l *Lanes) Add(ctx context.Context, lane, order string) *Ticket {
	t := &Ticket{order: order, ready: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting, runs := l.open[lane]
	i := len(waiting)
	for i > 0 && t.before(waiting[i-1]) {
		i--
	}
	l.open[lane] = slices.Insert(waiting, i, t)
	if !runs {
		l.wg.Go(func() { l.drain(ctx, lane) })
	}
	return t
}

// Hold lets nothing more of a lane be worked on until release is called: something
// may still come that belongs before what is there.
func (l *Lanes) Hold(lane string) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.held[lane]
	if h == nil {
		h = &hold{ended: make(chan struct{})}
		l.held[lane] = h
	}
	h.n++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.n--; h.n == 0 {
			delete(l.held, lane)
			close(h.ended)
		}
	})
}

// Busy says whether something is under way in a lane, or may come before what is.
func (l *Lanes) Busy(lane string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, runs := l.open[lane]
	return runs || l.held[lane] != nil
}

// SetWork says what is to be done at the ticket's place; nil is nothing.
func (t *Ticket) SetWork(run func(context.Context)) {
	t.run = run
	close(t.ready)
}

func (l *Lanes) drain(ctx context.Context, lane string) {
	for {
		l.mu.Lock()
		if len(l.open[lane]) == 0 {
			delete(l.open, lane)
			l.mu.Unlock()
			return
		}
		t, wait := l.open[lane][0], l.open[lane][0].ready
		if h := l.held[lane]; h != nil {
			wait = h.ended
		}
		due := ctx.Err() != nil // which leaves it to the next start
		select {
		case <-wait:
			due = true
		default:
		}
		if !due {
			l.mu.Unlock()
			select {
			case <-wait:
			case <-ctx.Done():
			}
			continue // another may be first by now
		}
		l.open[lane] = l.open[lane][1:]
		l.mu.Unlock()
		if ctx.Err() != nil || t.run == nil {
			continue
		}
		select {
		case l.slots <- struct{}{}:
			t.run(ctx)
			<-l.slots
		case <-ctx.Done():
		}
	}
}

// Wait waits until nothing is under way. What was to be worked on with a context
// that has ended is left out.
func (l *Lanes) Wait() { l.wg.Wait() }
