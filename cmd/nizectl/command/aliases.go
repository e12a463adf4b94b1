package command

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// shortNames are the additional names of a command, in every group that has it.
var shortNames = map[string][]string{
	"list":   {"ls"},
	"remove": {"rm"}, "revoke": {"rm"}, "unset": {"rm"},
	"add": {"create"},
}

// uncounted are names in -s that are not plurals.
var uncounted = []string{"status", "stats", "access"}

// AddAliases gives the commands below cmd their short names, and plural nouns their
// singular. It never takes the name of another command of the group.
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

// singular returns the singular of a plural noun, "" for other words.
func singular(name string) string {
	if one, plural := strings.CutSuffix(name, "s"); plural && !slices.Contains(uncounted, name) {
		return one
	}
	return ""
}

// shownNames returns the names shown by help, without the singular.
func shownNames(cmd *cli.Command) []string {
	return slices.DeleteFunc(cmd.Names(), func(name string) bool { return name == singular(cmd.Name) })
}
