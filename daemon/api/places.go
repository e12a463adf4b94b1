package api

import (
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// SocketNote is the file in the data directory that contains the path of the control
// socket. It lets a nizectl with a different environment than nized, such as one in a cron
// job, find the socket.
const SocketNote = "nized.control"

// Sockets returns the control sockets that nizectl tries unless --socket is given, in
// order: those of this user's nized, then the system's, then those of the user who became
// root by sudo or pkexec. named is true if the environment names one (NIZE_SOCKET,
// NIZE_DATA_DIR); only that one is then returned. The list is never empty.
func Sockets() (list []string, named bool) {
	return sockets(os.Getenv, os.Getuid(), readSocketNote, homeInDatabase)
}

// sockets is Sockets for a given environment. note returns the content of a data
// directory's note, and home returns a user's home in the password database; both return ""
// for none.
func sockets(env func(string) string, uid int, note, home func(string) string) (list []string, named bool) {
	add := func(paths ...string) {
		for _, p := range paths {
			if p != "" && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	if s := env("NIZE_SOCKET"); s != "" {
		return []string{s}, true
	}
	if dir := env("NIZE_DATA_DIR"); dir != "" {
		add(SocketIn(dir), note(dir))
		return list, true
	}
	add(defaultSocket(env, uid))
	add(SocketIn(filepath.Join("/run/user", strconv.Itoa(uid), "nize")))
	dirs := []string{defaultDataDir(env, uid), dataIn(homeDir(env, uid))}
	if own := home(strconv.Itoa(uid)); own != "" { // su keeps the caller's HOME, and cron may set another one
		dirs = append(dirs, dataIn(own))
	}
	for _, dir := range append(dirs, systemDataDir) {
		if dir == systemDataDir {
			add(systemSocket)
		}
		add(note(dir), SocketIn(dir))
	}
	if before, ok := userBefore(env, uid); ok {
		add(SocketIn(filepath.Join("/run/user", before, "nize")))
		if dir := home(before); dir != "" {
			add(note(dataIn(dir)), SocketIn(dataIn(dir)))
		}
	}
	return list, false
}

func dataIn(home string) string { return filepath.Join(home, ".local", "share", "nize") }

// UserBefore returns the id of the user who became root by sudo or pkexec to run this
// process.
func UserBefore() (uid string, ok bool) { return userBefore(os.Getenv, os.Getuid()) }

func userBefore(env func(string) string, uid int) (string, bool) {
	if uid != 0 { // any user can set a variable
		return "", false
	}
	for _, name := range []string{"SUDO_UID", "PKEXEC_UID"} {
		if id, err := strconv.ParseUint(env(name), 10, 32); err == nil && id != 0 {
			return strconv.FormatUint(id, 10), true
		}
	}
	return "", false
}

// homeInDatabase returns the home directory of a user id in the password database.
func homeInDatabase(uid string) string {
	u, err := user.LookupId(uid)
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return ""
	}
	return u.HomeDir
}

// maxNote bounds the note: no socket's path is longer.
const maxNote = 4 << 10

// readSocketNote reads the note in a data directory. It returns "" if the note is not an
// absolute path.
func readSocketNote(dir string) string {
	f, err := os.Open(filepath.Join(dir, SocketNote))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxNote))
	path := strings.TrimSpace(string(b))
	if err != nil || !filepath.IsAbs(path) || strings.ContainsAny(path, "\r\n\x00") {
		return ""
	}
	return path
}

// homeDir returns the user's home. Services often start without HOME. It returns the root
// directory if the home is unknown: nizectl may look there, but nized keeps nothing there,
// see [CheckDataDir].
func homeDir(env func(string) string, uid int) string {
	dir, ok := knownHome(env, uid)
	if !ok {
		return "/"
	}
	return dir
}

// knownHome returns the home from HOME, else from the password database. It ignores a
// relative path, which would depend on the working directory.
func knownHome(env func(string) string, uid int) (dir string, ok bool) {
	if dir := env("HOME"); filepath.IsAbs(dir) {
		return dir, true
	}
	dir = homeInDatabase(strconv.Itoa(uid))
	return dir, dir != ""
}

// CheckDataDir returns an error if [DefaultDataDir] needs a home directory and none is
// known.
func CheckDataDir() error { return checkDataDir(os.Getenv, os.Getuid()) }

func checkDataDir(env func(string) string, uid int) error {
	_, known := knownHome(env, uid)
	elsewhere := func(name string) string { // A placeholder home shows whether the default depends on one.
		if name == "HOME" {
			return "/\x00"
		}
		return env(name)
	}
	if known || !strings.Contains(defaultDataDir(elsewhere, uid), "\x00") {
		return nil
	}
	return fmt.Errorf("%w: say where to keep the data with --data-dir", noHome(uid))
}

// Home returns the user's home directory, from HOME or the password database.
func Home() (string, error) { return home(os.Getenv, os.Getuid()) }

func home(env func(string) string, uid int) (string, error) {
	if dir, ok := knownHome(env, uid); ok {
		return dir, nil
	}
	return "", fmt.Errorf("%w: set HOME", noHome(uid))
}

func noHome(uid int) error {
	return fmt.Errorf("there is no HOME, and no home of user %d in the password database", uid)
}

// LoginName returns a user id's name in the password database, or "user N" if it has none.
func LoginName(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil && u.Username != "" {
		return u.Username
	}
	return "user " + id
}
