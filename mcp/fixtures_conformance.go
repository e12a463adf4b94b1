//go:build conformance

package mcp

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/fixtures"
)

// hasFixtures is true if the server also has the conformance suite's tools, prompts and
// resources. Requests for them pass everything that precedes each request: the token check,
// the exposure, the fast path, the elicitations.
const hasFixtures = true

// fixture returns the tool that the suite calls by that name, or "" if there is none. The
// server of scripts/conformance/server, registered under the name suite, has the tools of
// the scenarios on tasks.
func (s *Server) fixture(name string) string {
	if tool, ok := s.opt.Gateway.Catalog.Get("suite:" + name); ok {
		return tool.ID()
	}
	return ""
}

// fixtureNeedsTask reports whether the suite requires the tool to be called only as a task,
// which no tool of nize requires.
func fixtureNeedsTask(name string) bool { return name == "failing_job" }

func addFixtureOptions(opt *sdk.ServerOptions) { fixtures.Options(opt) }
func addFixtures(s *sdk.Server)                { fixtures.Add(s) }
