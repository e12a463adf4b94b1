package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"nize/daemon/alert"
	"nize/daemon/api"
	"nize/store"
)

// ownKey is a setting of the daemon's own: needed before there is a database,
// so it is never stored there.
type ownKey struct {
	store.Key
	flag string // of nized
	env  string // where it is not NIZE_ and the key
	live bool   // a reload is enough, else a restart is needed
}

// ownKeys lists them by name. The socket's path is socket.path, since in TOML
// socket cannot be both a text and the table of socket.group.
var ownKeys = []ownKey{
	{Key: store.Key{Name: "data_dir", Kind: store.KindText, Help: "where nized keeps its state"}, flag: "data-dir"},
	{Key: store.Key{Name: "http.trusted_proxies", Kind: store.KindList, Help: "addresses or networks of proxies whose X-Forwarded-* headers count"}, live: true},
	{Key: store.Key{Name: "insecure_listen", Kind: store.KindBool, Default: "false", Help: "listen beyond loopback without TLS"}, flag: "insecure-listen"},
	{Key: store.Key{Name: "listen", Kind: store.KindText, Default: DefaultListen, Help: "address of the HTTP listener"}, flag: "listen"},
	{Key: store.Key{Name: "log.format", Kind: store.KindEnum, Default: "json", Choices: []string{"text", "json"}, Help: "how the log is written"}, flag: "log-format"},
	{Key: store.Key{Name: "log.level", Kind: store.KindEnum, Default: "info", Choices: []string{"debug", "info", "warn", "error"}, Help: "what is logged"}, flag: "log-level", live: true},
	{Key: store.Key{Name: "public_url", Kind: store.KindText, Help: "https origin that a proxy in front serves"}, flag: "public-url", live: true},
	{Key: store.Key{Name: "socket.group", Kind: store.KindText, Help: "group whose members may use the control socket"}},
	{Key: store.Key{Name: "socket.path", Kind: store.KindText, Help: "path of the control socket"}, flag: "socket", env: "NIZE_SOCKET"},
	{Key: store.Key{Name: "tls.cert", Kind: store.KindText, Help: "file with the certificate chain of the HTTP listener"}},
	{Key: store.Key{Name: "tls.key", Kind: store.KindText, Help: "file with its private key"}},
}

// Flags are the flags of nized that set one of its own keys: key to flag.
func Flags() map[string]string {
	flags := map[string]string{}
	for _, k := range ownKeys {
		if k.flag != "" {
			flags[k.Name] = k.flag
		}
	}
	return flags
}

// allKeys is every setting by name, the daemon's own among those of the store.
var allKeys = sync.OnceValue(func() []store.Key {
	all := slices.Clone(store.Keys)
	for _, k := range ownKeys {
		all = append(all, k.Key)
	}
	slices.SortFunc(all, func(a, b store.Key) int { return cmp.Compare(a.Name, b.Name) })
	return all
})

// ownOf is the daemon's own key of that name.
func ownOf(name string) (ownKey, bool) {
	i := slices.IndexFunc(ownKeys, func(k ownKey) bool { return k.Name == name })
	if i < 0 {
		return ownKey{}, false
	}
	return ownKeys[i], true
}

// keysByName is made once: each call of a tool looks several settings up.
var keysByName = sync.OnceValue(func() map[string]store.Key {
	m := map[string]store.Key{}
	for _, k := range allKeys() {
		m[k.Name] = k
	}
	return m
})

// findKey finds any setting; a miss names the nearest, or what a table holds.
func findKey(name string) (store.Key, error) {
	if k, ok := keysByName()[name]; ok {
		return k, nil
	}
	var names, inside []string
	for _, k := range allKeys() {
		names = append(names, k.Name)
		if strings.HasPrefix(k.Name, name+".") {
			inside = append(inside, k.Name)
		}
	}
	if len(inside) > 0 {
		return store.Key{}, fmt.Errorf("setting %q %w; there is %s", name, store.ErrNotFound, strings.Join(inside, ", "))
	}
	return store.Key{}, store.Unknown("setting", name, names)
}

// envName is NIZE_ and the key: agent.tools.maxSteps is NIZE_AGENT_TOOLS_MAXSTEPS.
func envName(key string) string {
	if own, ok := ownOf(key); ok && own.env != "" {
		return own.env
	}
	return "NIZE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// checkValue says why a value does not fit, or returns it in normal form: by
// its type, and by what only the daemon can tell.
func checkValue(k store.Key, value string) (string, error) {
	value, err := k.Check(value)
	if err != nil {
		return "", err
	}
	switch k.Name {
	case "index.schedule":
		_, err = parseSchedule(value)
	case "alerts.to":
		if value != "" && !slackChannel.MatchString(value) {
			err = alert.CheckURL(value)
		}
	case "audit.schedule", "backup.schedule":
		err = checkOptionalSchedule(value)
	case "listen":
		_, _, err = net.SplitHostPort(value)
	case "public_url":
		_, err = parsePublicURL(value)
	case "slack.api_url":
		if u, bad := url.Parse(value); value != "" && (bad != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
			err = errors.New("want an address such as https://slack-gov.com/api/, or nothing for Slack's own")
		}
	case "http.trusted_proxies":
		_, err = parseProxies(value)
	}
	if err != nil {
		return "", fmt.Errorf("%w value %q for %s: %w", store.ErrInvalid, value, k.Name, err)
	}
	return value, nil
}

// Sources are where settings come from outside the database.
type Sources struct {
	Flags    map[string]string // by key, only those that were given
	Defaults map[string]string // by key, where they depend on how nized was started
	Env      func(string) string
	File     string // path given with --config; "" is $NIZE_CONFIG or the default one
}

// Layers holds what was said outside the database, strongest first:
// flag, environment, file. Flags and environment are those of the start; the
// file can be read anew.
type Layers struct {
	src   Sources
	path  string
	named bool // somebody named the file, so it must be there
	level *slog.LevelVar

	now     atomic.Pointer[outside]
	start   *outside
	changed sync.Mutex // one reload at a time
	trouble atomic.Pointer[error]
}

// outside is what the layers said at one time.
type outside struct {
	file    map[string]fileValue
	decided map[string]said // by key: the strongest of the layers
}

// said is what a layer says of a key.
type said struct{ value, source, where string }

// Configure reads flags, environment and configuration file, and returns the
// options that follow from them; the caller adds Log, Now and Hangup.
func Configure(src Sources) (Options, error) {
	path := cmp.Or(src.File, src.Env("NIZE_CONFIG"))
	l := &Layers{src: src, path: path, named: path != "", level: new(slog.LevelVar)}
	if !l.named {
		l.path = api.DefaultConfig()
	}
	if abs, err := filepath.Abs(l.path); err == nil {
		l.path = abs // it is named in messages and read again later
	}
	if err := l.open(); err != nil {
		return Options{}, err
	}
	opt := Options{DataDir: l.Get("data_dir"), Listen: l.Get("listen"), Socket: l.Get("socket.path"), Env: src.Env, Layers: l, Level: l.level}
	if opt.DataDir == "" {
		opt.DataDir = api.DefaultDataDir()
	}
	if opt.Socket == "" {
		opt.Socket = api.DefaultSocket()
		if from := l.start.decided["data_dir"].source; from == fromFlag || from == fromEnv {
			opt.Socket = api.SocketIn(opt.DataDir)
		}
	}
	l.src.Defaults = maps.Clone(src.Defaults)
	if l.src.Defaults == nil {
		l.src.Defaults = map[string]string{}
	}
	l.src.Defaults["data_dir"], l.src.Defaults["socket.path"] = opt.DataDir, opt.Socket
	return opt, nil
}

// open reads the layers for the first time.
func (l *Layers) open() error {
	next, err := l.read()
	if err != nil {
		return err
	}
	l.start = next
	l.use(next)
	return nil
}

// Where a value comes from.
const (
	fromFlag    = "flag"
	fromEnv     = "environment"
	fromFile    = "file"
	fromSystem  = "system"
	fromDefault = "default"
	fromUser    = "user"
)

// read reads all layers anew and checks every value. Nothing is in force yet.
func (l *Layers) read() (*outside, error) {
	next := &outside{decided: map[string]said{}}
	if l.path != "" {
		var err error
		if next.file, err = readFile(l.path, l.named); err != nil {
			return nil, err
		}
	}
	for _, k := range allKeys() {
		s, err := l.decide(next, k)
		if err != nil {
			return nil, err
		}
		if s.source != "" {
			next.decided[k.Name] = s
		}
	}
	return next, checkTogether(func(key string) said { return next.decided[key] })
}

// decide is the strongest layer's word on a key, in normal form.
func (l *Layers) decide(at *outside, k store.Key) (said, error) {
	for _, s := range l.of(at, k.Name) {
		if s.source == "" {
			continue
		}
		if k.UserOnly {
			return said{}, fmt.Errorf("%s %s: %w setting %s: it is each person's own; nizectl config set --user sets it", s.source, s.where, store.ErrInvalid, k.Name)
		}
		value, err := checkValue(k, s.value)
		if err != nil {
			return said{}, fmt.Errorf("%s %s: %w", s.source, s.where, err)
		}
		s.value = value
		return s, nil
	}
	return said{}, nil
}

// of is what each of the three layers says of a key; where is also filled of
// those that say nothing.
func (l *Layers) of(at *outside, key string) [3]said {
	var flag, env, file said
	if own, ok := ownOf(key); ok && own.flag != "" {
		flag.where = "--" + own.flag
		if v, given := l.src.Flags[key]; given {
			flag.value, flag.source = v, fromFlag
		}
	}
	f, inFile := at.file[key]
	file.where = l.path
	if inFile {
		file = said{f.value, fromFile, fmt.Sprintf("%s:%d", l.path, f.line)}
	}
	env.where = envName(key)
	if v := l.src.Env(env.where); v != "" {
		env.value, env.source = v, fromEnv
	} else if port := l.src.Env("NIZE_MCP_PORT"); key == "listen" && port != "" {
		host, _, _ := net.SplitHostPort(cmp.Or(f.value, DefaultListen)) // both were checked
		env = said{net.JoinHostPort(host, port), fromEnv, "NIZE_MCP_PORT"}
	}
	return [3]said{flag, env, file}
}

// checkTogether looks at settings that need one another.
func checkTogether(get func(key string) said) error {
	cert, key := get("tls.cert"), get("tls.key")
	if (cert.value == "") != (key.value == "") {
		one := cert
		if cert.value == "" {
			one = key
		}
		return fmt.Errorf("%w configuration: %s %s sets one of tls.cert and tls.key; set both", store.ErrInvalid, one.source, one.where)
	}
	return nil
}

func (l *Layers) use(next *outside) {
	l.now.Store(next)
	if l.level != nil {
		_ = l.level.UnmarshalText([]byte(l.Get("log.level"))) // a choice that was checked
	}
}

// find is what the layers decided about a key.
func (l *Layers) find(key string) (said, bool) {
	s, ok := l.now.Load().decided[key]
	return s, ok
}

// Get is the value of one of the daemon's own keys.
func (l *Layers) Get(key string) string {
	if s, ok := l.find(key); ok {
		return s.value
	}
	return l.fallback(key)
}

func (l *Layers) fallback(key string) string {
	if v, ok := l.src.Defaults[key]; ok {
		return v
	}
	k, err := findKey(key)
	if err != nil {
		panic(err) // keys are literals of ours
	}
	return k.Default
}

// reload reads the file anew and returns the keys whose value is another now.
// A bad file changes nothing; the error is kept for the status until a good one
// is read.
func (l *Layers) reload() (changed []string, err error) {
	l.changed.Lock()
	defer l.changed.Unlock()
	next, err := l.read()
	if err != nil {
		l.trouble.Store(&err)
		return nil, err
	}
	old := l.now.Load()
	for _, k := range allKeys() {
		if old.decided[k.Name].value != next.decided[k.Name].value || (old.decided[k.Name].source == "") != (next.decided[k.Name].source == "") {
			changed = append(changed, k.Name)
		}
	}
	l.use(next)
	l.trouble.Store(nil)
	return changed, nil
}

// warnings says what an operator should know about the configuration.
func (l *Layers) warnings() []string {
	var list []string
	if err := l.trouble.Load(); err != nil {
		list = append(list, fmt.Sprintf("the configuration was not reloaded: %v; mend it and reload, what was in force still is", *err))
	}
	for _, k := range ownKeys {
		before, after := l.start.decided[k.Name], l.now.Load().decided[k.Name]
		if !k.live && before.value != after.value {
			list = append(list, fmt.Sprintf("%s was changed since the start: restart nized to use it", k.Name))
		}
	}
	return list
}

// inUse is the configuration file that was read, "" if there is none.
func (l *Layers) inUse() string {
	if l.now.Load().file == nil {
		return ""
	}
	return l.path
}
