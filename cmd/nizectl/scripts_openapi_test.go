package main

import (
	"github.com/rogpeppe/go-internal/testscript"

	"nize/mcp/upstream/openapi/openapitest"
)

type serviceKey struct{}

// scriptService starts a service made from an OpenAPI document, which judges each request
// by it, or replaces the document of one that runs.
func scriptService(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: service VAR FILE")
	}
	running := ts.Value(serviceKey{}).(map[string]*openapitest.Service)
	raw := []byte(ts.ReadFile(args[1]))
	if s := running[args[0]]; s != nil {
		ts.Check(s.Set(raw))
		return
	}
	s, err := openapitest.Start(raw, "/v1")
	ts.Check(err)
	ts.Defer(s.Close)
	running[args[0]] = s
	ts.Setenv(args[0], s.URL)
}
