package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"
)

// verbs begin the line that help has of a command.
var verbs = strings.Fields(`acknowledge add allow answer ask assign call change check close compact confirm connect copy count create decide declare delete deny disable
	edit enable end erase explain export find forget import inspect let limit list make manage map offer print prove rank read refresh refuse
	register remove repeat replace reset revoke rewrite rotate run save seal search send serve set show sign start stop switch talk test try verify`)

// TestHelpLines: each command is explained by a verb phrase of at most ten words.
func TestHelpLines(t *testing.T) {
	n := 0
	var walk func(*cli.Command)
	walk = func(cmd *cli.Command) {
		for _, sub := range cmd.Commands {
			n++
			words := strings.Fields(sub.Usage)
			if len(words) == 0 || len(words) > 10 || !slices.Contains(verbs, strings.TrimSuffix(words[0], ",")) {
				t.Errorf("%s: %q", sub.FullName(), sub.Usage)
			}
			walk(sub)
		}
	}
	walk(allCommands(t))
	if n < 150 {
		t.Errorf("it saw %d commands only", n)
	}
}

// TestHelpGroups: the commands stand in their groups, in this order.
func TestHelpGroups(t *testing.T) {
	d := newDouble(t)
	got := d.nizectl(surroundings{}, "--help")
	at := 0
	for _, head := range []string{"\nGET STARTED:\n   status ", "\nCHAT AND APPROVE:\n   chat ", "\nTOOLS AND SERVERS:\n   servers ", "\nPEOPLE AND ACCESS:\n   users ", "\nMODELS AND COST:\n   providers ", "\nOPERATE:\n   config "} {
		i := strings.Index(got.out[at:], head)
		if i < 0 {
			t.Fatalf("no %q behind %q", head, got.out[:at])
		}
		at += i
	}
	for _, cmd := range commands().Commands {
		if cmd.Category == "" {
			t.Errorf("%s stands in no group", cmd.Name)
		}
	}
}

// TestHelpNarrow: on a narrow terminal no line is wider than that.
func TestHelpNarrow(t *testing.T) {
	d := newDouble(t)
	for _, args := range []string{"--help", "help", "servers --help", "servers add --help", "hook --help", "connect --help"} {
		got := d.nizectl(surroundings{tty: true, columns: 60, env: map[string]string{"NO_COLOR": "1"}}, strings.Fields(args)...)
		for line := range strings.Lines(got.out) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 60 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: %d columns: %s", args, n, line)
			}
		}
	}
}

// TestOtherNames: short and singular names reach the commands they stand for, and
// take nothing away from a command of that name.
func TestOtherNames(t *testing.T) {
	root := commands()
	for name, want := range map[string]string{
		"server ls": "servers list", "servers rm": "servers remove", "token create": "tokens add", "tokens rm": "tokens revoke",
		"model set": "models add", "agent set": "agents add", "budget set": "budgets add", "credential set": "credentials add", "channel": "",
		"bots channel set": "bots channels add", "bots channels rm": "bots channels unset", "config rm": "config unset", "config set": "config set",
		"project key create": "projects keys add", "tools renderer set": "tools renderer add", "approval grant ls": "approvals grants list",
		"tool domain": "tools domains", "hook add": "hook add", "alert ls": "alerts list", "statu": "", "documents rm": "documents remove",
		"provider create": "providers add", "ask stats": "asks stats", "chat ls": "chat list", "login rm": "login revoke",
	} {
		at, path := root, []string{}
		for _, word := range strings.Fields(name) {
			if at != nil {
				at = at.Command(word)
			}
			if at != nil {
				path = append(path, at.Name)
			}
		}
		got := ""
		if at != nil {
			got = strings.Join(path, " ")
		}
		if got != want {
			t.Errorf("%q reaches %q, want %q", name, got, want)
		}
	}
	var walk func(*cli.Command)
	walk = func(cmd *cli.Command) {
		owner := map[string]string{}
		for _, sub := range cmd.Commands {
			for _, name := range sub.Names() {
				if owner[name] != "" {
					t.Errorf("%s: %s and %s are both called %s", cmd.Name, owner[name], sub.Name, name)
				}
				owner[name] = sub.Name
			}
			walk(sub)
		}
	}
	walk(root)
}
