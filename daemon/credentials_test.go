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
	up := mcptest.New(t, mcptest.Options{Name: "tracker", Tools: []mcptest.Tool{{Name: "create_issue", Description: "Create an issue."}}})
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	s := store.Server{Name: "tracker", URL: up.HTTP(), Headers: map[string]store.Value{"Authorization": {SecretKey: "TRACKER"}}}
	if _, err := r.AddServer(ctx, api.AddServer{Server: s}); err == nil || !strings.Contains(err.Error(), "nizectl credentials set tracker TRACKER") {
		t.Fatalf("without the credential: %v", err)
	}
	if list, err := r.Servers(ctx); err != nil || len(list) != 0 {
		t.Fatalf("a server that could not be reached was kept: %+v, %v", list, err)
	}
	key := store.CredentialKey{Service: "tracker", Name: "TRACKER"}
	if err := r.PutCredential(ctx, api.PutCredential{CredentialKey: key, Secret: api.NewSecret("key-of-the-tracker")}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.AddServer(ctx, api.AddServer{Server: s}); err != nil {
		t.Fatal(err)
	}
	if c, err := r.CallTool(ctx, "tracker:create_issue", api.CallTool{}); err != nil || c.State != store.Done || !strings.Contains(c.RunsAs, "TRACKER") || c.Policy != store.ByAdmins {
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
	if err := r.RemoveServer(ctx, "tracker"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.AddServer(ctx, api.AddServer{Server: moved}); err == nil {
		t.Error("the credential was used for another host")
	}
	for _, h := range other.Headers() {
		if h.Get("Authorization") != "" {
			t.Errorf("another host got %q", h.Get("Authorization"))
		}
	}
	if err := r.RemoveServer(ctx, "tracker"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("removing what was not added: %v", err)
	}
}
