//go:build !conformance

package mcp

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// hasFixtures says that the server has the conformance suite's tools, prompts
// and resources besides its own; see the build tag conformance.
const hasFixtures = false

func addFixtureOptions(*sdk.ServerOptions) {}
func addFixtures(*sdk.Server)              {}
