package daemon_test

import (
	"errors"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// A credential that was set before its server existed is bound to the server's
// host, sent there and nowhere else, and makes admins the ones who decide.
func TestCredentialOfAServer(t *testing.T) {
	t.Parallel()
	up := mcptest.New(t, mcptest.Options{Name: "tracker", Tools: []mcptest.Tool{{Name: "create_issue", Description: "Create an issue."}}})
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	s := store.Server{Name: "tracker", URL: up.HTTP(), Headers: map[string]store.Value{"Authorization": {SecretKey: "TRACKER"}}}
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: s}); err == nil || !strings.Contains(err.Error(), "nizectl credentials set tracker TRACKER") {
		t.Fatalf("without the credential: %v", err)
	}
	if list, err := api.ListServers.Call(ctx, r.Client, api.Empty{}); err != nil || len(list.Items) != 0 {
		t.Fatalf("a server that could not be reached was kept: %+v, %v", list.Items, err)
	}
	key := store.CredentialKey{Service: "tracker", Name: "TRACKER"}
	if _, err := api.PutCredential.Call(ctx, r.Client, api.PutCredentialRequest{CredentialKey: key, Secret: api.NewSecret("key-of-the-tracker")}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: s}); err != nil {
		t.Fatal(err)
	}
	if c, err := api.CallTool.Call(ctx, r.Client, api.CallToolRequest{ID: "tracker:create_issue"}); err != nil || c.State != store.Done || !strings.Contains(c.RunsAs.String(), "TRACKER") || c.Policy != store.ByAdmins {
		t.Errorf("call %+v, %v", c, err)
	}
	seen := 0
	for _, h := range up.Headers() {
		switch got := h.Get("Authorization"); got {
		case "Bearer key-of-the-tracker":
			seen++
		case "":
		default:
			t.Errorf("Authorization %q was sent", got)
		}
	}
	if seen == 0 {
		t.Error("the credential was not sent")
	}

	other := mcptest.New(t, mcptest.Options{Name: "other"})
	moved := s
	moved.URL = other.HTTP()
	if _, err := api.RemoveServer.Call(ctx, r.Client, api.ServerRequest{Name: "tracker"}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: moved}); err == nil {
		t.Error("the credential was used for another host")
	}
	for _, h := range other.Headers() {
		if h.Get("Authorization") != "" {
			t.Errorf("another host got %q", h.Get("Authorization"))
		}
	}
	if _, err := api.RemoveServer.Call(ctx, r.Client, api.ServerRequest{Name: "tracker"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("removing what was not added: %v", err)
	}
}

// Whose key a server gets is its auth's to say: a member's own, the team's, or
// whatever comes first; who has none is told what to do, before anybody is
// asked to approve.
func TestWhoseCredential(t *testing.T) {
	t.Parallel()
	up := mcptest.New(t, mcptest.Options{Name: "tracker", Tools: []mcptest.Tool{{Name: "create_issue", Description: "Create an issue."}}})
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	set := func(scope, owner, value string) {
		t.Helper()
		key := store.CredentialKey{Scope: scope, Owner: owner, Service: "tracker", Name: "TRACKER"}
		if _, err := api.PutCredential.Call(ctx, r.Client, api.PutCredentialRequest{CredentialKey: key, Secret: api.NewSecret(value)}); err != nil {
			t.Fatal(err)
		}
	}
	set("system", "", "shared-key")
	s := store.Server{Name: "tracker", URL: up.HTTP(), Headers: map[string]store.Value{"Authorization": {SecretKey: "TRACKER"}}}
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: s}); err != nil {
		t.Fatal(err)
	}
	auth := func(a store.Auth) {
		t.Helper()
		if _, err := api.PatchServer.Call(ctx, r.Client, api.PatchServerRequest{Name: "tracker", Auth: &a}); err != nil {
			t.Fatal(err)
		}
	}
	me, err := api.GetStatus.Call(ctx, r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	calls := func(want, runsAs string) {
		t.Helper()
		before := len(up.Headers())
		c, err := api.CallTool.Call(ctx, r.Client, api.CallToolRequest{ID: "tracker:create_issue"})
		if err != nil || c.State != store.Done || !strings.Contains(c.RunsAs.String(), runsAs) {
			t.Errorf("want it to run as %s: %q %s, %v", runsAs, c.RunsAs, c.State, err)
		}
		last := ""
		for _, h := range up.Headers()[before:] {
			if v := h.Get("Authorization"); v != "" {
				last = v
			}
		}
		if last != "Bearer "+want {
			t.Errorf("the call went with %q, want %s", last, want)
		}
	}
	calls("shared-key", "the shared credential")

	auth(store.AuthUser)
	if _, err := api.CallTool.Call(ctx, r.Client, api.CallToolRequest{ID: "tracker:create_issue"}); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "--scope user") {
		t.Errorf("without a key of one's own: %v", err)
	}
	if tool, err := api.GetTool.Call(ctx, r.Client, api.ToolRequest{ID: "tracker:create_issue"}); err != nil || tool.Name != "create_issue" {
		t.Errorf("its tools are known all the same: %+v, %v", tool, err)
	}
	set("user", me.You.User, "own-key")
	calls("own-key", "the requester's own credential")

	auth(store.AuthTeam)
	if _, err := api.CallTool.Call(ctx, r.Client, api.CallToolRequest{ID: "tracker:create_issue"}); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "--scope team") {
		t.Errorf("without a key of the team: %v", err)
	}
	set("team", store.LocalTeam, "team-key")
	calls("team-key", "of the team local")
	set("team", store.LocalTeam, "newer-key")
	calls("newer-key", "of the team local")

	unknown := store.Auth("user-saml")
	if _, err := api.PatchServer.Call(ctx, r.Client, api.PatchServerRequest{Name: "tracker", Auth: &unknown}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("an auth that nothing knows: %v", err)
	}
	auth("none")
	calls("own-key", "the requester's own credential")
	if _, err := api.DeleteCredential.Call(ctx, r.Client, api.DeleteCredentialRequest(store.CredentialKey{Scope: "user", Owner: me.You.User, Service: "tracker", Name: "TRACKER"})); err != nil {
		t.Fatal(err)
	}
	calls("newer-key", "of the team local")
}
