package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/store"
)

// TestPageRunsAll: "run all" runs the calls whose cards were shown, each by its digest,
// and none where one of the digests is not that of its card; others stay as they are.
// A standing answer is kept with its yes.
func TestPageRunsAll(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		if !strings.Contains(string(body), "tool_calls") {
			var calls []string
			for n, text := range []string{"one", "two", "three", "four"} {
				calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"c%d","function":{"name":"execute_tool","arguments":%q}}`, n, n, fmt.Sprintf(`{"tool_id":"toolbox:note_add","params":{"text":%q}}`, text)))
			}
			fmt.Fprintf(w, `data: {"choices":[{"delta":{"tool_calls":[%s]},"finish_reason":"tool_calls"}]}`+"\n\n", strings.Join(calls, ","))
		} else {
			fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"Done."},"finish_reason":"stop"}]}`+"\n\n")
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(model.Close)
	r := open(t, t.TempDir(), map[string]string{"NIZE_EGRESS_ALLOW": "127.0.0.1"})
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "toolbox", Command: toolbox(t), Args: []string{"--notes", filepath.Join(t.TempDir(), "notes.json")}}}))
	must(api.AddProvider.Call(ctx, r.Client, api.AddProviderRequest{Name: "openai", Kind: "openai-compatible", BaseURL: model.URL + "/v1", Key: api.NewSecret("k")}))
	must(api.SetModel.Call(ctx, r.Client, api.SetModelRequest{Name: "smart", Target: "openai/gpt-4o-mini"}))
	b := newBrowser(t, r)
	b.signIn(r.Client, "")
	var th store.Thread
	must(nil, json.Unmarshal([]byte(b.ask("chat/threads", `{}`).body), &th))
	_, events := b.follow(ctx, th.ID)
	b.ask("chat/threads/"+th.ID+"/messages", `{"key":"k1","text":"write four notes"}`)
	cards := map[string]store.Card{} // by what they would write
	until(t, events, "four cards", func(e pageEvent) bool {
		if e.name == "message" && e.data.Card != nil {
			cards[string(e.data.Card.Args)] = *e.data.Card
		}
		return len(cards) == 4
	})
	one, two, three, four := cards[`{"text":"one"}`], cards[`{"text":"two"}`], cards[`{"text":"three"}`], cards[`{"text":"four"}`]
	var now store.Card
	must(nil, json.Unmarshal([]byte(b.get("/app/v1/approvals/"+one.Call).body), &now))
	if now.Together != 3 || now.Step == "" {
		t.Errorf("a card of four: %+v", now)
	}
	runAll := func(cards ...store.Card) int {
		digests := map[string]string{}
		for _, c := range cards {
			digests[c.Call] = c.Digest
		}
		body, _ := json.Marshal(digests)
		return b.ask("approvals/"+one.Call, fmt.Sprintf(`{"verb":"run_all","digest":%q,"cards":%s}`, one.Digest, body)).status
	}
	is := func(c store.Card, want store.State) {
		t.Helper()
		call, err := api.GetCall.Call(ctx, r.Client, api.CallRequest{ID: c.Call, Reason: "the test looks"})
		if err != nil || call.State != want || want == store.Pending && !call.Approved.IsZero() {
			t.Errorf("%s is %s, approved %v, want %s", c.Args, call.State, call.Approved, want)
		}
	}
	forged := two
	forged.Digest = three.Digest
	if status := runAll(one, forged); status != http.StatusConflict {
		t.Errorf("by another digest: %d", status)
	}
	is(one, store.Pending)
	if status := runAll(one, two); status != http.StatusOK {
		t.Fatalf("run all: %d", status)
	}
	is(three, store.Pending)
	p := b.ask("approvals/"+three.Call, fmt.Sprintf(`{"verb":"approve","digest":%q,"standing":{"for":"me","args":"these","until":"8h"}}`, three.Digest))
	if p.status != http.StatusOK || !strings.Contains(p.body, `"kept":"`) {
		t.Errorf("always: %d %s", p.status, p.body)
	}
	if grants, err := api.ListGrants.Call(ctx, r.Client, api.ListGrantsRequest{}); err != nil || len(grants.Items) != 1 || grants.Items[0].Exact == "" || grants.Items[0].Expires.IsZero() {
		t.Errorf("the standing answers are %+v, %v", grants, err)
	}
	if p := b.ask("approvals/"+four.Call, fmt.Sprintf(`{"verb":"cancel","digest":%q,"reason":"three are enough"}`, four.Digest)); p.status != http.StatusOK {
		t.Errorf("cancel: %d %s", p.status, p.body)
	}
	until(t, events, "the end", func(e pageEvent) bool { return e.name == "state" && e.data.State == "idle" })
	for _, c := range []store.Card{one, two, three} {
		is(c, store.Done)
	}
	is(four, store.Cancelled)
}

// TestPagePatterns: the dialog of an ask on the page has the patterns that its card
// proposes, with what they would have covered and their warning, and keeps the one that was
// chosen for the ask's repository alone.
func TestPagePatterns(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	b := newBrowser(t, r)
	b.signIn(r.Client, "")
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "claude-code", Transport: store.External}}); err != nil {
		t.Fatal(err)
	}
	in := func(repository, command string) api.Ask {
		t.Helper()
		got, err := api.PostAsk.Call(ctx, r.Client, api.AskRequest{
			Source: "claude-code", Tool: "Bash", Arguments: json.RawMessage(`{"command":"` + command + `"}`),
			Context: &api.AskContext{Cwd: repository, Repository: repository, Host: "build-7"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := in("/srv/web", "git status")
	type choice struct{ Value, Label, Note string }
	var card struct {
		Digest string
		Allow  []struct{ Choices []choice }
	}
	if err := json.Unmarshal([]byte(b.get("/app/v1/approvals/"+first.ID).body), &card); err != nil || len(card.Allow) != 3 {
		t.Fatalf("%+v, %v", card, err)
	}
	want := []choice{
		{Value: "line", Label: "git status", Note: "1 of 1 in 30 days"}, {Value: `pattern {"command":"git status*"}`, Label: "git status*", Note: "1 of 1 in 30 days"},
		{Value: `here {"command":"git*"}`, Label: "git* in this repository", Note: "1 of 1 in 30 days; wide: also push, and hooks of the repository"}, {Value: "any", Label: "any"},
	}
	if got := card.Allow[1].Choices; !slices.Equal(got, want) {
		t.Errorf("the choices are %+v, want %+v", got, want)
	}
	p := b.ask("approvals/"+first.ID, fmt.Sprintf(`{"verb":"approve","digest":%q,"standing":{"for":"me","args":"here {\"command\":\"git*\"}","until":"8h"}}`, card.Digest))
	if p.status != http.StatusOK || !strings.Contains(p.body, "in this repository") {
		t.Errorf("%d %s", p.status, p.body)
	}
	for _, c := range []struct{ repository, command, state string }{
		{"/srv/web", "git log", "approved"}, {"/srv/web", "git log; rm x", "pending"}, {"/srv/web", "git -C /srv/api log", "pending"}, {"/srv/api", "git log", "pending"},
	} {
		if got := in(c.repository, c.command); got.State != c.state {
			t.Errorf("%s in %s is %s", c.command, c.repository, got.State)
		}
	}
}
