package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
)

const (
	clockOff   = time.Minute // behind the newest record
	certNotice = 14 * 24 * time.Hour
	backupOld  = 48 * time.Hour
	fewFiles   = 1024 // open at once
	littleMem  = 128 << 20
)

// born is before this program: a clock that says so was never set.
var born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func versions(f Facts) []api.Finding {
	switch {
	case f.Client == "" || f.Client == f.Version:
		return ok("nizectl and nized are both " + f.Version)
	case api.Near(f.Client, f.Version):
		return warning(fmt.Sprintf("nizectl is %s, nized is %s: they understand one another", f.Client, f.Version), "systemctl restart nized # if the new one is installed")
	}
	return problem(fmt.Sprintf("nizectl is %s, nized is %s: too far apart", f.Client, f.Version), "systemctl restart nized # if the new one is installed")
}

func admins(f Facts) []api.Finding {
	if len(f.Admins) == 0 {
		return warning(fmt.Sprintf("nobody has been here as an admin yet; root and uid %d are, at the socket", f.UID), "nizectl users list")
	}
	return ok(fmt.Sprintf("admins: %s; at the socket also root and uid %d", list(f.Admins), f.UID))
}

func clock(f Facts) []api.Finding {
	const cure = "timedatectl set-ntp true"
	switch {
	case f.Now.Before(born):
		return problem("the clock says "+f.Now.UTC().Format(time.DateOnly), cure)
	case f.Behind > time.Hour:
		return problem(fmt.Sprintf("the clock is %s behind the newest record; tokens and approvals expire by the record's time", span(f.Behind)), cure)
	case f.Behind > clockOff:
		return warning(fmt.Sprintf("the clock is %s behind the newest record", span(f.Behind)), cure)
	}
	return ok("the clock is not behind the newest record")
}

func config(f Facts) []api.Finding {
	if len(f.Config) == 0 {
		return ok("the configuration is in force as it stands")
	}
	var all []api.Finding
	for _, w := range f.Config {
		all = append(all, warning(w, "nizectl config list")...)
	}
	return all
}

func extensions(f Facts) (all []api.Finding) {
	if len(f.Extensions) == 0 {
		return ok("no extension is wrong")
	}
	for _, w := range f.Extensions {
		all = append(all, problem(w, "nizectl help gateway # what an extension must be")...)
	}
	return all
}

func publicAddress(f Facts) []api.Finding {
	switch {
	case f.Web.PublicURL != "" && !strings.HasPrefix(f.Web.PublicURL, "https://"):
		return problem("public_url "+f.Web.PublicURL+" is not https", "nized --public-url https://…")
	case f.Web.PublicURL != "":
		return ok("the public address is " + f.Web.PublicURL)
	case !f.Web.Loopback && !f.Web.TLS:
		return problem("nized listens on "+f.Web.Listen+" in clear text: tokens can be read on the way", "nized --listen 127.0.0.1:19560 --public-url https://…")
	case !f.Web.Loopback:
		return ok("nized listens on " + f.Web.Listen + " with TLS; public_url is not set")
	}
	return warning("public_url is not set: links and sign-in work on this machine only", "nized --public-url https://… # behind a TLS proxy")
}

func proxy(f Facts) []api.Finding {
	if f.Web.Forwarded != "" {
		return warning("requests came through a proxy at "+f.Web.Forwarded+" whose X-Forwarded-* headers don't count, so the audit trail has the proxy's address",
			fmt.Sprintf(`echo 'http.trusted_proxies = ["%s"]' >> nized.toml # then: kill -HUP`, f.Web.Forwarded))
	}
	return ok("no proxy spoke that is not trusted")
}

func certificate(f Facts) []api.Finding {
	if !f.Web.TLS {
		return ok("nized serves no certificate of its own")
	}
	const cure = "renew tls.cert and tls.key; nized takes the new files by itself"
	left := f.Web.Ends.Sub(f.Now)
	switch {
	case f.Web.Ends.IsZero():
		return problem("the certificate can't be read", cure)
	case left <= 0:
		return problem("the certificate has expired on "+f.Web.Ends.UTC().Format(time.DateOnly), cure)
	case left < certNotice:
		return warning(fmt.Sprintf("the certificate expires in %s", span(left)), cure)
	}
	return ok("the certificate is valid until " + f.Web.Ends.UTC().Format(time.DateOnly))
}

func servers(f Facts) []api.Finding {
	var all []api.Finding
	well := 0
	for _, s := range f.Servers {
		var found []api.Finding
		switch {
		case s.Disabled:
			found = ok("is disabled")
		case s.State == "login needed":
			found = problem("wants somebody to sign in", "nizectl servers login "+s.Name)
		case s.LoginLost:
			found = problem("refuses its credential", "nizectl credentials set "+s.Name+" NAME")
		case s.State == "unreachable":
			found = problem(strings.TrimSpace("can't be reached. "+s.Error), "nizectl servers test "+s.Name)
		case s.State == "open":
			found = problem(strings.TrimSpace("failed so often that calls are refused for a while. "+s.Error), "nizectl servers test "+s.Name)
		case s.State == "connecting":
			found = warning("is still connecting", "nizectl servers test "+s.Name)
		case s.Held == 0:
			well++
		}
		if s.Held > 0 && !s.Disabled {
			found = append(found, warning(fmt.Sprintf("%s held", count(s.Held, "tool is", "tools are")), "nizectl servers trust "+s.Name)...)
		}
		for _, one := range found {
			one.Subject = s.Name
			all = append(all, one)
		}
	}
	switch {
	case len(f.Servers) == 0:
		return warning("there is no server, so there are no tools", "nizectl servers add toolbox -- nize-toolbox")
	case well > 0:
		all = append(ok(count(well, "server is", "servers are")+" well"), all...)
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
			found = ok("is disabled")
		case p.Error != "":
			found = problem("does not answer: "+p.Error, "nizectl providers test "+p.Name)
		case p.Asked:
			usable++
			found = ok("answers")
		default:
			usable++
			found = ok("is set up; doctor --online asks it")
		}
		found[0].Subject = p.Name
		all = append(all, found...)
	}
	if usable == 0 && len(all) == 0 {
		return warning("there is no model provider: the offline planner answers, which is no language model", "nizectl providers add openai < key.txt")
	}
	return all
}

func tokens(f Facts) []api.Finding {
	if len(f.Tokens) == 0 {
		return ok("no token expires within 7 days")
	}
	var all []api.Finding
	for _, t := range f.Tokens {
		all = append(all, api.Finding{Subject: t.Name, Level: api.LevelWarning, Text: fmt.Sprintf("of %s expires in %s", t.User, span(t.Expires.Sub(f.Now))), Cure: t.Cure})
	}
	return all
}

func budgets(f Facts) []api.Finding {
	var all []api.Finding
	for _, b := range f.Budgets {
		level, text := api.LevelWarning, "is nearly used up"
		if b.Spent {
			level, text = api.LevelProblem, "is used up"
		}
		all = append(all, api.Finding{Subject: b.Name, Level: level, Text: text, Cure: "nizectl budgets list"})
	}
	if len(all) == 0 {
		return ok("no budget is used up")
	}
	return all
}

func backup(f Facts) []api.Finding {
	b := f.Backup
	const cure = "nizectl backup nize-copy.db"
	switch {
	case b.Error != "":
		return problem("the last scheduled backup failed: "+b.Error, cure)
	case b.Schedule == "off":
		return warning("no backup is made by itself", "nizectl config set backup.schedule @daily")
	case b.Last.IsZero():
		return warning("there is no backup yet; the schedule is "+b.Schedule, cure)
	case f.Now.Sub(b.Last) > backupOld:
		return warning("the last backup is "+span(f.Now.Sub(b.Last))+" old; the schedule is "+b.Schedule, cure)
	}
	return ok("the last backup is " + span(f.Now.Sub(b.Last)) + " old; the schedule is " + b.Schedule)
}

func audit(f Facts) []api.Finding {
	a := f.Audit
	const cure = "nizectl audit verify"
	switch {
	case a.Error != "":
		return problem("the audit trail does not hold: "+a.Error, cure)
	case a.Schedule == "off":
		return warning("the audit trail is not verified by itself", "nizectl config set audit.schedule @daily")
	case a.Last.IsZero():
		return ok("the audit trail will be verified soon; the schedule is " + a.Schedule)
	}
	return ok("the audit trail held " + span(f.Now.Sub(a.Last)) + " ago; the schedule is " + a.Schedule)
}

func retention(f Facts) []api.Finding {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(f.Retention)) {
		parts = append(parts, strings.TrimPrefix(k, "retention.")+" "+f.Retention[k])
	}
	return ok("kept: " + strings.Join(parts, ", "))
}

func bots(f Facts) []api.Finding {
	var all []api.Finding
	for _, b := range f.Bots {
		var found []api.Finding
		switch {
		case b.Disabled:
			found = ok("is stopped")
		case b.Wrong != "":
			found = problem("its tokens don't do: "+b.Wrong, "nizectl bots "+b.Name+" connect < tokens.txt")
		case b.State != "connected":
			found = problem("is "+b.State+": "+b.Error, "nizectl bots status")
		case b.Error != "":
			found = warning(b.Error, "nizectl bots status")
		case b.Asked:
			found = ok("is connected; its tokens and scopes are right")
		default:
			found = ok("is connected; doctor --online compares its scopes with the manifest")
		}
		found[0].Subject = b.Name
		all = append(all, found...)
	}
	if len(all) == 0 {
		return ok("there is no bot")
	}
	return all
}

func alerts(f Facts) []api.Finding {
	a := f.Alerts
	switch {
	case a.To == "":
		return warning("nobody is told of incidents", "nizectl config set alerts.to https://… && nizectl alerts test")
	case a.Unclaimed != "":
		return warning("nobody is told of incidents: no admin is on "+string(a.Unclaimed)+" yet", "nizectl bots "+string(a.Unclaimed)+" claim")
	case a.Error != "":
		return problem("alerts can't be sent: "+a.Error, "nizectl credentials set alerts WEBHOOK_SECRET")
	case a.Unsent > 0:
		return problem(fmt.Sprintf("%s did not reach %s: %s", count(a.Unsent, "alert", "alerts"), a.To, a.LastWord), "nizectl alerts test")
	case a.Clear:
		return warning("alerts go to "+a.To+" in clear text", "nizectl config set alerts.to https://…")
	case a.Chat:
		return ok("alerts go to " + a.To)
	case !a.Signed:
		return ok("alerts go to " + a.To + ", unsigned")
	}
	return ok("alerts go to " + a.To + ", signed")
}

func incidents(f Facts) []api.Finding {
	if len(f.Incidents) == 0 {
		return ok("there is no incident")
	}
	return warning(count(len(f.Incidents), "incident is", "incidents are")+" open", "nizectl alerts list")
}

func openFiles(f Facts) []api.Finding {
	p := f.Process
	text := fmt.Sprintf("%d of %d files are open", p.OpenFiles, p.MaxFiles)
	const cure = "systemctl edit nized # LimitNOFILE=65536, or ulimit -n 65536 before nized"
	switch {
	case p.MaxFiles == 0:
		return nil
	case p.OpenFiles > p.MaxFiles/10*8:
		return problem(text, cure)
	case p.MaxFiles < fewFiles:
		return warning(text+": few for many clients", cure)
	}
	return ok(text)
}

func memory(f Facts) []api.Finding {
	p := f.Process
	if p.MemoryLimit == 0 {
		return ok("uses " + sizeText(p.Resident) + "; nothing limits it")
	}
	text := fmt.Sprintf("uses %s of %s", sizeText(p.Resident), sizeText(p.MemoryLimit))
	const cure = "systemctl edit nized # MemoryMax=1G"
	switch {
	case p.Resident > p.MemoryLimit/10*9:
		return problem(text, cure)
	case p.MemoryLimit < littleMem:
		return warning(text+": little, with MCP servers beside it", cure)
	}
	return ok(text)
}

func watchdog(f Facts) []api.Finding {
	switch {
	case !f.Process.UnderSystemd:
		return ok("not under systemd")
	case f.Process.Watchdog == 0:
		return warning("systemd does not watch whether nized still works", "systemctl edit nized # WatchdogSec=30")
	}
	return ok("systemd's watchdog is told every " + span(f.Process.Watchdog/2))
}

func list(names []string) string {
	if len(names) > maxShown {
		return strings.Join(names[:maxShown], ", ") + fmt.Sprintf(" and %d more", len(names)-maxShown)
	}
	return strings.Join(names, ", ")
}

func count(n int, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return fmt.Sprintf("%d %s", n, plural)
}

// span is a duration in its one biggest unit.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}
