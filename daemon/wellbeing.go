package daemon

import (
	"context"
	"errors"
	"net"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"nize/daemon/api"
	"nize/daemon/doctor"
	"nize/daemon/extensions"
	"nize/daemon/metrics"
	"nize/daemon/monitor"
	"nize/llm"
	"nize/store"
	"nize/store/kv"
	"nize/store/printable"
)

// The process's state, for package monitor.

func (d *Daemon) newMonitor(e *extensions.Extensions) *monitor.Monitor {
	return monitor.New(monitor.Options{
		Store: d.db, Pool: d.pool, Directory: d.directory, Config: d.config, DataDir: d.opt.DataDir, Space: doctor.SpaceOf,
		Runs: d.scheduler, Migrations: d.dir, Clocks: d.dir, Bots: d.botHealth(), Held: e.Held, Now: d.now, Log: d.log.With("component", "monitor"),
	})
}

func (d *Daemon) botHealth() *monitor.Bots { return &monitor.Bots{Store: d.db, Bots: d.bots} }

func (d *Daemon) newAlerts() *monitor.Alerts {
	return &monitor.Alerts{Store: d.db, Directory: d.directory, Config: d.config, Chat: newChats(d).Destination, Owner: newChats(d).TellOwners, Again: func() { d.alerts.Again() }, Now: d.now, Log: d.log.With("component", "alerts")}
}

func (d *Daemon) newDoctor(o *operations) *monitor.Doctor {
	return &monitor.Doctor{
		Monitor: d.monitor, Alerts: o.alerts, Settings: d.layers.StoredKeys(), Providers: d.providers.All, Bots: d.botHealth().Facts, Identity: d.identityFacts, Roof: d.daemonFacts,
		Servers: func(ctx context.Context) ([]api.ServerView, error) {
			list, err := o.servers.All(ctx, store.System, api.Empty{})
			return list.Items, err
		},
		Ask: func(ctx context.Context, p store.Provider) error {
			_, err := d.providers.ListModelsOf(ctx, p)
			return err
		},
	}
}

func (d *Daemon) newStatus(o *operations) *monitor.Status {
	return &monitor.Status{Store: d.db, Ping: d.db.Ping, Pool: d.pool, Alerts: o.alerts, Runs: d.scheduler, Servers: func(ctx context.Context, by store.Caller) ([]api.ServerView, error) {
		list, err := o.servers.All(ctx, by, api.Empty{})
		return list.Items, err
	}, Watched: func() []string { return append(d.servers.Warnings(), o.extensions.Problems()...) }, Replicas: d.dir.Replicas, Roof: d.daemonStatus, Now: d.now}
}

// identityFacts returns the company's identity provider for doctor.
func (d *Daemon) identityFacts(ctx context.Context, online bool) (*doctor.Identity, error) {
	p, set, err := d.ops.company.Provider(ctx)
	if err != nil || !set {
		return nil, err
	}
	address, secure := d.ops.company.Redirect()
	f := &doctor.Identity{Name: p.Name, RedirectURI: address, Secure: secure}
	if online {
		f.Steps = d.ops.company.Look(ctx, p).Steps
	}
	return f, nil
}

// daemonFacts adds the composition root's facts for doctor.
func (d *Daemon) daemonFacts(f *doctor.Facts) {
	f.Files = doctor.FilesOf(d.opt.DataDir, d.opt.Socket)
	f.Files.Server = d.db.Health().Server
	if version, trip, served, err := d.db.Ping(d.closing); served {
		f.Files.Version, f.Files.RoundTrip, f.Files.Silent = version, trip, err != nil
	}
	f.KeyID, f.KeyFromEnv, f.WasClean, f.Behind = d.db.KeyID(), d.opt.Env("NIZE_MASTER_KEY") != "", d.db.WasClean(), d.db.Health().LaggingThreads
	f.Unchecked = d.db.Unchecked()
	if err := d.db.Broken(); err != nil {
		f.Broken, f.Damaged = store.ErrText(err), errors.Is(err, kv.ErrDamaged)
	}
	s := d.db.Surplus()
	f.Surplus = doctor.Surplus{Size: uint64(s.Size), Free: uint64(s.Free), Needs: uint64(s.Needs)}
	if by, err := d.dir.ClockApart(); err != nil {
		f.Apart, f.ApartText = by, err.Error()
	}
	f.Config, f.Extensions = append(d.layers.Warnings(), d.servers.Warnings()...), d.ops.extensions.Problems()
	f.Web = d.webFacts()
	if errors.Is(d.db.Healthy(), store.ErrDiskFull) { // the database's finding takes precedence over the system's free space
		f.Disk.Free, f.Disk.Total = 0, max(f.Disk.Total, 1)
	}
	f.Process.UnderSystemd = d.opt.Env("INVOCATION_ID") != "" && d.opt.Env("NOTIFY_SOCKET") != ""
	open := d.edge.public.Counts()
	f.Connections = doctor.Connections{Most: open.Limits.All, Unknown: open.Limits.Unknown, Address: open.Limits.Address, Person: open.Limits.Person, Ended: open.Ended, Refused: open.Refused}
	f.Process.SocketGroup = d.layers.Get("socket.group")
	f.Process.Watchdog, _ = systemd.SdWatchdogEnabled(false) // an invalid value has already failed the start
}

func (d *Daemon) webFacts() doctor.Web {
	w := doctor.Web{Listen: d.addr(), PublicURL: d.layers.Get("public_url"), TLS: d.cert != nil}
	if at, ok := d.public.Addr().(*net.TCPAddr); ok {
		w.Loopback = at.IP.IsLoopback()
	}
	if from := d.hosts.Load().forwarded.Load(); from != nil {
		w.Forwarded = from.String()
	}
	if d.cert != nil {
		w.Ends = d.cert.ends()
	}
	return w
}

// daemonStatus adds the composition root's fields to the status.
func (d *Daemon) daemonStatus(ctx context.Context, s *api.Status) {
	s.Started, s.DataDir, s.Socket, s.Listen = d.started, d.opt.DataDir, d.opt.Socket, d.addr()
	s.Model = llm.OfflineModel
	clients, open := d.mcp.Counts(), d.edge.public.Counts()
	s.Sessions, s.SessionsEnded, s.Requests = clients.Sessions, clients.Ended, clients.Requests
	s.Connections = api.ConnectionStatus{Open: open.Open, Unauthenticated: open.Unknown, Most: open.Limits.All, MostUnauthenticated: open.Limits.Unknown, Ended: open.Ended, Refused: open.Refused}
	var err error
	if s.Bots, err = d.botHealth().States(ctx, false); err != nil {
		d.log.Warn("reading the bots", "err", err)
	}
	s.PublicURL, s.TLS, s.Config = d.layers.Get("public_url"), d.cert != nil, d.layers.File()
	if s.You.IsAdmin() {
		s.Warnings = d.layers.Warnings()
		if _, err := d.dir.ClockApart(); err != nil {
			s.Warnings = append(s.Warnings, err.Error())
		}
	}
	if err := d.db.Broken(); err != nil {
		s.Warnings = append(s.Warnings, "nothing can be stored until nized is restarted, and calls that must be recorded don't run: nizectl doctor")
	}
	if errors.Is(d.db.Healthy(), store.ErrDiskFull) {
		s.Warnings = append(s.Warnings, "the disk is full: calls that must be recorded don't run; free space: df -h "+printable.ShellWord(d.opt.DataDir))
	}
	targets, err := d.router.Resolve(ctx, "")
	switch {
	case err != nil || targets[0].Provider.Kind == llm.Offline:
	case s.You.IsAdmin():
		s.Model = targets[0].Name()
	default: // only admins may see the target of a model's name
		s.Model = "default"
	}
}

// state returns the daemon's state for the metrics.
func (d *Daemon) state(ctx context.Context) (metrics.State, error) {
	status, err := d.ops.status.Show(ctx, store.System, api.Empty{})
	if err != nil {
		return metrics.State{}, err
	}
	if !status.Database.Reachable {
		return metrics.State{}, store.ErrNoDatabase
	}
	health := d.db.Health()
	s := metrics.State{Status: status, Commits: health.Commits, CommitTime: health.CommitTime}
	_, s.IndexVectors, s.IndexTools = d.indexer.Index.Vectors()
	return s, nil
}

func newChats(d *Daemon) *monitor.Chats {
	return &monitor.Chats{Bots: d.bots, Users: d.db, Config: d.config}
}
