package daemon_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// TestPeoplesHooks: in the settings of the page a person sets hooks for their own calls
// alone, of the types that reach nothing, within a quota; an admin sees and removes them.
func TestPeoplesHooks(t *testing.T) {
	t.Parallel()
	r, ctx := open(t, t.TempDir(), nil), t.Context()
	echo := func(_ context.Context, args json.RawMessage) json.RawMessage { return mcptest.Text(string(args)) }
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "look", Do: echo}}})
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	url := up.HTTP()
	for _, name := range []string{"box", "vault"} {
		server := store.Server{Name: name, Transport: store.HTTP, URL: url, Visibility: []string{"all"}}
		if name == "vault" {
			server.Visibility = []string{"user:root"}
		}
		must(api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: server}))
	}
	must(api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "limits.user.hooks", Value: "2"}))
	for _, h := range []api.AddHookRequest{
		{Name: "everybody", Type: "audit"},
		{Name: "vaults", Type: "webhook", Scope: "server", ScopeID: "vault", Config: json.RawMessage(`{"url":"https://hooks.example.com/s3cret"}`)},
		{Name: "boxes", Type: "webhook", Scope: "server", ScopeID: "box", Tool: "box:other", Config: json.RawMessage(`{"url":"https://hooks.example.com/s3cret"}`)},
	} {
		must(api.AddHook.Call(ctx, r.Client, h))
	}
	for _, name := range []string{"mia", "bob"} {
		must(api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: name}))
	}
	must(api.AddHook.Call(ctx, r.Client, api.AddHookRequest{Name: "bobs", Type: "audit", Scope: "user", ScopeID: "bob"}))
	mia := newBrowser(t, r)
	mia.signIn(r.Client, "mia")
	for body, want := range map[string]int{
		`{"name":"x","hook_type":"exec","config":{"command":["/bin/true"]}}`:                                         http.StatusForbidden,
		`{"name":"x","hook_type":"webhook","config":{"url":"https://example.com"}}`:                                  http.StatusForbidden,
		`{"name":"x","hook_type":"audit"}`:                                                                           http.StatusForbidden,
		`{"name":"x","hook_type":"access_control","config":{"allow":["*"]}}`:                                         http.StatusForbidden,
		`{"name":"x","hook_type":"rate-limit","config":{"calls":0}}`:                                                 http.StatusBadRequest,
		`{"name":"x","hook_type":"secret-redaction","server":"vault"}`:                                               http.StatusNotFound,
		`{"name":"x","hook_type":"param-sanitizer","config":{"rules":[],"pad":"` + strings.Repeat("x", 9000) + `"}}`: http.StatusBadRequest,
		`{"name":"x","hook_type":"secret-redaction","server":"bob/box"}`:                                             http.StatusForbidden,
	} {
		if p := mia.ask("hooks", body); p.status != want {
			t.Errorf("%.80s: %d %s, want %d", body, p.status, p.body, want)
		}
	}
	if p := mia.ask("hooks", `{"name":"few","hook_type":"rate_limit","server":"box","config":{"calls":1,"per":"1h"}}`); p.status != http.StatusOK {
		t.Fatalf("%d %s", p.status, p.body)
	}
	if p := mia.ask("hooks", `{"name":"everybody","hook_type":"secret-redaction"}`); p.status != http.StatusOK { // an admin's of that name stays
		t.Fatalf("%d %s", p.status, p.body)
	}
	if p := mia.ask("hooks", `{"name":"third","hook_type":"secret-redaction"}`); p.status != http.StatusForbidden || !strings.Contains(p.body, "limits.user.hooks") {
		t.Errorf("a third: %d %s", p.status, p.body)
	}
	var list api.List[api.Hook]
	shown := func(all []api.Hook) string {
		var out []string
		for i, h := range all {
			word := h.Name
			switch {
			case h.BuiltIn:
				word = "(" + word + ")"
			case h.Owner != "":
				word = h.OwnerName + "/" + word
			}
			out = append(out, word)
			if h.Order != 0 && h.Order != i+1 {
				t.Errorf("%s has the place %d", h.Name, h.Order)
			}
		}
		return strings.Join(out, " ")
	}
	p := mia.get("/app/v1/hooks")
	if err := json.Unmarshal([]byte(p.body), &list); err != nil {
		t.Fatal(err, p.body)
	}
	if got, want := shown(list.Items), "(audit) (access-control) (response-truncation) everybody boxes mia/everybody mia/few"; got != want {
		t.Errorf("she sees %s\nwant %s", got, want)
	}
	if strings.Contains(p.body, "s3cret") || strings.Contains(p.body, "vault") {
		t.Errorf("she is shown what is an admin's: %s", p.body)
	}
	all, err := api.ListHooks.Call(ctx, r.Client, api.ListHooksRequest{All: true})
	must(nil, err)
	if got, want := shown(all.Items), "(audit) (access-control) (response-truncation) everybody boxes vaults bobs mia/everybody mia/few"; got != want {
		t.Errorf("an admin sees %s\nwant %s", got, want)
	}
	for name, want := range map[string]int{"vaults": http.StatusNotFound, "few": http.StatusOK} {
		if p := mia.patchJSON("hooks/"+name, `{"enabled":false}`); p.status != want {
			t.Errorf("disabling %s: %d %s, want %d", name, p.status, p.body, want)
		}
	}
	if _, err := api.RemoveHook.Call(ctx, r.Client, api.HookRequest{Name: "few"}); err == nil {
		t.Error("a person's hook was removed as an admin's")
	}
	must(api.RemoveHook.Call(ctx, r.Client, api.HookRequest{Name: "few", Owner: "mia"}))
	if p := mia.ask("hooks", `{"name":"third","hook_type":"secret-redaction"}`); p.status != http.StatusOK {
		t.Errorf("after the removal: %d %s", p.status, p.body)
	}
}
