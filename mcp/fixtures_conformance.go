//go:build conformance

package mcp

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/fixtures"
)

// hasFixtures says that the server has the conformance suite's tools, prompts
// and resources besides its own. They stand behind all that it has before every
// request: the token, the exposure, the fast path, the elicitations.
const hasFixtures = true

// fixture is the tool that the suite calls by that name, "" for none: the server of
// scripts/conformance/server, registered under the name suite, has those of the
// scenarios on tasks.
func (s *Server) fixture(name string) string {
	if tool, ok := s.opt.Gateway.Catalog.Get("suite:" + name); ok {
		return tool.ID()
	}
	return ""
}

// fixtureNeedsTask reports whether the suite wants a tool to be called as a task alone,
// as no tool of nize is.
func fixtureNeedsTask(name string) bool { return name == "failing_job" }

func addFixtureOptions(opt *sdk.ServerOptions) { fixtures.Options(opt) }
func addFixtures(s *sdk.Server)                { fixtures.Add(s) }
