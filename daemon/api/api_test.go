package api

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestCheckDataDir: state goes into no home that nobody knows, nor below the working
// directory; wherever else it is told to go, no home is needed.
func TestCheckDataDir(t *testing.T) {
	type env map[string]string
	const nobody = 1<<32 - 7 // the password database has no such user
	for name, test := range map[string]struct {
		env env
		uid int
		ok  bool
	}{
		"a home":              {env{"HOME": "/home/a"}, nobody, true},
		"in the database":     {env{}, os.Getuid(), true},
		"nowhere":             {env{}, nobody, false},
		"a relative HOME":     {env{"HOME": "a"}, nobody, false},
		"an empty HOME":       {env{"HOME": ""}, nobody, false},
		"XDG data":            {env{"XDG_DATA_HOME": "/d"}, nobody, true},
		"a relative XDG data": {env{"XDG_DATA_HOME": "d"}, nobody, false},
		"NIZE_DATA_DIR":       {env{"NIZE_DATA_DIR": "d"}, nobody, true},
		"a unit of systemd's": {env{"STATE_DIRECTORY": "/s"}, nobody, true},
		"root as a unit":      {env{"INVOCATION_ID": "1"}, 0, true},
		"another user's unit": {env{"INVOCATION_ID": "1"}, nobody, false},
	} {
		err := checkDataDir(func(name string) string { return test.env[name] }, test.uid)
		if (err == nil) != test.ok || err != nil && !strings.Contains(err.Error(), "--data-dir") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if dir := homeDir(func(string) string { return "" }, os.Getuid()); !filepath.IsAbs(dir) {
		t.Errorf("home is %q", dir)
	}
}

func TestDefaultPlaces(t *testing.T) {
	type env map[string]string
	for name, test := range map[string]struct {
		env          env
		uid          int
		socket, data string
	}{
		"nothing but a home": {env{"HOME": "/home/a"}, 1000, "/home/a/.local/share/nize/nized.sock", "/home/a/.local/share/nize"},
		"a session":          {env{"HOME": "/home/a", "XDG_RUNTIME_DIR": "/run/user/1000"}, 1000, "/run/user/1000/nize/nized.sock", "/home/a/.local/share/nize"},
		"XDG data":           {env{"HOME": "/home/a", "XDG_DATA_HOME": "/d"}, 1000, "/d/nize/nized.sock", "/d/nize"},
		"relative XDG":       {env{"HOME": "/home/a", "XDG_DATA_HOME": "d", "XDG_RUNTIME_DIR": "r"}, 1000, "/home/a/.local/share/nize/nized.sock", "/home/a/.local/share/nize"},
		"NIZE_SOCKET":        {env{"HOME": "/home/a", "NIZE_SOCKET": "/s", "NIZE_DATA_DIR": "/d", "XDG_RUNTIME_DIR": "/run/user/1"}, 1000, "/s", "/d"},
		"NIZE_DATA_DIR":      {env{"HOME": "/home/a", "NIZE_DATA_DIR": "/d", "XDG_RUNTIME_DIR": "/run/user/1"}, 1000, "/d/nized.sock", "/d"},
		"root in a unit":     {env{"INVOCATION_ID": "1"}, 0, "/run/nize/nized.sock", "/var/lib/nize"},
		"root logged in":     {env{"HOME": "/root", "INVOCATION_ID": "1", "XDG_RUNTIME_DIR": "/run/user/0"}, 0, "/run/user/0/nize/nized.sock", "/root/.local/share/nize"},
		"directories of a unit": {env{"INVOCATION_ID": "1", "RUNTIME_DIRECTORY": "/run/x:/run/y", "STATE_DIRECTORY": "/var/lib/x"}, 990,
			"/run/x/nized.sock", "/var/lib/x"},
	} {
		t.Run(name, func(t *testing.T) {
			get := func(k string) string { return test.env[k] }
			if got := defaultSocket(get, test.uid); got != test.socket {
				t.Errorf("socket %s, want %s", got, test.socket)
			}
			if got := defaultDataDir(get, test.uid); got != test.data {
				t.Errorf("data %s, want %s", got, test.data)
			}
		})
	}
}

// TestSockets: where nizectl looks, in order. Variables that nized had and a cron job
// lacks are made up for; a socket that somebody named is the only one.
func TestSockets(t *testing.T) {
	type env map[string]string
	const system, systemData = "/run/nize/nized.sock", "/var/lib/nize/nized.sock"
	const home = "/home/a/.local/share/nize/nized.sock"
	for name, test := range map[string]struct {
		env   env
		uid   int
		notes map[string]string
		want  []string
		named bool
	}{
		"a session":        {env{"HOME": "/home/a", "XDG_RUNTIME_DIR": "/run/user/1000"}, 1000, nil, []string{"/run/user/1000/nize/nized.sock", home, system, systemData}, false},
		"cron":             {env{"HOME": "/home/a"}, 1000, nil, []string{home, "/run/user/1000/nize/nized.sock", system, systemData}, false},
		"cron with a note": {env{"HOME": "/home/a"}, 1000, map[string]string{"/home/a/.local/share/nize": "/tmp/x/nized.sock"}, []string{home, "/run/user/1000/nize/nized.sock", "/tmp/x/nized.sock", system, systemData}, false},
		"a note of the system's": {env{"HOME": "/home/a"}, 1000, map[string]string{"/var/lib/nize": "/srv/s"},
			[]string{home, "/run/user/1000/nize/nized.sock", system, "/srv/s", systemData}, false},
		"another runtime directory": {env{"HOME": "/home/a", "XDG_RUNTIME_DIR": "/tmp/r"}, 1000, nil, []string{"/tmp/r/nize/nized.sock", "/run/user/1000/nize/nized.sock", home, system, systemData}, false},
		"another data directory":    {env{"HOME": "/home/a", "XDG_DATA_HOME": "/d"}, 1000, nil, []string{"/d/nize/nized.sock", "/run/user/1000/nize/nized.sock", home, system, systemData}, false},
		"root's cron, under systemd": {env{"HOME": "/root", "INVOCATION_ID": "1"}, 0, nil,
			[]string{system, "/run/user/0/nize/nized.sock", systemData, "/root/.local/share/nize/nized.sock"}, false},
		"a unit": {env{"HOME": "/home/a", "RUNTIME_DIRECTORY": "/run/x", "STATE_DIRECTORY": "/var/lib/x"}, 990, nil,
			[]string{"/run/x/nized.sock", "/run/user/990/nize/nized.sock", "/var/lib/x/nized.sock", home, system, systemData}, false},
		"su, with root's variables": {env{"HOME": "/root", "XDG_RUNTIME_DIR": "/run/user/0"}, 1000, nil,
			[]string{"/run/user/0/nize/nized.sock", "/run/user/1000/nize/nized.sock", "/root/.local/share/nize/nized.sock", home, system, systemData}, false},
		"su, and a note in the user's own home": {env{"HOME": "/root"}, 1000, map[string]string{"/home/a/.local/share/nize": "/tmp/x/nized.sock"},
			[]string{"/root/.local/share/nize/nized.sock", "/run/user/1000/nize/nized.sock", "/tmp/x/nized.sock", home, system, systemData}, false},
		"cron with HOME=/":       {env{"HOME": "/"}, 1000, nil, []string{"/.local/share/nize/nized.sock", "/run/user/1000/nize/nized.sock", home, system, systemData}, false},
		"HOME with a slash":      {env{"HOME": "/home/a/"}, 1000, nil, []string{home, "/run/user/1000/nize/nized.sock", system, systemData}, false},
		"empty variables":        {env{"HOME": "/home/a", "XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": "", "NIZE_SOCKET": ""}, 1000, nil, []string{home, "/run/user/1000/nize/nized.sock", system, systemData}, false},
		"a user without a home":  {env{"HOME": "/data"}, 4242, nil, []string{"/data/.local/share/nize/nized.sock", "/run/user/4242/nize/nized.sock", system, systemData}, false},
		"a timer of another one": {env{"HOME": "/home/a", "INVOCATION_ID": "1", "RUNTIME_DIRECTORY": "/run/backup"}, 1000, nil, []string{"/run/backup/nized.sock", "/run/user/1000/nize/nized.sock", home, system, systemData}, false},
		"sudo": {env{"HOME": "/root", "SUDO_UID": "1000", "SUDO_USER": "a"}, 0, map[string]string{"/home/a/.local/share/nize": "/tmp/x/nized.sock"},
			[]string{"/root/.local/share/nize/nized.sock", "/run/user/0/nize/nized.sock", system, systemData, "/run/user/1000/nize/nized.sock", "/tmp/x/nized.sock", home}, false},
		"sudo that keeps HOME": {env{"HOME": "/home/a", "SUDO_UID": "1000"}, 0, nil,
			[]string{home, "/run/user/0/nize/nized.sock", "/root/.local/share/nize/nized.sock", system, systemData, "/run/user/1000/nize/nized.sock"}, false},
		"pkexec": {env{"HOME": "/root", "PKEXEC_UID": "1001"}, 0, nil,
			[]string{"/root/.local/share/nize/nized.sock", "/run/user/0/nize/nized.sock", system, systemData, "/run/user/1001/nize/nized.sock", "/home/b/.local/share/nize/nized.sock"}, false},
		"sudo to another user":        {env{"HOME": "/home/b", "SUDO_UID": "1000"}, 1001, nil, []string{"/home/b/.local/share/nize/nized.sock", "/run/user/1001/nize/nized.sock", system, systemData}, false},
		"sudo of root":                {env{"HOME": "/root", "SUDO_UID": "0"}, 0, nil, []string{"/root/.local/share/nize/nized.sock", "/run/user/0/nize/nized.sock", system, systemData}, false},
		"a SUDO_UID that is no id":    {env{"HOME": "/root", "SUDO_UID": "../1000"}, 0, nil, []string{"/root/.local/share/nize/nized.sock", "/run/user/0/nize/nized.sock", system, systemData}, false},
		"sudo, and NIZE_SOCKET":       {env{"HOME": "/root", "SUDO_UID": "1000", "NIZE_SOCKET": "/s"}, 0, nil, []string{"/s"}, true},
		"NIZE_SOCKET":                 {env{"HOME": "/home/a", "NIZE_SOCKET": "/s", "NIZE_DATA_DIR": "/d"}, 1000, map[string]string{"/d": "/n"}, []string{"/s"}, true},
		"NIZE_DATA_DIR":               {env{"HOME": "/home/a", "NIZE_DATA_DIR": "/d", "XDG_RUNTIME_DIR": "/run/user/1000"}, 1000, nil, []string{"/d/nized.sock"}, true},
		"NIZE_DATA_DIR with its note": {env{"HOME": "/home/a", "NIZE_DATA_DIR": "/d"}, 1000, map[string]string{"/d": "/n"}, []string{"/d/nized.sock", "/n"}, true},
	} {
		homes := map[string]string{"1000": "/home/a", "1001": "/home/b", "0": "/root", "990": "/home/a"}
		got, named := sockets(func(k string) string { return test.env[k] }, test.uid, func(dir string) string { return test.notes[dir] }, func(uid string) string { return homes[uid] })
		if !slices.Equal(got, test.want) || named != test.named {
			t.Errorf("%s: %q, named %v; want %q", name, got, named, test.want)
		}
	}
}

// TestSocketNote: a note is one absolute path, or says nothing.
func TestSocketNote(t *testing.T) {
	for text, want := range map[string]string{"/run/x/nized.sock\n": "/run/x/nized.sock", "": "", "nized.sock": "", "/a\n/b": "", "/a\x00b": "", "/" + strings.Repeat("a", 8<<10): "/" + strings.Repeat("a", maxNote-1)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, SocketNote), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readSocketNote(dir); got != want {
			t.Errorf("%.40q: %.40q", text, got)
		}
	}
	if got := readSocketNote(t.TempDir()); got != "" {
		t.Errorf("no note: %q", got)
	}
}

// TestHomeWithoutHOME: services are started without it.
func TestHomeWithoutHOME(t *testing.T) {
	u, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	none := func(string) string { return "" }
	if got := defaultDataDir(none, os.Getuid()); got != filepath.Join(u.HomeDir, ".local/share/nize") {
		t.Errorf("data %s", got)
	}
	if got := defaultDataDir(none, 1<<30); got != "/.local/share/nize" {
		t.Errorf("data of nobody %s", got)
	}
}

// TestHome: a home comes from an absolute HOME or from the password database, and a
// user without either reads what to set.
func TestHome(t *testing.T) {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		t.Skip(err)
	}
	const nobody = 1<<32 - 7 // the password database has no such user
	for name, test := range map[string]struct {
		home string
		uid  int
		want string // "" is refused
	}{
		"HOME":                    {"/home/a", os.Getuid(), "/home/a"},
		"HOME of nobody":          {"/home/a", nobody, "/home/a"},
		"no HOME":                 {"", os.Getuid(), u.HomeDir},
		"a relative HOME":         {"a", os.Getuid(), u.HomeDir},
		"nothing":                 {"", nobody, ""},
		"a relative HOME, nobody": {"a", nobody, ""},
	} {
		got, err := home(func(string) string { return test.home }, test.uid)
		if got != test.want || (err == nil) != (test.want != "") || err != nil && !strings.HasSuffix(err.Error(), ": set HOME") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got := LoginName(os.Getuid()); got != u.Username {
		t.Errorf("this user is called %q, not %q", got, u.Username)
	}
	if got := LoginName(nobody); got != "user 4294967289" {
		t.Errorf("an unknown user is called %q", got)
	}
}
