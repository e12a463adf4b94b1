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

// Sources are the sources of settings outside the database.
type Sources struct {
	Flags    map[string]string // by key; only flags that were given
	Defaults map[string]string // by key, if they depend on how nized was started
	Env      func(string) string
	Environ  []string       // the whole environment, NAME=VALUE, to warn of unknown variables; nil for no warnings
	File     string         // path given with --config; "" is $NIZE_CONFIG or the default one
	NoFile   bool           // use only flags and environment
	Level    *slog.LevelVar // the log's level, which follows log.level; may be nil
	Keys     []store.Key    // that modules declare
	// IsChannel reports whether alerts can be sent to a channel of a chat.
	IsChannel IsChannel
}

// Layers holds the values set outside the database, by precedence: flag, environment, file.
// Flags and environment are fixed at the start; the file can be reread.
type Layers struct {
	src   Sources
	keys  *keySet
	path  string
	named bool // the file was given explicitly, so it must exist

	start     *snapshot
	current   atomic.Pointer[snapshot]
	reloading sync.Mutex            // serializes reloads
	failure   atomic.Pointer[error] // error of the last reload
}

// snapshot is the state of the layers after one read.
type snapshot struct {
	file    map[string]fileValue
	entries Entries
	decided map[string]setValue // by key: the value with the highest precedence
}

// setValue is a value and its source.
type setValue struct{ value, source, where string }

// Sources of a value.
const (
	fromFlag    = "flag"
	fromEnv     = "environment"
	fromFile    = "file"
	fromSystem  = "system"
	fromDefault = "default"
	fromUser    = "user"
)

// Open reads flags, environment and configuration file. If data_dir or socket.path is not
// set it gets its default, which depends on both.
func Open(src Sources) (*Layers, error) {
	l := &Layers{src: src, keys: newKeySet(src.Keys)}
	if !src.NoFile {
		l.path = cmp.Or(src.File, src.Env("NIZE_CONFIG"))
		l.named = l.path != ""
		if !l.named {
			l.path = api.DefaultConfig()
		}
		if abs, err := filepath.Abs(l.path); err == nil {
			l.path = abs // messages contain it, and reloads read it again
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

// read reads all layers and validates every value, without putting them into force.
func (l *Layers) read() (*snapshot, error) {
	next := &snapshot{decided: map[string]setValue{}}
	if l.path != "" {
		var err error
		if next.file, next.entries, err = readFile(l.path, l.named, l.keys, l.src.IsChannel); err != nil {
			return nil, err
		}
	}
	for _, k := range l.keys.list {
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

// decide returns the normalized value of the layer with the highest precedence that has
// one.
func (l *Layers) decide(at *snapshot, k store.Key) (setValue, error) {
	for _, v := range l.each(at, k.Name) {
		if v.source == "" {
			continue
		}
		if k.UserOnly {
			return setValue{}, fmt.Errorf("%s %s: %w setting %s: it is a personal setting; set it with nizectl config set --user", v.source, v.where, store.ErrInvalid, k.Name)
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

// each returns the three layers' values of a key; where is set even if a layer has no
// value.
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
		host, _, _ := net.SplitHostPort(cmp.Or(f.value, DefaultListen)) // both are validated
		env = setValue{net.JoinHostPort(host, port), fromEnv, "NIZE_MCP_PORT"}
	}
	return [3]setValue{flag, env, file}
}

// checkTogether validates settings that depend on each other.
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
		_ = l.src.Level.UnmarshalText([]byte(l.Get("log.level"))) // a validated choice
	}
}

// StoredKeys returns every setting that the database may have, by name: all but the daemon's.
func (l *Layers) StoredKeys() []store.Key { return l.keys.stored }

// lookup returns the layers' value of a key.
func (l *Layers) lookup(key string) (setValue, bool) {
	v, ok := l.current.Load().decided[key]
	return v, ok
}

// Get returns the value of one of the daemon's keys.
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
	k, err := l.keys.find(key)
	if err != nil {
		panic(err) // keys are literals of ours
	}
	return k.Default
}

// Reload rereads the file and returns the keys whose values have changed. apply puts the
// file's entries into force, or changes nothing and returns an error. An invalid file
// changes nothing; its error is kept for [Layers.Warnings] until a valid one is read.
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
	for _, k := range l.keys.list {
		if old.decided[k.Name].value != next.decided[k.Name].value || (old.decided[k.Name].source == "") != (next.decided[k.Name].source == "") {
			changed = append(changed, k.Name)
		}
	}
	l.activate(next)
	l.failure.Store(nil)
	return changed, nil
}

// Warnings returns the configuration's problems for an operator.
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

// File returns the configuration file that was read, "" if there is none.
func (l *Layers) File() string {
	if l.current.Load().file == nil {
		return ""
	}
	return l.path
}
