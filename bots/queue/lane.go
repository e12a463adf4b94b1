package queue

import (
	"context"
	"slices"
	"sync"
)

// atWork is how many lanes work at once; the others wait.
const atWork = 64

// Lanes process related work in order: work in one lane runs one after another, different
// lanes run concurrently. Work that a platform delivers late takes its place by its order,
// if later work still waits; a lane is held while missed work is being looked for.
type Lanes struct {
	slots chan struct{} // has one element per working lane
	wg    sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	open map[string][]*Ticket
	held map[string]*hold
}

// hold pauses a lane.
type hold struct {
	n     int           // number of holders
	ended chan struct{} // closed when the last holder releases it
}

// Ticket is a place in a lane, taken before it is known whether there is work.
type Ticket struct {
	order string
	ready chan struct{} // closed by SetWork
	run   func(context.Context)
}

// before reports whether t precedes other although it was added later.
func (t *Ticket) before(other *Ticket) bool {
	return t.order != "" && (len(t.order) < len(other.order) || len(t.order) == len(other.order) && t.order < other.order)
}

// NewLanes returns empty lanes.
func NewLanes() *Lanes {
	return &Lanes{slots: make(chan struct{}, atWork), open: map[string][]*Ticket{}, held: map[string]*hold{}}
}

// Add takes a place in a lane: before waiting work with a later order (a decimal number),
// or at the end if order is "". The caller must call SetWork.
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

// Hold pauses a lane until release is called, because work may arrive that precedes what
// waits.
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

// Busy reports whether a lane has work, or is held because earlier work may arrive.
func (l *Lanes) Busy(lane string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, runs := l.open[lane]
	return runs || l.held[lane] != nil
}

// SetWork sets the work for the ticket; nil is none.
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
		due := ctx.Err() != nil // run leaves the work to the next start
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
			continue // another ticket may be first by now
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

// Wait waits until no work is running. Work whose context has ended is skipped.
func (l *Lanes) Wait() { l.wg.Wait() }
