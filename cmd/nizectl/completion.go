package main

import (
	"context"
	"embed"

	"github.com/urfave/cli/v3"
)

// The scripts are our own. The library's bash script evaluates the line that
// was typed, so that Tab runs a $(command) in it, and does nothing where the
// package bash-completion lacks.
//
//go:embed completion
var completionScripts embed.FS

// completion makes the library's command ours.
func (a *app) completion(c *cli.Command) {
	*c = *group("completion", "print the completion script of a shell")
	for _, shell := range []struct{ name, usage, more string }{
		{"bash", "for bash 3.2 and newer", "In ~/.bashrc: source <(nizectl completion bash)"},
		{"zsh", "for zsh", "In ~/.zshrc, below compinit: source <(nizectl completion zsh)"},
		{"fish", "for fish", "Once: nizectl completion fish > ~/.config/fish/completions/nizectl.fish"},
	} {
		c.Commands = append(c.Commands, a.command(leaf{name: shell.name, usage: shell.usage, more: shell.more,
			run: func(_ context.Context, c *call) error {
				script, err := completionScripts.ReadFile("completion/nizectl." + shell.name)
				if err != nil {
					return err
				}
				_, err = c.out.Write(script)
				return err
			}}))
	}
}
