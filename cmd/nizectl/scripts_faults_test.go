package main

import (
	"github.com/rogpeppe/go-internal/testscript"

	"nize/llm/openai/openaitest"
)

// scriptFaults starts a model service of which every model does something else
// wrong. Its key is sk-fault-0123456789abcdef, and its address is that of the base
// URL.
func scriptFaults(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: faults VAR")
	}
	service := openaitest.New("sk-fault-0123456789abcdef")
	ts.Defer(func() {
		service.Close()
		for _, why := range service.Refused() {
			ts.Logf("no service would take a request: %s", why)
		}
		if len(service.Refused())+len(service.Strayed()) > 0 {
			ts.Fatalf("refused %q, elsewhere %q", service.Refused(), service.Strayed())
		}
	})
	ts.Setenv(args[0], service.URL+"/v1")
}
