package daemon

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"nize/bots/slack"
	"nize/daemon/alert"
	"nize/daemon/api"
	"nize/daemon/doctor"
	"nize/store"
)

// providerPatience is how long doctor waits for a provider.
const providerPatience = 10 * time.Second

// doctor gathers the facts; what they mean is package doctor's.
func (d *Daemon) doctor(ctx context.Context, _ store.Caller, r *http.Request) (any, error) {
	f := doctor.Facts{
		Now: d.now(), Daemon: true, UID: os.Getuid(), Files: doctor.FilesOf(d.opt.DataDir, d.opt.Socket),
		Version: api.Version, Client: r.Header.Get(api.VersionHeader), KeyID: d.db.KeyID(), KeyFromEnv: d.opt.Env("NIZE_MASTER_KEY") != "",
		WasClean: d.db.WasClean(), Behind: d.db.Health().LaggingThreads, Config: append(d.layers.warnings(), d.servers.warnings()...),
		Web: d.webFacts(), Process: d.processFacts(),
		Backup:    doctor.Run{Schedule: d.config.Get("", "backup.schedule"), Error: errText(d.ran.of(ranBackup).err)},
		Audit:     doctor.Run{Schedule: d.config.Get("", "audit.schedule"), Error: errText(d.ran.of(ranAudit).err)},
		Retention: map[string]string{},
		DiskLow:   d.diskLow(),
	}
	var err error
	if f.Disk, err = d.lookout.space(d.opt.DataDir); err != nil {
		d.log.Warn("looking at the disk", "err", err)
	}
	f.Backup.Last = d.lastBackup(ctx)
	if at := d.lastAudit(ctx, f.Now); f.Now.Sub(at) < 25*time.Hour {
		f.Audit.Last = at
	}
	for _, k := range store.Keys {
		if strings.HasPrefix(k.Name, "retention.") {
			f.Retention[k.Name] = d.config.Get("", k.Name)
		}
	}
	for _, gather := range []func(context.Context, *doctor.Facts) error{d.peopleFacts, d.serverFacts, d.tokenFacts, d.incidentFacts, d.alertFacts, d.groupFacts} {
		if err := gather(ctx, &f); err != nil {
			return nil, err
		}
	}
	if f.Providers, err = d.providerFacts(ctx, r.URL.Query().Get("online") != ""); err != nil {
		return nil, err
	}
	if f.Bots, err = d.botFacts(ctx, r.URL.Query().Get("online") != ""); err != nil {
		return nil, err
	}
	return doctor.Examine(f), nil
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return clipText(store.RedactText(err.Error()))
}

func (d *Daemon) webFacts() doctor.Web {
	w := doctor.Web{Listen: d.addr(), PublicURL: d.layers.Get("public_url"), TLS: d.cert != nil}
	if at, ok := d.public.Addr().(*net.TCPAddr); ok {
		w.Loopback = at.IP.IsLoopback()
	}
	if from := d.door.Load().forwarded.Load(); from != nil {
		w.Forwarded = from.String()
	}
	if d.cert != nil {
		w.Ends = d.cert.ends()
	}
	return w
}

func (d *Daemon) processFacts() doctor.Process {
	p := doctor.Process{
		OpenFiles: openFiles(), MaxFiles: maxFiles(), MemoryLimit: groupLimit(), Resident: processes()[os.Getpid()].resident,
		UnderSystemd: d.opt.Env("INVOCATION_ID") != "" && d.opt.Env("NOTIFY_SOCKET") != "", SocketGroup: d.layers.Get("socket.group"),
	}
	p.Watchdog, _ = systemd.SdWatchdogEnabled(false) // a bad value ended the start
	return p
}

func (d *Daemon) peopleFacts(ctx context.Context, f *doctor.Facts) error {
	users, err := d.db.ListUsers(ctx)
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

func (d *Daemon) serverFacts(ctx context.Context, f *doctor.Facts) error {
	list, err := d.listServers(ctx, store.System, nil)
	if err != nil {
		return err
	}
	views, ok := list.(api.List[api.ServerView])
	if !ok {
		return errors.New("listing servers: it is no list")
	}
	health := d.healths()
	for _, v := range views.Items {
		f.Servers = append(f.Servers, doctor.Server{
			Name: v.Name, State: v.State, Error: clipText(v.LastError), Held: v.Held, LoginLost: len(health[v.Name].LoginLost) > 0, Disabled: v.Server.Disabled,
		})
	}
	return nil
}

func (d *Daemon) tokenFacts(ctx context.Context, f *doctor.Facts) error {
	tokens, err := d.db.ListTokens(ctx, "")
	if err != nil {
		return fmt.Errorf("listing tokens: %w", err)
	}
	names, err := d.directory.Names(ctx)
	if err != nil {
		return err
	}
	for _, t := range expiring(tokens, f.Now) {
		f.Tokens = append(f.Tokens, doctor.Token{Name: t.Name, User: names[t.User], Expires: t.Expires, Cure: rotateCommand(t.Name, names[t.User])})
	}
	return nil
}

func (d *Daemon) incidentFacts(ctx context.Context, f *doctor.Facts) error {
	active, err := d.db.ListIncidents(ctx, store.IncidentQuery{})
	if err != nil {
		return fmt.Errorf("listing incidents: %w", err)
	}
	for _, i := range active {
		f.Incidents = append(f.Incidents, doctor.Incident{ID: i.ID, Kind: i.Kind, Subject: i.Subject, Title: i.Title, Cure: i.Cure})
		// A run before the last restart that failed is known by its incident.
		switch {
		case i.Kind == alert.Backup && f.Backup.Error == "":
			f.Backup.Error = i.Text
		case i.Kind == alert.AuditFailed && f.Audit.Error == "":
			f.Audit.Error = i.Text
		}
	}
	return nil
}

func (d *Daemon) alertFacts(ctx context.Context, f *doctor.Facts) error {
	to := d.config.Get("", "alerts.to")
	if to == "" {
		return nil
	}
	f.Alerts.To = hostOf(to)
	if u, err := url.Parse(to); err == nil {
		f.Alerts.Clear = u.Scheme == "http" && !isLoopback(u.Hostname())
	}
	where, err := d.destination(ctx)
	if err != nil {
		f.Alerts.Error = errText(err)
		return nil
	}
	f.Alerts.Signed = where.signed
	recent, err := d.db.ListIncidents(ctx, store.IncidentQuery{All: true, Limit: 100})
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

// providerFacts asks the providers at once, if it shall.
func (d *Daemon) providerFacts(ctx context.Context, online bool) ([]doctor.Provider, error) {
	list, err := d.allProviders(ctx)
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
			_, err := d.listModelsOf(ctx, p)
			out[i].Error = errText(err)
		})
	}
	asking.Wait()
	return out, nil
}

// ends is when the certificate that is served expires; zero if it can't be
// read.
func (c *certificate) ends() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair == nil || len(c.pair.Certificate) == 0 {
		return time.Time{}
	}
	leaf, err := x509.ParseCertificate(c.pair.Certificate[0])
	if err != nil {
		return time.Time{}
	}
	return leaf.NotAfter
}

// botFacts tries the bots' tokens out again, if it shall.
func (d *Daemon) botFacts(ctx context.Context, online bool) ([]doctor.Bot, error) {
	var out []doctor.Bot
	for name, bot := range d.bots {
		account, err := d.db.GetBot(ctx, store.Surface(name))
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the bot on %s: %w", name, err)
		}
		h := bot.Health()
		b := doctor.Bot{Name: name, State: h.State, Error: h.Error, Disabled: !account.Enabled}
		if online && account.Enabled {
			second := account.Tokens[slack.AppToken]
			if second.IsZero() {
				second = account.Tokens[slack.SigningSecret]
			}
			asking, cancel := context.WithTimeout(ctx, providerPatience)
			_, err := bot.Check(asking, account.Tokens[slack.BotToken], second)
			cancel()
			b.Asked, b.Wrong = true, errText(err)
		}
		out = append(out, b)
	}
	return out, nil
}
