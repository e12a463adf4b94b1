package upstream

import (
	"context"
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
	pause := settleTime // between lists, growing while changes do not cease
	var known *session  // whose first list was made sure of
	var due time.Time   // the next list of a quiet server
	for ctx.Err() == nil {
		sess, err := s.reconnect(ctx)
		if err != nil {
			continue // the lane's backoff is waited for there
		}
		if err := s.syncTools(ctx, sess); err != nil && ctx.Err() == nil {
			s.log.Log.Error("settling the tools of a server", "err", err)
		}
		if sess != known {
			due = time.Now().Add(relistTime)
			if sess.version >= wire.VersionModern {
				// The stream of notifications opens beside the first list: a change
				// between the two is told to nobody.
				due = time.Now().Add(2 * settleTime)
			}
		}
		known = sess
		relist, idle := time.NewTimer(time.Until(due)), time.NewTimer(s.untilIdle())
		select {
		case <-ctx.Done():
		case <-sess.Done():
			s.sessionEnded(sess) // before the backoff is asked for
		case <-relist.C:
			s.tryList(ctx, sess, sess.list)
			due = time.Now().Add(relistTime)
		case <-idle.C:
			if s.closeIdle() {
				s.waitIdle(ctx)
			}
		case <-s.wakeups:
		case <-sess.changed:
			pause = s.relistAfterPause(ctx, sess, pause)
		case <-sess.checkWanted:
			s.tryList(ctx, sess, sess.list)
		}
		relist.Stop()
		idle.Stop()
	}
}

// relistAfterPause lists after a change, not before the pause is over, and returns the
// next pause: double while changes come one upon the other.
func (s *server) relistAfterPause(ctx context.Context, sess *session, pause time.Duration) time.Duration {
	last := sess.tools.Load().at
	quiet := time.Since(last) > 3*pause
	if quiet {
		pause = settleTime
	}
	timer := time.NewTimer(pause - time.Since(last))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return pause
	case <-sess.Done():
		return pause
	}
	s.tryList(ctx, sess, sess.relist)
	if quiet {
		return pause
	}
	return min(2*pause, 30*time.Second)
}

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
	var acquireSlot time.Duration
	if l := s.lanes[""]; l != nil && l.sess == nil {
		acquireSlot = time.Until(l.next)
	}
	s.mu.Unlock()
	if acquireSlot > 0 {
		timer := time.NewTimer(acquireSlot)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case s.pool.connecting <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.pool.connecting }()
	return s.session(ctx, "", true)
}
