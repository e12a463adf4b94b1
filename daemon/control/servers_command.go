package control

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/store"
)

// checkCommand resolves the command once, at registration: the path that was shown is the
// one that will be run, even if PATH changes later. It also finds a program in nized's own
// directory.
func checkCommand(s *store.Server) error {
	if s.URL != "" {
		return fmt.Errorf("%w server: a stdio server has no URL", store.ErrInvalid)
	}
	if s.Command == "" {
		return fmt.Errorf("%w server: give a command after --, or --url", store.ErrInvalid)
	}
	path, err := exec.LookPath(s.Command)
	if err != nil {
		own, ownErr := os.Executable()
		beside := filepath.Join(filepath.Dir(own), s.Command)
		if ownErr == nil && !strings.Contains(s.Command, "/") && isProgram(beside) {
			path, err = beside, nil
		}
	}
	if err != nil {
		return fmt.Errorf("%w command %q: %s", store.ErrInvalid, store.Clip(s.Command, 200), commandFault(s.Command))
	}
	if path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("resolving %s: %w", s.Command, err)
	}
	if why := interpreterFault(path); why != "" {
		return fmt.Errorf("%w command %q: %s", store.ErrInvalid, store.Clip(s.Command, 200), why)
	}
	s.Command = path
	if s.Cwd != "" {
		if fi, err := os.Stat(s.Cwd); err != nil || !fi.IsDir() || !filepath.IsAbs(s.Cwd) {
			return fmt.Errorf("%w working directory %q: %s", store.ErrInvalid, store.Clip(s.Cwd, 200), directoryFault(s.Cwd))
		}
	}
	return nil
}

// isProgram reports whether a file is executable.
func isProgram(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
}

// windowsShells are programs that exist only on Windows.
var windowsShells = []string{"cmd", "powershell", "wsl", "wscript", "cscript"}

// commandFault returns why a command can't be started, as far as that can be checked.
func commandFault(command string) string {
	if why := pathFault(command); why != "" {
		return why
	}
	bare := strings.ToLower(strings.TrimSuffix(command, ".exe"))
	for _, end := range []string{".cmd", ".bat", ".exe"} {
		name := command[:max(0, len(command)-len(end))]
		if strings.HasSuffix(strings.ToLower(command), end) && !slices.Contains(windowsShells, bare) && !strings.Contains(command, "/") {
			return fmt.Sprintf("it is called so on Windows only: write %s", name)
		}
	}
	if slices.Contains(windowsShells, bare) {
		return "it is a shell of Windows: write the command that stands behind its /c"
	}
	if why := lineFault(command); why != "" {
		return why
	}
	if !strings.Contains(command, "/") {
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if fi, err := os.Stat(filepath.Join(dir, command)); err == nil && fi.Mode().IsRegular() {
				return fileFault(filepath.Join(dir, command))
			}
		}
		return "it is not in the daemon's PATH; give its absolute path"
	}
	return fileFault(command)
}

// pathFault returns why a path can't be valid on this machine.
func pathFault(path string) string {
	system := store.ForeignPath(path)
	switch _, err := os.Stat(path); {
	case err == nil:
		return ""
	case strings.TrimSpace(path) != path:
		return "it has spaces around it: write it without"
	case strings.HasPrefix(path, "~"):
		return "~ means a home to a shell only: write the whole path" + example(path)
	case strings.HasPrefix(path, "$") || strings.Contains(path, "${"):
		return "it holds a variable, which only a shell fills in: write the whole path"
	case system != "":
		return fmt.Sprintf("it is a path of %s, and not of this machine: write where the program is here", system)
	}
	return ""
}

// example returns the path in the home directory of nized's user, if that file exists.
func example(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	home, err := api.Home()
	if !ok || err != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(home, rest)); err != nil {
		return ""
	}
	return ", " + filepath.Join(home, rest)
}

// lineFault returns an error text if a command is a whole command line. A path may contain
// spaces, too: it is a line if its first word is a command, or a later one an option.
func lineFault(command string) string {
	fields := strings.Fields(command)
	if len(fields) < 2 {
		return ""
	}
	if _, err := os.Stat(command); err == nil {
		return ""
	}
	first := strings.Trim(fields[0], `"'`)
	_, err := exec.LookPath(first)
	option := slices.ContainsFunc(fields[1:], func(w string) bool { return strings.HasPrefix(w, "-") })
	if err != nil && !option && strings.Contains(first, "/") {
		return ""
	}
	return fmt.Sprintf("it is a whole command line: the command is %q alone, and each of the other words is an argument of its own", store.Clip(first, 100))
}

// fileFault returns why a file can't be started.
func fileFault(path string) string {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "nized's user may not look into its directory"
	case err != nil && !filepath.IsAbs(path):
		return "there is no such file below nized's own working directory: give its absolute path"
	case err != nil:
		return "there is no such file on nized's machine"
	case fi.IsDir():
		return "it is a directory: give the program in it"
	case !fi.Mode().IsRegular():
		return "it is no file that can be started"
	case fi.Mode()&0o111 == 0:
		at := path
		if abs, err := filepath.Abs(path); err == nil {
			at = abs
		}
		if by := interpreters[strings.ToLower(filepath.Ext(path))]; by != "" {
			return fmt.Sprintf("%s is not executable: chmod +x it, or give %s as the command and the file as its first argument", at, by)
		}
		return at + " is not executable: chmod +x it"
	}
	return "nized's user may not start it"
}

// interpreters are the programs that run files, by extension.
var interpreters = map[string]string{".py": "python3", ".js": "node", ".mjs": "node", ".cjs": "node", ".sh": "sh", ".rb": "ruby", ".pl": "perl"}

// interpreterFault returns an error text if a script's first line names a missing
// interpreter. The system would report "no such file" for the script itself.
func interpreterFault(path string) string {
	if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return "" // it may be executable but not readable
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n') // the kernel reads no more
	rest, ok := strings.CutPrefix(line, "#!")
	words := strings.Fields(rest)
	if !ok || len(words) == 0 || !filepath.IsAbs(words[0]) {
		return ""
	}
	if strings.HasSuffix(line, "\r\n") {
		return "its lines end as on Windows, so that its interpreter is not found: convert it, for instance with dos2unix"
	}
	if _, err := os.Stat(words[0]); errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("its first line names the interpreter %s, which is not there", store.Clip(words[0], 100))
	}
	return ""
}

// directoryFault returns why a path can't be a working directory.
func directoryFault(path string) string {
	if why := pathFault(path); why != "" {
		return why
	}
	return "it must be an absolute path of a directory"
}
