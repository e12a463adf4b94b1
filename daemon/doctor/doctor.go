// Package doctor knows what a healthy nize looks like: small rules over [Facts],
// each of which says ok, warning or problem, and the exact command that cures
// it.
//
// Who gathers the facts is apart from who judges them: a running nized knows
// all; where none runs, nizectl sees the files alone ([Look]), and the rules
// that need more say nothing. To add a rule: a function, a row in rules, a case
// in the golden files.
package doctor

import (
	"time"

	"nize/daemon/api"
	"nize/store"
)

// Facts are what the rules judge. A zero field is a fact that nobody knows or
// that does not apply, unless its comment says otherwise.
type Facts struct {
	Now    time.Time
	Daemon bool   // a daemon runs and gathered these
	UID    int    // of who gathered them
	Login  string // the name of UID

	Files   Files
	Disk    Space
	DiskLow float64 // which part of it must be free, 0 to 1 (alerts.disk)
	Process Process

	Version, Client string // of nized and of the nizectl that asks

	KeyID      string
	KeyFromEnv bool
	WasClean   bool // the last daemon closed its database
	Behind     time.Duration
	Apart      time.Duration // ahead of the database's clock, on a server
	ApartText  string        // why that keeps this nized from taking over, or ""
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
}

// Wrong is what nized says itself, one sentence each.
type Wrong struct {
	Config     []string // of its configuration
	Extensions []string
}

// Bot is an account on a chat platform. Wrong is what its tokens were refused
// for, where the platform was asked.
type Bot struct {
	Name, State, Error string
	Disabled           bool
	Asked              bool
	Wrong              string
}

// Web is how the HTTP listener is met.
type Web struct {
	Listen    string
	Loopback  bool // it listens there alone
	PublicURL string
	TLS       bool
	Ends      time.Time // of the certificate
	Forwarded string    // address of a proxy whose X-Forwarded-* headers were not believed
}

// Connections are the limits of the HTTP listener, and what they did since the start.
type Connections struct {
	Most, Unknown, Address, Person int // Unknown and Address are those of strangers
	Ended, Refused                 int
}

// Process is what the system allows the daemon.
type Process struct {
	OpenFiles, MaxFiles   int
	Resident, MemoryLimit uint64 // bytes; the limit of the control group that it runs in
	UnderSystemd          bool
	Watchdog              time.Duration // of the unit; 0 is none
	SocketGroup           string        // whose members may use the socket
}

// Server is one MCP server.
type Server struct {
	Name, State, Error string
	Held               int
	LoginLost          bool
	Disabled           bool
}

// Provider is one of models. Error is what asking it gave.
type Provider struct {
	Name     string
	Disabled bool
	Asked    bool
	Error    string
}

// Token is one that expires soon.
type Token struct {
	Name, User, Cure string
	Expires          time.Time
}

// Open is what people have been told of, and goes on.
type Open struct {
	Incidents []Incident
	Budgets   []Budget
}

// Budget is one that is used up, or nearly.
type Budget struct {
	Name  string
	Spent bool
}

// Incident is one that is active.
type Incident struct {
	ID, Kind, Subject, Cure string
	Title                   store.Text
}

// Run is work that a schedule does.
type Run struct {
	Schedule string
	Last     time.Time // that was well; zero: none is known
	Error    string    // of the last one
}

// Alerts is where operators are told.
type Alerts struct {
	To   string // "" is nobody
	Chat bool   // in a chat
	// Unclaimed is the chat platform whose admins should be told, where none of
	// them is there.
	Unclaimed store.Surface
	Clear     bool // over plain HTTP to another machine
	Signed    bool
	Error     string // why the destination cannot be used
	Unsent    int    // messages that wait for another try, or were given up
	LastWord  string // of the destination, about one of them
}

// rules is every check, in the order in which they are told.
var rules = []struct {
	name    string
	offline bool // it judges files alone
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

// Examine applies every rule that the facts allow.
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

// one, and the words for its level.
func one(level api.Level, text store.Text, cure string) []api.Finding {
	return []api.Finding{{Level: level, Text: text, Cure: cure}}
}

func ok(text store.Text) []api.Finding                   { return one(api.LevelOK, text, "") }
func warning(text store.Text, cure string) []api.Finding { return one(api.LevelWarning, text, cure) }
func problem(text store.Text, cure string) []api.Finding { return one(api.LevelProblem, text, cure) }
