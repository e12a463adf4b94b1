package upstream

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/mcp/upstream/oauth"
	"nize/mcp/upstream/process"
	"nize/mcp/upstream/wire"
	"nize/store"
)

// State is the state of a server.
type State string

const (
	Connected  State = "connected"
	Connecting State = "connecting"
	Down       State = "down"
	Idle       State = "idle" // closed until the next call; its tools stay listed
	Open       State = "open" // the circuit is open: calls are refused immediately, for a while
	Disabled   State = "disabled"
	// LoginNeeded means that the shared login is lost, or was never made.
	LoginNeeded State = "login needed"
)

// ServerStatus is the status of one server.
type ServerStatus struct {
	Name      string        `json:"name"`
	State     State         `json:"state"`
	Tools     int           `json:"tools"`          // accepted tools
	Held      int           `json:"held"`           // quarantined or refused tools
	Latency   time.Duration `json:"latency"`        // of the last tools/list, in nanoseconds
	LastError string        `json:"last_error"`     // of the shared session; "" if there is none
	Restarts  int           `json:"restarts"`       // sessions that ended by themselves
	Sessions  int           `json:"sessions"`       // shared and personal ones
	Since     time.Time     `json:"since"`          // start of the state
	Protocol  string        `json:"protocol"`       // negotiated version
	PID       int           `json:"pid,omitempty"`  // of the child process
	Children  int           `json:"children"`       // number of its descendant processes including itself; 0 if the system can't tell
	Info      string        `json:"info,omitempty"` // name and version, as claimed by the server
	LoginLost []string      `json:"login_lost"`     // owners whose credential the server currently rejects; "" is the shared one
}

// Status returns the status of all servers, sorted by name.
func (p *Pool) Status() []ServerStatus {
	families := p.families()
	servers := p.allServers()
	all := make([]ServerStatus, 0, len(servers))
	for _, s := range servers {
		all = append(all, s.status(families))
	}
	slices.SortFunc(all, func(a, b ServerStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// ChildServers returns the names of the servers by the PIDs of their processes and of all
// their descendants.
func (p *Pool) ChildServers() map[int]string {
	names, families := map[int]string{}, p.families()
	for _, s := range p.allServers() {
		for _, l := range childrenOf(s) {
			for _, pid := range families[l.PID()].PIDs {
				names[pid] = s.name
			}
		}
	}
	return names
}

// families returns the resource usage of all child processes, by PID.
func (p *Pool) families() map[int]process.Usage {
	var all []process.Child
	for _, s := range p.allServers() {
		all = append(all, childrenOf(s)...)
	}
	if len(all) == 0 {
		return nil
	}
	families := map[int]process.Usage{}
	if used, ok := process.Measure(all...); ok {
		for i, c := range all {
			families[c.PID()] = used[i]
		}
	}
	return families
}

// childrenOf returns the processes of a server's sessions.
func childrenOf(s *server) (list []process.Child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes {
		if l.sess != nil && l.sess.Child() != nil {
			list = append(list, l.sess.Child())
		}
	}
	return list
}

func (s *server) status(families map[int]process.Usage) ServerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := ServerStatus{Name: s.name, State: Connecting, LastError: s.lastErr, Restarts: s.restarts, Since: s.since, Tools: s.tools.accepted, Held: len(s.tools.byName) - s.tools.accepted}
	for _, l := range s.lanes {
		if l.sess == nil {
			if wire.LoginLost(l.lastErr) || l.needsLogin() {
				st.LoginLost = append(st.LoginLost, l.owner)
			}
			continue
		}
		st.Sessions++
		pid := l.sess.PID()
		st.Children += len(families[pid].PIDs)
		if l.owner == "" || st.State != Connected {
			st.State = Connected
			st.Latency = l.sess.tools.Load().took
			st.Protocol, st.Info, st.PID = l.sess.version, l.sess.serverInfo, pid
		}
	}
	slices.Sort(st.LoginLost)
	switch {
	case s.cfg.Disabled:
		st.State = Disabled
	case s.lanes[""] != nil && s.isOpenLocked(s.lanes[""], time.Now()):
		st.State = Open
	case s.idle:
		st.State = Idle
	case st.State != Connected && s.lanes[""].needsLogin():
		st.State = LoginNeeded
	case st.State != Connected && s.lastErr != "":
		st.State = Down
	}
	if st.LastError == "" && st.Sessions > 0 {
		st.LastError = cmp.Or(s.budget.Reason(), s.log.Reason())
	}
	if st.LastError == "" && s.killed.why != "" && s.pool.opt.Now().Sub(s.killed.at) < killedShown {
		st.LastError = s.killed.why
	}
	return st
}

// DownSince reports whether a server is unreachable for all users, and since when.
func (p *Pool) DownSince(name string) (since time.Time, down bool) {
	s, ok := p.findServer(name)
	if !ok {
		return time.Time{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shared := s.lanes[""]
	up := shared != nil && shared.sess != nil && !s.isOpenLocked(shared, time.Now())
	return s.since, s.lastErr != "" && !up && !s.cfg.Disabled && !shared.needsLogin()
}

// needsLogin reports whether a lane waits for a user to sign in.
func (l *lane) needsLogin() bool {
	return l != nil && l.sess == nil && errors.As(l.lastErr, new(*oauth.LoginError))
}

// Logs returns the last 64 KiB of a server's standard error, even after it has exited. It
// returns nil for a server that the pool doesn't know.
func (p *Pool) Logs(name string) []byte {
	s, ok := p.findServer(name)
	if !ok {
		return nil
	}
	return s.log.Bytes()
}

// probes holds the logs of servers that are being probed and have no entry, and results of
// probes.
type probes struct {
	mu    sync.Mutex
	under map[string]probing  // by name
	older map[place]time.Time // servers that support only the older HTTP protocol, with the time of the probe
}

// place identifies a server by name and URL.
type place struct{ name, url string }

// olderTime is how long the result of a probe is kept for the connection that follows a
// registration.
const olderTime = time.Minute

// noteOlder records that a server supports only the older HTTP protocol, so that the next
// connection doesn't try the newer one again: if the server ignores it, that would cost the
// same timeout twice.
func (p *probes) noteOlder(cfg store.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.older, func(_ place, at time.Time) bool { return time.Since(at) > olderTime })
	if p.older == nil {
		p.older = map[place]time.Time{}
	}
	p.older[place{cfg.Name, cfg.URL}] = time.Now()
}

// takeOlder reports, once, whether a recent probe has shown that a server supports only the
// older HTTP protocol.
func (p *probes) takeOlder(cfg store.Server) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.older[place{cfg.Name, cfg.URL}]
	delete(p.older, place{cfg.Name, cfg.URL})
	return ok && time.Since(at) <= olderTime
}

type probing struct {
	log  *wire.StderrLog
	done context.Context
}

// add records a probe; the returned function removes it.
func (p *probes) add(name string, log *wire.StderrLog) (remove func()) {
	ctx, cancel := context.WithCancel(context.Background())
	one := probing{log, ctx}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.under == nil {
		p.under = map[string]probing{}
	}
	p.under[name] = one
	return func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.under[name] == one {
			delete(p.under, name)
		}
	}
}

// FollowProbe yields a server's output while Probe contacts it. It returns ok false if no
// probe is running.
func (p *Pool) FollowProbe(ctx context.Context, name string) (lines iter.Seq[[]byte], ok bool) {
	p.probes.mu.Lock()
	one, ok := p.probes.under[name]
	p.probes.mu.Unlock()
	if !ok {
		return nil, false
	}
	return func(yield func([]byte) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(one.done, cancel)()
		one.log.Follow(ctx)(yield)
	}, true
}

// FollowLogs yields the result of Logs and then the server's further output until ctx ends.
func (p *Pool) FollowLogs(ctx context.Context, name string) iter.Seq[[]byte] {
	s, ok := p.findServer(name)
	if !ok {
		return func(func([]byte) bool) {}
	}
	return s.log.Follow(ctx)
}
