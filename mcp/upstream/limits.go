package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"nize/mcp/upstream/process"
	"nize/mcp/upstream/wire"
	"nize/store"
)

// Limits on the resources of one server: it is closed if it is idle, its calls are rate
// limited, its memory is limited, and while it leaves calls unanswered it gets few of them.
const (
	// openAfter is how many consecutive failures open a circuit. It counts calls that a
	// live session leaves unanswered; if a server can't be reached at all, its lane's
	// backoff applies.
	openAfter   = 5
	memoryEvery = 2 * time.Second // between samples of all groups
	killedShown = time.Hour       // how long a status shows why a process was killed
)

// admitCallLocked counts one call against the server's rate limit, or returns an error that
// says when the next call is possible. s.mu must be held.
func (s *server) admitCallLocked(now time.Time) error {
	limit := s.cfg.RateLimit
	if limit.Calls == 0 {
		return nil
	}
	per := time.Duration(limit.Per)
	for len(s.recentCalls) > 0 && now.Sub(s.recentCalls[0]) >= per {
		s.recentCalls = s.recentCalls[1:]
	}
	if len(s.recentCalls) >= limit.Calls {
		next := per - now.Sub(s.recentCalls[len(s.recentCalls)-limit.Calls])
		return &store.CallError{Code: store.CodeRateLimited, Retryable: true,
			Message: store.Textf("%s is limited to %s calls (its rate_limit); try again in %s", s.name, limit, next.Round(10*time.Millisecond))}
	}
	s.recentCalls = append(s.recentCalls, now)
	return nil
}

// checkCircuitLocked returns an error while the lane's circuit is open. When its time is
// over the circuit is half open: one call goes through, and the others wait for its
// outcome. s.mu must be held.
func (l *lane) checkCircuitLocked(now time.Time) error {
	if l.unanswered < openAfter {
		return nil
	}
	if wait := l.openUntil.Sub(now); wait > 0 {
		return fmt.Errorf("%w; its circuit is open, the next attempt is in %s", l.lastErr, wait.Round(100*time.Millisecond))
	}
	l.openUntil = now.Add(circuitPause(l.unanswered))
	return nil
}

// circuitPause returns how long a circuit is open after n failures.
func circuitPause(n int) time.Duration { return retryDelay(n - openAfter + 3) }

// noteAnswerLocked records the outcome of a call: any answer closes the circuit, and
// openAfter calls without an answer open it. A call whose caller left doesn't count. s.mu
// must be held.
func (s *server) noteAnswerLocked(l *lane, err error) {
	f := wire.AsFault(err)
	switch {
	case err == nil || f.Reach == wire.Answered || f.Code == store.CodeRateLimited:
		if l.unanswered >= openAfter {
			s.log.Log.Info("server answers again", "circuit", "closed")
			if l.owner == "" {
				s.lastErr, s.since = "", s.pool.opt.Now()
			}
		}
		l.unanswered = 0
	case f.Reach == wire.Never || errors.Is(err, context.Canceled):
	default:
		l.unanswered++
		if l.unanswered >= openAfter {
			l.openUntil = time.Now().Add(circuitPause(l.unanswered))
			l.lastErr = fmt.Errorf("server %s did not answer %d calls in a row: %v", s.name, l.unanswered, f.Err) // %w would make a later call's refusal a timeout
			s.noteErrorLocked(l, fmt.Sprintf("%d calls in a row were not answered", openAfter))
		}
	}
}

// noteCallEnd records the end of a call over a session.
func (s *server) noteCallEnd(sess *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[sess.owner]
	if l == nil || l.sess != sess {
		return // the session has ended, so its record no longer matters
	}
	l.used = time.Now()
	s.noteAnswerLocked(l, err)
}

// isOpenLocked reports whether callers are refused immediately, because calls were not
// answered or because a command keeps exiting. s.mu must be held.
func (s *server) isOpenLocked(l *lane, now time.Time) bool {
	if l.sess != nil {
		return l.unanswered >= openAfter
	}
	return s.cfg.Transport == store.Stdio && l.failures >= openAfter && now.Before(l.next)
}

// idleLimitLocked returns the idle time after which a lane's session is closed, or 0 for
// never. A personal session always has a limit. s.mu must be held.
func (s *server) idleLimitLocked(l *lane) time.Duration {
	limit := time.Duration(s.cfg.IdleTimeout)
	switch {
	case l.owner == "" && s.cfg.KeepAlive:
		return 0
	case l.owner != "" && limit == 0:
		return idleLane
	}
	return limit
}

// untilIdle returns the time until the next call of closeIdle is due.
func (s *server) untilIdle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := relistTime
	for _, l := range s.lanes {
		if limit := s.idleLimitLocked(l); limit > 0 && (l.sess != nil || l.owner != "") {
			next = min(next, limit-time.Since(l.used))
		}
	}
	return max(next, 10*time.Millisecond)
}

// closeIdle closes the sessions that were idle for their limit. It reports whether the
// shared session is closed for that reason.
func (s *server) closeIdle() (rests bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for owner, l := range s.lanes {
		limit := s.idleLimitLocked(l)
		if limit == 0 || l.dial != nil || time.Since(l.used) < limit || owner == "" && l.sess == nil {
			continue
		}
		sess := l.sess
		if sess != nil && sess.inflight.Load() > 0 {
			l.used = time.Now()
			continue
		}
		delete(s.lanes, owner)
		if owner == "" {
			s.idle, s.since = true, s.pool.opt.Now()
		}
		if sess != nil {
			l.sess = nil
			s.pool.spawnTask(func() { sess.Terminate(false) })
		}
	}
	return s.idle
}

// waitIdle waits until a call has opened a shared session again, or has failed to.
func (s *server) waitIdle(ctx context.Context) {
	s.log.Log.Info("server is idle; the next call starts it again")
	for {
		timer := time.NewTimer(s.untilIdle())
		select {
		case <-ctx.Done():
		case <-s.wakeups:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil || !s.closeIdle() {
			return
		}
	}
}

// wakeKeeper makes the keeper check the server's state again.
func (s *server) wakeKeeper() {
	select {
	case s.wakeups <- struct{}{}:
	default:
	}
}

// children is the set of child processes of the pool, from their start on.
type children struct {
	mu  sync.Mutex
	all map[process.Child]watched
}

// watched is one child process.
type watched struct {
	frames *wire.StdioFrames
	cfg    store.Server // the record with which it was started
}

func (c *children) add(frames *wire.StdioFrames, cfg store.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[process.Child]watched{}
	}
	c.all[frames.Child()] = watched{frames, cfg}
}

// living returns the child processes that have not exited.
func (c *children) living() map[process.Child]watched {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.all, func(child process.Child, _ watched) bool {
		select {
		case <-child.Done():
			return true
		default:
			return false
		}
	})
	return maps.Clone(c.all)
}

// watchMemory kills the child processes that, together with their descendants, use more
// than their limit, until the pool is closed. It includes processes whose session is still
// being opened or probed, and skips those whose limit the kernel enforces. One pass over
// /proc serves all processes.
func (p *Pool) watchMemory() {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		}
		all := p.children.living()
		limits := map[process.Child]store.Size{}
		for child, of := range all {
			limits[child] = of.cfg.MemoryLimit
		}
		servers := map[process.Child]*server{}
		for _, s := range p.allServers() {
			for _, child := range childrenOf(s) {
				servers[child], limits[child] = s, memoryLimit(s) // the record may have been edited
			}
		}
		maps.DeleteFunc(limits, func(child process.Child, limit store.Size) bool { return limit == 0 || child.Limit(limit) })
		if len(limits) == 0 {
			continue
		}
		list := slices.Collect(maps.Keys(limits))
		used, _ := process.Measure(list...)
		for i, u := range used {
			switch s, of := servers[list[i]], all[list[i]]; {
			case s != nil:
				s.killIfOverMemory(list[i].PID(), u.Memory)
			case of.frames != nil && u.Memory > limits[list[i]]:
				of.frames.Kill(overMemory(of.cfg.Name, u.Memory, limits[list[i]]))
			}
		}
	}
}

func memoryLimit(s *server) store.Size {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.MemoryLimit
}

func overMemory(server string, used, limit store.Size) error {
	return fmt.Errorf("it was killed: it held %d MiB of memory, over its memory_limit of %s; to allow more: nizectl servers edit %s --memory-limit SIZE", used>>20, limit, server)
}

// noteOverMemoryLocked records for the status that the kernel killed a session's process
// for its memory. s.mu must be held.
func noteOverMemoryLocked(s *server, cause error) {
	if over := new(process.MemoryError); errors.As(cause, &over) {
		s.killed.why = fmt.Sprintf("it was killed: it held more memory than its memory_limit of %s; to allow more: nizectl servers edit %s --memory-limit SIZE", over.Limit, s.name)
		s.killed.at = s.pool.opt.Now()
	}
}

// killIfOverMemory kills the process with that PID and its descendants if they use more
// memory than the server may. Its calls in flight fail with that reason.
func (s *server) killIfOverMemory(pid int, used store.Size) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes {
		if l.sess == nil || l.sess.PID() != pid || s.cfg.MemoryLimit == 0 || used <= s.cfg.MemoryLimit {
			continue
		}
		sess := l.sess
		why := overMemory(s.name, used, s.cfg.MemoryLimit)
		s.killed.why, s.killed.at = why.Error(), s.pool.opt.Now()
		if w, ok := sess.Conn.(interface{ Fail(error) }); ok {
			w.Fail(why)
		}
		s.clearSessionLocked(l, sess, why)
		s.pool.spawnTask(func() { sess.Terminate(true) }) // if the pool is closed, watchSession ends it
		return
	}
}
