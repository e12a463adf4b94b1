package mcp_test

import (
	"testing"

	"nize/store"
)

// A server that a person switched off is off for everything done on their behalf, in Why as
// well as in calls, and stays on for everybody else.
func TestServerSwitchedOff(t *testing.T) {
	h := newFixture(t, nil)
	ctx := t.Context()
	for denied, command := range map[string]string{
		"box":       "nizectl config unset servers.denied --user " + h.member.User,
		"a,box,zoo": "nizectl config set servers.denied a,zoo --user " + h.member.User,
	} {
		h.config.set("servers.denied", denied)
		w, err := h.gateway.Policy.Explain(ctx, h.root, h.member, store.Scope{}, "box:look")
		if err != nil {
			t.Fatal(err)
		}
		if d := decides(w.Rules); w.Usable || d.Rule != "choice" || d.Command != command {
			t.Errorf("denied %q: %+v", denied, w)
		}
		if _, err := h.gateway.Discovery.Describe(ctx, h.member, store.Scope{}, "box:look"); err == nil {
			t.Errorf("denied %q: the tool is described all the same", denied)
		}
	}
	h.config.set("servers.denied", "boxer,bo")
	if _, err := h.gateway.Discovery.Describe(ctx, h.member, store.Scope{}, "box:look"); err != nil {
		t.Errorf("others are off: %v", err)
	}
}
