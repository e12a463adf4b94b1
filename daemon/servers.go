package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/mcp"
	"nize/mcp/upstream"
	"nize/store"
)

func (d *Daemon) listServers(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	views, err := d.serverViews(ctx, by)
	return items(views), err
}

// serverViews are the servers that the caller may know of.
func (d *Daemon) serverViews(ctx context.Context, by store.Caller) ([]api.ServerView, error) {
	servers, err := d.db.ListServers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing servers: %w", err)
	}
	tallies, err := d.gateway.Catalog.CountTools(ctx)
	if err != nil {
		return nil, fmt.Errorf("counting tools: %w", err)
	}
	health := d.healths()
	views := make([]api.ServerView, 0, len(servers))
	groups := d.directory.GroupsOf(ctx, by)
	for _, s := range servers {
		if !s.SharedWith(by, groups) {
			continue
		}
		views = append(views, forCaller(by, api.ServerView{Health: healthOf(s, health, tallies[s.Name]), Server: s}))
	}
	return views, nil
}

// healths is how each server of the pool is, by name.
func (d *Daemon) healths() map[string]upstream.ServerStatus {
	out := map[string]upstream.ServerStatus{}
	for _, s := range d.pool.Status() {
		out[s.Name] = s
	}
	return out
}

func healthOf(s store.Server, all map[string]upstream.ServerStatus, tools mcp.ToolCounts) api.Health {
	h := api.Health{Name: s.Name, State: "connecting", ToolCount: tools.Tools, Held: tools.Held}
	if st, ok := all[s.Name]; ok {
		h.State, h.LatencyMS, h.LastError, h.Restarts, h.Since = stateWord[st.State], float64(st.Latency)/float64(time.Millisecond), st.LastError, st.Restarts, st.Since
	}
	if s.Disabled {
		h.State = "disabled"
	}
	return h
}

// stateWord is how the pool's states are called on the wire.
var stateWord = map[upstream.State]string{upstream.Connected: "ready", upstream.Connecting: "connecting", upstream.Down: "unreachable", upstream.Idle: "idle", upstream.Open: "open", upstream.Disabled: "disabled"}

func toolView(t store.Tool, domain string) api.ToolView {
	return api.ToolView{ID: t.ID(), Server: t.Server, Name: t.Name, Title: t.Title, Description: t.Description, Domain: domain, State: t.State, Findings: t.Findings}
}

// serverView is one server whole.
func (d *Daemon) serverView(ctx context.Context, name string) (api.ServerView, error) {
	s, err := d.server(ctx, name)
	if err != nil {
		return api.ServerView{}, err
	}
	tools, err := d.db.ListTools(ctx, name)
	if err != nil {
		return api.ServerView{}, fmt.Errorf("listing tools of %s: %w", name, err)
	}
	view := api.ServerView{Health: healthOf(s, d.healths(), mcp.ToolCounts{Tools: len(tools)}), Server: s}
	for _, t := range tools {
		if t.State != store.ToolAccepted {
			view.Held++
		}
		view.Tools = append(view.Tools, toolView(t, s.Normal().Domain))
		if t.State != store.ToolAccepted {
			view.Warnings = append(view.Warnings, fmt.Sprintf("%s is held: %s; see nizectl servers trust %s", t.ID(), strings.Join(t.Findings, "; "), name))
		}
	}
	return view, nil
}

// server finds a server by name; a miss names the nearest.
func (d *Daemon) server(ctx context.Context, name string) (store.Server, error) {
	s, err := d.db.GetServer(ctx, name)
	if !errors.Is(err, store.ErrNotFound) {
		return s, err
	}
	all, err := d.db.ListServers(ctx)
	if err != nil {
		return s, fmt.Errorf("listing servers: %w", err)
	}
	names := make([]string, len(all))
	for i, o := range all {
		names[i] = o.Name
	}
	return s, store.Unknown("server", name, names)
}

func (d *Daemon) getServer(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	if err := d.mayKnow(ctx, by, r.PathValue("name")); err != nil {
		return nil, err
	}
	view, err := d.serverView(ctx, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return forCaller(by, view), nil
}

// addServer contacts the server first, so that nothing is stored of one that
// cannot be reached, unless the operator insists.
func (d *Daemon) addServer(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.AddServer](r)
	if err != nil {
		return nil, err
	}
	req.Server.Origin = store.Origin{} // only the watched file has one
	return d.register(ctx, by, req.Server, req.Force)
}

// register checks a server, contacts it unless it is disabled, and stores it.
// What can't be reached is kept by force only.
func (d *Daemon) register(ctx context.Context, by store.Caller, s store.Server, force bool) (none api.ServerView, err error) {
	if err := d.checkServer(&s); err != nil {
		return none, err
	}
	if _, err := d.db.GetServer(ctx, s.Name); err == nil {
		return none, fmt.Errorf("server %q %w: choose another name, or remove it first: nizectl servers remove %s", s.Name, store.ErrExists, s.Name)
	}
	if s.Visibility, err = d.directory.Audience(ctx, by, s.Visibility); err != nil {
		return none, err
	}
	if s.Approvers, err = d.directory.Approvers(ctx, s.Approvers); err != nil {
		return none, err
	}
	s.Created, s.Revision = d.now(), 0
	if err := d.bindCredentials(ctx, by, s); err != nil {
		return none, err
	}
	var probeErr error
	if !s.Disabled {
		_, probeErr = d.pool.Probe(ctx, s)
	}
	if probeErr != nil && !force {
		return none, &api.Error{Code: "unavailable", Message: fmt.Sprintf("server %s was not added: %v; add it all the same with --force", s.Name, probeErr)}
	}
	if s, err = d.db.PutServer(ctx, by, s, 0); err != nil {
		return none, fmt.Errorf("storing server %s: %w", s.Name, err)
	}
	_, syncErr := d.pool.Sync(ctx, by, s.Name)
	if syncErr != nil && !force {
		if err := d.db.DeleteServer(ctx, by, s.Name); err != nil {
			d.log.Error("taking back a server", "server", s.Name, "err", err)
		}
		_, _ = d.pool.Sync(context.WithoutCancel(ctx), by, s.Name) // closes what it opened; the error was reported
		return none, &api.Error{Code: "unavailable", Message: fmt.Sprintf("server %s was not added: %v", s.Name, syncErr)}
	}
	if err := d.gateway.Catalog.Refresh(ctx, s.Name); err != nil {
		return none, err
	}
	view, err := d.serverView(ctx, s.Name)
	if err != nil {
		return none, err
	}
	if probeErr != nil {
		view.Unreachable = true
		view.Warnings = append(view.Warnings, "it could not be reached: "+probeErr.Error())
	}
	return view, nil
}

func (d *Daemon) patchServer(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name := r.PathValue("name")
	p, err := decode[api.PatchServer](r)
	if err != nil {
		return nil, err
	}
	s, err := d.server(ctx, name)
	if err != nil {
		return nil, err
	}
	if p.Revision == 0 {
		p.Revision = s.Revision
	}
	apply(&s.Disabled, p.Disabled)
	apply(&s.Description, p.Description)
	apply(&s.Domain, p.Domain)
	apply(&s.Timeout, p.Timeout)
	apply(&s.MaxConcurrency, p.MaxConcurrency)
	apply(&s.Approval, p.Approval)
	apply(&s.Auth, p.Auth)
	apply(&s.Approvers, p.Approvers)
	apply(&s.TrustAnnotations, p.TrustAnnotations)
	apply(&s.UntrustedOutput, p.UntrustedOutput)
	apply(&s.Private, p.Private)
	apply(&s.AcceptNew, p.AcceptNew)
	apply(&s.AllowedTools, p.AllowedTools)
	apply(&s.Visibility, p.Visibility)
	apply(&s.Env, p.Env)
	apply(&s.Headers, p.Headers)
	apply(&s.KeepAlive, p.KeepAlive)
	apply(&s.IdleTimeout, p.IdleTimeout)
	apply(&s.MemoryLimit, p.MemoryLimit)
	apply(&s.RateLimit, p.RateLimit)
	apply(&s.Transport, p.Transport)
	apply(&s.Command, p.Command)
	apply(&s.Args, p.Args)
	apply(&s.Cwd, p.Cwd)
	apply(&s.URL, p.URL)
	if err := d.checkServer(&s); err != nil {
		return nil, err
	}
	if s.Visibility, err = d.directory.Audience(ctx, by, s.Visibility); err != nil {
		return nil, err
	}
	if s.Approvers, err = d.directory.Approvers(ctx, s.Approvers); err != nil {
		return nil, err
	}
	if _, err := d.db.PutServer(ctx, by, s, p.Revision); err != nil {
		return nil, fmt.Errorf("storing server %s: %w", name, err)
	}
	_, syncErr := d.pool.Sync(ctx, by, name)
	if err := d.gateway.Catalog.Refresh(ctx, name); err != nil {
		return nil, err
	}
	view, err := d.serverView(ctx, name)
	if err == nil && syncErr != nil {
		view.Warnings = append(view.Warnings, "the change is stored, but the server could not be listed: "+syncErr.Error())
	}
	return view, err
}

func apply[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}

func (d *Daemon) removeServer(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name := r.PathValue("name")
	if _, err := d.server(ctx, name); err != nil {
		return nil, err
	}
	return nil, d.remove(ctx, by, name)
}

func (d *Daemon) remove(ctx context.Context, by store.Caller, name string) error {
	if err := d.db.DeleteServer(ctx, by, name); err != nil {
		return fmt.Errorf("removing server %s: %w", name, err)
	}
	if err := d.gateway.Catalog.Refresh(ctx, name); err != nil {
		return err
	}
	if _, err := d.pool.Sync(ctx, by, name); err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("closing server %s: %w", name, err)
	}
	return nil
}

func (d *Daemon) testServer(ctx context.Context, _ store.Caller, r *http.Request) (any, error) {
	s, err := d.server(ctx, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	p, err := d.pool.Probe(ctx, s)
	if p == nil {
		return nil, err
	}
	out := api.Probe{OK: err == nil, Tools: len(p.Tools), Stderr: string(p.Stderr)}
	for _, step := range p.Steps {
		out.Steps = append(out.Steps, api.ProbeStep{Name: step.Name, TookMS: float64(step.Took) / float64(time.Millisecond), Error: step.Err, Hint: step.Hint})
	}
	return out, nil
}

func (d *Daemon) restartServer(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name := r.PathValue("name")
	if _, err := d.server(ctx, name); err != nil {
		return nil, err
	}
	d.db.AddEvent(by, store.Event{Kind: "server.restart", Subject: name})
	if err := d.pool.Restart(ctx, name); err != nil {
		if errors.Is(err, store.ErrRefused) {
			return nil, err
		}
		return nil, &api.Error{Code: "unavailable", Message: fmt.Sprintf("restarting %s: %v", name, err)}
	}
	if err := d.gateway.Catalog.Refresh(ctx, name); err != nil {
		return nil, err
	}
	return d.serverView(ctx, name)
}

func (d *Daemon) listUntrusted(ctx context.Context, _ store.Caller, r *http.Request) (any, error) {
	name, only := r.PathValue("name"), r.URL.Query().Get("tool")
	if _, err := d.server(ctx, name); err != nil {
		return nil, err
	}
	tools, err := d.db.ListTools(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("listing tools of %s: %w", name, err)
	}
	var out []api.TrustView
	var names []string
	found := only == ""
	for _, t := range tools {
		names = append(names, t.Name)
		found = found || t.Name == only
		if only != "" && t.Name != only || t.State == store.ToolAccepted {
			continue
		}
		out = append(out, api.TrustView{Tool: t.ID(), State: t.State, Pin: t.Pin, Accepted: t.Accepted, Findings: t.Findings, Description: t.Description})
	}
	if !found {
		return nil, store.Unknown("tool", only, names)
	}
	return items(out), nil
}

func (d *Daemon) trustTools(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name := r.PathValue("name")
	req, err := decode[api.Accept](r)
	if err != nil {
		return nil, err
	}
	if _, err := d.server(ctx, name); err != nil {
		return nil, err
	}
	for _, a := range req.Tools {
		t, err := d.db.GetTool(ctx, a.Tool)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", a.Tool, err)
		}
		if t.Server != name || t.State == store.ToolRefused {
			return nil, fmt.Errorf("tool %s cannot be accepted: %w: %s", a.Tool, store.ErrRefused, strings.Join(t.Findings, "; "))
		}
	}
	for _, a := range req.Tools {
		if err := d.db.AcceptTool(ctx, by, a.Tool, a.Pin); err != nil {
			return nil, fmt.Errorf("accepting %s: %w", a.Tool, err)
		}
	}
	if _, err := d.pool.Sync(ctx, store.System, name); err != nil {
		d.log.Warn("listing after a trust", "server", name, "err", err)
	}
	if err := d.gateway.Catalog.Refresh(ctx, name); err != nil {
		return nil, err
	}
	view, err := d.serverView(ctx, name)
	if err != nil {
		return nil, err
	}
	return items(view.Tools), nil
}

func (d *Daemon) serverLogs(ctx context.Context, _ store.Caller, r *http.Request, send func(any) error) error {
	name := r.PathValue("name")
	s, err := d.server(ctx, name)
	if err != nil {
		return err
	}
	if s.Transport != store.Stdio {
		return fmt.Errorf("server %s has no log: %w: only stdio servers write one", name, store.ErrInvalid)
	}
	var rest []byte
	lines := func(chunk []byte) error {
		rest = append(rest, chunk...)
		for {
			line, after, ok := strings.Cut(string(rest), "\n")
			if !ok {
				return nil
			}
			rest = []byte(after)
			if err := send(api.LogLine{Text: strings.TrimSuffix(line, "\r")}); err != nil {
				return err
			}
		}
	}
	if r.URL.Query().Get("follow") != "" {
		for chunk := range d.pool.FollowLogs(ctx, name) {
			if err := lines(chunk); err != nil {
				return err
			}
		}
		return nil
	}
	if err := lines(d.pool.Logs(name)); err != nil {
		return err
	}
	if len(rest) > 0 {
		return send(api.LogLine{Text: string(rest)})
	}
	return nil
}
