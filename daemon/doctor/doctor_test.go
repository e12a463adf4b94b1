package doctor

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/daemon/api"
	"nize/store"
)

var update = flag.Bool("update", false, "write the golden files")

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// well is a daemon with which all is well.
func well() Facts {
	file := func(path string, mode fs.FileMode) File {
		return File{Path: path, There: true, Mode: mode, UID: 7, Owner: "nize"}
	}
	return Facts{
		Now: at, Daemon: true, UID: 7, Login: "nize", Version: "0.1.0", Client: "0.1.0", KeyID: "4f1be26ae8a662f5", WasClean: true, Admins: []string{"ada"},
		Files: Files{Dir: file("/var/lib/nize", fs.ModeDir|0o700), Database: file("/var/lib/nize/nize.db", 0o600), Key: file("/var/lib/nize/nize.key", 0o600), Socket: file("/run/nize/nized.sock", fs.ModeSocket|0o600)},
		Disk:  Space{50 << 30, 100 << 30}, DiskLow: 0.1, Process: Process{OpenFiles: 20, MaxFiles: 65536, Resident: 40 << 20, MemoryLimit: 1 << 30, UnderSystemd: true, Watchdog: 30 * time.Second},
		Web: Web{Listen: "127.0.0.1:19560", Loopback: true, PublicURL: "https://nize.example.com"}, Connections: Connections{Most: 4096, Unknown: 512, Address: 128, Person: 1024, Ended: 3},
		Servers: []Server{{Name: "toolbox", State: "ready"}, {Name: "files", State: "idle"}}, Providers: []Provider{{Name: "openai"}},
		Backup: Run{Schedule: "@daily", Last: at.Add(-5 * time.Hour)}, Audit: Run{Schedule: "@daily", Last: at.Add(-5 * time.Hour)},
		Retention: map[string]string{"retention.audit": "400d", "retention.output": "30d"},
		Alerts:    Alerts{To: "alerts.example.com", Signed: true}, Identity: &Identity{Name: "Acme", Secure: true},
	}
}

// ill is one with which as much as possible is not.
func ill() Facts {
	f := well()
	f.Client, f.KeyID, f.WasClean, f.Admins, f.Behind = "0.4.0", "", false, nil, 2*time.Hour
	f.Files.Dir.Mode, f.Files.Database.Mode, f.Files.Key.Mode, f.Files.Socket.Mode = fs.ModeDir|0o755, 0o644, 0o640, fs.ModeSocket|0o666
	f.Disk = Space{10 << 20, 100 << 30}
	f.Extensions = []string{"extensions/x/extension.json: timout: there is no such field; did you mean timeout?"}
	f.Config = []string{"the configuration was not reloaded: nized.toml:3: unknown key approvals.mod; did you mean approvals.mode?"}
	f.Web = Web{Listen: "0.0.0.0:19560", TLS: true, Ends: at.Add(-time.Hour), Forwarded: "10.0.0.7"}
	f.Connections.Most = 900
	f.Servers = []Server{
		{Name: "box", State: "unreachable", Error: "it ended with exit status 3"}, {Name: "far", State: "unreachable", LoginLost: true}, {Name: "flaky", State: "open"},
		{Name: "new", State: "connecting"}, {Name: "old", State: "disabled", Disabled: true, Held: 2}, {Name: "pulled", State: "ready", Held: 1},
	}
	f.Providers = []Provider{{Name: "groq", Disabled: true}, {Name: "openai", Asked: true, Error: "401 Unauthorized"}, {Name: "ollama", Asked: true}}
	f.Tokens = []Token{{Name: "laptop", User: "mia", Expires: at.Add(80 * time.Hour), Cure: "nizectl tokens rotate laptop --user mia"}}
	f.Active = 2
	f.Budgets = []Budget{{Name: "daily budget of mia", Spent: true}, {Name: "daily budget of team:ops"}}
	f.Backup.Error, f.Audit.Error = "no space left for the database", "event 7 was changed"
	f.Groups = []Group{{Name: "dev", Shut: true}, {Name: "late", Looked: at.Add(-4 * time.Minute), Error: "no answer"}, {Name: "live", Looked: at.Add(-2 * time.Minute)},
		{Name: "ops", Shut: true, Looked: at.Add(-time.Hour), Error: "missing_scope"}}
	f.Alerts.Unsent, f.Alerts.LastWord = 2, "the webhook answered 500 Internal Server Error"
	f.Identity = &Identity{Name: "Acme", Steps: []api.OIDCStep{
		{Name: "discovery", OK: true}, {Name: "keys", Text: "the provider publishes no key that signs", Cure: "ask whoever administers the provider"},
		{Name: "clock", Text: "the clock of nize is 3m0s apart from the provider's", Cure: "set the clock of this machine"}, {Name: "redirect address", OK: true},
	}}
	f.Process = Process{OpenFiles: 900, MaxFiles: 1000, Resident: 95 << 20, MemoryLimit: 100 << 20, UnderSystemd: true}
	return f
}

func offline(f Facts) Facts { f.Daemon = false; return f }

func TestGolden(t *testing.T) {
	unsafe := well()
	unsafe.Web, unsafe.Client, unsafe.Behind, unsafe.KeyFromEnv = Web{Listen: "0.0.0.0:19560"}, "0.2.0", 10*time.Minute, true
	unsafe.Backup, unsafe.Audit, unsafe.Servers, unsafe.Providers = Run{Schedule: "off"}, Run{Schedule: "off"}, nil, nil
	unsafe.Identity = &Identity{Name: "Acme", RedirectURI: "http://nize.example.com/login/oidc"}
	unsafe.Connections = Connections{Most: 128, Unknown: 16, Address: 8, Person: 32, Ended: 40, Refused: 2}
	unsafe.Alerts, unsafe.Disk = Alerts{To: "alerts.example.com", Clear: true}, Space{9 << 30, 100 << 30}
	unsafe.Process = Process{OpenFiles: 20, MaxFiles: 256, Resident: 40 << 20, MemoryLimit: 64 << 20, SocketGroup: "ops"}
	fresh := well()
	fresh.Identity = &Identity{Name: "Acme", Secure: true, Steps: []api.OIDCStep{{Name: "discovery", OK: true}}}
	fresh.Web = Web{Listen: "127.0.0.1:19560", Loopback: true, TLS: true, Ends: at.Add(5 * 24 * time.Hour)}
	fresh.Backup, fresh.Audit, fresh.Alerts, fresh.Process = Run{Schedule: "@daily"}, Run{Schedule: "@daily"}, Alerts{}, Process{}
	fresh.Files.Wide = []string{"notes.txt"}
	gone := well()
	gone.Files.Database, gone.Files.Key, gone.Files.Socket = File{Path: "/var/lib/nize/nize.db"}, File{Path: "/var/lib/nize/nize.key"}, File{Path: "/run/nize/nized.sock"}
	fresh.Active, fresh.Incidents = 1, []Incident{{Kind: "migration", Subject: "schema 9", Title: store.Textf("The upgrade of the database to schema 9 failed"), Cure: "df -h /var/lib/nize"}}
	gone.Alerts.Error, gone.Backup.Last = "invalid secret of the webhook", at.Add(-100*time.Hour)
	checking := well()
	checking.WasClean, checking.Unchecked = false, true
	broken, damaged := well(), well()
	broken.Broken = "the database cannot be written any more, restart nized: sync /var/lib/nize/nize.db: input/output error"
	damaged.Broken, damaged.Damaged = "the database is damaged, so nothing more is stored: damaged record: page 7 is referenced twice", true
	surplus := well()
	surplus.Surplus = Surplus{Size: 90 << 30, Free: 50 << 30, Needs: surplus.Disk.Free + 1}
	served, far, silent := well(), well(), ill()
	for f, trip := range map[*Facts]time.Duration{&served: 312 * time.Microsecond, &far: 21 * time.Millisecond, &silent: 0} {
		f.Files.Database, f.Files.Server, f.Files.Version, f.Files.RoundTrip = File{Path: "/var/lib/nize/nize.db"}, "PostgreSQL db.internal/nize", "17.6", trip
	}
	silent.Files.Silent = true
	nokey := offline(well())
	nokey.Files.Key, nokey.Files.Dir.UID, gone.Files.Dir.UID, gone.Files.Dir.Owner = File{Path: "/var/lib/nize/nize.key"}, 8, 8, "ada"
	fresh.UID, fresh.Login = 0, "root"
	closed := offline(Facts{Files: Files{Dir: File{Path: "/var/lib/nize", Error: "permission denied"}, Socket: File{Path: "/run/nize/nized.sock", Error: "permission denied"}}})
	for name, f := range map[string]Facts{
		"well": well(), "ill": ill(), "checking": checking, "broken": broken, "damaged": damaged, "surplus": surplus, "unsafe": unsafe, "fresh": fresh, "gone": gone, "served": served, "far": far, "silent": silent,
		"offline": offline(ill()), "offline-nokey": nokey, "offline-closed": closed, "offline-nothing": {Files: Files{Dir: File{Path: "/d"}, Database: File{Path: "/d/nize.db"}, Key: File{Path: "/d/nize.key"}, Socket: File{Path: "/d/nized.sock"}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Examine(f)
			var b strings.Builder
			for _, x := range d.Findings {
				fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n\t\t\t%s\n", x.Level, x.Check, x.Subject, x.Text, x.Cure)
			}
			fmt.Fprintf(&b, "ok %t, %d problems, %d warnings\n", d.OK, d.Problems, d.Warnings)
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(b.String(), string(want)); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
			for _, x := range d.Findings {
				if (x.Level == api.LevelOK) != (x.Cure == "") {
					t.Errorf("%s: a finding that is not ok has a cure, and no other: %+v", x.Check, x)
				}
			}
		})
	}
}

// Every rule says something about a daemon, and its name is its own.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules {
		if seen[r.name] {
			t.Errorf("two rules are called %s", r.name)
		}
		seen[r.name] = true
		if len(r.check(well())) == 0 {
			t.Errorf("%s says nothing where all is well", r.name)
		}
	}
	if d := Examine(well()); !d.OK || d.Warnings > 0 {
		t.Errorf("a healthy daemon: %+v", d)
	}
}

// What is on a real disk is seen as it is, and nothing is changed.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"nize.db": 0o600, "nize.key": 0o644, "wide": 0o604, "narrow": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	socket := filepath.Join(dir, "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f := Look(dir, socket)
	if f.Disk.Total == 0 || f.Disk.Free > f.Disk.Total || f.Files.Socket.Mode&fs.ModeSocket == 0 || f.Files.Dir.UID != os.Getuid() || f.Login != api.LoginName(os.Getuid()) || f.Files.Dir.Owner != f.Login {
		t.Errorf("%+v", f)
	}
	if diff := cmp.Diff(f.Files.Wide, []string{"wide"}); diff != "" {
		t.Errorf("open to others (-got +want):\n%s", diff)
	}
	d := Examine(f)
	levels := map[string]api.Level{}
	for _, x := range d.Findings {
		levels[x.Check] = x.Level
	}
	want := map[string]api.Level{"daemon": api.LevelProblem, "data": api.LevelWarning, "database": api.LevelOK, "key": api.LevelProblem, "disk": levels["disk"], "socket": api.LevelWarning}
	if diff := cmp.Diff(levels, want); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
	if b, err := json.Marshal(d); err != nil || !strings.Contains(string(b), `"findings":[`) {
		t.Errorf("%s, %v", b, err)
	}
	if f := Look(filepath.Join(dir, "none"), filepath.Join(dir, "none", "s")); f.Files.Dir.There || f.Files.Dir.Error != "" {
		t.Errorf("a directory that is not there: %+v", f.Files.Dir)
	}
}
