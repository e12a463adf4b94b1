package settings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"nize/store"
)

// DefaultListen is the default address of the HTTP listener.
const DefaultListen = "127.0.0.1:19560"

// daemonKey is a setting of the daemon itself. It is needed before the database is open, so
// it is never stored there.
type daemonKey struct {
	store.Key
	flag string // nized's flag
	env  string // if it is not NIZE_ and the key
	live bool   // a reload applies it; otherwise a restart is needed
}

// daemonKeys lists them by name. The socket's path is called socket.path because in TOML
// socket cannot be both a string and the table of socket.group.
var daemonKeys = []daemonKey{
	{Key: store.Key{Name: "advertise", Category: store.AboutDaemon, Label: store.Textf("Address for other nized"), Kind: store.KindText, Help: store.Textf("origin at which the other nized on the same database reach this one")}, flag: "advertise"},
	{Key: store.Key{Name: "data_dir", Category: store.AboutDaemon, Label: store.Textf("Data directory"), Kind: store.KindText, Help: store.Textf("where nized keeps its state")}, flag: "data-dir"},
	{Key: store.Key{Name: "http.body_timeout", Category: store.AboutDaemon, Label: store.Textf("Time limit for request bodies"), Kind: store.KindDuration, Default: "30s", Min: 1, Max: 3600, Help: store.Textf("how long the body of a request may take to arrive; each 16 KiB that arrive add a second")}, live: true},
	{Key: store.Key{Name: "http.max_connections", Category: store.AboutDaemon, Label: store.Textf("Connections at once"), Kind: store.KindInt, Default: "0", Min: 0, Max: 1 << 20, Help: store.Textf("connections to the HTTP listener at once; 0 is half of the files that nized may open, at most 4096")}, live: true},
	{Key: store.Key{Name: "http.max_per_address", Category: store.AboutDaemon, Label: store.Textf("Unauthenticated connections per address"), Kind: store.KindInt, Default: "0", Min: 0, Max: 1 << 20, Help: store.Textf("unauthenticated connections of one address (for IPv6, of one /64); 0 is a quarter of http.max_unauthenticated")}, live: true},
	{Key: store.Key{Name: "http.max_per_person", Category: store.AboutDaemon, Label: store.Textf("Connections per person"), Kind: store.KindInt, Default: "0", Min: 0, Max: 1 << 20, Help: store.Textf("authenticated connections of one person or project; 0 is a quarter of http.max_connections")}, live: true},
	{Key: store.Key{Name: "http.max_unauthenticated", Category: store.AboutDaemon, Label: store.Textf("Unauthenticated connections"), Kind: store.KindInt, Default: "0", Min: 0, Max: 1 << 20, Help: store.Textf("unauthenticated connections of all addresses; 0 is an eighth of http.max_connections")}, live: true},
	{Key: store.Key{Name: "http.trusted_proxies", Category: store.AboutDaemon, Label: store.Textf("Trusted proxies"), Kind: store.KindList, Help: store.Textf("addresses or networks of proxies whose X-Forwarded-* headers count")}, live: true},
	{Key: store.Key{Name: "http.widgets_origin", Category: store.AboutDaemon, Label: store.Textf("Origin of views"), Kind: store.KindText, Help: store.Textf("origin such as https://*.apps.example.com, where each server's views get a host of their own")}, live: true},
	{Key: store.Key{Name: "insecure_listen", Category: store.AboutDaemon, Label: store.Textf("Listen without TLS"), Kind: store.KindBool, Default: "false", Help: store.Textf("listen beyond loopback without TLS")}, flag: "insecure-listen"},
	{Key: store.Key{Name: "listen", Category: store.AboutDaemon, Label: store.Textf("Listen address"), Kind: store.KindText, Default: DefaultListen, Help: store.Textf("address of the HTTP listener")}, flag: "listen"},
	{Key: store.Key{Name: "log.format", Category: store.AboutDaemon, Label: store.Textf("Log format"), Kind: store.KindEnum, Default: "json", Choices: []string{"text", "json"}, Help: store.Textf("how the log is written")}, flag: "log-format"},
	{Key: store.Key{Name: "log.level", Category: store.AboutDaemon, Label: store.Textf("Log level"), Kind: store.KindEnum, Default: "info", Choices: []string{"debug", "info", "warn", "error"}, Help: store.Textf("what is logged")}, flag: "log-level", live: true},
	{Key: store.Key{Name: "public_url", Category: store.AboutDaemon, Label: store.Textf("Public address"), Kind: store.KindText, Help: store.Textf("https origin that a proxy in front serves")}, flag: "public-url", live: true},
	{Key: store.Key{Name: "socket.group", Category: store.AboutDaemon, Label: store.Textf("Group of the socket"), Kind: store.KindText, Help: store.Textf("group whose members may use the control socket")}},
	{Key: store.Key{Name: "socket.path", Category: store.AboutDaemon, Label: store.Textf("Path of the socket"), Kind: store.KindText, Help: store.Textf("path of the control socket")}, flag: "socket", env: "NIZE_SOCKET"},
	{Key: store.Key{Name: "tls.cert", Category: store.AboutDaemon, Label: store.Textf("TLS certificate"), Kind: store.KindText, Help: store.Textf("file with the certificate chain of the HTTP listener")}},
	{Key: store.Key{Name: "tls.key", Category: store.AboutDaemon, Label: store.Textf("TLS key"), Kind: store.KindText, Help: store.Textf("file with its private key")}},
}

// Flags returns the flags of nized that set the daemon's keys, by key.
func Flags() map[string]string {
	flags := map[string]string{}
	for _, k := range daemonKeys {
		if k.flag != "" {
			flags[k.Name] = k.flag
		}
	}
	return flags
}

// NeedsRestart reports whether a change of a key needs a restart instead of a reload.
func NeedsRestart(name string) bool {
	k, ok := findDaemonKey(name)
	return ok && !k.live
}

// keySet holds every setting, by name: the keys of packages below, of modules, and the
// daemon's.
type keySet struct {
	list   []store.Key
	stored []store.Key          // those that the database may have
	byName map[string]store.Key // each call of a tool looks up several settings
}

func newKeySet(modules []store.Key) *keySet {
	byName := func(a, b store.Key) int { return cmp.Compare(a.Name, b.Name) }
	s := &keySet{stored: slices.Concat(store.Keys, modules), byName: map[string]store.Key{}}
	s.list = slices.Clone(s.stored)
	for _, k := range daemonKeys {
		s.list = append(s.list, k.Key)
	}
	slices.SortFunc(s.stored, byName)
	slices.SortFunc(s.list, byName)
	for _, k := range s.list {
		s.byName[k.Name] = k
	}
	return s
}

func findDaemonKey(name string) (daemonKey, bool) {
	i := slices.IndexFunc(daemonKeys, func(k daemonKey) bool { return k.Name == name })
	if i < 0 {
		return daemonKey{}, false
	}
	return daemonKeys[i], true
}

// find returns any setting. Its error suggests the nearest name, or lists the keys of a
// table.
func (s *keySet) find(name string) (store.Key, error) {
	if k, ok := s.byName[name]; ok {
		return k, nil
	}
	var names, inside []string
	for _, k := range s.list {
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

// envName returns a key's variable: agent.tools.maxSteps is NIZE_AGENT_TOOLS_MAXSTEPS.
func envName(key string) string {
	if k, ok := findDaemonKey(key); ok && k.env != "" {
		return k.env
	}
	return "NIZE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// Keys returns every setting by name: those of packages below, of modules, and the daemon's.
func Keys(modules []store.Key) []store.Key { return newKeySet(modules).list }
