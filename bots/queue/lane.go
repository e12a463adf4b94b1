package queue

import (
	"context"
	"sync"
)

// atWork is how many lanes work at the same time; the others wait.
const atWork = 64

// Lanes keep what belongs together in order: what comes into one lane is
// worked off one after another, different lanes at the same time.
type Lanes struct {
	slots chan struct{} // one for each lane that works
	wg    sync.WaitGroup

	mu   sync.Mutex // guards open
	open map[string][]*Ticket
}

// Ticket is a place in a lane, taken before it is known whether there is
// anything to do.
type Ticket struct {
	ready chan struct{} // closed by SetWork
	run   func(context.Context)
}

// NewLanes returns some without anything in them.
func NewLanes() *Lanes {
	return &Lanes{slots: make(chan struct{}, atWork), open: map[string][]*Ticket{}}
}

// Add takes the next place of a lane. Its SetWork must be called.
func (l *Lanes) Add(ctx context.Context, lane string) *Ticket {
	t := &Ticket{ready: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, runs := l.open[lane]
	l.open[lane] = append(l.open[lane], t)
	if !runs {
		l.wg.Go(func() { l.drain(ctx, lane) })
	}
	return t
}

// Busy says whether something is under way in a lane.
func (l *Lanes) Busy(lane string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, runs := l.open[lane]
	return runs
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
		t := l.open[lane][0]
		l.open[lane] = l.open[lane][1:]
		l.mu.Unlock()
		select {
		case <-t.ready:
		case <-ctx.Done():
			continue // the next start takes what is stored
		}
		if t.run == nil || ctx.Err() != nil {
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
