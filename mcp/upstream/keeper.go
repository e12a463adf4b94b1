package upstream

import (
	"context"
	"sync"
	"time"

	"nize/mcp/upstream/wire"
	"nize/store"
)

// keepConnected runs in the single goroutine of a server: it keeps the shared lane
// connected and listed, and the stored tools in sync with the list.
func (s *server) keepConnected() {
	s.mu.Lock()
	ctx := s.ctx
	s.mu.Unlock()
	pause := settleTime  // between lists, grows while changes continue
	var known *session   // the session whose first list is scheduled or done
	var due time.Time    // time of the next list
	var planned bool     // a list is due for a change; further changes don't move it
	var looked time.Time // time of the last list for a change
	for ctx.Err() == nil {
		sess, err := s.reconnect(ctx)
		if err != nil {
			continue // reconnect waits for the lane's backoff
		}
		if err := s.syncTools(ctx, sess); err != nil && ctx.Err() == nil {
			s.log.Log.Error("syncing the tools of a server", "err", err)
		}
		if sess != known {
			due, planned = time.Now().Add(relistTime), false
			if sess.version >= wire.VersionModern && s.config().Transport != store.OpenAPI {
				// The stream of notifications opens concurrently with the first list, so a
				// change between the two is not notified.
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
			s.sessionEnded(sess) // before reconnect reads the backoff
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

// listShare is the ratio of the pause between lists to the cost of a list: a server whose
// list keeps changing uses at most a hundredth of one processor, and of the writer of the
// store.
const listShare = 100

// tryList lists the tools again. If that fails, the session is dropped, unless calls are in
// flight, with which a single-threaded server may be busy.
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

// reconnect waits for the backoff and for a slot among the concurrent connects, and returns
// the shared session.
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
		return s.session(ctx, "", true) // also detects that the session has ended
	}
	select {
	case s.pool.connecting <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	// A server that doesn't respond must not keep its slot from others.
	release := sync.OnceFunc(func() { <-s.pool.connecting })
	slow := time.AfterFunc(connectSlot, release)
	defer slow.Stop()
	defer release()
	return s.session(ctx, "", true)
}
