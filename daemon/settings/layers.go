package settings

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"nize/daemon/api"
	"nize/store"
)

// Sources are where settings come from outside the database.
type Sources struct {
	Flags    map[string]string // by key, only those that were given
	Defaults map[string]string // by key, where they depend on how nized was started
	Env      func(string) string
	Environ  []string       // all of it, NAME=VALUE, to name what nobody reads; nil names nothing
	File     string         // path given with --config; "" is $NIZE_CONFIG or the default one
	NoFile   bool           // flags and environment are all there is
	Level    *slog.LevelVar // of the log, which follows log.level; nil: of none
	// IsChannel knows where alerts can go in a chat.
	IsChannel IsChannel
}

// Layers holds the values set outside the database, strongest first: flag,
// environment, file. Flags and environment are those of the start; the file can
// be read again.
type Layers struct {
	src   Sources
	path  string
	named bool // somebody named the file, so it must be there

	start     *snapshot
	current   atomic.Pointer[snapshot]
	reloading sync.Mutex            // one reload at a time
	failure   atomic.Pointer[error] // of the last reload
}

// snapshot is what the layers held at one time.
type snapshot struct {
	file    map[string]fileValue
	entries Entries
	decided map[string]setValue // by key: of the strongest layer that has one
}

// setValue is a value and where it was set.
type setValue struct{ value, source, where string }

// Where a value comes from.
const (
	fromFlag    = "flag"
	fromEnv     = "environment"
	fromFile    = "file"
	fromSystem  = "system"
	fromDefault = "default"
	fromUser    = "user"
)

// Open reads flags, environment and configuration file. Where data_dir and
// socket.path are not set they get their defaults, which depend on both.
func Open(src Sources) (*Layers, error) {
	l := &Layers{src: src}
	if !src.NoFile {
		l.path = cmp.Or(src.File, src.Env("NIZE_CONFIG"))
		l.named = l.path != ""
		if !l.named {
			l.path = api.DefaultConfig()
		}
		if abs, err := filepath.Abs(l.path); err == nil {
			l.path = abs // it is named in messages and read again later
		}
	}
	next, err := l.read()
	if err != nil {
		return nil, err
	}
	l.start = next
	l.activate(next)
	l.src.Defaults = maps.Clone(src.Defaults)
	if l.src.Defaults == nil {
		l.src.Defaults = map[string]string{}
	}
	if l.Get("data_dir") == "" {
		if err := api.CheckDataDir(); err != nil {
			return nil, err
		}
	}
	dir := cmp.Or(l.Get("data_dir"), api.DefaultDataDir())
	socket := l.Get("socket.path")
	if socket == "" {
		socket = api.DefaultSocket()
		if from := next.decided["data_dir"].source; from == fromFlag || from == fromEnv {
			socket = api.SocketIn(dir)
		}
	}
	l.src.Defaults["data_dir"], l.src.Defaults["socket.path"] = dir, socket
	return l, nil
}

// read reads all layers and checks every value. Nothing is in force yet.
func (l *Layers) read() (*snapshot, error) {
	next := &snapshot{decided: map[string]setValue{}}
	if l.path != "" {
		var err error
		if next.file, next.entries, err = readFile(l.path, l.named, l.src.IsChannel); err != nil {
			return nil, err
		}
	}
	for _, k := range allKeys() {
		v, err := l.decide(next, k)
		if err != nil {
			return nil, err
		}
		if v.source != "" {
			next.decided[k.Name] = v
		}
	}
	return next, checkTogether(next.decided)
}

// decide is the value of the strongest layer that has one, in normal form.
func (l *Layers) decide(at *snapshot, k store.Key) (setValue, error) {
	for _, v := range l.each(at, k.Name) {
		if v.source == "" {
			continue
		}
		if k.UserOnly {
			return setValue{}, fmt.Errorf("%s %s: %w setting %s: it is each person's own; nizectl config set --user sets it", v.source, v.where, store.ErrInvalid, k.Name)
		}
		value, err := checkValue(k, v.value, l.src.IsChannel)
		if err != nil {
			return setValue{}, fmt.Errorf("%s %s: %w", v.source, v.where, err)
		}
		v.value = value
		return v, nil
	}
	return setValue{}, nil
}

// each is what each of the three layers has for a key; where is also filled of
// those that have nothing.
func (l *Layers) each(at *snapshot, key string) [3]setValue {
	var flag, env, file setValue
	if k, ok := findDaemonKey(key); ok && k.flag != "" {
		flag.where = "--" + k.flag
		if v, given := l.src.Flags[key]; given {
			flag.value, flag.source = v, fromFlag
		}
	}
	f, inFile := at.file[key]
	file.where = l.path
	if inFile {
		file = setValue{f.value, fromFile, fmt.Sprintf("%s:%d", l.path, f.line)}
	}
	env.where = envName(key)
	if v := l.src.Env(env.where); v != "" {
		env.value, env.source = v, fromEnv
	} else if port := l.src.Env("NIZE_MCP_PORT"); key == "listen" && port != "" {
		host, _, _ := net.SplitHostPort(cmp.Or(f.value, DefaultListen)) // both were checked
		env = setValue{net.JoinHostPort(host, port), fromEnv, "NIZE_MCP_PORT"}
	}
	return [3]setValue{flag, env, file}
}

// checkTogether checks settings that need one another.
func checkTogether(decided map[string]setValue) error {
	cert, key := decided["tls.cert"], decided["tls.key"]
	if (cert.value == "") != (key.value == "") {
		one := cert
		if cert.value == "" {
			one = key
		}
		return fmt.Errorf("%w configuration: %s %s sets one of tls.cert and tls.key; set both", store.ErrInvalid, one.source, one.where)
	}
	if at := decided["advertise"]; cert.value != "" && strings.HasPrefix(at.value, "http:") {
		return fmt.Errorf("%w configuration: %s %s has others send tokens in clear text to a listener with tls.cert; say https", store.ErrInvalid, at.source, at.where)
	}
	return nil
}

func (l *Layers) activate(next *snapshot) {
	l.current.Store(next)
	if l.src.Level != nil {
		_ = l.src.Level.UnmarshalText([]byte(l.Get("log.level"))) // a choice that was checked
	}
}

// lookup is what the layers decided about a key.
func (l *Layers) lookup(key string) (setValue, bool) {
	v, ok := l.current.Load().decided[key]
	return v, ok
}

// Get is the value of one of the daemon's keys.
func (l *Layers) Get(key string) string {
	if v, ok := l.lookup(key); ok {
		return v.value
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

// Reload reads the file again and returns the keys whose value has changed. apply
// makes its entries true, or changes nothing and says why. A bad file changes nothing; the error is kept for [Layers.Warnings] until a
// good one is read.
func (l *Layers) Reload(apply func(Entries) error) (changed []string, err error) {
	l.reloading.Lock()
	defer l.reloading.Unlock()
	next, err := l.read()
	if err == nil {
		err = apply(next.entries)
	}
	if err != nil {
		l.failure.Store(&err)
		return nil, err
	}
	old := l.current.Load()
	for _, k := range allKeys() {
		if old.decided[k.Name].value != next.decided[k.Name].value || (old.decided[k.Name].source == "") != (next.decided[k.Name].source == "") {
			changed = append(changed, k.Name)
		}
	}
	l.activate(next)
	l.failure.Store(nil)
	return changed, nil
}

// Warnings are what an operator should know about the configuration.
func (l *Layers) Warnings() []string {
	list := l.UnknownVariables()
	if err := l.failure.Load(); err != nil {
		list = append(list, fmt.Sprintf("the configuration was not reloaded: %v; fix it and reload; the previous configuration remains active", *err))
	}
	for _, k := range daemonKeys {
		before, after := l.start.decided[k.Name], l.current.Load().decided[k.Name]
		if !k.live && before.value != after.value {
			list = append(list, fmt.Sprintf("%s was changed since the start: restart nized to use it", k.Name))
		}
	}
	return list
}

// File is the configuration file that was read, "" if there is none.
func (l *Layers) File() string {
	if l.current.Load().file == nil {
		return ""
	}
	return l.path
}
