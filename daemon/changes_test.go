package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
	"nize/daemon"
	"nize/daemon/api"
	"nize/store"
	"nize/store/credential"
	storeplan "nize/store/plan"
)

// unaudited are the requests that change no configuration: conversations are
// kept themselves, and a try, a refresh or a test message leaves nothing behind.
// What a restore, an import, a press and the joining of people leave is tested
// where they are.
var unaudited = []string{
	"POST /v1/alerts/test", "POST /v1/alerts/{id}/ack", "POST /v1/approvals/{id}", "POST /v1/hooks/{name}/test", "POST /v1/chat/threads", "POST /v1/chat/threads/{id}/messages",
	"POST /v1/chat/threads/{id}/stop", "POST /v1/grants", "DELETE /v1/grants/{id}", "POST /v1/providers/{name}/test", "POST /v1/reindex", "POST /v1/restore",
	"POST /v1/logins/approve", "POST /v1/logins/deny", "POST /v1/logins/show", "DELETE /v1/logins/{id}",
	"POST /v1/links", "POST /v1/links/join", "POST /v1/links/look", "DELETE /v1/users/{id}/identities/{identity}",
	"POST /v1/declared-credentials/{id}/login",                                                                 // it is begun as that of a server; what it gives is a credential.put
	"POST /v1/servers/{name}/login", "DELETE /v1/servers/{name}/login", "POST /v1/servers/{name}/login/{flow}", // TestConnectEvents
	"POST /v1/asks", "DELETE /v1/asks/{id}", // TestAskIsDecidedAndNeverRuns
	"POST /v1/database/clock",   // TestRepairClock
	"POST /v1/database/compact", // it changes no fact; that it raises the schema is in TestOlderRecords
	"POST /v1/servers/import", "POST /v1/servers/{name}/test", "POST /v1/servers/{name}/trust", "DELETE /v1/tools/wanted",
}

// request is one change by way of the control API, and the kinds of the events
// that it leaves: one for each record that changes, and for each step of a call.
type request struct {
	route, kind string
	do          func() error
}

// TestChangesAreAudited: each request that changes something leaves exactly the
// events that say so, with who did it and from where, and reading leaves none.
func TestChangesAreAudited(t *testing.T) {
	t.Parallel()
	r, ctx := open(t, t.TempDir(), nil), t.Context()
	status, err := api.GetStatus.Call(ctx, r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range unaudited {
		seen[name] = true
	}
	last := newestEvent(t, r)
	for _, c := range changesOf(t, r) {
		seen[c.route] = true
		if err := c.do(); err != nil {
			t.Errorf("%s: %v", c.route, err)
			continue
		}
		kinds := []string{}
		for _, e := range peoplesEvents(t, r, last) {
			kinds = append(kinds, e.Kind)
			if e.User != status.You.User || e.UserName == "" || e.Surface != store.OnCLI || e.Identity != fmt.Sprintf("local:%d", os.Getuid()) || e.Subject == "" {
				t.Errorf("%s: its event does not say who and from where: %+v", c.route, e)
			}
		}
		if got := strings.Join(kinds, " "); got != c.kind {
			t.Errorf("%s leaves %q, want %q", c.route, got, c.kind)
		}
		last = newestEvent(t, r)
	}
	for _, route := range daemon.Operations() {
		name := route.Method + " " + route.Path
		if strings.HasPrefix(route.Path, "/v1/bots/") {
			continue // needs a chat platform; the store's own table has what they change
		}
		if route.Method != "GET" && !seen[name] {
			t.Errorf("%s: say here which event it leaves", name)
		}
		if route.Method != "GET" || seen[name] {
			continue
		}
		get(t, r.dir, route.Path)
		if left := peoplesEvents(t, r, last); len(left) > 0 {
			t.Errorf("%s leaves %+v", name, left)
		}
		last = newestEvent(t, r)
	}
}

// peoplesEvents are those after that one, without nize's own: a server's tools
// are listed after it was added, and what is due by the clock is done meanwhile.
func peoplesEvents(t *testing.T, r *testDaemon, last uint64) (list []store.Event) {
	t.Helper()
	for e, err := range api.ReadAudit.Call(t.Context(), r.Client, api.AuditRequest{Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq > last && e.User != store.System.User {
			list = append(list, e)
		}
	}
	return list
}

func newestEvent(t *testing.T, r *testDaemon) (seq uint64) {
	t.Helper()
	for e, err := range api.ReadAudit.Call(t.Context(), r.Client, api.AuditRequest{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		seq = e.Seq
	}
	return seq
}

// get sends a request as nizectl would, whatever it answers.
func get(t *testing.T, dir, path string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "s"))
	}}}
	path = strings.NewReplacer("{id}", "box", "{name}", "box", "{key}", "agent.tools.maxSteps", "{model}", "m", "{logical}", "m").Replace(path)
	resp, err := client.Get("http://" + api.Host + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
}

// changesOf is the table.
func changesOf(t *testing.T, r *testDaemon) []request {
	ctx := t.Context()
	second := func(_ any, err error) error { return err }
	key := store.CredentialKey{Scope: "system", Service: "box", Name: "KEY"}
	text, member, path, mia, pattern := "about boxes", store.Member, toolbox(t), "", "box:*"
	fake := slacktest.Running(t, slacktest.Options{Patience: time.Minute})
	talk, err := api.StartConversation.Call(ctx, r.Client, api.StartConversationRequest{})
	if err != nil {
		t.Fatal(err)
	}
	list := []request{
		{"POST /v1/chat/threads/{id}/forget", "thread.forget", func() error {
			return second(api.ForgetConversation.Call(ctx, r.Client, api.ConversationRequest{ID: talk.ID}))
		}},
		{"POST /v1/hooks", "hook.put", func() error {
			return second(api.AddHook.Call(ctx, r.Client, api.AddHookRequest{Name: "careful", Type: "rate_limit", Config: []byte(`{"calls":9,"per":"1m"}`)}))
		}},
		{"PATCH /v1/hooks/{name}", "hook.put", func() error {
			return second(api.PatchHook.Call(ctx, r.Client, api.PatchHookRequest{HookRequest: api.HookRequest{Name: "careful"}, Tool: &pattern}))
		}},
		{"DELETE /v1/hooks/{name}", "hook.delete", func() error {
			return second(api.RemoveHook.Call(ctx, r.Client, api.HookRequest{Name: "careful"}))
		}},
		{"PUT /v1/identity/oidc", "identity.put", func() error {
			return second(api.SetOIDC.Call(ctx, r.Client, api.SetOIDCRequest{Issuer: "https://idp.invalid", Client: "nize", Force: true}))
		}},
		{"POST /v1/identity/oidc/test", "", func() error { return second(api.TestOIDC.Call(ctx, r.Client, api.Empty{})) }},
		{"DELETE /v1/identity/oidc", "identity.delete", func() error { return second(api.RemoveOIDC.Call(ctx, r.Client, api.Empty{})) }},
		{"PUT /v1/config/{key}", "setting.put", func() error {
			return second(api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "slack.api_url", Value: fake.APIURL()}))
		}},
		{"POST /v1/bots/{name}", "bot.put claim.put", func() error {
			tokens := []api.Secret{api.NewSecret(fake.AppToken()), api.NewSecret(fake.BotToken())}
			return second(api.ConnectBot.Call(ctx, r.Client, api.ConnectBotRequest{Name: "slack", Tokens: tokens}))
		}},
		{"POST /v1/bots/{name}/stop", "bot.put", func() error { return second(api.StopBot.Call(ctx, r.Client, api.BotRequest{Name: "slack"})) }},
		{"POST /v1/bots/{name}/start", "bot.put", func() error { return second(api.StartBot.Call(ctx, r.Client, api.BotRequest{Name: "slack"})) }},
		{"POST /v1/bots/{name}/claim", "claim.put", func() error { return second(api.ClaimBot.Call(ctx, r.Client, api.BotRequest{Name: "slack"})) }},
		{"PUT /v1/bots/{name}/access", "setting.put", func() error {
			return second(api.SetBotAccess.Call(ctx, r.Client, api.BotAccessRequest{Name: "discord", Who: "everyone"}))
		}},
		{"PATCH /v1/channels/{place}", "channel.put", func() error {
			mode := store.ModeAll
			return second(api.SetChannel.Call(ctx, r.Client, api.SetChannelRequest{Place: slacktest.General, Mode: &mode}))
		}},
		{"DELETE /v1/channels/{place}", "channel.delete", func() error {
			return second(api.UnsetChannel.Call(ctx, r.Client, api.UnsetChannelRequest{Place: slacktest.General}))
		}},
		{"DELETE /v1/bots/{name}", "bot.delete", func() error { return second(api.RemoveBot.Call(ctx, r.Client, api.BotRequest{Name: "slack"})) }},
		{"POST /v1/servers", "server.put tools.put", func() error {
			return second(api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "box", Command: path}}))
		}},
		{"PATCH /v1/servers/{name}", "server.put", func() error {
			return second(api.PatchServer.Call(ctx, r.Client, api.PatchServerRequest{Name: "box", PatchAbout: api.PatchAbout{Description: &text}}))
		}},
		{"POST /v1/servers/{name}/restart", "server.restart", func() error { return second(api.RestartServer.Call(ctx, r.Client, api.ServerRequest{Name: "box"})) }},
		{"POST /v1/tools/{id}/call", "call.running call.done", func() error {
			return second(api.CallTool.Call(ctx, r.Client, api.CallToolRequest{ID: "box:current_time", Args: []byte(`{"place":"Tokyo"}`)}))
		}},
		{"PUT /v1/renderers/{id}", "renderer.put", func() error {
			return second(api.PutRenderer.Call(ctx, r.Client, api.PutRendererRequest{ID: "box:current_time", Document: `{"title": "Now"}`}))
		}},
		{"DELETE /v1/renderers/{id}", "renderer.delete", func() error {
			return second(api.RemoveRenderer.Call(ctx, r.Client, api.ToolRequest{ID: "box:current_time"}))
		}},
		{"PUT /v1/declared-credentials/{id}", "credential.put", func() error {
			return second(api.Declare.Call(ctx, r.Client, api.DeclareRequest{ID: "desk", Declaration: credential.Declaration{Mode: credential.UserKey}}))
		}},
		{"DELETE /v1/declared-credentials/{id}", "credential.delete", func() error {
			return second(api.RemoveDeclaration.Call(ctx, r.Client, api.DeclarationRequest{ID: "desk"}))
		}},
		{"PUT /v1/credentials", "credential.put", func() error {
			return second(api.PutCredential.Call(ctx, r.Client, api.PutCredentialRequest{CredentialKey: key, Secret: api.NewSecret("s")}))
		}},
		{"DELETE /v1/credentials", "credential.delete", func() error {
			return second(api.DeleteCredential.Call(ctx, r.Client, api.DeleteCredentialRequest(key)))
		}},
		{"DELETE /v1/servers/{name}", "server.delete", func() error { return second(api.RemoveServer.Call(ctx, r.Client, api.ServerRequest{Name: "box"})) }},
		{"PUT /v1/config/{key}", "setting.put", func() error {
			return second(api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "agent.tools.maxSteps", Value: "7"}))
		}},
		{"DELETE /v1/config/{key}", "setting.put", func() error {
			return second(api.UnsetSetting.Call(ctx, r.Client, api.UnsetSettingRequest{Key: "agent.tools.maxSteps"}))
		}},
		{"POST /v1/providers", "provider.put", func() error {
			return second(api.AddProvider.Call(ctx, r.Client, api.AddProviderRequest{Name: "main", Kind: "openai", BaseURL: "http://127.0.0.1:1/v1", Key: api.NewSecret("sk-x")}))
		}},
		{"POST /v1/providers/{name}/disable", "provider.put", func() error {
			return second(api.DisableProvider.Call(ctx, r.Client, api.ProviderRequest{Name: "main"}))
		}},
		{"POST /v1/providers/{name}/enable", "provider.put", func() error { return second(api.EnableProvider.Call(ctx, r.Client, api.ProviderRequest{Name: "main"})) }},
		{"PUT /v1/models/{logical}", "model.put", func() error {
			return second(api.SetModel.Call(ctx, r.Client, api.SetModelRequest{Name: "m", Target: "main/x"}))
		}},
		{"PUT /v1/models/{logical}/fallbacks", "model.put", func() error {
			return second(api.SetFallbacks.Call(ctx, r.Client, api.SetFallbacksRequest{Name: "m", Fallbacks: []string{"main/y"}}))
		}},
		{"POST /v1/models/{logical}/default", "model.put", func() error { return second(api.SetDefaultModel.Call(ctx, r.Client, api.ModelRequest{Name: "m"})) }},
		{"PUT /v1/prices/{model}", "price.put", func() error {
			return second(api.SetPrice.Call(ctx, r.Client, api.SetPriceRequest{Model: "main/x", In: 1, Out: 2}))
		}},
		{"DELETE /v1/prices/{model}", "price.delete", func() error { return second(api.UnsetPrice.Call(ctx, r.Client, api.PriceRequest{Model: "main/x"})) }},
		{"DELETE /v1/models/{logical}", "model.delete", func() error { return second(api.RemoveModel.Call(ctx, r.Client, api.ModelRequest{Name: "m"})) }},
		{"DELETE /v1/providers/{name}", "provider.delete", func() error { return second(api.RemoveProvider.Call(ctx, r.Client, api.ProviderRequest{Name: "main"})) }},
		{"PUT /v1/agents/{id}", "agent.put", func() error {
			return second(api.PutAgent.Call(ctx, r.Client, api.PutAgentRequest{ID: "helper", Agent: store.Agent{ID: "helper", Name: "Helper"}}))
		}},
		{"DELETE /v1/agents/{id}", "agent.delete", func() error { return second(api.RemoveAgent.Call(ctx, r.Client, api.RemoveAgentRequest{ID: "helper"})) }},
		{"POST /v1/logins", "signin.ask", func() error { return second(api.StartLogin.Call(ctx, r.Client, api.StartLoginRequest{})) }},
		{"POST /v1/tokens", "token.create", func() error { return second(api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: "cli"})) }},
		{"POST /v1/tokens/{name}/rotate", "token.rotate", func() error { return second(api.RotateToken.Call(ctx, r.Client, api.RotateTokenRequest{Name: "cli"})) }},
		{"DELETE /v1/tokens/{name}", "token.revoke", func() error { return second(api.RevokeToken.Call(ctx, r.Client, api.RevokeTokenRequest{Name: "cli"})) }},
		{"POST /v1/tokens", "token.create", func() error {
			return second(api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: "other"}))
		}},
		{"DELETE /v1/tokens", "token.revoke", func() error { return second(api.RevokeTokens.Call(ctx, r.Client, api.RevokeTokensRequest{All: true})) }},
	}
	return append(list, []request{
		{"POST /v1/users", "user.put member.put", func() error {
			return second(api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: "mia", Role: store.Admin}))
		}},
		{"PATCH /v1/users/{id}", "user.put", func() error {
			return second(api.PatchUser.Call(ctx, r.Client, api.PatchUserRequest{ID: "mia", Role: &member}))
		}},
		{"POST /v1/projects", "project.put", func() error {
			return second(api.AddProject.Call(ctx, r.Client, api.AddProjectRequest{Name: "sales"}))
		}},
		{"PATCH /v1/projects/{project}", "project.put", func() error {
			return second(api.PatchProject.Call(ctx, r.Client, api.PatchProjectRequest{Project: "sales", Add: []string{"mia"}}))
		}},
		{"POST /v1/projects/{project}/keys", "project_key.put", func() error {
			return second(api.CreateProjectKey.Call(ctx, r.Client, api.CreateProjectKeyRequest{Project: "sales"}))
		}},
		{"DELETE /v1/projects/{project}/keys/{key}", "project_key.revoke", func() error {
			return second(api.RevokeProjectKey.Call(ctx, r.Client, api.ProjectKeyRequest{Project: "sales", Key: "default"}))
		}},
		{"POST /v1/documents", "document.put", func() error {
			return second(api.AddDocument.Call(ctx, r.Client, api.AddDocumentRequest{Name: "a.txt"}, strings.NewReader("text"), 4))
		}},
		{"DELETE /v1/documents/{id}", "document.delete", func() error {
			return second(api.RemoveDocument.Call(ctx, r.Client, api.RemoveDocumentRequest{ID: "a.txt"}))
		}},
		{"DELETE /v1/documents", "document.put document.erase", func() error {
			if _, err := api.AddDocument.Call(ctx, r.Client, api.AddDocumentRequest{Name: "a.txt"}, strings.NewReader("text"), 4); err != nil {
				return err
			}
			return second(api.EraseDocuments.Call(ctx, r.Client, api.EraseDocumentsRequest{Scope: "user"}))
		}},
		{"DELETE /v1/projects/{project}", "project.delete", func() error {
			return second(api.RemoveProject.Call(ctx, r.Client, api.ProjectRequest{Project: "sales"}))
		}},
		{"POST /v1/groups", "group.put", func() error { return second(api.AddGroup.Call(ctx, r.Client, api.AddGroupRequest{Name: "ops"})) }},
		{"PATCH /v1/groups/{name}", "group.put", func() error {
			return second(api.PatchGroup.Call(ctx, r.Client, api.PatchGroupRequest{Name: "ops", Add: []string{"mia"}}))
		}},
		{"DELETE /v1/groups/{name}", "group.delete", func() error { return second(api.RemoveGroup.Call(ctx, r.Client, api.RemoveGroupRequest{Name: "ops"})) }},
		{"PUT /v1/budgets", "budget.put", func() error {
			return second(api.SetBudget.Call(ctx, r.Client, api.SetBudgetRequest{Subject: "user:*", Period: store.Daily, Amount: "1000tokens"}))
		}},
		{"DELETE /v1/budgets", "budget.delete", func() error {
			return second(api.RemoveBudget.Call(ctx, r.Client, api.RemoveBudgetRequest{Subject: "user:*", Period: store.Daily}))
		}},
		{"PUT /v1/plans/{id}", "plan.put", func() error {
			return second(api.PutPlan.Call(ctx, r.Client, api.PutPlanRequest{ID: "pro", Plan: storeplan.Plan{Name: "Pro"}}))
		}},
		{"PUT /v1/plan-assignments", "plan.assign", func() error {
			return second(api.AssignPlan.Call(ctx, r.Client, api.AssignPlanRequest{Subject: "user:*", Plan: "pro"}))
		}},
		{"DELETE /v1/plans/{id}", "plan.assign plan.delete", func() error {
			if _, err := api.AssignPlan.Call(ctx, r.Client, api.AssignPlanRequest{Subject: "user:*"}); err != nil {
				return err
			}
			return second(api.RemovePlan.Call(ctx, r.Client, api.RemovePlanRequest{ID: "pro"}))
		}},
		{"DELETE /v1/users/{id}", "member.delete user.remove", func() error {
			u, err := api.RemoveUser.Call(ctx, r.Client, api.RemoveUserRequest{ID: "mia"})
			mia = u.ID
			return err
		}},
		{"POST /v1/users/{id}/forget", "audit.erase user.forget", func() error { return second(api.ForgetUser.Call(ctx, r.Client, api.ForgetUserRequest{ID: mia})) }},
		{"POST /v1/keys/export", "keys.export", func() error { return second(api.ExportKey.Call(ctx, r.Client, api.Empty{})) }},
		{"POST /v1/keys/rotate", "keys.rotate", func() error { return second(api.RotateKeys.Call(ctx, r.Client, api.Empty{})) }},
		{"GET /v1/backup", "database.backup", func() error { return second(api.SaveBackup(ctx, r.Client, io.Discard)) }},
		{"GET /v1/audit/export", "audit.export", func() error { return second(api.SaveAudit(ctx, r.Client, api.AuditRequest{}, io.Discard)) }},
	}...)
}

// TestExportOfManyPages: more events than are in memory at once come whole,
// newest first and oldest first, and a forged trail is told from the exported.
func TestExportOfManyPages(t *testing.T) {
	t.Parallel()
	r, ctx := open(t, t.TempDir(), nil), t.Context()
	const n = 1300 // over a page
	for i := range n {
		if _, err := api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "agent.tools.maxSteps", Value: fmt.Sprint(1 + i%9)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1, 999, 1000, 1001, n} {
		var got []uint64
		for e, err := range api.ReadAudit.Call(ctx, r.Client, api.AuditRequest{Kind: "setting", Limit: limit}) {
			if err != nil {
				t.Fatal(err)
			}
			if len(got) > 0 && e.Seq <= got[len(got)-1] {
				t.Fatalf("limit %d: event %d comes after %d", limit, e.Seq, got[len(got)-1])
			}
			got = append(got, e.Seq)
		}
		if len(got) != limit || got[limit-1] != newestEvent(t, r) {
			t.Fatalf("limit %d: %d events", limit, len(got))
		}
	}
	x, err := api.SaveAudit(ctx, r.Client, api.AuditRequest{}, io.Discard)
	if err != nil || x.Events < n || x.First != 1 || x.Last != x.Head || x.Head != newestEvent(t, r) {
		t.Fatalf("%+v, %v", x.Export, err)
	}
	part, err := api.SaveAudit(ctx, r.Client, api.AuditRequest{Kind: "setting", Limit: 1100}, io.Discard)
	if err != nil || part.Events != 1100 || part.Filter["limit"] != "1100" {
		t.Fatalf("%+v, %v", part.Export, err)
	}
	if held, pruned, err := api.HeldSince(ctx, r.Client, x.Export); !held || pruned || err != nil {
		t.Errorf("%v %v %v", held, pruned, err)
	}
	x.Chain = part.Chain // of another event: the trail was written anew
	if held, _, err := api.HeldSince(ctx, r.Client, x.Export); held || err != nil {
		t.Errorf("%v %v", held, err)
	}
	if _, err := api.SaveAudit(ctx, r.Client, api.AuditRequest{User: "nobody"}, io.Discard); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of nobody: %v", err)
	}
}
