package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/mcp/feature"
	"nize/mcp/upstream/wire"
	"nize/store"
)

// Sync applies the record of one server to the pool: it connects, lists, checks and pins
// the tools, stores them and calls OnTools. If the server is removed or disabled, it ends
// the sessions and withdraws the tools. It returns the changes in the store.
//
// The caller determines which tools may be accepted. An admin at the CLI who registers a
// server accepts its tools, unless a scan found something. An admin's own edit accepts
// again the tools that it did not change, and accepts tools that it newly allows by name.
// Any other caller, including nize itself, accepts nothing: a tool whose pin is not the
// accepted one is held, and so is a new tool unless the server has accept_new.
func (p *Pool) Sync(ctx context.Context, by store.Caller, name string) (store.ToolDiff, error) {
	s, cfg, first, err := p.readRecord(ctx, name)
	switch {
	case err != nil:
		return store.ToolDiff{}, err
	case cfg == nil || cfg.Disabled:
		return p.withdrawTools(ctx, name, s, cfg)
	case first:
		defer func() { <-s.syncing }()
		return s.refreshLocked(ctx, by, nil)
	}
	return s.refresh(ctx, by, cfg)
}

// readRecord reads the record of a server, nil if the store doesn't have it, and updates
// the pool's entries in the same critical section, so that of two concurrent readers the
// later one wins. first is true if the entry is new; the caller then holds s.syncing.
func (p *Pool) readRecord(ctx context.Context, name string) (s *server, cfg *store.Server, first bool, err error) {
	p.readingRecords.Lock()
	defer p.readingRecords.Unlock()
	rec, err := p.opt.Servers.GetServer(ctx, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return p.removeServer(name), nil, false, nil
	case err != nil:
		return nil, nil, false, fmt.Errorf("reading server %s: %w", name, err)
	case rec.Transport == store.External: // external servers have no connection
		return nil, nil, false, nil
	case rec.Disabled:
		s, err = p.entryLocked(ctx, rec)
		return s, &rec, false, err
	}
	if s, ok := p.findServer(name); ok {
		return s, &rec, false, nil
	}
	s, err = p.addSyncingLocked(ctx, rec)
	return s, &rec, true, err
}

// addSyncingLocked adds a server that is new to the pool, with syncing held, so that its
// keeper can't sync first. p.readingRecords must be held.
func (p *Pool) addSyncingLocked(ctx context.Context, cfg store.Server) (*server, error) {
	s, err := p.loadServer(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s.syncing <- struct{}{}
	return s, p.addServer(s)
}

// withdrawTools ends the sessions of a server that the pool knows, and removes its tools
// from the index. cfg is nil if the record was deleted from the store.
func (p *Pool) withdrawTools(ctx context.Context, name string, s *server, cfg *store.Server) (store.ToolDiff, error) {
	var diff store.ToolDiff
	if s != nil {
		s.mu.Lock()
		if cfg != nil && cfg.Revision < s.cfg.Revision {
			s.mu.Unlock()
			return diff, nil // it was enabled again since
		}
		s.cancel()
		if cfg != nil {
			s.cfg = cfg.Normal()
		} else {
			for tool := range s.tools.byName {
				diff.Removed = append(diff.Removed, name+":"+tool)
			}
		}
		s.announced, s.lastErr, s.since = false, "", p.opt.Now()
		s.mu.Unlock()
		s.closeLanes()
		s.syncing <- struct{}{} // a running sync finds no session any more and ends
		defer func() { <-s.syncing }()
		slices.Sort(diff.Removed)
	}
	if p.opt.OnTools != nil {
		p.opt.OnTools(ctx, name, nil)
	}
	return diff, nil
}

// refresh applies the record if one is given, lists the server again and syncs the tools.
func (s *server) refresh(ctx context.Context, by store.Caller, cfg *store.Server) (store.ToolDiff, error) {
	select {
	case s.syncing <- struct{}{}:
	case <-ctx.Done():
		return store.ToolDiff{}, fmt.Errorf("waiting for another sync of %s: %w", s.name, ctx.Err())
	}
	defer func() { <-s.syncing }()
	var prev *store.Server
	if cfg != nil {
		var live bool
		if prev, live = s.reconfigure(*cfg); !live {
			return store.ToolDiff{}, nil // the sync that disabled or removed it has withdrawn its tools
		}
	}
	return s.refreshLocked(ctx, by, prev)
}

// reconfigure applies the record. It returns the previous record if that was another
// revision, and ends sessions that no longer fit. If another sync has already applied a
// newer record, nothing changes, and live is false if that record disabled or removed the
// server.
func (s *server) reconfigure(cfg store.Server) (before *store.Server, live bool) {
	cfg = cfg.Normal()
	s.mu.Lock()
	prev := s.cfg
	if s.removed || cfg.Revision < prev.Revision {
		defer s.mu.Unlock()
		return nil, !s.removed && !prev.Disabled
	}
	s.cfg = cfg
	s.slots.resize(cfg.MaxConcurrency)
	revive := s.ctx.Err() != nil && s.pool.ctx.Err() == nil
	if revive {
		s.ctx, s.cancel = context.WithCancel(s.pool.ctx)
	}
	if needsNewSession(prev, cfg) {
		s.legacy = false
	}
	s.mu.Unlock()
	s.wakeKeeper() // its timeouts may have changed
	if revive {
		s.pool.spawnTask(s.keepConnected)
	}
	if needsNewSession(prev, cfg) || revive {
		s.closeLanes()
	}
	if prev.Revision == cfg.Revision {
		return nil, true
	}
	return &prev, true
}

// refreshLocked lists the server again, unless the session was just opened for this, and
// syncs the tools. s.syncing must be held.
func (s *server) refreshLocked(ctx context.Context, by store.Caller, prev *store.Server) (store.ToolDiff, error) {
	owner, err := s.pool.sessionOwner(ctx, s.config(), by.User)
	if id, _ := s.config().Declared(); err != nil && (id != "" || s.config().Transport == store.OpenAPI) {
		owner, err = "", nil // a user without the credential may list the tools without it
	}
	if err != nil {
		return store.ToolDiff{}, err
	}
	return s.refreshOverLocked(ctx, by, owner, prev)
}

// refreshOverLocked is refreshLocked over the session of an owner.
func (s *server) refreshOverLocked(ctx context.Context, by store.Caller, owner string, prev *store.Server) (store.ToolDiff, error) {
	had := s.currentSession(owner)
	sess, err := s.session(ctx, owner, true)
	if err != nil {
		return store.ToolDiff{}, err
	}
	sess.setConfig(s.config())
	if sess == had || prev != nil || sess.owner != "" || sess.tools.Load().synced {
		if err := sess.listAnew(ctx, true); err != nil {
			if wire.AsFault(err).Drop {
				s.dropSession(sess, err)
			}
			return store.ToolDiff{}, fmt.Errorf("server %s: %w", s.name, err)
		}
		s.logWarnings(sess)
	}
	return s.syncToolsLocked(ctx, by, sess, prev)
}

// isEnded reports whether the server was disabled or removed, or the pool closed.
func (s *server) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctx.Err() != nil
}

// currentSession returns the owner's session, or nil.
func (s *server) currentSession(owner string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lanes[owner]; l != nil {
		return l.sess
	}
	return nil
}

// syncTools compares the list of a shared session with the store, as nize itself. The list
// of a personal session only serves that person's calls.
func (s *server) syncTools(ctx context.Context, sess *session) error {
	if sess.tools.Load().synced {
		return nil
	}
	if sess.owner != "" {
		select {
		case s.syncing <- struct{}{}:
			sess.dropDefinitions(sess.tools.Load(), 0)
			<-s.syncing
		default: // a sync may be about to compare the list; a later call drops it
		}
		return nil
	}
	select {
	case s.syncing <- struct{}{}:
	case <-ctx.Done():
		return &wire.Fault{Reach: wire.Never, Err: ctx.Err()}
	}
	defer func() { <-s.syncing }()
	if sess.tools.Load().synced {
		return nil
	}
	_, err := s.syncToolsLocked(ctx, store.System, sess, nil)
	return err
}

// syncToolsLocked judges the session's list, stores it if it differs from the stored one,
// and calls OnTools. s.syncing must be held.
func (s *server) syncToolsLocked(ctx context.Context, by store.Caller, sess *session, prev *store.Server) (store.ToolDiff, error) {
	if s.isEnded() {
		return store.ToolDiff{}, store.Mark(fmt.Errorf("server %s was disabled or removed meanwhile", s.name), store.ErrRefused)
	}
	begin, list := time.Now(), sess.tools.Load()
	stored, err := s.pool.opt.Tools.ListTools(ctx, s.name)
	if err != nil {
		return store.ToolDiff{}, fmt.Errorf("reading the tools of %s: %w", s.name, err)
	}
	s.mu.Lock()
	j := toolJudge{gate: s.pool.opt.Gate, cfg: s.cfg, instructions: sess.instructions, known: map[string]store.Tool{}}
	admin := by.IsAdmin() && by.Surface == store.OnCLI
	j.registration = admin && !s.synced && len(stored) == 0
	told := s.announced
	s.mu.Unlock()
	if admin {
		j.prev = prev
	}
	for _, t := range stored {
		j.known[t.Name] = t
	}
	tools := make([]store.Tool, 0, len(list.list))
	for _, l := range list.list {
		tools = append(tools, j.judgeTool(l, list.byName[l.tool.Name].refused))
	}
	for _, t := range stored {
		if kind, _ := feature.Of(t.Name); slices.Contains(list.kept, kind) {
			tools = append(tools, t)
		}
	}
	slices.SortFunc(tools, func(a, b store.Tool) int { return strings.Compare(a.ID(), b.ID()) })

	var diff store.ToolDiff
	changed := !sameTools(stored, tools)
	if changed {
		if diff, err = s.pool.opt.Tools.PutTools(ctx, by, s.name, tools); err != nil {
			return diff, fmt.Errorf("storing the tools of %s: %w", s.name, err)
		}
		if sess.owner != "" {
			s.outdateOthers(sess)
		}
	}
	s.setTools(tools)
	s.mu.Lock()
	s.synced, s.announced = true, true
	s.mu.Unlock()
	if (changed || !told) && s.pool.opt.OnTools != nil {
		s.pool.opt.OnTools(ctx, s.name, tools)
	}
	sess.dropDefinitions(list, time.Since(begin))
	return diff, nil
}

// outdateOthers makes the other sessions list their tools again, because the views that a
// personal session has read are now part of them.
func (s *server) outdateOthers(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes {
		if l.sess != nil && l.sess != sess {
			l.sess.markChanged()
		}
	}
}

// sameTools reports whether the store already has these tools.
func sameTools(stored, tools []store.Tool) bool {
	if len(stored) != len(tools) {
		return false
	}
	byName := make(map[string]store.Tool, len(stored))
	for _, t := range stored {
		byName[t.Name] = t
	}
	for _, t := range tools {
		if old, ok := byName[t.Name]; !ok || !old.Equal(t) {
			return false
		}
	}
	return true
}

// toolJudge determines the state of each tool of one list.
type toolJudge struct {
	gate         Gate
	cfg          store.Server
	instructions string
	known        map[string]store.Tool
	registration bool          // an admin is registering the server
	prev         *store.Server // the record before an admin's edit
}

const (
	findingChanged = "its definition changed"
	findingNew     = "it is new on this server"
)

func (j *toolJudge) judgeTool(l listed, refused error) (t store.Tool) {
	t = l.tool
	old, known := j.known[t.Name]
	t.Accepted = old.Accepted
	t.Around = store.Around{Launch: j.cfg.Where(), Instructions: store.Clip(j.instructions, store.MaxInstructions)}
	if j.cfg.Cwd != "" {
		t.Around.Launch += " (in " + j.cfg.Cwd + ")"
	}
	defer func() {
		switch {
		case t.State == store.ToolAccepted || t.Accepted == "":
		case old.Pin == old.Accepted:
			t.Was = old.Definition()
		default:
			t.Was = old.Was
		}
	}()
	switch {
	case refused != nil:
		t.State, t.Findings = store.ToolRefused, []string{store.Clip(refused.Error(), 300)}
	case t.Accepted != "" && t.Accepted == t.Pin:
		t.State = store.ToolAccepted
	case t.Accepted != "" && j.unchanged(old, t):
		t.State, t.Accepted = store.ToolAccepted, t.Pin
	case t.Accepted != "":
		t.State, t.Findings = store.ToolQuarantined, append([]string{findingChanged}, l.findings...)
	case len(l.findings) > 0:
		t.State, t.Findings = store.ToolQuarantined, l.findings
	case j.registration || j.cfg.AcceptNew || isResource(t) || !known && j.prev != nil && !allowed(*j.prev, t.Name, t.Meta):
		t.State, t.Accepted = store.ToolAccepted, t.Pin
	default:
		t.State, t.Findings = store.ToolQuarantined, []string{findingNew}
	}
	return t
}

// isResource reports whether a tool is a single resource of a server. Resources are created
// and deleted like files, and a new one adds no capability to the server. A template adds
// one, because it stands for any number of resources.
func isResource(t store.Tool) bool {
	kind, _ := feature.Of(t.Name)
	return kind == feature.Resource
}

// unchanged reports whether t is the tool that was accepted, and its pin differs only
// because the record around it was edited or because pins now cover more.
func (j *toolJudge) unchanged(old, t store.Tool) bool {
	if j.prev != nil {
		pin, _ := j.gate.Pin(*j.prev, j.instructions, t)
		if pin == t.Accepted || j.pinnedWithoutIcons(*j.prev, old, t) {
			return true
		}
	}
	return j.pinnedWithoutIcons(j.cfg, old, t)
}

// pinnedWithoutIcons reports whether old was stored and accepted by a version
// whose pins left icons out, and t is the same tool with the same icons. Its
// acceptance then carries over to the pin that covers them. Only such a version
// stores icons beside a pin that doesn't cover them, so a tool passes here once.
func (j *toolJudge) pinnedWithoutIcons(cfg store.Server, old, t store.Tool) bool {
	if old.State != store.ToolAccepted || old.Pin != old.Accepted || len(old.Icons) == 0 || len(t.Icons) == 0 {
		return false
	}
	bare, before := t, t
	bare.Icons, before.Icons = nil, old.Icons
	pinOf := func(cfg store.Server, t store.Tool) string {
		pin, _ := j.gate.Pin(cfg, j.instructions, t)
		return pin
	}
	return pinOf(cfg, bare) == old.Accepted && pinOf(j.cfg, before) == t.Pin
}
