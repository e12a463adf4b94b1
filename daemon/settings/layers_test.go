package settings

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/store"
)

// stored is store.Settings with values that are simply there.
type stored map[string]map[string]string // user → key → value

func (s stored) PutSetting(_ context.Context, _ store.Caller, user, key, value string) error {
	if s[user] == nil {
		s[user] = map[string]string{}
	}
	s[user][key] = value
	return nil
}

func (s stored) ListSettings(_ context.Context, user string) (map[string]string, error) {
	return s[user], nil
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func envOf(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

// The order of the layers: each row adds what is stronger than the row before.
func TestPrecedence(t *testing.T) {
	const key = "agent.tools.maxSteps"
	file := filepath.Join(t.TempDir(), "nized.toml")
	for _, c := range []struct {
		name         string
		system, user string
		file, env    string
		want, source string
	}{
		{"nothing", "", "", "", "", "10", fromDefault},
		{"system", "20", "", "", "", "20", fromSystem},
		{"file over system", "20", "", "30", "", "30", fromFile},
		{"environment over file", "20", "", "30", "40", "40", fromEnv},
		{"user over all", "20", "5", "30", "40", "5", fromUser},
		{"user over default", "", "5", "", "", "5", fromUser},
		{"user over the system", "20", "50", "", "", "50", fromUser},
		{"user over the file", "60", "50", "30", "", "50", fromUser},
		{"user over the limit", "", "51", "", "", "50", fromUser},
		{"user up to a higher system", "60", "60", "", "", "60", fromUser},
	} {
		text := ""
		if c.file != "" {
			text = key + " = " + c.file
		}
		write(t, file, text)
		env := map[string]string{"NIZE_CONFIG": file, "NIZE_AGENT_TOOLS_MAXSTEPS": c.env}
		l, err := Open(Sources{Env: envOf(env)})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		s := stored{"": {}, "ada": {}}
		if c.system != "" {
			s[""][key] = c.system
		}
		if c.user != "" {
			s["ada"][key] = c.user
		}
		conf, err := NewConfig(t.Context(), s, l)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		k, _ := store.FindKey(key)
		if v := conf.lookup("ada", k); v.value != c.want || v.source != c.source {
			t.Errorf("%s: got %s from %s, want %s from %s", c.name, v.value, v.source, c.want, c.source)
		}
		decides := 0
		for _, l := range conf.explain("ada", "ada", k).Layers {
			if l.Decides {
				decides++
				if l.Name != c.source || l.Value != c.want && l.Note == "" {
					t.Errorf("%s: explained as %s from %s", c.name, l.Value, l.Name)
				}
			}
		}
		if decides != 1 {
			t.Errorf("%s: %d layers decide", c.name, decides)
		}
	}
}

func TestClamp(t *testing.T) {
	for _, c := range []struct{ key, own, system, want string }{
		{"agent.tools.enabled", "true", "false", "false"},
		{"agent.tools.enabled", "false", "true", "false"},
		{"agent.tools.maxSteps", "3", "10", "3"},
		{"agent.tools.maxSteps", "30", "10", "10"},
		{"agent.tools.systemPrompt", "mine", "theirs", "mine"},
	} {
		k, err := store.FindKey(c.key)
		if err != nil {
			t.Fatal(err)
		}
		if got := clamp(k, c.own, c.system); got != c.want {
			t.Errorf("%s %s within %s: got %s, want %s", c.key, c.own, c.system, got, c.want)
		}
	}
}

// What is over the limit of steps is refused when it is set, whoever sets it; a limit
// that an admin raises or lowers counts at once, also for what was set before.
func TestStepLimit(t *testing.T) {
	l, err := Open(Sources{NoFile: true, Env: envOf(nil)})
	if err != nil {
		t.Fatal(err)
	}
	s := stored{"": {}, "ada": {}}
	conf, err := NewConfig(t.Context(), s, l)
	if err != nil {
		t.Fatal(err)
	}
	const steps, limit = "agent.tools.maxSteps", "agent.tools.maxSteps.limit"
	admin, ada := store.Caller{User: "root", Role: store.Admin}, store.Caller{User: "ada", Role: store.Member}
	for i, c := range []struct {
		by               store.Caller
		user, key, value string
		refused          string
		want             string // what ada has then
	}{
		{ada, "ada", steps, "20", "", "20"},
		{ada, "ada", steps, "50", "", "50"},
		{ada, "ada", steps, "51", "at most 50 (agent.tools.maxSteps.limit", "50"},
		{admin, "ada", steps, "99", "at most 50", "50"},
		{admin, "", steps, "51", "at most 50", "50"},
		{ada, "ada", limit, "90", "is a system setting", "50"},
		{ada, "", limit, "90", "only admins", "50"},
		{admin, "", limit, "30", "", "30"},
		{ada, "ada", steps, "31", "at most 30", "30"},
		{admin, "", limit, "90", "", "50"},
		{admin, "", steps, "80", "", "50"},
		{ada, "ada", steps, "90", "", "90"},
		{admin, "", limit, "20", "", "80"},
		{ada, "ada", steps, "80", "", "80"},
	} {
		_, err := conf.Put(t.Context(), c.by, c.user, c.key, c.value)
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%d %s %s: %v, want %q", i, c.key, c.value, err, c.refused)
		}
		if got := conf.Get("ada", steps); got != c.want {
			t.Errorf("%d %s %s: ada has %s, want %s", i, c.key, c.value, got, c.want)
		}
	}
}

// A key that begins with another one stands in quotes in a file.
func TestKeyBelowKey(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "nized.toml"), "[agent.tools]\nmaxSteps = 6\n\"maxSteps.limit\" = 8\n")
	l, err := Open(Sources{File: file, Env: envOf(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if steps, limit := l.Get("agent.tools.maxSteps"), l.Get("agent.tools.maxSteps.limit"); steps != "6" || limit != "8" {
		t.Errorf("got %s and %s", steps, limit)
	}
}

func TestOpenDaemonKeys(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "nized.toml"), `
listen = "127.0.0.1:7000"
data_dir = "/srv/nize"
log = {level = "debug", format = "text"}
[http]
trusted_proxies = ["10.0.0.0/8", "::1"]
`)
	for _, c := range []struct {
		name           string
		flags, env     map[string]string
		listen, socket string
	}{
		{"file", nil, nil, "127.0.0.1:7000", "/run/x/nized.sock"},
		{"port of the environment", nil, map[string]string{"NIZE_MCP_PORT": "7001"}, "127.0.0.1:7001", "/run/x/nized.sock"},
		{"environment", nil, map[string]string{"NIZE_MCP_PORT": "7001", "NIZE_LISTEN": "127.0.0.1:7002"}, "127.0.0.1:7002", "/run/x/nized.sock"},
		{"flags", map[string]string{"listen": "127.0.0.1:7003", "data_dir": "/data"}, map[string]string{"NIZE_LISTEN": "127.0.0.1:7002"}, "127.0.0.1:7003", "/data/nized.sock"},
	} {
		t.Setenv("NIZE_SOCKET", "")
		t.Setenv("NIZE_DATA_DIR", "")
		t.Setenv("RUNTIME_DIRECTORY", "/run/x")
		var level slog.LevelVar
		l, err := Open(Sources{Flags: c.flags, Env: envOf(c.env), File: file, Level: &level})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if listen, socket := l.Get("listen"), l.Get("socket.path"); listen != c.listen || socket != c.socket {
			t.Errorf("%s: listens on %s and %s, want %s and %s", c.name, listen, socket, c.listen, c.socket)
		}
		if got := l.Get("http.trusted_proxies"); got != "10.0.0.0/8,::1" {
			t.Errorf("%s: trusted proxies %q", c.name, got)
		}
		if level.Level().String() != "DEBUG" {
			t.Errorf("%s: level %v", c.name, level.Level())
		}
	}
	_, err := Open(Sources{Env: envOf(map[string]string{"NIZE_APPROVALS_MODE": "sometimes"}), File: file})
	if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "environment NIZE_APPROVALS_MODE") {
		t.Errorf("a bad value in the environment: %v", err)
	}
	_, err = Open(Sources{Flags: map[string]string{}, Env: envOf(map[string]string{"NIZE_TLS_CERT": "c"}), File: file})
	if err == nil || !strings.Contains(err.Error(), "set both") {
		t.Errorf("a certificate without a key: %v", err)
	}
	_, err = Open(Sources{Flags: map[string]string{"advertise": "http://x"}, Env: envOf(map[string]string{"NIZE_TLS_CERT": "c", "NIZE_TLS_KEY": "k"}), File: file})
	if err == nil || !strings.Contains(err.Error(), "clear text") {
		t.Errorf("tokens in clear text to a listener with TLS: %v", err)
	}
}

func TestDecodeFile(t *testing.T) {
	good := "# of all kinds\n" +
		"agent.tools.enabled = false\n" +
		"index.fusion = 1\n" +
		"'approvals.mode' = 'none'\n" +
		"[approvals]\n" +
		"max_arguments = 65_536\n" +
		"list = [\n  'a:*',\n  \"b:*\",\n]\n" +
		"expiry = { requester = \"5m\", others = \"2d\" }\n"
	got, _, err := decodeFile([]byte(good), newKeySet(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]fileValue{
		"agent.tools.enabled": {"false", 2}, "index.fusion": {"1", 3}, "approvals.mode": {"none", 4}, "approvals.max_arguments": {"65536", 6},
		"approvals.list": {"a:*,b:*", 7}, "approvals.expiry.requester": {"5m", 11}, "approvals.expiry.others": {"2d", 11},
	}
	if diff := cmp.Diff(got, want, cmp.AllowUnexported(fileValue{})); diff != "" {
		t.Errorf("values (-got +want):\n%s", diff)
	}
	for _, c := range []struct{ text, want string }{
		{"listen = ", "1: invalid TOML"},
		{"\n\nlisten = 'a'\nlisten = 'b'", "4: invalid TOML"},
		{"approvals.mode = 'all'\n'approvals.mode' = 'none'", "2: invalid setting approvals.mode: line 1 has it already"},
		{"\napprovals.mod = 'all'", `2: setting "approvals.mod" not found; did you mean approvals.mode?`},
		{"[approval]", `1: table "approval" not found; did you mean approvals?`},
		{"[[approvals]]\nmode = 'all'", `1: invalid list of tables "approvals": there is [[agents]], [[models]], [[providers]]`},
		{"socket = '/run/x'", `1: setting "socket" not found; there is socket.group, socket.path`},
		{"drain.grace = 15", "1: invalid value"},
		{"approvals.mode = ['all']", "1: invalid value for approvals.mode: it is a choice, not a list"},
		{"approvals.list = ['a,b']", "1: invalid value for approvals.list"},
		{"approvals.list = [[]]", "1: invalid value for approvals.list"},
		{"drain.grace = 2026-01-01", "1: invalid value for drain.grace: want a duration"},
		{"public_url = 'http://x'", "1: invalid value"},
		{"http.trusted_proxies = ['10.0.0.1/8']", `"10.0.0.1/8" is not an address or a network`},
		{"http.widgets_origin = 'https://apps.example.com'", "1: invalid value"},
		{"advertise = 'ftp://x'", `1: invalid value "ftp://x" for advertise`},
		{"index.schedule = 'now and then'", "1: invalid value"},
		{"listen = 'localhost'", "1: invalid value"},
	} {
		got, _, err := decodeFile([]byte(c.text), newKeySet(nil), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || got != nil {
			t.Errorf("%q: got %v, %v; want %s", c.text, got, err, c.want)
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	if v, _, err := readFile(filepath.Join(dir, "none.toml"), false, newKeySet(nil), nil); v != nil || err != nil {
		t.Errorf("no file: %v, %v", v, err)
	}
	if _, _, err := readFile(filepath.Join(dir, "none.toml"), true, newKeySet(nil), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file, but named: %v", err)
	}
	if _, _, err := readFile(dir, true, newKeySet(nil), nil); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a directory: %v", err)
	}
	open := write(t, filepath.Join(dir, "open.toml"), "")
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readFile(open, true, newKeySet(nil), nil); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Errorf("a file that everybody may write: %v", err)
	}
	large := write(t, filepath.Join(dir, "large.toml"), strings.Repeat("#", maxFile+1))
	if _, _, err := readFile(large, true, newKeySet(nil), nil); err == nil || !strings.Contains(err.Error(), "over 1 MiB") {
		t.Errorf("a large file: %v", err)
	}
}

func TestReload(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "nized.toml"), "approvals.mode = 'all'\nlog.level = 'warn'")
	var level slog.LevelVar
	l, err := Open(Sources{Env: envOf(nil), File: file, Level: &level})
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "approvals.mode = 'none'\nlog.level = 'loud'")
	if _, err := l.Reload(func(Entries) error { return nil }); err == nil || !strings.Contains(err.Error(), "nized.toml:2: ") {
		t.Errorf("a bad file: %v", err)
	}
	if s, _ := l.lookup("approvals.mode"); s.value != "all" || len(l.Warnings()) != 1 {
		t.Errorf("after a bad file: %+v, warnings %q", s, l.Warnings())
	}
	write(t, file, "approvals.mode = 'none'\nlog.level = 'debug'\nlisten = '127.0.0.1:1'")
	changed, err := l.Reload(func(Entries) error { return nil })
	if diff := cmp.Diff(changed, []string{"approvals.mode", "listen", "log.level"}); diff != "" || err != nil {
		t.Errorf("changed (-got +want):\n%s%v", diff, err)
	}
	if level.Level().String() != "DEBUG" {
		t.Errorf("level %v", level.Level())
	}
	if w := l.Warnings(); len(w) != 1 || !strings.HasPrefix(w[0], "listen was changed") {
		t.Errorf("warnings %q", w)
	}
}

// Whatever a file holds, it is values that pass their checks, or one error
// that begins with a line.
func FuzzDecodeFile(f *testing.F) {
	for _, seed := range []string{
		"", "listen = '127.0.0.1:0'", "[approvals]\nmode = 'all'\nlist = ['a', 'b']", "agent = {tools = {maxSteps = 3}}",
		"a.b.c = 1979-05-27T07:32:00Z", "[[x]]", "x = \"\"\"\ny\"\"\"", "index.fusion = 1e-3", "[[models]]\nname = 'a'\nwho = ['all']", "[[agents]]\nid = 1", "[[providers]]\na.b = {c = 1}", "'approvals.mode' = 'all'\napprovals.mode = 'all'",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		values, read, err := decodeFile(data, newKeySet(nil), nil)
		if err == nil {
			if _, err = decodeEntries("nized.toml", read); err != nil {
				values = nil
			}
		}
		if err != nil {
			if values != nil {
				t.Errorf("values beside the error %v", err)
			}
			var at *lineError
			if !errors.As(err, &at) || at.line > strings.Count(string(data), "\n")+1 {
				t.Errorf("error %v has no line of the file", err)
			}
			return
		}
		for name, v := range values {
			k, err := newKeySet(nil).find(name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if again, err := checkValue(k, v.value, nil); err != nil || again != v.value {
				t.Errorf("%s = %q is not in normal form: %q, %v", name, v.value, again, err)
			}
			if v.line < 1 {
				t.Errorf("%s has line %d", name, v.line)
			}
		}
	})
}
