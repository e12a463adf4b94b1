package settings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"nize/store"
)

// DefaultListen is the address of the HTTP listener.
const DefaultListen = "127.0.0.1:19560"

// daemonKey is a setting of the daemon itself: needed before there is a
// database, so it is never stored there.
type daemonKey struct {
	store.Key
	flag string // of nized
	env  string // where it is not NIZE_ and the key
	live bool   // a reload is enough, else a restart is needed
}

// daemonKeys lists them by name. The socket's path is socket.path, since in
// TOML socket cannot be both a string and the table of socket.group.
var daemonKeys = []daemonKey{
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

// Flags are the flags of nized that set one of the daemon's keys: key to flag.
func Flags() map[string]string {
	flags := map[string]string{}
	for _, k := range daemonKeys {
		if k.flag != "" {
			flags[k.Name] = k.flag
		}
	}
	return flags
}

// NeedsRestart says whether a reload is not enough to change a key.
func NeedsRestart(name string) bool {
	k, ok := findDaemonKey(name)
	return ok && !k.live
}

// allKeys is every setting by name, the daemon's among those of the store.
var allKeys = sync.OnceValue(func() []store.Key {
	all := slices.Clone(store.Keys)
	for _, k := range daemonKeys {
		all = append(all, k.Key)
	}
	slices.SortFunc(all, func(a, b store.Key) int { return cmp.Compare(a.Name, b.Name) })
	return all
})

func findDaemonKey(name string) (daemonKey, bool) {
	i := slices.IndexFunc(daemonKeys, func(k daemonKey) bool { return k.Name == name })
	if i < 0 {
		return daemonKey{}, false
	}
	return daemonKeys[i], true
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
	if k, ok := findDaemonKey(key); ok && k.env != "" {
		return k.env
	}
	return "NIZE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}
