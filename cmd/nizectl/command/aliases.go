package command

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// shortNames are the names that a command is known by besides its own, in every
// group that has it.
var shortNames = map[string][]string{
	"list":   {"ls"},
	"remove": {"rm"}, "revoke": {"rm"}, "unset": {"rm"},
	"add": {"create"},
}

// uncounted are names in -s that are no plural.
var uncounted = []string{"status", "stats", "access"}

// AddAliases gives the commands below cmd their short names, and plural nouns
// their singular. A name that another command of the group has stays that
// command's.
func AddAliases(cmd *cli.Command) {
	for _, sub := range cmd.Commands {
		names := shortNames[sub.Name]
		if one := singular(sub.Name); one != "" {
			names = append(slices.Clone(names), one)
		}
		for _, name := range names {
			if cmd.Command(name) == nil {
				sub.Aliases = append(sub.Aliases, name)
			}
		}
		AddAliases(sub)
	}
}

// singular is the singular of a noun in the plural, "" for other words.
func singular(name string) string {
	if one, plural := strings.CutSuffix(name, "s"); plural && !slices.Contains(uncounted, name) {
		return one
	}
	return ""
}

// shownNames are the names that help shows: the singular goes without saying.
func shownNames(cmd *cli.Command) []string {
	return slices.DeleteFunc(cmd.Names(), func(name string) bool { return name == singular(cmd.Name) })
}
