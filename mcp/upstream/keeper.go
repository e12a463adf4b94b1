package upstream

import (
	"context"
	"sync"
	"time"

	"nize/mcp/upstream/wire"
	"nize/store"
)

// keepConnected is the one goroutine of a server: it keeps the shared lane connected,
// listed, and the stored tools in step with its list.
func (s *server) keepConnected() {
	s.mu.Lock()
	ctx := s.ctx
	s.mu.Unlock()
	pause := settleTime  // between lists, growing while changes do not cease
	var known *session   // whose first list was made sure of
	var due time.Time    // the next list
	var planned bool     // for a change, at the end of the pause; more of them change nothing
	var looked time.Time // when it was last listed for one
	for ctx.Err() == nil {
		sess, err := s.reconnect(ctx)
		if err != nil {
			continue // the lane's backoff is waited for there
		}
		if err := s.syncTools(ctx, sess); err != nil && ctx.Err() == nil {
			s.log.Log.Error("settling the tools of a server", "err", err)
		}
		if sess != known {
			due, planned = time.Now().Add(relistTime), false
			if sess.version >= wire.VersionModern && s.config().Transport != store.OpenAPI {
				// The stream of notifications opens beside the first list: a change
				// between the two is told to nobody.
				due = time.Now().Add(2 * settleTime)
			}
		}
		known = sess
		changed := sess.changed
		if planned {
			changed = nil
		}
		relist, idle := time.NewTimer(time.Until(due)), time.NewTimer(s.untilIdle())
		select {
		case <-ctx.Done():
		case <-sess.Done():
			s.sessionEnded(sess) // before the backoff is asked for
		case <-relist.C:
			if planned {
				s.tryList(ctx, sess, sess.relist)
				looked = time.Now()
			} else {
				s.tryList(ctx, sess, sess.list)
			}
			due, planned = time.Now().Add(relistTime), false
		case <-idle.C:
			if s.closeIdle() {
				s.waitIdle(ctx)
			}
		case <-s.wakeups:
		case <-changed:
			if time.Since(looked) > 2*pause {
				pause = settleTime
			} else {
				pause = min(max(2*pause, listShare*sess.tools.Load().cost), relistTime)
			}
			due, planned = sess.tools.Load().at.Add(pause), true
		case <-sess.checkWanted:
			s.tryList(ctx, sess, sess.list)
		}
		relist.Stop()
		idle.Stop()
	}
}

// listShare is by how much the pause between lists exceeds what one costs: a
// server whose list does not cease to change takes a hundredth of the time of one
// processor, and of the writer of the store.
const listShare = 100

// tryList lists once more; a session that cannot is dropped, unless calls are in
// flight: a server that does one thing at a time may be busy with them.
func (s *server) tryList(ctx context.Context, sess *session, list func(context.Context) error) {
	err := list(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	if f := wire.AsFault(err); f.Drop && sess.inflight.Load() == 0 {
		s.dropSession(sess, err)
		return
	}
	s.log.Log.Warn("server misbehaves", "what", store.RedactText(err.Error()))
}

// reconnect waits for the backoff and for a place among those who connect, and
// returns the shared session.
func (s *server) reconnect(ctx context.Context) (*session, error) {
	s.mu.Lock()
	var wait time.Duration
	if l := s.lanes[""]; l != nil && l.sess == nil {
		wait = time.Until(l.next)
	}
	s.mu.Unlock()
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if sess := s.currentSession(""); sess != nil {
		return s.session(ctx, "", true) // or finds that it has ended
	}
	select {
	case s.pool.connecting <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	// A server that does not answer keeps no other from its place.
	release := sync.OnceFunc(func() { <-s.pool.connecting })
	slow := time.AfterFunc(connectSlot, release)
	defer slow.Stop()
	defer release()
	return s.session(ctx, "", true)
}
