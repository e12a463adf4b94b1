package monitor

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
	"nize/store/database"
)

// Status implements the operation that returns the daemon's status.
type Status struct {
	Store interface {
		CountWaiting(ctx context.Context, user string) (own, all int, err error)
		CountRunning(ctx context.Context) (int, error)
		CountIncidents(ctx context.Context) (active, due int, err error)
		CountPending(ctx context.Context) (int, error)
		Health() database.Health
	}
	// Ping queries the database server; served is false if there is none.
	Ping func(ctx context.Context) (version string, trip time.Duration, served bool, err error)
	// Replicas returns the nodes that share the database.
	Replicas func(ctx context.Context) ([]api.Replica, error)
	Pool     Pool
	Alerts   *Alerts
	Runs     Runs
	// Servers returns the servers that the caller may see.
	Servers func(ctx context.Context, by store.Caller) ([]api.ServerView, error)
	// Watched returns the warnings of the servers file.
	Watched func() []string
	// Roof adds the process's own state: its listeners, configuration and chats.
	Roof func(ctx context.Context, s *api.Status)
	Now  func() time.Time
}

// Mount registers the operations.
func (o *Status) Mount(m *mux.Mux) {
	mux.Handle(m, api.GetStatus, o.Show)
}

// Show returns the daemon's status; for members without how servers are run.
func (o *Status) Show(ctx context.Context, by store.Caller, _ api.Empty) (s api.Status, err error) {
	s = api.Status{Version: api.Version, PID: os.Getpid(), You: by, Servers: []api.Health{}, Queues: []api.Queue{}}
	o.Roof(ctx, &s)
	s.Uptime = o.Now().Sub(s.Started).Seconds()
	s.Process = processStatus(o.Pool)
	if !by.IsAdmin() {
		s.Process.ChildProcesses = []api.ChildProcess{} // only admins may see how servers are run
	}
	health := o.Store.Health()
	s.Database = api.DatabaseStatus{Engine: "bbolt", Reachable: true, SizeBytes: health.Size}
	if version, trip, served, err := o.Ping(ctx); served {
		s.Database.Engine, s.Database.Reachable = "PostgreSQL", err == nil
		if by.IsAdmin() {
			s.Database.Server, s.Database.Version, s.Database.StandBy = health.Server, version, health.StandBy
			s.Database.RoundTrip = float64(trip.Microseconds()) / 1000
		}
		if err != nil { // its contents can't be counted
			s.Warnings = append(s.Warnings, "the database does not respond; calls that must be recorded are refused until it does: nizectl doctor")
			return s, nil
		}
		if by.IsAdmin() {
			s.Replicas, _ = o.Replicas(ctx) // not every database server provides them
		}
	}
	views, err := o.Servers(ctx, by)
	if err != nil {
		return s, err
	}
	for _, v := range views {
		s.Servers = append(s.Servers, v.Health)
		s.Tools += v.ToolCount - v.Held - v.Refused
		if v.Held > 0 && by.IsAdmin() {
			s.Warnings = append(s.Warnings, heldWarning(v.Held, v.Name))
		}
	}
	if by.IsAdmin() {
		s.Warnings = append(s.Warnings, o.Watched()...)
	}
	if _, s.Pending, err = o.Store.CountWaiting(ctx, by.User); err != nil {
		return s, fmt.Errorf("counting waiting calls: %w", err)
	}
	if s.Running, err = o.Store.CountRunning(ctx); err != nil {
		return s, fmt.Errorf("counting running calls: %w", err)
	}
	inbox, err := o.Store.CountPending(ctx)
	if err != nil {
		return s, fmt.Errorf("counting messages: %w", err)
	}
	incidents, due, err := o.Store.CountIncidents(ctx)
	if err != nil {
		return s, err
	}
	if s.Incidents = incidents; incidents > 0 && !by.IsAdmin() { // others see those that concern them
		mine, err := o.Alerts.Incidents(ctx, by, store.IncidentQuery{})
		if err != nil {
			return s, err
		}
		s.Incidents = len(mine)
	}
	s.Database.LastBackup = o.Runs.LastBackup(ctx)
	s.Queues = []api.Queue{{Name: "inbox", Depth: inbox}, {Name: "writer", Depth: health.Waiting}, {Name: "feed", Depth: health.Lag}, {Name: "alerts", Depth: due}}
	return s, nil
}

func processStatus(pool Pool) api.ProcessStatus {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	all := processes()
	p := api.ProcessStatus{Goroutines: runtime.NumGoroutine(), HeapBytes: heap[0].Value.Uint64(), OpenFiles: openFiles(), ResidentBytes: all[os.Getpid()].resident}
	p.ChildProcesses = children(below(all, os.Getpid()), pool.ChildServers())
	p.Children = len(p.ChildProcesses)
	return p
}

// heldWarning returns the warning about a server's tools that await acceptance.
func heldWarning(n int, server string) string {
	if n == 1 {
		return fmt.Sprintf("1 tool of %s waits for acceptance: nizectl servers trust %s", server, server)
	}
	return fmt.Sprintf("%d tools of %s wait for acceptance: nizectl servers trust %s", n, server, server)
}
