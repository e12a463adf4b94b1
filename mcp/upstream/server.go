package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/mcp/upstream/mask"
	"nize/mcp/upstream/oauth"
	"nize/mcp/upstream/openapi"
	"nize/mcp/upstream/wire"
	"nize/store"
	"nize/store/backoff"
)

// server is the pool's entry for one registered server. It lives as long as the record
// does. While the server is disabled, it has no sessions.
type server struct {
	pool *Pool
	name string
	log  *wire.StderrLog
	// budget limits the server's unsolicited messages.
	budget *wire.Budget
	// mask contains the secrets that the server was given.
	mask mask.Mask
	// source holds its OpenAPI document.
	source *openapi.Source

	// syncing (capacity 1) is held while the stored tools are compared and written. Sync
	// holds it from the change of the record on, so that an admin's sync comes before the
	// keeper's, which accepts nothing. It is taken before mu.
	syncing chan struct{}

	// slots enforces max_concurrency.
	slots *slots

	mu          sync.Mutex
	cfg         store.Server    // as of the last Sync
	ctx         context.Context // the keeper's; ends when the server is removed or disabled
	cancel      context.CancelFunc
	lanes       map[string]*lane
	tools       toolSet
	removed     bool // the record was removed; final
	synced      bool // its tools were compared with the store at least once in this process
	announced   bool // OnTools was called with these tools since they were last withdrawn
	legacy      bool // supports only the older HTTP protocol
	restarts    int
	lastErr     string
	since       time.Time     // start of the current state
	idle        bool          // the shared session was closed because it was idle
	wakeups     chan struct{} // capacity 1: wakes the keeper
	recentCalls []time.Time   // times of the calls within the rate limit's interval
	killed      kill          // the last kill of its process
	rest        rest          // after it flooded the connection
}

// rest describes the pause for a server that was disconnected for flooding. Until it ends,
// only an admin can make it connect again.
type rest struct {
	why   error
	until time.Time
}

// kill records why and when a process was killed.
type kill struct {
	why string
	at  time.Time
}

// lane holds the session and the backoff of one credential owner.
type lane struct {
	owner    string
	sess     *session  // nil if there is none
	dial     *dialing  // not nil while a session is being opened
	failures int       // consecutive failures since a session was last steady
	brief    int       // consecutive sessions that soon ended, or had no list
	failed   time.Time // time of the last failed attempt
	next     time.Time // earliest time of the keeper's next attempt
	lastErr  error
	used     time.Time // last use by a call; the keeper's use doesn't count
	asked    time.Time // when the server was last checked for a sign-in (wantsLogin)
	offers   bool      // the result of that check

	unanswered int       // consecutive unanswered calls over this session
	openUntil  time.Time // end of the open circuit, if unanswered reached openAfter
}

// dialing is one attempt, shared by all callers that wait for it.
type dialing struct {
	cancel context.CancelFunc
	called bool // a call waits for it; guarded by the server's mu
	done   chan struct{}
	sess   *session
	err    error
}

func newServer(p *Pool, cfg store.Server, stored []store.Tool) *server {
	cfg = cfg.Normal()
	s := &server{pool: p, name: cfg.Name, cfg: cfg, syncing: make(chan struct{}, 1), wakeups: make(chan struct{}, 1), lanes: map[string]*lane{},
		log: wire.NewStderrLog(p.opt.Log.With("server", cfg.Name)), budget: wire.NewBudget(), source: openapi.NewSource(), announced: len(stored) > 0 && !cfg.Disabled, since: p.opt.Now(), legacy: p.probes.takeOlder(cfg)}
	s.slots = newSlots(cfg.MaxConcurrency)
	s.setTools(stored)
	s.ctx, s.cancel = context.WithCancel(p.ctx)
	if cfg.Disabled {
		s.cancel()
	}
	return s
}

func (s *server) setTools(tools []store.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = toolSet{byName: make(map[string]storedTool, len(tools)), spoilt: s.tools.spoilt}
	for _, t := range tools {
		s.tools.set(t)
	}
}

// toolSet holds the stored tools of a server, and the number of accepted ones.
type toolSet struct {
	byName   map[string]storedTool
	accepted int
	spoilt   map[string]bool // URIs of views that ended a session when they were read
}

func (k *toolSet) set(t store.Tool) {
	if k.byName[t.Name].state == store.ToolAccepted {
		k.accepted--
	}
	if t.State == store.ToolAccepted {
		k.accepted++
	}
	k.byName[t.Name] = newStoredTool(t)
}

func (s *server) config() store.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg
}

// allowed reports whether the record's list of tools admits the tool with this name and
// _meta.
func allowed(cfg store.Server, name string, meta json.RawMessage) bool {
	if cfg.Transport == store.OpenAPI {
		route, _ := openapi.RouteOf(meta)
		return allowedOperation(cfg, name, route.Method, route.Path)
	}
	return allowedName(cfg, name)
}

// allowedOperation is allowed for an operation of an OpenAPI document, which may also match
// patterns of methods and paths.
func allowedOperation(cfg store.Server, name, method, path string) bool {
	return allowedName(cfg, name) || openapi.Allowed(cfg.AllowedTools, method, path)
}

func allowedName(cfg store.Server, name string) bool {
	if len(cfg.AllowedTools) == 0 {
		return true
	}
	for _, p := range cfg.AllowedTools {
		head, wild := strings.CutSuffix(p, "*")
		if p == name || store.MatchTool(p, cfg.Name+":"+name) || wild && strings.HasPrefix(name, head) {
			return true
		}
	}
	return false
}

// needsNewSession reports whether a change of the record requires new sessions.
func needsNewSession(a, b store.Server) bool {
	return a.Transport != b.Transport || a.Command != b.Command || !slices.Equal(a.Args, b.Args) || a.Cwd != b.Cwd ||
		a.URL != b.URL || a.Document != b.Document || a.Transport == store.OpenAPI && !slices.Equal(a.AllowedTools, b.AllowedTools) || !reflect.DeepEqual(a.Env, b.Env) || !reflect.DeepEqual(a.Headers, b.Headers)
}

// retryDelay returns the delay after n consecutive failures, with jitter.
func retryDelay(n int) time.Duration {
	d := backoff.Exponential{First: 250 * time.Millisecond, Most: time.Minute}.After(n)
	return backoff.Jitter(d, d/2)
}

// steady is how long a session must live for its end to restart the count of failures at
// one.
const steady = 10 * time.Second

// session returns the owner's session, and opens one if there is none. A caller's first
// attempt is never delayed. While a server keeps failing, callers get the error immediately
// between attempts, unless they set force.
func (s *server) session(ctx context.Context, owner string, force bool) (*session, error) {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return nil, &wire.Fault{Reach: wire.Never, Err: store.Mark(fmt.Errorf("server %s is disabled, removed or closing", s.name), store.ErrRefused)}
	}
	l := s.lanes[owner]
	if l == nil {
		l = &lane{owner: owner}
		s.lanes[owner] = l
	}
	if !force || l.used.IsZero() {
		l.used = time.Now()
	}
	if l.sess != nil {
		select {
		case <-l.sess.Done():
			s.clearSessionLocked(l, l.sess, l.sess.Cause())
		default:
			defer s.mu.Unlock()
			if !force {
				if err := l.checkCircuitLocked(time.Now()); err != nil {
					return nil, &wire.Fault{Reach: wire.Never, Err: err}
				}
			}
			return l.sess, nil
		}
	}
	d := l.dial
	if d == nil {
		if left := time.Until(s.rest.until); !force && left > 0 {
			defer s.mu.Unlock()
			return nil, &wire.Fault{Reach: wire.Never, Err: fmt.Errorf("server %s: %w; the next attempt is in %s", s.name, s.rest.why, left.Round(time.Second))}
		}
		if wait := time.Until(l.next); !force && wait > 0 && s.mustWaitLocked(l) {
			defer s.mu.Unlock()
			return nil, &wire.Fault{Reach: wire.Never, Err: fmt.Errorf("%w; the next attempt is in %s", l.lastErr, wait.Round(100*time.Millisecond))}
		}
		d = s.dialLocked(l)
	}
	d.called = d.called || !force
	s.mu.Unlock()
	select {
	case <-d.done:
		if d.err != nil {
			return nil, &wire.Fault{Reach: wire.Never, Err: d.err}
		}
		return d.sess, nil
	case <-ctx.Done():
		return nil, &wire.Fault{Reach: wire.Never, Err: ctx.Err()}
	}
}

// dialPause is the minimum time between two dials on behalf of callers.
const dialPause = 100 * time.Millisecond

// mustWaitLocked reports whether a caller must wait for the backoff. Spawning is expensive,
// so a caller waits after the second failure. A failed dial is cheap, so a caller waits
// only briefly, and a server that is back is found at once. But a server that responds and
// whose sessions then fail costs a whole handshake and list each time.
func (s *server) mustWaitLocked(l *lane) bool {
	if s.cfg.Transport == store.Stdio {
		return l.failures >= 2
	}
	return l.brief >= maxBrief || time.Since(l.failed) < dialPause
}

// askAgain is the minimum interval of wantsLogin's checks of a server that rejects
// requests.
const askAgain = time.Minute

// maxBrief is how many consecutive sessions may fail shortly before callers wait for the
// backoff.
const maxBrief = 3

// dialLocked starts an attempt, which continues even if its callers leave.
func (s *server) dialLocked(l *lane) *dialing {
	d := &dialing{done: make(chan struct{})}
	ctx, cancel := context.WithCancel(s.ctx)
	d.cancel = cancel
	l.dial = d
	if l.owner == "" && s.idle {
		s.idle = false
		s.wakeKeeper()
	}
	dr := &dialer{pool: s.pool, cfg: s.cfg, owner: l.owner, log: s.log, budget: s.budget, mask: &s.mask, legacy: s.legacy, views: s, source: s.source}
	ok := s.pool.spawnTask(func() {
		defer cancel()
		var sess *session
		err := errSpoilt
		for try := 0; try < 3 && errors.Is(err, errSpoilt); try++ {
			if sess, err = dr.dial(ctx); err != nil {
				break
			}
			if err = sess.list(ctx); err != nil {
				s.noteBrief(l)
				sess.Terminate(true)
			}
		}
		if err != nil && s.wantsLogin(ctx, dr.cfg, dr.owner, err) {
			err = &oauth.LoginError{Call: store.LoginNeeded(dr.cfg.Name, dr.cfg.Auth)}
		}
		s.finishDial(l, d, sess, err)
	})
	if !ok {
		l.dial = nil
		d.err = errClosed
		close(d.done)
	}
	return d
}

// wantsLogin reports whether an attempt or a call failed because a user has to sign in, at
// a server that doesn't say so. Failures may be frequent, so the server's well-known
// documents are read at most once per askAgain.
func (s *server) wantsLogin(ctx context.Context, cfg store.Server, owner string, err error) bool {
	if !wire.LoginLost(err) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[owner]
	if l == nil || time.Since(l.asked) < askAgain {
		return l != nil && l.offers
	}
	l.asked = time.Now()
	s.mu.Unlock()
	offers := s.pool.offersLogin(ctx, cfg, err)
	s.mu.Lock()
	if l.offers = offers; offers && l.sess == nil && wire.LoginLost(l.lastErr) { // an attempt ended in the meantime
		l.lastErr = &oauth.LoginError{Call: store.LoginNeeded(cfg.Name, cfg.Auth)}
	}
	return offers
}

// finishDial records the outcome of an attempt. If a change of the record has superseded
// the attempt, it was cancelled, and its session is discarded.
func (s *server) finishDial(l *lane, d *dialing, sess *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(d.done)
	if s.lanes[l.owner] != l || l.dial != d {
		if err == nil {
			s.pool.wg.Go(func() { sess.Terminate(true) }) // the attempt itself holds the wait group open
			err = wire.ErrEnded
		}
		d.err = err
		return
	}
	l.dial = nil
	if err != nil {
		s.legacy = false // it may have been upgraded to the newer protocol only
		d.err = fmt.Errorf("server %s: %w", s.name, err)
		l.failures++
		l.lastErr = d.err
		l.failed = time.Now()
		l.next = l.failed.Add(retryDelay(l.failures))
		s.noteFloodLocked(l, err)
		s.noteErrorLocked(l, err.Error())
		return
	}
	d.sess, l.sess = sess, sess
	l.lastErr, l.unanswered = nil, 0
	if d.called {
		l.used = time.Now() // opening it may take longer than the idle limit
	}
	if l.owner == "" {
		if s.lastErr != "" {
			s.log.Log.Info("server is back", "was", s.lastErr)
		}
		s.lastErr = ""
		s.since = s.pool.opt.Now()
	}
	s.legacy = sess.speaksOlder()
	s.logWarnings(sess)
	s.pool.wg.Go(func() { s.watchSession(sess) })
}

// logWarnings logs the warnings about the session's list.
func (s *server) logWarnings(sess *session) {
	for _, w := range sess.tools.Load().warns {
		s.log.Log.Warn("server misbehaves", "what", w)
	}
}

// noteErrorLocked stores the last error of the shared lane, and logs it if it is new.
func (s *server) noteErrorLocked(l *lane, msg string) {
	msg = store.RedactText(msg)
	if l.owner != "" || s.lastErr == msg {
		return
	}
	if s.lastErr == "" {
		s.since = s.pool.opt.Now()
	}
	s.lastErr = msg
	s.log.Log.Warn("server is down", "why", msg)
}

// watchSession waits for the end of a session and cleans up. A process is killed, because
// its pipes are useless. Calls in flight over HTTP continue: they don't depend on the
// standing stream.
func (s *server) watchSession(sess *session) {
	<-sess.Done()
	s.sessionEnded(sess)
	sess.Terminate(sess.PID() != 0)
}

// sessionEnded removes a session that has ended from its lane.
func (s *server) sessionEnded(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	noteOverMemoryLocked(s, sess.Cause())
	s.clearSessionLocked(s.lanes[sess.owner], sess, sess.Cause()) // Cause is set once it is done
}

// clearSessionLocked clears the lane and counts the failure. If the session lived long, the
// count restarts at one.
func (s *server) clearSessionLocked(l *lane, sess *session, why error) {
	if l == nil || l.sess != sess {
		return
	}
	l.sess = nil
	s.restarts++
	l.brief++
	if time.Since(sess.since) >= steady {
		l.failures, l.brief = 0, 0
	}
	l.failures++
	l.next = time.Now().Add(retryDelay(l.failures - 1))
	l.lastErr = fmt.Errorf("server %s keeps failing: %w", s.name, why)
	s.noteFloodLocked(l, why)
	if s.ctx.Err() == nil {
		s.noteErrorLocked(l, why.Error())
	}
}

// noteFloodLocked starts the pause for a server that was disconnected for flooding. s.mu
// must be held.
func (s *server) noteFloodLocked(l *lane, why error) {
	var noise *wire.NoiseError
	if errors.As(why, &noise) {
		s.rest = rest{why, time.Now().Add(noise.Pause)}
		l.next = s.rest.until
	}
}

// noteBrief counts a session that failed shortly after it was opened.
func (s *server) noteBrief(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.brief++
}

// dropSession ends a session that a fault has made unusable.
func (s *server) dropSession(sess *session, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[sess.owner]
	if l == nil || l.sess != sess {
		return // another goroutine was first
	}
	s.clearSessionLocked(l, sess, why)
	s.pool.spawnTask(func() { sess.Terminate(false) }) // if the pool is closed, watchSession ends it
}

// closeLanes ends all sessions and attempts, and waits for them.
func (s *server) closeLanes() {
	s.mu.Lock()
	lanes := s.lanes
	s.lanes = map[string]*lane{}
	s.mu.Unlock()
	s.endLanes(lanes)
}

// closeLane ends the session of one owner; the next call opens a new one.
func (s *server) closeLane(owner string) {
	s.mu.Lock()
	lanes := map[string]*lane{}
	if l := s.lanes[owner]; l != nil {
		lanes[owner] = l
		delete(s.lanes, owner)
	}
	s.mu.Unlock()
	s.endLanes(lanes)
}

// endLanes closes lanes that are no longer reachable, and waits for them. Calls in flight
// over HTTP are aborted; a child process is first asked to exit.
func (s *server) endLanes(lanes map[string]*lane) {
	var wg sync.WaitGroup
	for _, l := range lanes {
		s.mu.Lock()
		sess, d := l.sess, l.dial
		l.sess = nil
		s.mu.Unlock()
		if d != nil {
			d.cancel()
			wg.Go(func() { <-d.done })
		}
		if sess != nil {
			wg.Go(func() { sess.Terminate(sess.PID() == 0) })
		}
	}
	wg.Wait()
}

// spawnTask runs f in the background of the pool. It returns false if the pool is closed.
func (p *Pool) spawnTask(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wg.Go(f)
	return true
}
