//go:build !conformance

package mcp

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// hasFixtures says that the server has the conformance suite's tools, prompts
// and resources besides its own; see the build tag conformance.
const hasFixtures = false

// fixture is the tool that the suite calls by that name, "" for none.
func (s *Server) fixture(string) string { return "" }

// fixtureNeedsTask reports whether the suite wants a tool to be called as a task alone,
// as no tool of nize is.
func fixtureNeedsTask(string) bool { return false }

func addFixtureOptions(*sdk.ServerOptions) {}
func addFixtures(*sdk.Server)              {}
