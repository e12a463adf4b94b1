// Package api is what nizectl and nized agree on: the routes of the control
// socket, the bodies of requests and answers, one error table, and a client.
// It cannot see the server; it imports store and the standard library only.
//
// The wire is HTTP/1.1 over a Unix socket, JSON both ways:
//
//   - Paths start with /v1/; each stands in its operation ([Op] and its
//     siblings). Host is always [Host], and a request with an Origin is refused
//     by the daemon, in case somebody puts the socket behind a proxy.
//   - A list is {"items":[…]} ([List]).
//   - A stream is NDJSON: one value a line. Empty lines keep it alive and mean
//     nothing. What goes wrong after the first byte is a last line
//     {"error":{…}}.
//   - An error is {"error":{"code","message"}}; [Table] ties codes to HTTP
//     status, exit code and sentinel, so that errors.Is works across the socket.
//   - Both sides say their version in [VersionHeader]. One minor version apart
//     works; further apart the client warns once, in one line.
//
// Field names are snake_case and never change; they are also what `nizectl
// --json` prints.
package api

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"nize/store"
)

// Version is the version of this build, set by the linker
// (-X nize/daemon/api.Version=…).
var Version = "0.1.0"

// Commit and Date (YYYY-MM-DD) are those of the source of a release, set by the
// linker. Other builds know them if Go recorded them.
var Commit, Date string

// Build returns the version with commit and date, as far as they are known.
func Build() string {
	commit, date := Commit, Date
	if info, ok := debug.ReadBuildInfo(); ok && commit == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value[:min(len(s.Value), 12)]
			case "vcs.time":
				date, _, _ = strings.Cut(s.Value, "T")
			case "vcs.modified":
				if s.Value == "true" {
					commit += ", modified"
				}
			}
		}
	}
	if commit == "" {
		return Version
	}
	return fmt.Sprintf("%s (commit %s, %s)", Version, commit, date)
}

const (
	// VersionHeader carries each side's version.
	VersionHeader = "Nize-Version"
	// Host is the fixed Host of every request on the socket.
	Host = "nized"
	// SocketName is the socket's file name in its directory.
	SocketName = "nized.sock"
)

// List is the form of every list on the wire.
type List[T any] struct {
	Items []T `json:"items"`
}

// Items makes a list; none is an empty one on the wire, not null.
func Items[T any](list []T) List[T] {
	if list == nil {
		list = []T{}
	}
	return List[T]{Items: list}
}

// Empty is the body of a request or answer that says nothing.
type Empty struct{}

// Secret is a store.Secret that the wire carries as it is, while every other
// way of printing it shows dots. It stands only where a secret goes in (a key,
// a credential) or is shown once (a new token).
type Secret struct{ store.Secret }

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{store.NewSecret(text)} }

// MarshalJSON writes the text itself.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.Reveal()) }

// DefaultSocket is where nized listens unless --socket says otherwise:
// $NIZE_SOCKET, else in $NIZE_DATA_DIR, else in systemd's $RUNTIME_DIRECTORY,
// else /run/nize for root under systemd, else $XDG_RUNTIME_DIR/nize, else in
// the data directory.
func DefaultSocket() string { return defaultSocket(os.Getenv, os.Getuid()) }

// FindDataDir is where nizectl looks for the daemon's data directory: the
// default, or the system's if only that one exists.
func FindDataDir() string {
	dir := DefaultDataDir()
	if os.Getenv("NIZE_DATA_DIR") != "" {
		return dir
	}
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if _, err := os.Stat(systemDataDir); err == nil {
		return systemDataDir
	}
	return dir
}

// DataDirs are the data directories whose owners nizectl trusts to listen for
// it: the one in use, and the system's.
func DataDirs() []string { return []string{FindDataDir(), systemDataDir} }

const (
	systemSocket    = "/run/nize/" + SocketName
	systemDataDir   = "/var/lib/nize"
	systemConfigDir = "/etc/nize"
)

// DefaultDataDir is where nized keeps its state unless --data-dir says
// otherwise: $NIZE_DATA_DIR, else systemd's $STATE_DIRECTORY, else
// /var/lib/nize for root under systemd, else $XDG_DATA_HOME/nize, else
// ~/.local/share/nize.
func DefaultDataDir() string { return defaultDataDir(os.Getenv, os.Getuid()) }

// DefaultConfig is where nized looks for its configuration unless --config
// says otherwise: systemd's $CONFIGURATION_DIRECTORY, else /etc/nize for root
// under systemd, else $XDG_CONFIG_HOME/nize, else ~/.config/nize; the file's
// name is nized.toml.
func DefaultConfig() string { return defaultConfig(os.Getenv, os.Getuid()) }

// SocketIn is the socket of a data directory that was chosen by hand.
func SocketIn(dataDir string) string { return filepath.Join(dataDir, SocketName) }

func defaultSocket(env func(string) string, uid int) string {
	if s := env("NIZE_SOCKET"); s != "" {
		return s
	}
	if dir := env("NIZE_DATA_DIR"); dir != "" {
		return SocketIn(dir)
	}
	if dir := unitDir(env, "RUNTIME_DIRECTORY"); dir != "" {
		return SocketIn(dir)
	}
	if rootUnit(env, uid) {
		return systemSocket
	}
	// The XDG rule: a relative path is as good as none.
	if dir := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return SocketIn(filepath.Join(dir, "nize"))
	}
	return SocketIn(defaultDataDir(env, uid))
}

func defaultDataDir(env func(string) string, uid int) string {
	if dir := env("NIZE_DATA_DIR"); dir != "" {
		return dir
	}
	if dir := unitDir(env, "STATE_DIRECTORY"); dir != "" {
		return dir
	}
	if rootUnit(env, uid) {
		return systemDataDir
	}
	if dir := env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "nize")
	}
	return filepath.Join(homeDir(env, uid), ".local", "share", "nize")
}

func defaultConfig(env func(string) string, uid int) string {
	const name = "nized.toml"
	if dir := unitDir(env, "CONFIGURATION_DIRECTORY"); dir != "" {
		return filepath.Join(dir, name)
	}
	if rootUnit(env, uid) {
		return filepath.Join(systemConfigDir, name)
	}
	if dir := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "nize", name)
	}
	return filepath.Join(homeDir(env, uid), ".config", "nize", name)
}

// unitDir reads a directory that systemd made for the unit; it may list
// several, of which the first is ours.
func unitDir(env func(string) string, name string) string {
	dir, _, _ := strings.Cut(env(name), ":")
	if !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// rootUnit says whether this is root in a system unit. A root login shell has
// an XDG_RUNTIME_DIR, and may have inherited an INVOCATION_ID.
func rootUnit(env func(string) string, uid int) bool {
	return uid == 0 && env("INVOCATION_ID") != "" && env("XDG_RUNTIME_DIR") == ""
}
