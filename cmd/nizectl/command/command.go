package command

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

// Leaf is a command with an action.
type Leaf struct {
	Name    string
	Aliases []string // in addition to those of [AddAliases]
	Args    string   // "NAME [TOOL]", "NAME COMMAND..."; the arguments are checked against it
	Usage   string
	More    string // shown by --help below the usage
	Flags   []cli.Flag
	Names   Completer // of the first argument
	IDs     Finder    // of the first argument, if it is an id; a unique prefix is also accepted
	Run     func(ctx context.Context, c *Call) error
}

// Call is one run of a leaf.
type Call struct {
	*App
	Cmd  *cli.Command
	Args []string
	JSON bool
	API  *api.Client
}

// Arg returns an argument, "" if it was not given.
func (c *Call) Arg(i int) string {
	if i < len(c.Args) {
		return c.Args[i]
	}
	return ""
}

// Group returns a noun: a command with subcommands and no action.
func Group(name, usage string, commands ...*cli.Command) *cli.Command {
	return &cli.Command{Name: name, Usage: usage, Commands: commands, Action: UnknownCommand, OnUsageError: WrongUse, CommandNotFound: ownHelp}
}

// ownHelp prints the help of cmd if --help follows an argument: the library would look for
// a command of that name.
func ownHelp(ctx context.Context, cmd *cli.Command, _ string) {
	_ = cli.ShowCommandHelp(ctx, cmd.Lineage()[1], cmd.Name) // the parent command has it
}

// Command returns the library's command for a leaf. It prevents what the library does by
// default: ignoring extra arguments, printing help to standard output on wrong use, cutting
// values of repeated flags at commas, and showing 0 as the default of a number that has
// none or another one.
func (a *App) Command(l Leaf) *cli.Command {
	for _, f := range l.Flags {
		switch f := f.(type) {
		case *cli.IntFlag:
			f.HideDefault = true
		case *cli.FloatFlag:
			f.HideDefault = true
		}
	}
	if l.Names == nil {
		l.Names = l.IDs.names()
	}
	return &cli.Command{
		Name:                      l.Name,
		Aliases:                   l.Aliases,
		ArgsUsage:                 l.Args,
		Usage:                     l.Usage,
		Description:               l.More,
		Flags:                     l.Flags,
		DisableSliceFlagSeparator: true,
		OnUsageError:              WrongUse,
		CommandNotFound:           ownHelp,
		ShellComplete:             a.complete(l),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			args := cmd.Args().Slice()
			if len(args) > 0 && len(Visible(cmd)) > 0 {
				return UnknownCommand(ctx, cmd)
			}
			if err := checkArgs(cmd, l.Args, args); err != nil {
				return err
			}
			c := &Call{App: a, Cmd: cmd, Args: args, JSON: cmd.Bool("json"), API: a.Client(cmd.String("socket"))}
			defer c.API.Close()
			if l.IDs != nil && len(c.Args) > 0 {
				id, err := WholeID(ctx, c.API, c.Args[0], l.IDs)
				if err != nil {
					return err
				}
				c.Args[0] = id
			}
			return l.Run(ctx, c)
		},
	}
}

// Client returns a client for the daemon at that socket; "" is the socket named by the
// environment, or else the first of nized's default sockets that a daemon answers at.
func (a *App) Client(socket string) *api.Client {
	var list []string
	if socket == "" {
		list, _ = api.Sockets()
		socket = list[0]
	}
	client := api.New(socket)
	if len(list) > 1 {
		client.Find = func() (string, error) { return findSocket(list, probeTime, a.note) }
	}
	client.Distrust = func(c net.Conn) error { return checkListener(c, c.RemoteAddr().String()) }
	client.Warn = a.note
	return client
}

// note prints a line beside the answer.
func (a *App) note(line string) { fmt.Fprintln(a.Err, "nizectl: "+display.Clean(line)) }

// checkArgs compares the arguments with their form: capital words in order, [optional] ones
// last, "..." after one that may be repeated.
func checkArgs(cmd *cli.Command, form string, args []string) error {
	words := strings.Fields(form)
	need, most := 0, 0
	for _, w := range words {
		switch {
		case w == "[--]":
			continue
		case strings.Contains(w, "..."):
			most = len(args)
		default:
			most++
		}
		if !strings.HasPrefix(w, "[") {
			need++
		}
	}
	path := shortPath(cmd)
	if len(args) < need {
		return Usagef("%s needs %s: nizectl %s %s", path, missing(words, len(args)), path, form)
	}
	if len(args) > max(most, need) {
		if form == "" {
			return Usagef("%s takes no arguments, but got %q: see nizectl %s --help", path, args[most], path)
		}
		return Usagef("%s got one argument too many, %q: nizectl %s %s", path, args[most], path, form)
	}
	for i, arg := range args[:min(need, len(args))] {
		if strings.TrimSpace(arg) == "" {
			return Usagef("%s: %s is empty: nizectl %s %s", path, missing(words, i), path, form)
		}
	}
	return nil
}

// missing returns the first missing argument.
func missing(words []string, have int) string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "[--]" })
	return strings.Trim(words[have], "[].")
}

// otherNames are the names of the same commands in other programs. A group has at most one
// of each set.
var otherNames = map[string][]string{
	"rm": removes, "del": removes, "delete": removes, "remove": removes, "uninstall": removes, "unset": removes, "revoke": removes,
	"ls": {"list"}, "ps": {"list"}, "all": {"list"},
	"get": shows, "info": shows, "inspect": shows, "describe": shows, "view": shows, "cat": shows,
	"new": adds, "create": adds, "add": adds, "install": adds, "register": adds, "make": adds,
	"update": changes, "change": changes, "modify": changes, "edit": changes,
	"run": {"call"}, "exec": {"call"}, "execute": {"call"}, "find": {"search"},
	"start": {"enable"}, "stop": {"disable"},
}

var (
	removes = []string{"remove", "revoke", "clear"}
	shows   = []string{"show"}
	adds    = []string{"add", "create", "set"}
	changes = []string{"edit", "set"}
)

// UnknownCommand is the action of a group: it was called without a command, or with an
// unknown one.
func UnknownCommand(_ context.Context, cmd *cli.Command) error {
	path := cmd.FullName()
	names := Visible(cmd)
	if cmd.Args().Present() {
		word := cmd.Args().First()
		for _, other := range otherNames[strings.ToLower(word)] {
			if sub := cmd.Command(other); sub != nil && !sub.Hidden {
				return Usagef("unknown command %q; did you mean %s %s?", word, path, sub.Name)
			}
		}
		if near := store.Nearest(word, names); near != "" {
			return Usagef("unknown command %q; did you mean %s %s?", word, path, near)
		}
		return Usagef("unknown command %q: %s has %s", word, path, strings.Join(names, ", "))
	}
	return Usagef("name a command: %s %s (see %s --help)", path, strings.Join(names, "|"), path)
}

// shortPath returns the command without "nizectl", which begins every message anyway.
func shortPath(cmd *cli.Command) string { return strings.TrimPrefix(cmd.FullName(), "nizectl ") }

// Visible returns the names of a command's subcommands that aren't hidden.
func Visible(cmd *cli.Command) []string {
	var names []string
	for _, sub := range cmd.Commands {
		if !sub.Hidden {
			names = append(names, sub.Name)
		}
	}
	return names
}

// WrongUse converts the library's error about flags into one line with a remedy.
func WrongUse(_ context.Context, cmd *cli.Command, err error, _ bool) error {
	path, text := cmd.FullName(), err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		if near := store.Nearest(strings.TrimLeft(name, "-"), flagNames(cmd)); near != "" {
			return Usagef("unknown flag %s; did you mean --%s?", dashed(name), near)
		}
		return Usagef("unknown flag %s: see %s --help (put -- before a command's own flags)", dashed(name), path)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return Usagef("flag %s needs a value: see %s --help", dashed(name), path)
	}
	if i := strings.Index(text, ": strconv."); i >= 0 {
		text = text[:i]
	}
	return Usagef("%s: see %s --help", text, path)
}

func dashed(name string) string {
	name = strings.TrimLeft(name, "-")
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func flagNames(cmd *cli.Command) []string {
	var names []string
	for _, c := range cmd.Lineage() {
		for _, f := range c.VisibleFlags() {
			names = append(names, f.Names()[0])
		}
	}
	return names
}
