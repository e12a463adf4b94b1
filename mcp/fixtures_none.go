//go:build !conformance

package mcp

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// hasFixtures is true if the server also has the conformance suite's tools, prompts and
// resources; see the build tag conformance.
const hasFixtures = false

// fixture returns the tool that the suite calls by that name, or "" if there is none.
func (s *Server) fixture(string) string { return "" }

// fixtureNeedsTask reports whether the suite requires the tool to be called only as a task,
// which no tool of nize requires.
func fixtureNeedsTask(string) bool { return false }

func addFixtureOptions(*sdk.ServerOptions) {}
func addFixtures(*sdk.Server)              {}
