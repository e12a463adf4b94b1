// Package nize embeds the pages of documentation, so that `nizectl help TOPIC` can print them.
// It is at the module's root because go:embed reads only below its own directory.
package nize

import (
	"embed"
	"slices"
	"strings"
)

//go:embed README.md COMPARISON.md SECURITY.md THREATS.md UPGRADE.md COMPATIBILITY.md CHANGELOG.md CONTRIBUTING.md
//go:embed cmd/nizectl/README.md bots/slack/README.md mcp/README.md llm/README.md
//go:embed bots/discord/README.md bots/web/README.md daemon/README.md daemon/standby/README.md store/README.md scripts/bench/README.md
var pages embed.FS

// Topic is one page.
type Topic struct{ Name, About, Path string }

// Topics are the pages in reading order for a newcomer.
var Topics = []Topic{
	{"nize", "what it is, and a tour", "README.md"},
	{"cli", "everyday work: servers, tools, chat, tokens, people", "cmd/nizectl/README.md"},
	{"slack", "set up Slack; what people can say; channels; limits", "bots/slack/README.md"},
	{"discord", "set up Discord; who may use nize there; limits", "bots/discord/README.md"},
	{"browser", "the chat page: opening it, its cards", "bots/web/README.md"},
	{"gateway", "approvals and approvers, discovery, MCP clients", "mcp/README.md"},
	{"assistant", "providers, models, agents, usage, prices, budgets", "llm/README.md"},
	{"operating", "install, upgrade, alerts, audit, backup, configuration", "daemon/README.md"},
	{"upgrade", "upgrading and downgrading", "UPGRADE.md"},
	{"machines", "capacity, several machines, PostgreSQL", "daemon/standby/README.md"},
	{"store", "what is stored, for how long, and the guarantees", "store/README.md"},
	{"figures", "measurements and methods", "scripts/bench/README.md"},
	{"compare", "nize compared with similar projects, and its limits", "COMPARISON.md"},
	{"security", "supported versions, reporting vulnerabilities", "SECURITY.md"},
	{"threats", "threats, defenses with their tests, and limits", "THREATS.md"},
	{"compatibility", "what is stable, and how features are deprecated", "COMPATIBILITY.md"},
	{"changelog", "changes by version", "CHANGELOG.md"},
	{"contributing", "layers, tests, style, checklists", "CONTRIBUTING.md"},
}

// sourceParts are the parts of pages about the source, which a reader in a terminal doesn't have.
var sourceParts = []string{"Where the code is", "The map", "How it is made"}

// Text returns the page as Markdown, without the parts about the source.
func (t Topic) Text() string {
	text, err := pages.ReadFile(t.Path)
	if err != nil {
		panic(err) // a programming error: it is not embedded
	}
	parts := strings.Split(string(text), "\n## ")
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool {
		head, _, _ := strings.Cut(part, "\n")
		return slices.Contains(sourceParts, head)
	}), "\n## ")
}
