package commandline

import (
	"encoding/json"
	"testing"

	"nize/store"
)

// A standing answer for a repository covers steps in it that don't leave it, and nothing
// of which that can't be told.
func TestAllowsInARepository(t *testing.T) {
	here := store.Ask{Repository: "/srv/web", Host: "build-7", Cwd: "/srv/web/cmd"}
	for name, c := range map[string]struct {
		ask   func(*store.Ask)
		line  string
		more  map[string]any
		grant string // the repository; "" is /srv/web
		want  bool
	}{
		"a command":                       {line: "go test ./...", want: true},
		"the program alone":               {line: "go", want: true},
		"a path in it":                    {line: "go test /srv/web/x ./y -run=a/b", want: true},
		"its top":                         {line: "go list /srv/web", ask: func(a *store.Ask) { a.Cwd = "/srv/web" }, want: true},
		"words that are no paths":         {line: "go doc a:b c=d e,f HEAD~1 a..b v1.2", want: true},
		"a description":                   {line: "go test", more: map[string]any{"description": "test", "timeout": 5000, "run_in_background": true}, want: true},
		"the same directory":              {line: "go test", more: map[string]any{"workdir": "/srv/web/cmd"}, want: true},
		"another repository":              {line: "go test", ask: func(a *store.Ask) { a.Repository, a.Cwd = "/srv/api", "/srv/api" }},
		"one that begins like it":         {line: "go test", ask: func(a *store.Ask) { a.Repository, a.Cwd = "/srv/web2", "/srv/web2" }},
		"a worktree of it":                {line: "go test", ask: func(a *store.Ask) { a.Repository, a.Cwd = "/srv/web/.worktrees/a", "/srv/web/.worktrees/a" }},
		"no repository":                   {line: "go test", ask: func(a *store.Ask) { a.Repository = "" }},
		"another machine":                 {line: "go test", ask: func(a *store.Ask) { a.Host = "laptop" }},
		"no machine":                      {line: "go test", ask: func(a *store.Ask) { a.Host = "" }},
		"a directory outside":             {line: "go test", ask: func(a *store.Ask) { a.Cwd = "/srv/api" }},
		"a directory that begins like it": {line: "go test", ask: func(a *store.Ask) { a.Cwd = "/srv/web2" }},
		"a directory that climbs out":     {line: "go test", ask: func(a *store.Ask) { a.Cwd = "/srv/web/../api" }},
		"no directory":                    {line: "go test", ask: func(a *store.Ask) { a.Cwd = "" }},
		"a relative directory":            {line: "go test", ask: func(a *store.Ask) { a.Cwd = "web" }},
		"another directory to start in":   {line: "go test", more: map[string]any{"workdir": "/srv/api"}},
		"a relative one":                  {line: "go test", more: map[string]any{"dir_path": "x"}},
		"an argument that nobody knows":   {line: "go test", more: map[string]any{"where": "x"}},
		"a list of directories":           {line: "go test", more: map[string]any{"cwd": []any{"/srv/web/cmd"}}},
		"cd before":                       {line: "cd x && go test"},
		"a shell":                         {line: "(cd /tmp; go test)"},
		"a variable":                      {line: "go test $HOME"},
		"a path outside":                  {line: "go test /etc/x"},
		"a path that begins like it":      {line: "go test /srv/web2/x"},
		"a path that climbs out":          {line: "go test ../../api"},
		"a path that climbs out late":     {line: "go test x/../../../api"},
		"one that is quoted":              {line: "go test '..'/../api"},
		"one that is escaped":             {line: `go test .\./x`},
		"from the top":                    {line: "go test /srv/web/../api"},
		"home":                            {line: "go test ~"},
		"somebody's home":                 {line: "go test ~root/x"},
		"home in an option":               {line: "go test --dir=~"},
		"an option with a path":           {line: "go test -C /tmp"},
		"one that is joined":              {line: "go test -C/tmp"},
		"one with =":                      {line: "go test --modfile=/tmp/x"},
		"one with a colon":                {line: "go test a:/tmp"},
		"one with a comma":                {line: "go test -Wl,/tmp/x"},
		"a file to read":                  {line: "go test '@/tmp/x'"},
		"an address":                      {line: "go get https://example.com/x"},
		"a drive":                         {line: "go test C:/x"},
		"a server":                        {line: `go test '\\\\server\x'`},
		"a path in a text":                {line: "go test -run 'a /etc/x'"},
		"another program":                 {line: "gofmt x"},
		"the root":                        {line: "go test", grant: "/", ask: func(a *store.Ask) { a.Repository = "/" }},
		"a name":                          {line: "go test", grant: "github.com/acme/web", ask: func(a *store.Ask) { a.Repository = "github.com/acme/web" }, want: true},
		"a name, and a path":              {line: "go test /srv/web", grant: "github.com/acme/web", ask: func(a *store.Ask) { a.Repository = "github.com/acme/web" }},
	} {
		ask := here
		if c.ask != nil {
			c.ask(&ask)
		}
		gr := store.Grant{Pattern: json.RawMessage(`{"command":"go*"}`), Repository: "/srv/web", Host: "build-7"}
		if c.grant != "" {
			gr.Repository = c.grant
		}
		if got := Allows(gr, argsWith(t, c.line, c.more), &ask); got != c.want {
			t.Errorf("%s: %q: %t", name, c.line, got)
		}
	}
	args := argsWith(t, "go test", nil)
	if Allows(store.Grant{Repository: "/srv/web", Host: "build-7"}, args, nil) {
		t.Error("a call of nize's own is covered")
	}
	if ask := here; Allows(store.Grant{Repository: "/srv/web", Host: "build-7"}, json.RawMessage(`{"file_path":"/srv/web/x"}`), &ask) {
		t.Error("a step without a command line is covered")
	}
	for _, line := range []string{"git -C x status", "git status -C x", "cd x", "pushd x", "sudo git status", "env git status", "sh x.sh", "ssh host", "curl x", "docker ps", "xargs ls"} {
		for _, pattern := range []string{`{"command":"*"}`, ""} {
			gr := store.Grant{Pattern: json.RawMessage(pattern), Repository: "/srv/web", Host: "build-7"}
			if ask := here; Allows(gr, argsWith(t, line, nil), &ask) {
				t.Errorf("%q is covered by %s", line, pattern)
			}
		}
	}
}

func argsWith(t *testing.T, line string, more map[string]any) json.RawMessage {
	t.Helper()
	all := map[string]any{"command": line}
	for name, v := range more {
		all[name] = v
	}
	args, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return args
}

// What is proposed in a repository is for it alone instead of for anywhere, and allows the
// ask that it is proposed for.
func TestPatternsInARepository(t *testing.T) {
	ask := &store.Ask{Repository: "/srv/web", Host: "build-7", Cwd: "/srv/web"}
	for line, want := range map[string][]string{
		"git status -s":           {"git status -s", "git status*", "git* in /srv/web on build-7"},
		"make":                    {"make", "make* in /srv/web on build-7"},
		"cat ./a b":               {"cat ./a b", "cat ./a *", "cat* in /srv/web on build-7"},
		"cat /etc/hosts":          {"cat /etc/hosts", "cat *"},
		"cd x && make":            {"cd x && make"},
		"git -C x status":         {"git -C x status", "git *"},
		"git -c core.pager=x log": {"git -c core.pager=x log"},
		"ssh host ls":             {"ssh host ls", "ssh host *", "ssh *"},
		"sudo make":               {"sudo make"},
	} {
		var got []string
		args := argsWith(t, line, nil)
		for _, p := range PatternsOf(ask, args) {
			text := p.Line
			if p.Repository != "" {
				text += " in " + p.Repository + " on " + p.Host
			}
			if p.Exact != (p.Line == line) {
				t.Errorf("%q: %q is exact: %t", line, p.Line, p.Exact)
			}
			if !Allows(store.Grant{Pattern: p.Args, Repository: p.Repository, Host: p.Host}, args, ask) {
				t.Errorf("%q: %q does not allow it", line, text)
			}
			got = append(got, text)
		}
		if len(got) != len(want) {
			t.Errorf("%q: %q, want %q", line, got, want)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q: %q, want %q", line, got, want)
			}
		}
	}
}

// FuzzPaths: whatever a command line is, its paths can be read, and one that stays in a
// repository names none that leaves it.
func FuzzPaths(f *testing.F) {
	for _, s := range []string{"go test ./x", "a ../b", "a --c=/d", "a ~", `a .\./b`, "a '..'/b"} {
		f.Add(s)
	}
	ask := &store.Ask{Repository: "/srv/web", Cwd: "/srv/web"}
	f.Fuzz(func(t *testing.T, line string) {
		args, err := json.Marshal(map[string]string{"command": line})
		if err != nil {
			t.Fatal(err)
		}
		paths := Paths(args)
		if !staysIn(ask, args) {
			return
		}
		for _, p := range paths {
			if isAbsolute(p) && !within("/srv/web", p) || p == ".." || p == "~" {
				t.Errorf("%q stays, and has %q", line, p)
			}
		}
	})
}
