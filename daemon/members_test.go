package daemon_test

import (
	"context"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/store"
)

// ranAs runs nizectl as a member of socket.group.
type ranAs func(args ...string) (out string, code int)

// membersUse checks what members see of agents and model names.
func membersUse(ctx context.Context, t *testing.T, c *api.Client, as ranAs) {
	t.Helper()
	if _, err := api.AddGroup.Call(ctx, c, api.AddGroupRequest{Name: "ops"}); err != nil {
		t.Fatal(err)
	}
	for _, a := range []store.Agent{
		{ID: "helper", SystemPrompt: "told in the cellar", AllowedTools: []string{"private:*"}},
		{ID: "surgeon", Who: []string{"group:ops"}},
		{ID: "keeper", Who: []string{"admins"}},
	} {
		if _, err := api.PutAgent.Call(ctx, c, api.PutAgentRequest{ID: a.ID, Agent: a}); err != nil {
			t.Fatal(err)
		}
	}
	ops := []string{"group:ops"}
	if _, err := api.SetModel.Call(ctx, c, api.SetModelRequest{Name: "common", Target: "offline/planner"}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.SetModel.Call(ctx, c, api.SetModelRequest{Name: "costly", Target: "offline/planner", Who: &ops}); err != nil {
		t.Fatal(err)
	}
	lists := func() string {
		agents, code := as("agents", "list", "--json")
		models, modelsCode := as("models", "list", "--json")
		if code != 0 || modelsCode != 0 {
			t.Fatalf("lists: %s %s", agents, models)
		}
		return agents + models
	}
	got := lists()
	for word, want := range map[string]bool{"helper": true, "common": true, "surgeon": false, "keeper": false, "costly": false, "cellar": false, "private": false, "planner": false, "group:": false} {
		if strings.Contains(got, word) != want {
			t.Errorf("a member sees %s: %v, want %v\n%s", word, !want, want, got)
		}
	}
	for flag, names := range map[string][2]string{"--agent": {"surgeon", "missing"}, "--model": {"costly", "nothing"}} {
		hidden, code := as("chat", "-m", "hello", flag, names[0])
		missing, missingCode := as("chat", "-m", "hello", flag, names[1])
		if code != 4 || missingCode != 4 || hidden != strings.ReplaceAll(missing, names[1], names[0]) {
			t.Errorf("a hidden %s tells of itself: %d %q, a missing one %d %q", flag, code, hidden, missingCode, missing)
		}
	}
	if out, code := as("chat", "-m", "hello", "--model", "offline/planner"); code != 4 {
		t.Errorf("a member asks a provider's model: exit %d, %s", code, out)
	}
	// What is behind a model's name is for admins, also where it fails.
	if _, err := api.AddProvider.Call(ctx, c, api.AddProviderRequest{Name: "acme", BaseURL: "http://127.0.0.1:1/v1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.SetModel.Call(ctx, c, api.SetModelRequest{Name: "remote", Target: "acme/secret-9"}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.SetDefaultModel.Call(ctx, c, api.ModelRequest{Name: "remote"}); err != nil {
		t.Fatal(err)
	}
	failed, _ := as("chat", "-m", "hello", "--model", "remote")
	if _, err := api.DisableProvider.Call(ctx, c, api.ProviderRequest{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	disabled, code := as("chat", "-m", "hello", "--model", "remote")
	status, _ := as("status", "--json")
	if !strings.Contains(failed, "cannot be reached") || code == 0 || !strings.Contains(disabled, "not available") {
		t.Errorf("a model that fails: %s\n%s", failed, disabled)
	}
	if all := failed + disabled + status + lists(); strings.Contains(all, "acme") || strings.Contains(all, "secret-9") {
		t.Errorf("a member reads what is behind a name: %s", all)
	}
	if _, err := api.SetDefaultModel.Call(ctx, c, api.ModelRequest{Name: "common"}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.PatchGroup.Call(ctx, c, api.PatchGroupRequest{Name: "ops", Add: []string{"local:4321"}}); err != nil {
		t.Fatal(err)
	}
	got = lists()
	if !strings.Contains(got, "surgeon") || !strings.Contains(got, "costly") || strings.Contains(got, "keeper") {
		t.Errorf("in the group a member sees %s", got)
	}
	if out, code := as("chat", "-m", "hello", "--agent", "surgeon", "--model", "costly"); code != 0 {
		t.Errorf("in the group: exit %d, %s", code, out)
	}
	if _, err := api.RemoveGroup.Call(ctx, c, api.RemoveGroupRequest{Name: "ops"}); err == nil {
		t.Error("a group that agents and models are for was removed")
	}
}

// membersLeave checks what a member does with codes, and what ends when they
// are disabled: also a stream that they listen to on the socket.
func membersLeave(ctx context.Context, t *testing.T, c *api.Client, as ranAs) {
	t.Helper()
	code, exit := as("users", "link")
	if exit != 0 {
		t.Fatalf("a member's code: exit %d, %s", exit, code)
	}
	code, _, _ = strings.Cut(code, "\n")
	for _, args := range [][]string{{"users", "link", "--user", "root"}, {"users", "export", "root"}, {"users", "remove", "root", "--yes"}, {"users", "forget", "root", "--yes"}} {
		if out, exit := as(args...); exit != 6 {
			t.Errorf("a member: %v: exit %d, %s", args, exit, out)
		}
	}
	if out, exit := as("users", "export", "local:4321"); exit != 0 || !strings.Contains(out, `"kind":"conversation"`) || !strings.Contains(out, "hello") {
		t.Errorf("their own export: exit %d, %s", exit, out)
	}
	made, err := api.MakeLink.Call(ctx, c, api.MakeLinkRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if out, exit := as("users", "link", made.Code.Reveal(), "--role", "admin", "--yes"); exit != 6 {
		t.Errorf("a member makes themselves an admin: exit %d, %s", exit, out)
	}
	if out, exit := as("users", "link", made.Code.Reveal(), "--yes"); exit != 6 { // root would be a member, and nobody an admin
		t.Errorf("a member absorbs the last admin: exit %d, %s", exit, out)
	}

	disabled := store.Disabled
	if _, err := api.PatchUser.Call(ctx, c, api.PatchUserRequest{ID: "local:4321", State: &disabled}); err != nil {
		t.Fatal(err)
	}
	if out, exit := as("status"); exit != 6 {
		t.Errorf("disabled: exit %d, %s", exit, out)
	}
	if out, exit := as("users", "link"); exit != 6 {
		t.Errorf("disabled, a code: exit %d, %s", exit, out)
	}
	if _, err := api.ShowLink.Call(ctx, c, api.UseLinkRequest{Code: api.NewSecret(code)}); err == nil {
		t.Error("a code of somebody disabled is good")
	}
}
