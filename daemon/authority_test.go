package daemon_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nize/daemon"
	"nize/daemon/api"
	pages "nize/daemon/browser"
	"nize/daemon/mux"
	"nize/mcp/mcptest"
	"nize/store"
)

// rule says what of a person's an operation may show to an admin who is another one.
type rule string

const (
	ofHouse  rule = "house"  // nothing of a person's: servers, models, settings, the daemon itself
	ofOwn    rule = "own"    // the caller's own alone, whatever their role
	ofPart   rule = "part"   // what they take part in; of others that something waits, at the control socket
	ofFacts  rule = "facts"  // who, when, what and how many, nothing that a person wrote, asked or got
	ofReason rule = "reason" // another person's only for a reason, which is in the audit; else nothing or facts
	ofNobody rule = "nobody" // what people asked for and no tool could do, without who asked: that is its purpose
	ofWhole  rule = "whole"  // the installation as one sealed file or key: an event, and of nobody in particular
)

// controlRules is a row for each operation of the control API.
var controlRules = map[rule]string{
	ofHouse: `
GET /v1/database/clock
POST /v1/database/clock
POST /v1/database/compact
GET /v1/database/layout
GET /v1/agents
DELETE /v1/agents/{id}
PUT /v1/agents/{id}
GET /v1/alerts
POST /v1/alerts/test
POST /v1/alerts/{id}/ack
GET /v1/audit/key
GET /v1/audit/verify
GET /v1/bots
DELETE /v1/bots/{name}
POST /v1/bots/{name}
POST /v1/bots/{name}/double
DELETE /v1/bots/{name}/double
POST /v1/bots/{name}/claim
POST /v1/bots/{name}/start
POST /v1/bots/{name}/stop
POST /v1/bots/{name}/sweep
PUT /v1/bots/{name}/access
GET /v1/renderers/{id}
PUT /v1/renderers/{id}
DELETE /v1/renderers/{id}
DELETE /v1/plans/{id}
PUT /v1/plans/{id}
GET /v1/channels
DELETE /v1/channels/{place}
PATCH /v1/channels/{place}
GET /v1/declared-credentials
GET /v1/declared-credentials/{id}
PUT /v1/declared-credentials/{id}
DELETE /v1/declared-credentials/{id}
GET /v1/doctor
GET /v1/domains
GET /v1/domains/{id}
GET /v1/hooks
POST /v1/hooks
GET /v1/identity/oidc
PUT /v1/identity/oidc
DELETE /v1/identity/oidc
POST /v1/identity/oidc/test
DELETE /v1/hooks/{name}
GET /v1/hooks/{name}
PATCH /v1/hooks/{name}
POST /v1/hooks/{name}/test
POST /v1/keys/rotate
GET /v1/models
DELETE /v1/models/{logical}
PUT /v1/models/{logical}
POST /v1/models/{logical}/default
PUT /v1/models/{logical}/fallbacks
DELETE /v1/prices/{model}
GET /v1/prices/{model}
PUT /v1/prices/{model}
GET /v1/providers
POST /v1/providers
DELETE /v1/providers/{name}
POST /v1/providers/{name}/disable
POST /v1/providers/{name}/enable
POST /v1/providers/{name}/test
POST /v1/reindex
GET /v1/tools/index
GET /v1/registry/servers
GET /v1/registry/servers/{name}
GET /v1/servers
POST /v1/servers
POST /v1/servers/import
DELETE /v1/servers/{name}
GET /v1/servers/{name}
PATCH /v1/servers/{name}
GET /v1/servers/{name}/logs
POST /v1/servers/{name}/restart
POST /v1/servers/{name}/test
GET /v1/servers/{name}/trust
POST /v1/servers/{name}/trust
GET /v1/status
GET /v1/tools
GET /v1/tools/search
DELETE /v1/tools/wanted
GET /v1/tools/{id}`,
	ofOwn: `
POST /v1/asks
GET /v1/asks/{id}
DELETE /v1/asks/{id}
GET /v1/chat/threads
POST /v1/chat/threads
GET /v1/chat/threads/{id}/events
POST /v1/chat/threads/{id}/messages
POST /v1/chat/threads/{id}/stop
POST /v1/declared-credentials/{id}/login
POST /v1/documents
GET /v1/documents
DELETE /v1/documents
GET /v1/documents/{id}
DELETE /v1/documents/{id}
GET /v1/document-search
POST /v1/grants
POST /v1/links
POST /v1/links/join
POST /v1/links/look
POST /v1/logins/approve
POST /v1/logins/deny
POST /v1/logins/show
GET /v1/mcp
GET /v1/progress/{follow}
POST /v1/tools/{id}/call
GET /v1/servers/{name}/login/{flow}
POST /v1/servers/{name}/login/{flow}`,
	ofPart: `
GET /v1/approvals
POST /v1/approvals/{id}`,
	ofFacts: `
GET /v1/database/records/{bucket}/{key}
GET /v1/asks/stats
GET /v1/budgets
DELETE /v1/budgets
PUT /v1/budgets
GET /v1/plans
PUT /v1/plan-assignments
POST /v1/chat/threads/{id}/forget
DELETE /v1/config/{key}
PUT /v1/config/{key}
DELETE /v1/credentials
GET /v1/credentials
PUT /v1/credentials
DELETE /v1/grants/{id}
GET /v1/groups
POST /v1/groups
DELETE /v1/groups/{name}
GET /v1/groups/{name}
PATCH /v1/groups/{name}
GET /v1/logins
POST /v1/logins
DELETE /v1/logins/{id}
GET /v1/projects
POST /v1/projects
GET /v1/projects/{project}
PATCH /v1/projects/{project}
DELETE /v1/projects/{project}
GET /v1/projects/{project}/keys
POST /v1/projects/{project}/keys
DELETE /v1/projects/{project}/keys/{key}
POST /v1/servers/{name}/login
GET /v1/servers/{name}/login
DELETE /v1/servers/{name}/login
DELETE /v1/tokens
GET /v1/tokens
POST /v1/tokens
DELETE /v1/tokens/{name}
POST /v1/tokens/{name}/rotate
GET /v1/tools/{id}/why
GET /v1/usage
GET /v1/users
POST /v1/users
DELETE /v1/users/{id}
GET /v1/users/{id}
PATCH /v1/users/{id}
POST /v1/users/{id}/forget
DELETE /v1/users/{id}/identities/{identity}`,
	ofReason: `
GET /v1/approvals/{id}
GET /v1/audit
GET /v1/audit/export
GET /v1/calls/{id}
GET /v1/chat/threads/{id}
GET /v1/config
GET /v1/config/{key}
GET /v1/grants
GET /v1/users/{id}/export`,
	ofNobody: `
GET /v1/tools/wanted`,
	ofWhole: `
GET /v1/backup
POST /v1/keys/export
POST /v1/restore`,
}

// pageRules is a row for each operation of the page. Nobody gives a reason there.
var pageRules = map[rule]string{
	ofHouse: `
GET /v1/agents
GET /v1/models
GET /v1/servers
GET /v1/tools/search
GET /v1/status
GET /v1/doctor
GET /v1/house/servers/{name}
POST /v1/servers/{name}/trust
GET /v1/providers
POST /v1/providers
DELETE /v1/providers/{name}
POST /v1/providers/{name}/enable
POST /v1/providers/{name}/disable
POST /v1/providers/{name}/test
PUT /v1/models/{logical}
DELETE /v1/models/{logical}
POST /v1/models/{logical}/default`,
	ofOwn: `
GET /v1/me
GET /v1/chat/starters
POST /v1/chat/files
POST /v1/chat/threads/{id}/branch
GET /v1/chat/threads
POST /v1/chat/threads
GET /v1/chat/threads/{id}
PATCH /v1/chat/threads/{id}
POST /v1/chat/threads/{id}/forget
POST /v1/chat/threads/{id}/share
GET /v1/chat/threads/{id}/link
POST /v1/chat/threads/{id}/messages
POST /v1/chat/threads/{id}/files
GET /v1/chat/threads/{id}/files/{file}
POST /v1/chat/threads/{id}/stop
GET /v1/config
PUT /v1/config/{key}
DELETE /v1/config/{key}
GET /v1/grants
DELETE /v1/grants/{id}
GET /v1/hooks
POST /v1/hooks
PATCH /v1/hooks/{name}
DELETE /v1/hooks/{name}
GET /v1/tokens
POST /v1/tokens
DELETE /v1/tokens/{name}
GET /v1/credentials
PUT /v1/credentials
DELETE /v1/credentials
POST /v1/credentials/{service}/login
GET /v1/sessions
DELETE /v1/sessions/{id}
GET /v1/calls/{id}/result`,
	ofPart: `
GET /v1/approvals/decided
GET /v1/approvals
GET /v1/approvals/{id}
POST /v1/approvals/{id}
GET /v1/calls/{id}`,
	ofFacts: `
GET /v1/usage
GET /v1/budgets`,
}

// rulesByPath turns a table round.
func rulesByPath(t *testing.T, table map[rule]string) map[string]rule {
	t.Helper()
	by := map[string]rule{}
	for r, paths := range table {
		for path := range strings.SplitSeq(strings.TrimSpace(paths), "\n") {
			if by[path] != "" {
				t.Errorf("%s has two rows", path)
			}
			by[path] = r
		}
	}
	return by
}

// TestAuthorityTable: each operation says what of a person's an admin may read
// through it. One that is new has no row, and needs one.
func TestAuthorityTable(t *testing.T) {
	for name, api := range map[string]struct {
		table map[rule]string
		ops   []mux.Mounted
	}{"control": {controlRules, daemon.Operations()}, "page": {pageRules, pages.New(pages.Options{}).Operations()}} {
		rows := rulesByPath(t, api.table)
		for _, op := range api.ops {
			path := op.Method + " " + op.Path
			r := rows[path]
			if r == "" {
				t.Errorf("%s: %s has no row: whose is what it shows, and who may read it?", name, path)
			}
			delete(rows, path)
			asks := false
			for f := range op.Request.Fields() {
				asks = asks || op.Request.Kind() == reflect.Struct && f.Tag.Get("query") == "reason"
			}
			if asks != (r == ofReason) && name == "control" {
				t.Errorf("%s: takes a reason: %t, its row says %s", path, asks, r)
			}
		}
		for path := range rows {
			t.Errorf("%s: there is no %s any more", name, path)
		}
	}
}

// marker is in everything that a person of TestAuthority wrote, asked or got.
const marker = "mrkr7f3a91"

// TestAuthority: by no operation that reads does an admin get what another person
// wrote, asked or got, at the control socket nor on the page; with a reason they do
// where the table says so, and the reason is in the audit.
func TestAuthority(t *testing.T) {
	t.Parallel()
	r, ctx := open(t, t.TempDir(), map[string]string{"NIZE_EGRESS_ALLOW": "127.0.0.1"}), t.Context()
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "note", Do: func(_ context.Context, args json.RawMessage) json.RawMessage {
		return mcptest.Text("noted " + string(args))
	}}}})
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "box", Transport: store.HTTP, URL: up.HTTP(), Visibility: []string{"all"}}}))
	ann, err := api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: "ann"})
	must(nil, err)
	token, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: "t", User: "ann"})
	must(nil, err)

	// Ann's conversation, setting, standing answer and calls: one that ended, one
	// that she refused and one that waits.
	b := newBrowser(t, r)
	b.signIn(r.Client, "ann")
	var th store.Thread
	must(nil, json.Unmarshal([]byte(b.ask("chat/threads", `{}`).body), &th))
	streamCtx, left := context.WithCancel(ctx)
	_, events := b.follow(streamCtx, th.ID)
	if p := b.ask("chat/threads/"+th.ID+"/messages", `{"key":"k1","text":"hello `+marker+`"}`); p.status != http.StatusOK {
		t.Fatalf("a message: %d %s", p.status, p.body)
	}
	until(t, events, "the end", func(e pageEvent) bool { return e.name == "state" && e.data.State == "idle" })
	left()
	if p := b.change(http.MethodPut, "config/agent.tools.systemPrompt", `{"value":"`+marker+`"}`); p.status != http.StatusOK {
		t.Fatalf("a setting: %d %s", p.status, p.body)
	}
	answered := make(chan page, 4) // each of the four calls once
	followCtx, unfollow := context.WithCancel(ctx)
	pending, stop := iter.Pull2(api.ReadAudit.Call(followCtx, r.Client, api.AuditRequest{Kind: "call.pending", Follow: true}))
	defer stop()
	defer unfollow()
	begin := func() store.Card {
		t.Helper()
		go func() {
			body, headers := rpcCall("execute_tool", `{"tool_id":"box:note","params":{"text":"`+marker+`"}}`)
			answered <- newBrowser(t, r).post("/mcp", inJSON, body, append(headers, "Authorization", "Bearer "+token.Secret.Reveal())...)
		}()
		e, err, more := pending()
		if !more || err != nil {
			t.Fatalf("the trail ended: %v", err)
		}
		card, err := api.GetApproval.Call(ctx, r.Client, api.CallRequest{ID: e.Subject})
		must(nil, err)
		return card
	}
	decide := func(card store.Card, body string) {
		t.Helper()
		if p := b.ask("approvals/"+card.Call, `{"digest":"`+card.Digest+`",`+body+`}`); p.status != http.StatusOK {
			t.Fatalf("deciding: %d %s", p.status, p.body)
		}
		<-answered
	}
	ended := begin()
	decide(ended, `"verb":"approve"`)
	refused := begin()
	decide(refused, `"verb":"deny","reason":"`+marker+`"`)
	decide(begin(), `"verb":"approve","always":true,"pattern":{"text":"`+marker+`*"}`)
	must(api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "approvals.mode", Value: "all"}))
	grants, err := api.ListGrants.Call(ctx, r.Client, api.ListGrantsRequest{User: "ann"})
	must(nil, err)
	if len(grants.Items) != 1 {
		t.Fatalf("standing answers: %+v", grants.Items)
	}
	must(api.RevokeGrant.Call(ctx, r.Client, api.RevokeGrantRequest{ID: grants.Items[0].ID}))
	waits := begin()
	if !waits.Withheld || string(waits.Args) != "null" || waits.Tool != "box:note" || waits.By != "ann" {
		t.Errorf("a card of somebody else: %+v", waits)
	}

	socket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(r.dir, "s"))
	}}}
	control := func(path string) string {
		t.Helper()
		resp, err := socket.Get("http://" + api.Host + path)
		must(nil, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		must(nil, err)
		return string(body)
	}
	admin := newBrowser(t, r)
	admin.signIn(r.Client, "")
	onPage := func(path string) string { return admin.get("/app" + path).body }

	// addresses are all that an operation may be asked for about ann.
	addresses := func(op mux.Mounted, why string) (list []string) {
		query := url.Values{}
		for f := range op.Request.Fields() {
			switch f.Tag.Get("query") {
			case "user":
				query.Set("user", "ann")
			case "reason":
				query.Set("reason", why)
			case "query":
				query.Set("query", marker)
			case "all":
				query.Set("all", "true")
			}
		}
		if !strings.Contains(op.Path, "{") {
			return []string{op.Path + "?" + query.Encode()}
		}
		for _, id := range []string{ann.ID, "ann", th.ID, ended.Call, refused.Call, waits.Call, grants.Items[0].ID, "agent.tools.systemPrompt", "box", "box:note"} {
			path := op.Path
			for strings.Contains(path, "{") {
				from, to := strings.Index(path, "{"), strings.Index(path, "}")
				path = path[:from] + url.PathEscape(id) + path[to+1:]
			}
			list = append(list, path+"?"+query.Encode())
		}
		return list
	}
	rows := rulesByPath(t, controlRules)
	for _, op := range daemon.Operations() {
		if op.Method != http.MethodGet || rows["GET "+op.Path] == ofWhole || rows["GET "+op.Path] == ofNobody || op.Path == api.ServeMCP.Path || op.Path == api.FollowConversation.Path {
			continue
		}
		shown := 0
		for _, path := range addresses(op, "") {
			if body := control(path); strings.Contains(strings.ReplaceAll(body, "query="+marker, ""), marker) {
				t.Errorf("an admin reads at the control socket %s:\n%.600s", path, body)
			}
		}
		if rows["GET "+op.Path] != ofReason {
			continue
		}
		for _, path := range addresses(op, "because we must") {
			if strings.Contains(control(path), marker) {
				shown++
			}
		}
		if op.Path != api.ListGrants.Path && shown == 0 { // her standing answer is revoked
			t.Errorf("with a reason %s shows nothing of ann's", op.Path)
		}
	}
	for _, op := range pages.New(pages.Options{}).Operations() {
		if op.Method != http.MethodGet {
			continue
		}
		for _, path := range addresses(op, "because I can") {
			if body := onPage(path); strings.Contains(body, marker) {
				t.Errorf("an admin reads on the page %s:\n%.600s", path, body)
			}
		}
	}

	// Each reading with a reason is in the trail, before its answer.
	noted := map[string]int{}
	for e, err := range api.ReadAudit.Call(ctx, r.Client, api.AuditRequest{Limit: 1000}) {
		must(nil, err)
		if strings.Contains(string(e.Data), "because we must") {
			noted[e.Kind]++
		}
	}
	want := []string{"audit.export", "audit.read", "call.read", "grant.read", "setting.read", "thread.read", "user.export"}
	if got := slices.Sorted(maps.Keys(noted)); !slices.Equal(got, want) {
		t.Errorf("in the trail: %v, want %v", noted, want)
	}

	// An admin may say no to a call that they may not read, and that opens nothing.
	denied, err := api.DecideCall.Call(ctx, r.Client, api.DecideCallRequest{ID: waits.Call, Verb: store.Deny, Digest: waits.Digest})
	if err != nil || denied.State != store.Refused || string(denied.Args) != "null" {
		t.Errorf("an admin's no: %+v %v", denied, err)
	}
	if body := control("/v1/approvals/" + waits.Call); strings.Contains(body, marker) {
		t.Errorf("after their no an admin reads %.600s", body)
	}
	<-answered
}
