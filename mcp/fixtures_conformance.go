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

func addFixtureOptions(opt *sdk.ServerOptions) { fixtures.Options(opt) }
func addFixtures(s *sdk.Server)                { fixtures.Add(s) }
