package monitor

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"nize/daemon/alert"
	"nize/daemon/api"
	"nize/daemon/doctor"
	"nize/daemon/mux"
	"nize/store"
)

// providerPatience is doctor's timeout for a provider.
const providerPatience = 10 * time.Second

// Doctor collects the facts that package doctor evaluates.
type Doctor struct {
	Monitor *Monitor
	Alerts  *Alerts
	// Settings are all settings.
	Settings []store.Key
	// Servers returns all servers.
	Servers func(ctx context.Context) ([]api.ServerView, error)
	// Providers returns all providers; Ask tests one.
	Providers func(ctx context.Context) ([]store.Provider, error)
	Ask       func(ctx context.Context, p store.Provider) error
	// Bots returns the accounts on chat platforms, tested if online.
	Bots func(ctx context.Context, online bool) ([]doctor.Bot, error)
	// Identity returns the company's identity provider, tested if online, or nil.
	Identity func(ctx context.Context, online bool) (*doctor.Identity, error)
	// Roof adds the process's own facts: its listeners, keys and configuration.
	Roof func(f *doctor.Facts)
}

// Mount registers the operations.
func (d *Doctor) Mount(m *mux.Mux) {
	mux.Handle(m, api.Doctor, d.Examine)
}

// Examine runs all checks.
func (d *Doctor) Examine(ctx context.Context, _ store.Caller, req api.DoctorRequest) (none api.Diagnosis, err error) {
	m := d.Monitor
	f := doctor.Facts{
		Now: m.Now(), Daemon: true, UID: os.Getuid(), Login: api.LoginName(os.Getuid()), Version: api.Version, Client: req.Client,
		Backup:    doctor.Run{Schedule: m.Config.Get("", "backup.schedule"), Error: store.ErrText(m.Runs.Backup().Err)},
		Audit:     doctor.Run{Schedule: m.Config.Get("", "audit.schedule"), Error: store.ErrText(m.Runs.Audit().Err)},
		Retention: map[string]string{},
		DiskLow:   DiskLow(m.Config),
	}
	if f.Disk, err = m.Space(m.DataDir); err != nil {
		m.Log.Warn("looking at the disk", "err", err)
	}
	d.Roof(&f) // may override facts about the disk
	f.Process.OpenFiles, f.Process.MaxFiles, f.Process.MemoryLimit, f.Process.Resident = openFiles(), MaxFiles(), groupLimit(), processes()[os.Getpid()].resident
	f.Backup.Last = m.Runs.LastBackup(ctx)
	if at := m.Runs.LastAudit(ctx, f.Now); f.Now.Sub(at) < 25*time.Hour {
		f.Audit.Last = at
	}
	for _, k := range d.Settings {
		if strings.HasPrefix(k.Name, "retention.") {
			f.Retention[k.Name] = m.Config.Get("", k.Name)
		}
	}
	if f.Files.Silent {
		return doctor.Examine(f), nil
	}
	for _, gather := range []func(context.Context, *doctor.Facts) error{d.people, d.servers, d.tokens, d.budgets, d.incidents, d.alerts, d.groups} {
		if err := gather(ctx, &f); err != nil {
			return none, err
		}
	}
	if f.Providers, err = d.providers(ctx, req.Online); err != nil {
		return none, err
	}
	if f.Bots, err = d.Bots(ctx, req.Online); err != nil {
		return none, err
	}
	if f.Identity, err = d.Identity(ctx, req.Online); err != nil {
		return none, err
	}
	return doctor.Examine(f), nil
}

func (d *Doctor) people(ctx context.Context, f *doctor.Facts) error {
	users, err := d.Monitor.Directory.Store.ListUsers(ctx)
	if err != nil {
		return fmt.Errorf("listing users: %w", err)
	}
	for _, u := range users {
		if u.CanAdminister() {
			f.Admins = append(f.Admins, u.Name)
		}
	}
	return nil
}

func (d *Doctor) servers(ctx context.Context, f *doctor.Facts) error {
	views, err := d.Servers(ctx)
	if err != nil {
		return err
	}
	refused := map[string]bool{}
	for _, st := range d.Monitor.Pool.Status() {
		refused[st.Name] = len(st.LoginLost) > 0
	}
	for _, v := range views {
		f.Servers = append(f.Servers, doctor.Server{
			Name: v.Name, State: v.State, Error: store.Line(v.LastError), Held: v.Held, LoginLost: refused[v.Name], Disabled: v.Server.Disabled,
		})
	}
	return nil
}

func (d *Doctor) tokens(ctx context.Context, f *doctor.Facts) error {
	tokens, err := d.Monitor.Store.ExpiringTokens(ctx, f.Now.Add(tokenNotice))
	if err != nil {
		return fmt.Errorf("listing tokens: %w", err)
	}
	names, err := d.Monitor.Directory.Names(ctx)
	if err != nil {
		return err
	}
	for _, t := range expiring(tokens, f.Now) {
		f.Tokens = append(f.Tokens, doctor.Token{Name: t.Name, User: names[t.User], Expires: t.Expires, Cure: rotateCommand(t.Name, names[t.User])})
	}
	return nil
}

func (d *Doctor) incidents(ctx context.Context, f *doctor.Facts) error {
	var err error
	if f.Active, _, err = d.Monitor.Store.CountIncidents(ctx); err != nil {
		return err
	}
	told, err := d.Monitor.Store.ListIncidents(ctx, store.IncidentQuery{Kinds: []string{alert.Migration, alert.Backup, alert.AuditFailed}})
	if err != nil {
		return fmt.Errorf("listing incidents: %w", err)
	}
	for _, i := range told {
		f.Incidents = append(f.Incidents, doctor.Incident{ID: i.ID, Kind: i.Kind, Subject: i.Subject, Title: i.Title, Cure: i.Cure})
		// A run that failed before the last restart is known from its incident.
		switch {
		case i.Kind == alert.Backup && f.Backup.Error == "":
			f.Backup.Error = i.Text.String()
		case i.Kind == alert.AuditFailed && f.Audit.Error == "":
			f.Audit.Error = i.Text.String()
		}
	}
	return nil
}

func (d *Doctor) alerts(ctx context.Context, f *doctor.Facts) error {
	to := d.Monitor.Config.Get("", "alerts.to")
	if to != "" {
		f.Alerts.To = hostOf(to)
	}
	if u, err := url.Parse(to); err == nil {
		f.Alerts.Clear = u.Scheme == "http" && !isLoopback(u.Hostname())
	}
	where, err := d.Alerts.Destination(ctx)
	switch {
	case err != nil:
		f.Alerts.Error = store.ErrText(err)
		return nil
	case where == nil:
		return nil
	}
	f.Alerts.To, f.Alerts.Signed, f.Alerts.Chat = where.Name, where.Signed, where.Chat
	if where.Unclaimed != nil {
		if f.Alerts.Unclaimed, err = where.Unclaimed(ctx); err != nil {
			return err
		}
	}
	recent, err := d.Monitor.Store.ListIncidents(ctx, store.IncidentQuery{All: true, Limit: 100})
	if err != nil {
		return fmt.Errorf("listing incidents: %w", err)
	}
	for _, i := range recent {
		if i.Delivery.Tries > 0 && (i.Active() || f.Now.Sub(i.Recovered) < 24*time.Hour) {
			f.Alerts.Unsent++
			f.Alerts.LastWord = i.Delivery.Error
		}
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// providers returns facts about the providers. If online, it queries them concurrently.
func (d *Doctor) providers(ctx context.Context, online bool) ([]doctor.Provider, error) {
	list, err := d.Providers(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]doctor.Provider, len(list))
	var asking sync.WaitGroup
	for i, p := range list {
		out[i] = doctor.Provider{Name: p.Name, Disabled: !p.Enabled}
		if !online || !p.Enabled {
			continue
		}
		out[i].Asked = true
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, providerPatience)
			defer cancel()
			out[i].Error = store.ErrText(d.Ask(ctx, p))
		})
	}
	asking.Wait()
	return out, nil
}

// groups adds the groups whose members come from a chat platform.
func (d *Doctor) groups(ctx context.Context, f *doctor.Facts) error {
	all, err := d.Monitor.Directory.Store.ListGroups(ctx)
	if err != nil {
		return fmt.Errorf("listing groups: %w", err)
	}
	for _, g := range all {
		if g.Live() {
			f.Groups = append(f.Groups, doctor.Group{Name: g.Name, Looked: g.Checked, Error: g.Error, Shut: f.Now.Sub(g.Checked) >= store.GroupAge})
		}
	}
	return nil
}
