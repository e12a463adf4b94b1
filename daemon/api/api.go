// Package api defines the control API: its routes, request and response types, error table
// and client.
//
// It doesn't import the server, only store and the standard library. nized and nizectl both
// build on it.
//
// The wire is HTTP/1.1 over a Unix socket, JSON both ways:
//
//   - Paths start with /v1/; each is declared by its operation ([Op] and its
//     siblings). Host is always [Host]. The daemon rejects a request that has an
//     Origin, in case the socket is put behind a proxy.
//   - A list is {"items":[…]} ([List]).
//   - A stream is NDJSON: one value a line. Empty lines keep it alive and mean
//     nothing. If an error occurs after the first byte, the last line is
//     {"error":{…}}.
//   - An error is {"error":{"code","message"}}; [Table] ties codes to HTTP
//     status, exit code and sentinel, so that errors.Is works across the socket.
//   - Both sides send their version in [VersionHeader]. If they are more than one
//     minor version apart, the client warns once, in one line.
//
// Field names are snake_case and never change; they are also what `nizectl --json` prints.
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

// Commit and Date (YYYY-MM-DD) identify the source of a release; the linker sets them.
// Other builds fill them in if Go recorded them.
var Commit, Date string

// Build returns the version, with commit and date if they are known.
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

// Items returns a list; an empty one is encoded as [], not null.
func Items[T any](list []T) List[T] {
	if list == nil {
		list = []T{}
	}
	return List[T]{Items: list}
}

// Empty is the body of a request or response without fields.
type Empty struct{}

// Secret is a store.Secret that JSON carries in plain text, while every other way of
// printing it shows dots. It is used only if a secret is sent in (a key, a credential) or
// is shown once (a new token).
type Secret struct{ store.Secret }

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{store.NewSecret(text)} }

// MarshalJSON writes the text itself.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.Reveal()) }

// DefaultSocket returns the path where nized listens unless --socket is given:
// $NIZE_SOCKET, else in $NIZE_DATA_DIR, else in systemd's $RUNTIME_DIRECTORY, else
// /run/nize for root under systemd, else $XDG_RUNTIME_DIR/nize, else in the data directory.
func DefaultSocket() string { return defaultSocket(os.Getenv, os.Getuid()) }

// FindDataDir returns the directory in which nizectl looks for the daemon's data: the
// default one, or the system's if only that exists.
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

// DataDirs returns the data directories whose owners nizectl trusts to listen on the
// socket: the one in use, and the system's.
func DataDirs() []string { return []string{FindDataDir(), systemDataDir} }

const (
	systemSocket    = "/run/nize/" + SocketName
	systemDataDir   = "/var/lib/nize"
	systemConfigDir = "/etc/nize"
)

// DefaultDataDir returns the directory in which nized keeps its state unless --data-dir is
// given: $NIZE_DATA_DIR, else systemd's $STATE_DIRECTORY, else /var/lib/nize for root under
// systemd, else $XDG_DATA_HOME/nize, else ~/.local/share/nize.
func DefaultDataDir() string { return defaultDataDir(os.Getenv, os.Getuid()) }

// DefaultConfig returns the path of the configuration file that nized reads unless --config
// is given: nized.toml in systemd's $CONFIGURATION_DIRECTORY, else in /etc/nize for root
// under systemd, else in $XDG_CONFIG_HOME/nize, else in ~/.config/nize.
func DefaultConfig() string { return defaultConfig(os.Getenv, os.Getuid()) }

// SocketIn returns the socket's path in a data directory that was given explicitly.
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
	// XDG: a relative path must be ignored.
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

// unitDir returns a directory that systemd made for the unit. The variable may list
// several; the first is nized's.
func unitDir(env func(string) string, name string) string {
	dir, _, _ := strings.Cut(env(name), ":")
	if !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// rootUnit reports whether the process runs as root in a system unit. A root login shell
// differs: it has an XDG_RUNTIME_DIR, and may have inherited an INVOCATION_ID.
func rootUnit(env func(string) string, uid int) bool {
	return uid == 0 && env("INVOCATION_ID") != "" && env("XDG_RUNTIME_DIR") == ""
}
