package daemon

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"time"

	"nize/daemon/api"
	"nize/llm"
	"nize/store"
)

func (d *Daemon) getStatus(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	s := api.Status{
		Version: api.Version, PID: os.Getpid(), Started: d.started, DataDir: d.opt.DataDir, Socket: d.opt.Socket,
		Listen: d.addr(), You: by, Model: llm.OfflineModel, Sessions: d.mcp.Sessions(), Bots: d.botStates(ctx), Servers: []api.Health{},
	}
	s.PublicURL, s.TLS, s.Config = d.layers.Get("public_url"), d.cert != nil, d.layers.inUse()
	if by.IsAdmin() {
		s.Warnings = d.layers.warnings()
	}
	if targets, err := d.router.Resolve(ctx, ""); err == nil {
		s.Model = targets[0].Name()
	}
	list, err := d.listServers(ctx, by, nil)
	if err != nil {
		return nil, err
	}
	if views, ok := list.(api.List[api.ServerView]); ok {
		for _, v := range views.Items {
			s.Servers = append(s.Servers, v.Health)
			s.Tools += v.ToolCount - v.Held
			if v.Held > 0 && by.IsAdmin() {
				s.Warnings = append(s.Warnings, fmt.Sprintf("%d tools of %s wait for acceptance: nizectl servers trust %s", v.Held, v.Name, v.Name))
			}
		}
	}
	if by.IsAdmin() {
		s.Warnings = append(s.Warnings, d.servers.warnings()...)
	}
	waiting, err := d.db.ListCalls(ctx, store.CallQuery{Waiting: true, Limit: 10_000})
	if err != nil {
		return nil, fmt.Errorf("counting waiting calls: %w", err)
	}
	running, err := d.db.ListCalls(ctx, store.CallQuery{States: []store.State{store.Running}, Limit: 10_000})
	if err != nil {
		return nil, fmt.Errorf("counting running calls: %w", err)
	}
	inbox, err := d.db.Pending(ctx)
	if err != nil {
		return nil, fmt.Errorf("counting messages: %w", err)
	}
	s.Pending, s.Running = len(waiting), len(running)
	if s.Incidents, err = d.countIncidents(ctx, by); err != nil {
		return nil, err
	}
	due, err := d.db.ListIncidents(ctx, store.IncidentQuery{Due: true})
	if err != nil {
		return nil, fmt.Errorf("counting alerts: %w", err)
	}
	health := d.db.Health()
	s.Uptime = d.now().Sub(d.started).Seconds()
	s.Database = api.DatabaseStatus{SizeBytes: health.Size}
	s.Database.LastBackup = d.lastBackup(ctx)
	s.Queues = []api.Queue{{Name: "inbox", Depth: len(inbox)}, {Name: "writer", Depth: health.Waiting}, {Name: "feed", Depth: health.Lag}, {Name: "alerts", Depth: len(due)}}
	s.Process = d.processStatus()
	if !by.IsAdmin() {
		s.Process.ChildProcesses = []api.ChildProcess{} // how servers are run is for admins
	}
	return s, nil
}

func (d *Daemon) countIncidents(ctx context.Context, by store.Caller) (int, error) {
	active, err := d.incidents(ctx, by, store.IncidentQuery{})
	return len(active), err
}

func (d *Daemon) processStatus() api.ProcessStatus {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	all := processes()
	p := api.ProcessStatus{Goroutines: runtime.NumGoroutine(), HeapBytes: heap[0].Value.Uint64(), OpenFiles: openFiles(), ResidentBytes: all[os.Getpid()].resident}
	p.ChildProcesses = children(below(all, os.Getpid()), d.pool.Status())
	p.Children = len(p.ChildProcesses)
	return p
}

// openFiles counts them; 0 where there is no /proc.
func openFiles() int {
	fds, _ := os.ReadDir("/proc/self/fd")
	return len(fds)
}

func sinceOf(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("%w time %q: use RFC 3339", store.ErrInvalid, text)
	}
	return t, nil
}

func (d *Daemon) listSettings(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	user := ""
	if who := r.URL.Query().Get("user"); who != "" {
		var err error
		if user, err = d.directory.Owner(ctx, by, who); err != nil {
			return nil, err
		}
	}
	keys := allKeys()
	views := make([]api.Setting, len(keys))
	for i, k := range keys {
		views[i] = forMember(by, d.config.view(user, k))
	}
	return items(views), nil
}

func (d *Daemon) putSetting(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.PutSetting](r)
	if err != nil {
		return nil, err
	}
	if req.Value == "" {
		return nil, fmt.Errorf("%w value: it is empty; use nizectl config unset %s", store.ErrInvalid, r.PathValue("key"))
	}
	return d.changeSetting(ctx, by, req.User, r.PathValue("key"), req.Value)
}

func (d *Daemon) unsetSetting(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	return d.changeSetting(ctx, by, r.URL.Query().Get("user"), r.PathValue("key"), "")
}

func (d *Daemon) changeSetting(ctx context.Context, by store.Caller, who, key, value string) (any, error) {
	if key == "approvals.approvers" && value != "" && by.IsAdmin() {
		p, err := d.directory.Approvers(ctx, store.Policy(value))
		if err != nil {
			return nil, err
		}
		value = string(p)
	}
	if key == "bots.access" && value != "" && by.IsAdmin() {
		var err error
		if value, err = d.accessOf(ctx, value); err != nil {
			return nil, err
		}
	}
	if key == "models.images" {
		if err := llm.CheckImages(value); err != nil {
			return nil, err
		}
	}
	user := ""
	if who != "" {
		var err error
		if user, err = d.directory.Owner(ctx, by, who); err != nil {
			return nil, err
		}
	}
	if key == "embed.model" && value != "" {
		if err := d.checkTarget(ctx, value); err != nil {
			return nil, err
		}
	}
	if key == "index.examples" && value != "" {
		if err := d.checkExamples(ctx, value); err != nil {
			return nil, err
		}
	}
	if user != "" {
		if err := d.checkOwn(ctx, user, key, value); err != nil {
			return nil, err
		}
	}
	s, err := d.config.put(ctx, by, user, key, value)
	if err != nil {
		return nil, err
	}
	d.settingChanged(key)
	return s, nil
}
