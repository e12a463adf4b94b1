// Package doctor evaluates rules over facts about a nize installation: each returns ok,
// warning or problem, with a fix.
//
// The fix is an exact command. Collecting the facts is separate from evaluating them: a
// running nized provides all [Facts]; without one, nizectl reads only the files ([Look]),
// and rules that need more return nothing. To add a rule, add a function, a row in rules,
// and a case in the golden files.
package doctor

import (
	"time"

	"nize/daemon/api"
	"nize/store"
)

// Facts are the input of the rules. A zero field is unknown or does not apply, unless its
// comment says otherwise.
type Facts struct {
	Now    time.Time
	Daemon bool   // collected by a running daemon
	UID    int    // of the process that collected them
	Login  string // user name of UID

	Files   Files
	Disk    Space
	Surplus Surplus
	DiskLow float64 // fraction of it that must be free, 0 to 1 (alerts.disk)
	Process Process

	Version, Client string // of nized, and of the nizectl that runs doctor

	KeyID      string
	KeyFromEnv bool
	WasClean   bool   // the last daemon closed its database
	Unchecked  bool   // it didn't, and a part of the database is still being checked
	Broken     string // why nothing can be stored until a restart, or ""
	Damaged    bool   // and that is because the database is damaged
	Behind     time.Duration
	Apart      time.Duration // how far this clock is ahead of the database server's
	ApartText  string        // why that prevents this node from taking over, or ""
	Admins     []string
	Wrong

	Web         Web
	Connections Connections
	Servers     []Server
	Providers   []Provider
	Tokens      []Token
	Open
	Backup    Run
	Audit     Run
	Retention map[string]string // by setting
	Alerts    Alerts
	Bots      []Bot
	Groups    []Group
	Identity  *Identity // nil without an identity provider
}

// Surplus is the free part of a database file of which more than half is free, and the disk
// space that compacting it needs; zero otherwise. All are in bytes.
type Surplus struct{ Size, Free, Needs uint64 }

// Wrong lists nized's own warnings, one sentence each.
type Wrong struct {
	Config     []string // about its configuration
	Extensions []string
}

// Bot is an account on a chat platform. Wrong is why its tokens were rejected, if the
// platform was queried.
type Bot struct {
	Name, State, Error string
	Disabled           bool
	Asked              bool
	Wrong              string
}

// Web describes how the HTTP listener can be reached.
type Web struct {
	Listen    string
	Loopback  bool // it listens only on loopback
	PublicURL string
	TLS       bool
	Ends      time.Time // of the certificate
	Forwarded string    // address of a proxy whose X-Forwarded-* headers were not trusted
}

// Connections are the limits of the HTTP listener, and their effects since the start.
type Connections struct {
	Most, Unknown, Address, Person int // Unknown and Address apply to unauthenticated clients
	Ended, Refused                 int
}

// Process is the system's limits for the daemon.
type Process struct {
	OpenFiles, MaxFiles   int
	Resident, MemoryLimit uint64 // bytes; the limit of its control group
	UnderSystemd          bool
	Watchdog              time.Duration // of the unit; 0 if none
	SocketGroup           string        // group whose members may use the socket
}

// Server is one MCP server.
type Server struct {
	Name, State, Error string
	Held               int
	LoginLost          bool
	Disabled           bool
}

// Provider is a model provider. Error is the result of querying it.
type Provider struct {
	Name     string
	Disabled bool
	Asked    bool
	Error    string
}

// Token is a token that expires soon.
type Token struct {
	Name, User, Cure string
	Expires          time.Time
}

// Open is a problem that people were notified of and that persists.
type Open struct {
	Active    int        // incidents of all kinds
	Incidents []Incident // those of the database, backups and the audit trail
	Budgets   []Budget
}

// Budget is a budget that is used up, or nearly.
type Budget struct {
	Name  string
	Spent bool
}

// Incident is an active incident.
type Incident struct {
	ID, Kind, Subject, Cure string
	Title                   store.Text
}

// Run is scheduled work.
type Run struct {
	Schedule string
	Last     time.Time // last success; zero if none is known
	Error    string    // of the last run
}

// Alerts is the destination of alerts.
type Alerts struct {
	To   string // "" if there is none
	Chat bool   // in a chat
	// Unclaimed is the chat platform whose admins should be notified, if it has none.
	Unclaimed store.Surface
	Clear     bool // over plain HTTP to another machine
	Signed    bool
	Error     string // why the destination cannot be used
	Unsent    int    // messages that are being retried, or were given up
	LastWord  string // the destination's response to one of them
}

// rules are all checks, in the order of the output.
var rules = []struct {
	name    string
	offline bool // it needs only files
	check   func(Facts) []api.Finding
}{
	{"daemon", true, daemonRuns},
	{"version", false, versions},
	{"admins", false, admins},
	{"data", true, dataDir},
	{"database", true, database},
	{"key", true, key},
	{"disk", true, disk},
	{"socket", true, socket},
	{"clock", false, clock},
	{"config", false, config},
	{"extensions", false, extensions},
	{"address", false, publicAddress},
	{"proxy", false, proxy},
	{"tls", false, certificate},
	{"connections", false, connections},
	{"servers", false, servers},
	{"providers", false, providers},
	{"bots", false, bots},
	{"groups", false, groups},
	{"identity", false, identityProvider},
	{"tokens", false, tokens},
	{"budgets", false, budgets},
	{"backup", false, backup},
	{"audit", false, audit},
	{"retention", false, retention},
	{"alerts", false, alerts},
	{"incidents", false, incidents},
	{"files", false, openFiles},
	{"memory", false, memory},
	{"systemd", false, watchdog},
}

// Examine applies every rule for which there are facts.
func Examine(f Facts) api.Diagnosis {
	var all []api.Finding
	for _, r := range rules {
		if (!f.Daemon || f.Files.Silent) && !r.offline {
			continue
		}
		for _, finding := range r.check(f) {
			finding.Check = r.name
			all = append(all, finding)
		}
	}
	return api.Diagnose(f.Daemon, all)
}

// one returns a single finding.
func one(level api.Level, text store.Text, cure string) []api.Finding {
	return []api.Finding{{Level: level, Text: text, Cure: cure}}
}

func ok(text store.Text) []api.Finding                   { return one(api.LevelOK, text, "") }
func warning(text store.Text, cure string) []api.Finding { return one(api.LevelWarning, text, cure) }
func problem(text store.Text, cure string) []api.Finding { return one(api.LevelProblem, text, cure) }
