package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/store"
)

const (
	clockOff   = time.Minute // behind the newest record
	certNotice = 14 * 24 * time.Hour
	backupOld  = 48 * time.Hour
	fewFiles   = 1024 // open at once
	littleMem  = 128 << 20
)

// born is before this program existed: an earlier clock was never set.
var born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func versions(f Facts) []api.Finding {
	switch {
	case f.Client == "" || f.Client == f.Version:
		return ok(store.Textf("nizectl and nized are both %s", f.Version))
	case api.Near(f.Client, f.Version):
		return warning(store.Textf("nizectl is %s, nized is %s: they are compatible", f.Client, f.Version), "systemctl restart nized # if the new one is installed")
	}
	return problem(store.Textf("nizectl is %s, nized is %s: too far apart", f.Client, f.Version), "systemctl restart nized # if the new one is installed")
}

func admins(f Facts) []api.Finding {
	socket := []string{"root"}
	if f.UID != 0 {
		socket = append(socket, f.Login)
	}
	if len(f.Admins) == 0 {
		return warning(store.Textf("no admin has used nize yet; admins at the socket: %s", list(socket)), "nizectl users list")
	}
	return ok(store.Textf("admins: %s; at the socket: %s", list(f.Admins), list(socket)))
}

func clock(f Facts) []api.Finding {
	const cure = "timedatectl set-ntp true"
	switch {
	case f.Now.Before(born):
		return problem(store.Textf("the clock says %s", f.Now.UTC().Format(time.DateOnly)), cure)
	case f.ApartText != "":
		return problem(store.Plain(f.ApartText), cure)
	case f.Behind > time.Hour:
		return problem(store.Textf("the clock is %s behind the newest record; tokens and approvals expire by the record's time", span(f.Behind)), cure+" # and if the clock is right: nizectl database clock")
	case f.Behind > clockOff:
		return warning(store.Textf("the clock is %s behind the newest record", span(f.Behind)), cure)
	}
	return ok(store.Textf("the clock is not behind the newest record"))
}

func config(f Facts) []api.Finding {
	if len(f.Config) == 0 {
		return ok(store.Textf("the configuration is loaded"))
	}
	var all []api.Finding
	for _, w := range f.Config {
		all = append(all, warning(store.Plain(w), "nizectl config list")...)
	}
	return all
}

func extensions(f Facts) (all []api.Finding) {
	if len(f.Extensions) == 0 {
		return ok(store.Textf("no extension has problems"))
	}
	for _, w := range f.Extensions {
		all = append(all, problem(store.Plain(w), "nizectl help gateway # what an extension must be")...)
	}
	return all
}

func publicAddress(f Facts) []api.Finding {
	switch {
	case f.Web.PublicURL != "" && !strings.HasPrefix(f.Web.PublicURL, "https://"):
		return problem(store.Textf("public_url %s is not https", f.Web.PublicURL), "nized --public-url https://…")
	case f.Web.PublicURL != "":
		return ok(store.Textf("the public address is %s", f.Web.PublicURL))
	case !f.Web.Loopback && !f.Web.TLS:
		return problem(store.Textf("nized listens on %s in clear text: tokens can be intercepted", f.Web.Listen), "nized --listen 127.0.0.1:19560 --public-url https://…")
	case !f.Web.Loopback:
		return ok(store.Textf("nized listens on %s with TLS; public_url is not set", f.Web.Listen))
	}
	return warning(store.Textf("public_url is not set: links and sign-in work on this machine only"), "nized --public-url https://… # behind a TLS proxy")
}

func proxy(f Facts) []api.Finding {
	if f.Web.Forwarded != "" {
		return warning(store.Textf("requests came through a proxy at %s whose X-Forwarded-* headers are not trusted, so the audit trail has the proxy's address", f.Web.Forwarded),
			fmt.Sprintf(`echo 'http.trusted_proxies = ["%s"]' >> nized.toml # then: kill -HUP`, f.Web.Forwarded))
	}
	return ok(store.Textf("no requests came through an untrusted proxy"))
}

func certificate(f Facts) []api.Finding {
	if !f.Web.TLS {
		return ok(store.Textf("nized has no TLS certificate of its own"))
	}
	const cure = "renew tls.cert and tls.key; nized takes the new files by itself"
	left := f.Web.Ends.Sub(f.Now)
	switch {
	case f.Web.Ends.IsZero():
		return problem(store.Textf("the certificate can't be read"), cure)
	case left <= 0:
		return problem(store.Textf("the certificate has expired on %s", f.Web.Ends.UTC().Format(time.DateOnly)), cure)
	case left < certNotice:
		return warning(store.Textf("the certificate expires in %s", span(left)), cure)
	}
	return ok(store.Textf("the certificate is valid until %s", f.Web.Ends.UTC().Format(time.DateOnly)))
}

func connections(f Facts) []api.Finding {
	c := f.Connections
	switch files := f.Process.MaxFiles; {
	case c.Most == 0:
		return nil
	case files > 0 && c.Most > files/4*3:
		return problem(store.Textf("http.max_connections is %d, but nized may open %d files: too few are left for the control socket and for servers", c.Most, files), "nizectl config explain http.max_connections # unset it where it is set; then: kill -HUP")
	case c.Refused > 0:
		return warning(store.Textf("%d connections were refused since the start because a limit was reached: %d in all, %d unauthenticated, %d of those per address", c.Refused, c.Most, c.Unknown, c.Address), "nizectl status # raise http.max_connections, http.max_unauthenticated or http.max_per_address if these are real users")
	}
	return ok(store.Textf("up to %d connections: %d unauthenticated, %d of those per address, %d per person; %d were closed to make room", c.Most, c.Unknown, c.Address, c.Person, c.Ended))
}

func servers(f Facts) []api.Finding {
	var all []api.Finding
	well := 0
	for _, s := range f.Servers {
		var found []api.Finding
		switch {
		case s.Disabled:
			found = ok(store.Textf("is disabled"))
		case s.State == "login needed":
			found = problem(store.Textf("needs a sign-in"), "nizectl servers login "+s.Name)
		case s.LoginLost:
			found = problem(store.Textf("rejects its credential"), "nizectl credentials set "+s.Name+" NAME")
		case s.State == "unreachable":
			found = problem(because(store.Textf("can't be reached."), s.Error), "nizectl servers test "+s.Name)
		case s.State == "open":
			found = problem(because(store.Textf("failed repeatedly, so calls are refused for a while."), s.Error), "nizectl servers test "+s.Name)
		case s.State == "connecting":
			found = warning(store.Textf("is still connecting"), "nizectl servers test "+s.Name)
		case s.Held == 0:
			well++
		}
		if s.Held > 0 && !s.Disabled {
			found = append(found, warning(count(s.Held, store.Textf("1 tool is held"), store.Textf("%d tools are held", s.Held)), "nizectl servers trust "+s.Name)...)
		}
		for _, one := range found {
			one.Subject = s.Name
			all = append(all, one)
		}
	}
	switch {
	case len(f.Servers) == 0:
		return warning(store.Textf("no server is registered, so there are no tools"), "nizectl servers add toolbox -- nize-toolbox")
	case well > 0:
		all = append(ok(count(well, store.Textf("1 server is healthy"), store.Textf("%d servers are healthy", well))), all...)
	}
	return all
}

func providers(f Facts) []api.Finding {
	var all []api.Finding
	usable := 0
	for _, p := range f.Providers {
		var found []api.Finding
		switch {
		case p.Disabled:
			found = ok(store.Textf("is disabled"))
		case p.Error != "":
			found = problem(store.Textf("does not respond: %s", p.Error), "nizectl providers test "+p.Name)
		case p.Asked:
			usable++
			found = ok(store.Textf("answers"))
		default:
			usable++
			found = ok(store.Textf("is set up; doctor --online tests it"))
		}
		found[0].Subject = p.Name
		all = append(all, found...)
	}
	if usable == 0 && len(all) == 0 {
		return warning(store.Textf("there is no model provider: the offline planner answers, which is not a language model"), "nizectl providers add openai < key.txt")
	}
	return all
}

func tokens(f Facts) []api.Finding {
	if len(f.Tokens) == 0 {
		return ok(store.Textf("no token expires within 7 days"))
	}
	var all []api.Finding
	for _, t := range f.Tokens {
		all = append(all, api.Finding{Subject: t.Name, Level: api.LevelWarning, Text: store.Textf("of %s expires in %s", t.User, span(t.Expires.Sub(f.Now))), Cure: t.Cure})
	}
	return all
}

func budgets(f Facts) []api.Finding {
	var all []api.Finding
	for _, b := range f.Budgets {
		level, text := api.LevelWarning, store.Textf("is nearly used up")
		if b.Spent {
			level, text = api.LevelProblem, store.Textf("is used up")
		}
		all = append(all, api.Finding{Subject: b.Name, Level: level, Text: text, Cure: "nizectl budgets list"})
	}
	if len(all) == 0 {
		return ok(store.Textf("no budget is used up"))
	}
	return all
}

func backup(f Facts) []api.Finding {
	b := f.Backup
	const cure = "nizectl backup nize-copy.db"
	switch {
	case b.Error != "":
		return problem(store.Textf("the last scheduled backup failed: %s", b.Error), cure)
	case b.Schedule == "off":
		return warning(store.Textf("scheduled backups are off"), "nizectl config set backup.schedule @daily")
	case b.Last.IsZero():
		return warning(store.Textf("there is no backup yet; the schedule is %s", b.Schedule), cure)
	case f.Now.Sub(b.Last) > backupOld:
		return warning(store.Textf("the last backup is %s old; the schedule is %s", span(f.Now.Sub(b.Last)), b.Schedule), cure)
	}
	return ok(store.Textf("the last backup is %s old; the schedule is %s", span(f.Now.Sub(b.Last)), b.Schedule))
}

func audit(f Facts) []api.Finding {
	a := f.Audit
	const cure = "nizectl audit verify"
	switch {
	case a.Error != "":
		return problem(store.Textf("the audit trail failed verification: %s", a.Error), cure)
	case a.Schedule == "off":
		return warning(store.Textf("the audit trail is not verified on a schedule"), "nizectl config set audit.schedule @daily")
	case a.Last.IsZero():
		return ok(store.Textf("the audit trail will be verified soon; the schedule is %s", a.Schedule))
	}
	return ok(store.Textf("the audit trail passed verification %s ago; the schedule is %s", span(f.Now.Sub(a.Last)), a.Schedule))
}

func retention(f Facts) []api.Finding {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(f.Retention)) {
		parts = append(parts, strings.TrimPrefix(k, "retention.")+" "+f.Retention[k])
	}
	return ok(store.Textf("kept: %s", strings.Join(parts, ", ")))
}

func bots(f Facts) []api.Finding {
	var all []api.Finding
	for _, b := range f.Bots {
		var found []api.Finding
		switch {
		case b.Disabled:
			found = ok(store.Textf("is stopped"))
		case b.Wrong != "":
			found = problem(store.Textf("its tokens were rejected: %s", b.Wrong), "nizectl bots "+b.Name+" connect < tokens.txt")
		case b.State != "connected":
			found = problem(store.Textf("is %s: %s", b.State, b.Error), "nizectl bots status")
		case b.Error != "":
			found = warning(store.Plain(b.Error), "nizectl bots status")
		case b.Asked:
			found = ok(store.Textf("is connected; its tokens and scopes are right"))
		default:
			found = ok(store.Textf("is connected; doctor --online compares its scopes with the manifest"))
		}
		found[0].Subject = b.Name
		all = append(all, found...)
	}
	if len(all) == 0 {
		return ok(store.Textf("no bot is connected"))
	}
	return all
}

func alerts(f Facts) []api.Finding {
	a := f.Alerts
	switch {
	case a.To == "":
		return warning(store.Textf("alerts have no recipient"), "nizectl config set alerts.to https://… && nizectl alerts test")
	case a.Unclaimed != "":
		return warning(store.Textf("alerts have no recipient: no admin is on %s yet", string(a.Unclaimed)), "nizectl bots "+string(a.Unclaimed)+" claim")
	case a.Error != "":
		return problem(store.Textf("alerts can't be sent: %s", a.Error), "nizectl credentials set alerts WEBHOOK_SECRET")
	case a.Unsent > 0:
		return problem(count(a.Unsent, store.Textf("1 alert did not reach %s: %s", a.To, a.LastWord), store.Textf("%d alerts did not reach %s: %s", a.Unsent, a.To, a.LastWord)), "nizectl alerts test")
	case a.Clear:
		return warning(store.Textf("alerts go to %s in clear text", a.To), "nizectl config set alerts.to https://…")
	case a.Chat:
		return ok(store.Textf("alerts go to %s", a.To))
	case !a.Signed:
		return ok(store.Textf("alerts go to %s, unsigned", a.To))
	}
	return ok(store.Textf("alerts go to %s, signed", a.To))
}

func incidents(f Facts) []api.Finding {
	if f.Active == 0 {
		return ok(store.Textf("no incident is open"))
	}
	return warning(count(f.Active, store.Textf("1 incident is open"), store.Textf("%d incidents are open", f.Active)), "nizectl alerts list")
}

func openFiles(f Facts) []api.Finding {
	p := f.Process
	text := store.Textf("%d of %d files are open", p.OpenFiles, p.MaxFiles)
	const cure = "systemctl edit nized # LimitNOFILE=65536, or ulimit -n 65536 before nized"
	switch {
	case p.MaxFiles == 0:
		return nil
	case p.OpenFiles > p.MaxFiles/10*8:
		return problem(text, cure)
	case p.MaxFiles < fewFiles:
		return warning(store.Textf("%s: few for many clients", text), cure)
	}
	return ok(text)
}

func memory(f Facts) []api.Finding {
	p := f.Process
	if p.MemoryLimit == 0 {
		return ok(store.Textf("uses %s; no memory limit is set", sizeText(p.Resident)))
	}
	text := store.Textf("uses %s of %s", sizeText(p.Resident), sizeText(p.MemoryLimit))
	const cure = "systemctl edit nized # MemoryMax=1G"
	switch {
	case p.Resident > p.MemoryLimit/10*9:
		return problem(text, cure)
	case p.MemoryLimit < littleMem:
		return warning(store.Textf("%s: little for nized and MCP servers", text), cure)
	}
	return ok(text)
}

func watchdog(f Facts) []api.Finding {
	switch {
	case !f.Process.UnderSystemd:
		return ok(store.Textf("not under systemd"))
	case f.Process.Watchdog == 0:
		return warning(store.Textf("systemd's watchdog is off"), "systemctl edit nized # WatchdogSec=30")
	}
	return ok(store.Textf("systemd's watchdog is notified every %s", span(f.Process.Watchdog/2)))
}

func list(names []string) store.Text {
	if len(names) > maxShown {
		return store.Textf("%s and %d more", strings.Join(names[:maxShown], ", "), len(names)-maxShown)
	}
	return store.Plain(strings.Join(names, ", "))
}

func count(n int, one, many store.Text) store.Text {
	if n == 1 {
		return one
	}
	return many
}

// because appends another party's explanation to a text, if there is one.
func because(text store.Text, words string) store.Text {
	if words == "" {
		return text
	}
	return store.Textf("%s %s", text, words)
}

// span returns a duration in its largest unit.
func span(d time.Duration) store.Span {
	switch {
	case d < 2*time.Minute:
		return store.Span(fmt.Sprintf("%ds", int(d.Seconds())))
	case d < 2*time.Hour:
		return store.Span(fmt.Sprintf("%dm", int(d.Minutes())))
	case d < 48*time.Hour:
		return store.Span(fmt.Sprintf("%dh", int(d.Hours())))
	}
	return store.Span(fmt.Sprintf("%dd", int(d.Hours()/24)))
}
