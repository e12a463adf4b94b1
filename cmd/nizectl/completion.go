package main

import (
	"context"
	"embed"

	"nize/cmd/nizectl/command"

	"github.com/urfave/cli/v3"
)

// The scripts are our own. The library's bash script evaluates the typed line, so that Tab
// runs a $(command) in it, and it doesn't work without the package bash-completion.
//
//go:embed completion/nizectl.*
var completionScripts embed.FS

// completionCommand adapts the library's command.
func completionCommand(a *command.App, c *cli.Command) {
	*c = *command.Group("completion", "print the completion script of a shell")
	for _, shell := range []struct{ name, usage, more string }{
		{"bash", "print the script for bash 3.2 and newer", "In ~/.bashrc: source <(nizectl completion bash)"},
		{"zsh", "print the script for zsh", "In ~/.zshrc, below compinit: source <(nizectl completion zsh)"},
		{"fish", "print the script for fish", "Once: nizectl completion fish > ~/.config/fish/completions/nizectl.fish"},
	} {
		c.Commands = append(c.Commands, a.Command(command.Leaf{Name: shell.name, Usage: shell.usage, More: shell.more,
			Run: func(_ context.Context, c *command.Call) error {
				script, err := completionScripts.ReadFile("completion/nizectl." + shell.name)
				if err != nil {
					return err
				}
				_, err = c.Out.Write(script)
				return err
			}}))
	}
}
