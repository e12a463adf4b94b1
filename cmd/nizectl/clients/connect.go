package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/daemon/mcpfile"
	"nize/store"
)

// ConnectCommand is `nizectl connect`.
func ConnectCommand(a *command.App) *cli.Command {
	names := command.Each(clients, func(c client) string { return c.name })
	return a.Command(command.Leaf{Name: "connect", Args: "[CLIENT]", Usage: "connect an MCP client of this machine", Names: command.Fixed(names...), Run: connect,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "write", Usage: "write it into the client's own file, change nothing else, and keep a copy of the old file"},
			&cli.StringFlag{Name: "file", Usage: "use this `FILE` instead of the client's own, such as a project's"},
			&cli.BoolFlag{Name: "hooks", Usage: "instead of the entry, install the hook with which the client asks nize before it runs its own tools (" + strings.Join(hookNames(), ", ") + ")"},
			&cli.StringFlag{Name: "name", Value: "nize", Usage: "the server's name there"},
		},
		More: "Without CLIENT it lists the clients, and which of them are installed here.\nIt prints the entry by which the client starts nizectl mcp, or writes it into its file.\n" +
			"CLIENT is " + strings.Join(names, ", ") + ".\n" +
			"nizectl connect claude-desktop --write\n" +
			"nizectl connect vscode --file .vscode/mcp.json --write\n" +
			"nizectl connect claude-code --hooks --write"})
}

// entryName matches names that every client accepts.
var entryName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// connected is the --json output of connect.
type connected struct {
	Client  string          `json:"client"`
	File    string          `json:"file"`
	Entry   mcpfile.Command `json:"entry"`
	Text    string          `json:"text"` // of a file with only this entry
	Written bool            `json:"written"`
	Backup  string          `json:"backup,omitempty"`
}

func connect(ctx context.Context, c *command.Call) error {
	if len(c.Args) == 0 {
		return list(c)
	}
	i := slices.IndexFunc(clients, func(one client) bool { return one.name == c.Arg(0) })
	if i < 0 {
		names := command.Each(clients, func(c client) string { return c.name })
		if near := store.Nearest(c.Arg(0), names); near != "" {
			return command.Usagef("unknown client %q; did you mean %s?", c.Arg(0), near)
		}
		return command.Usagef("unknown client %q: there are %s; for another, let it start: %s mcp", c.Arg(0), strings.Join(names, ", "), program())
	}
	one, name, hooks := clients[i], c.Cmd.String("name"), c.Cmd.Bool("hooks")
	if hooks {
		var err error
		if one, err = hookClient(one); err != nil {
			return err
		}
	}
	if !entryName.MatchString(name) {
		return command.Usagef("--name %q: use letters, digits, - and _", name)
	}
	if err := c.API.Locate(); err != nil && !errors.Is(err, api.ErrNoDaemon) { // the entry may be created before the daemon runs
		return err
	}
	socket, err := filepath.Abs(c.API.Socket)
	if err != nil {
		return fmt.Errorf("finding the socket: %w", err)
	}
	out := connected{Client: one.name, File: c.Cmd.String("file"), Entry: one.entry(program(), socket)}
	if hooks {
		out.Entry = hookEntry(one, program(), socket)
	}
	if out.File == "" {
		home, err := api.Home()
		if err != nil {
			return fmt.Errorf("finding the file of %s: %w, or name the file with --file", one.title, err)
		}
		out.File = one.file(where{mac: runtime.GOOS == "darwin", home: home, env: c.Env})
	}
	alone, _, err := one.form(nil, one.key, name, one.written(name, out.Entry))
	if err != nil {
		return fmt.Errorf("making the entry: %w", err)
	}
	out.Text = string(alone)
	if c.Cmd.Bool("write") {
		if err := write(&out, one, name, c.Now()); err != nil {
			return err
		}
	}
	if hooks && c.Cmd.Bool("write") {
		name = "the hook"
		addSource(ctx, c, one)
	}
	if c.JSON {
		return c.PrintJSON(out)
	}
	switch {
	case out.Backup != "":
		c.Note("%s: %s is in it now; the old file is %s; %s", out.File, name, out.Backup, one.after)
	case out.Written:
		c.Note("%s: made, with %s in it; %s", out.File, name, one.after)
	case c.Cmd.Bool("write"):
		c.Note("%s: %s was in it already", out.File, name)
	default:
		hint := one.name
		if hooks {
			hint += " --hooks"
		}
		c.Line("%s", display.CleanLines(strings.TrimRight(out.Text, "\n")))
		c.Note("%s reads this from %s; to put it there: nizectl connect %s --write", one.title, out.File, hint)
	}
	return nil
}

// program returns the path by which this program is found, which stays the same when a
// package manager installs a new version.
func program() string {
	self, err := os.Executable()
	if err != nil {
		self = "nizectl"
	}
	found, err := exec.LookPath("nizectl")
	if err != nil {
		return self
	}
	if found, err = filepath.Abs(found); err != nil {
		return self
	}
	a, errA := os.Stat(self)
	b, errB := os.Stat(found)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return found
	}
	return self
}

// write changes the client's file; it follows a link. It keeps the old text in a backup
// beside the file before changing anything, and replaces the file atomically.
func write(out *connected, one client, name string, now time.Time) error {
	path := out.File
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	text, mode, err := readFile(path)
	if err != nil {
		return err
	}
	next, changed, err := one.form(text, one.key, name, one.written(name, out.Entry))
	if errors.Is(err, mcpfile.ErrForm) || errors.Is(err, store.ErrInvalid) {
		return fmt.Errorf("%s was left as it is: %w; put this into it by hand:\n%s", out.File, err, out.Text)
	}
	if err != nil || !changed {
		return err
	}
	if text != nil {
		out.Backup = path + now.Format(".20060102-150405.bak")
		if err := writeFile(out.Backup, text, mode); err != nil {
			return err
		}
	} else if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	if again, _, err := readFile(path); err != nil || !bytes.Equal(again, text) {
		return command.Failf(1, "%s changed meanwhile and was not modified; quit %s, then try again", out.File, one.title)
	}
	out.Written = true
	return writeFile(path, next, mode)
}

// maxFile limits a client's file.
const maxFile = mcpfile.MaxSize

// readFile returns a file's text, nil if it doesn't exist, and its mode.
func readFile(path string) ([]byte, fs.FileMode, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading the file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, command.Usagef("%s is not a file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	return append([]byte{}, text...), info.Mode().Perm(), nil
}

// writeFile replaces a file atomically, with that mode.
func writeFile(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".nizectl-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it may have been renamed
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
