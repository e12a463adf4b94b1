package control

import (
	"testing"

	"nize/mcp/policy"
	"nize/store"
)

// A standing "always" is for the definition that its giver saw, and is marked as void
// once that is another one or gone; a "never" holds for the name.
func TestVoidGrants(t *testing.T) {
	tools := map[string]*policy.Tool{"box:look": {Tool: store.Tool{Server: "box", Name: "look", Pin: "p2", Accepted: "p2", State: store.ToolAccepted}}, "box:held": {Tool: store.Tool{Server: "box", Name: "held", Pin: "p3", Accepted: "p2", State: store.ToolQuarantined}}}
	g := &Grants{FindTool: func(id string) (*policy.Tool, bool) { t, ok := tools[id]; return t, ok }}
	for want, grant := range map[string]store.Grant{
		"": {Tool: "box:look", Pin: "p2"},
		"the tool's definition has changed, and needs an admin's acceptance": {Tool: "box:held", Pin: "p2"},
		"the tool does not exist now":                                        {Tool: "box:gone", Pin: "p2"},
		"the tool's definition has changed; it needs approval again":         {Tool: "box:look", Pin: "p1"},
	} {
		if got := g.void(grant); got != want {
			t.Errorf("%+v: %q, want %q", grant, got, want)
		}
		if grant.Deny = true; g.void(grant) != "" {
			t.Errorf("%+v is void", grant)
		}
	}
}
