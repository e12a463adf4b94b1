package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
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
)

// server is the pool's entry for one registered server. It lives as long as the
// record does; disabled, it has no sessions.
type server struct {
	pool *Pool
	name string
	log  *wire.StderrLog
	// budget bounds what it sends without being asked.
	budget *wire.Budget
	// mask knows the secrets that it was given.
	mask mask.Mask
	// source has its OpenAPI document.
	source *openapi.Source

	// syncing is held (1) while the stored tools are compared and written, by
	// Sync from the change of the record on: so that an admin's sync comes
	// before the keeper's, which accepts nothing. It is taken before mu.
	syncing chan struct{}

	// slots are those of max_concurrency.
	slots *slots

	mu          sync.Mutex
	cfg         store.Server    // as of the last Sync
	ctx         context.Context // of the keeper; ends when removed or disabled
	cancel      context.CancelFunc
	lanes       map[string]*lane
	tools       toolSet
	removed     bool // the record was removed: nothing revives it
	synced      bool // its tools were compared with the store once in this process
	announced   bool // OnTools was called with these tools since they were last withdrawn
	legacy      bool // speaks only the older HTTP wire
	restarts    int
	lastErr     string
	since       time.Time     // of the present state
	idle        bool          // the shared session was closed for being idle
	wakeups     chan struct{} // 1: wakes the keeper, however often
	recentCalls []time.Time   // when the calls of the rate's interval came
	killed      kill          // of its process, the last one
	rest        rest          // after it flooded
}

// rest is for how long a server that was cut off for flooding is left alone:
// until then only an admin has it connected again.
type rest struct {
	why   error
	until time.Time
}

// kill is why and when a process was killed.
type kill struct {
	why string
	at  time.Time
}

// lane is the way to the server for one credential owner.
type lane struct {
	owner    string
	sess     *session  // nil while there is none
	dial     *dialing  // not nil while one is being made
	failures int       // since one last lived for a while
	brief    int       // sessions in a row that were made and soon ended, or had no list
	failed   time.Time // the last attempt that failed
	next     time.Time // before it the keeper does not try again
	lastErr  error
	used     time.Time // by a call; what the keeper does is no use
	asked    time.Time // when its server was last asked who signs people in
	offers   bool      // what it said then

	unanswered int       // calls in a row over this session
	openUntil  time.Time // until then the circuit is open, if unanswered reached openAfter
}

// dialing is one attempt, shared by all who wait for it.
type dialing struct {
	cancel context.CancelFunc
	called bool // a call waits for it; under the server's mu
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

// toolSet is the stored tools of a server, and how many of them are accepted.
type toolSet struct {
	byName   map[string]storedTool
	accepted int
	spoilt   map[string]bool // the views that ended a session when they were read
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

// allowed says whether the record's list of tools admits this one, which has this _meta.
func allowed(cfg store.Server, name string, meta json.RawMessage) bool {
	if cfg.Transport == store.OpenAPI {
		route, _ := openapi.RouteOf(meta)
		return allowedOperation(cfg, name, route.Method, route.Path)
	}
	return allowedName(cfg, name)
}

// allowedOperation is allowed for an operation of an OpenAPI document, which patterns of
// methods and paths name, too.
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

// needsNewSession says whether a change of the record needs new sessions.
func needsNewSession(a, b store.Server) bool {
	return a.Transport != b.Transport || a.Command != b.Command || !slices.Equal(a.Args, b.Args) || a.Cwd != b.Cwd ||
		a.URL != b.URL || a.Document != b.Document || a.Transport == store.OpenAPI && !slices.Equal(a.AllowedTools, b.AllowedTools) || !reflect.DeepEqual(a.Env, b.Env) || !reflect.DeepEqual(a.Headers, b.Headers)
}

// backoff is how long to wait after n failures in a row, with jitter.
func backoff(n int) time.Duration {
	if n <= 0 {
		return 0
	}
	d := min(250*time.Millisecond<<min(n-1, 10), time.Minute)
	return d/2 + rand.N(d/2+1)
}

// steady is how long a session must live before its end counts as the first.
const steady = 10 * time.Second

// session returns the owner's session, made if there is none. A caller's first
// attempt is never delayed; while a server keeps failing, callers are told so
// at once between attempts, unless they force one.
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

// dialPause is the least time between two dials that callers ask for.
const dialPause = 100 * time.Millisecond

// mustWaitLocked says whether a caller must wait for the backoff: a spawn is dear,
// so always after the second failure; a dial that fails is cheap, so only for a
// moment, and a server that comes back is found at once. One that answers and
// then makes nothing of it costs a whole handshake and list each time.
func (s *server) mustWaitLocked(l *lane) bool {
	if s.cfg.Transport == store.Stdio {
		return l.failures >= 2
	}
	return l.brief >= maxBrief || time.Since(l.failed) < dialPause
}

// askAgain is how long a server that turns nize away is not asked once more who signs
// people in.
const askAgain = time.Minute

// maxBrief is how many sessions in a row may come to nothing before callers wait
// for the backoff.
const maxBrief = 3

// dialLocked begins an attempt, which goes on if those who wait for it leave.
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

// wantsLogin reports whether an attempt, or a call, failed because somebody has to
// sign in, at a server that does not say so. It is tried again often, and asked for its
// well-known documents once in a while.
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
	if l.offers = offers; offers && l.sess == nil && wire.LoginLost(l.lastErr) { // of an attempt that ended meanwhile
		l.lastErr = &oauth.LoginError{Call: store.LoginNeeded(cfg.Name, cfg.Auth)}
	}
	return offers
}

// finishDial records how an attempt ended. One that was overtaken by a change of the record
// has been cancelled and its session is thrown away.
func (s *server) finishDial(l *lane, d *dialing, sess *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(d.done)
	if s.lanes[l.owner] != l || l.dial != d {
		if err == nil {
			s.pool.wg.Go(func() { sess.Terminate(true) }) // the attempt itself holds the group open
			err = wire.ErrEnded
		}
		d.err = err
		return
	}
	l.dial = nil
	if err != nil {
		s.legacy = false // it may speak the newer wire only, by now
		d.err = fmt.Errorf("server %s: %w", s.name, err)
		l.failures++
		l.lastErr = d.err
		l.failed = time.Now()
		l.next = l.failed.Add(backoff(l.failures))
		s.noteFloodLocked(l, err)
		s.noteErrorLocked(l, err.Error())
		return
	}
	d.sess, l.sess = sess, sess
	l.lastErr, l.unanswered = nil, 0
	if d.called {
		l.used = time.Now() // making it may take longer than it may be idle
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

// logWarnings says what is wrong with the session's list.
func (s *server) logWarnings(sess *session) {
	for _, w := range sess.tools.Load().warns {
		s.log.Log.Warn("server misbehaves", "what", w)
	}
}

// noteErrorLocked keeps the last error of the shared lane, and logs a new one once.
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

// watchSession sees a session to its end and clears it away. A process is killed: its
// pipes are of no more use. Calls in flight over HTTP go on: the end of the
// standing stream is not theirs.
func (s *server) watchSession(sess *session) {
	<-sess.Done()
	s.sessionEnded(sess)
	sess.Terminate(sess.PID() != 0)
}

// sessionEnded takes a session that has ended out of its lane.
func (s *server) sessionEnded(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	noteOverMemoryLocked(s, sess.Cause())
	s.clearSessionLocked(s.lanes[sess.owner], sess, sess.Cause()) // which is set once it is done
}

// clearSessionLocked clears the lane and counts the failure: one that comes long after
// the session was made is the first of its kind.
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
	l.next = time.Now().Add(backoff(l.failures - 1))
	l.lastErr = fmt.Errorf("server %s keeps failing: %w", s.name, why)
	s.noteFloodLocked(l, why)
	if s.ctx.Err() == nil {
		s.noteErrorLocked(l, why.Error())
	}
}

// noteFloodLocked has a server that was cut off for flooding left alone for a
// while. It needs s.mu.
func (s *server) noteFloodLocked(l *lane, why error) {
	var noise *wire.NoiseError
	if errors.As(why, &noise) {
		s.rest = rest{why, time.Now().Add(noise.Pause)}
		l.next = s.rest.until
	}
}

// noteBrief counts a session that came to nothing.
func (s *server) noteBrief(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.brief++
}

// dropSession drops a session that a fault has shown to be of no more use.
func (s *server) dropSession(sess *session, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[sess.owner]
	if l == nil || l.sess != sess {
		return // somebody was first
	}
	s.clearSessionLocked(l, sess, why)
	s.pool.spawnTask(func() { sess.Terminate(false) }) // if the pool is closed, watch ends it
}

// closeLanes ends all sessions and attempts, and waits for them.
func (s *server) closeLanes() {
	s.mu.Lock()
	lanes := s.lanes
	s.lanes = map[string]*lane{}
	s.mu.Unlock()
	s.endLanes(lanes)
}

// closeLane ends the session of one owner; the next call makes it again.
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

// endLanes closes lanes that nobody finds any more, and waits for them. Calls in
// flight over HTTP are cut off; a child process is asked first.
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

// spawnTask runs f in the background of the pool, unless it is closed.
func (p *Pool) spawnTask(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wg.Go(f)
	return true
}
