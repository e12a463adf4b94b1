package daemon_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/store"
	"nize/store/credential"
)

// send is a request with a method of its own, as nize's own page makes it.
func (b *browser) change(method, path, body string) page {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.base+"/app/v1/"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", inJSON)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.send(req)
}

// TestPlaces: what is behind the places of the page is each person's own, whatever
// role they have; how nize is, is for admins, and nothing of the house can be changed.
func TestPlaces(t *testing.T) {
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "toolbox", Command: toolbox(t)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: "mia", Role: store.Member}); err != nil {
		t.Fatal(err)
	}
	b, mia, nobody := newBrowser(t, r), newBrowser(t, r), newBrowser(t, r)
	b.signIn(r.Client, "")
	mia.signIn(r.Client, "mia")
	want := func(who *browser, method, path, body string, status int) page {
		t.Helper()
		p := who.change(method, path, body)
		if p.status != status {
			t.Errorf("%s %s: %d %s, want %d", method, path, p.status, p.body, status)
		}
		return p
	}
	items := func(who *browser, path string) (list []struct{ ID, Name, Kind string }) {
		t.Helper()
		var all api.List[struct{ ID, Name, Kind string }]
		if err := json.Unmarshal([]byte(want(who, "GET", path, "", 200).body), &all); err != nil {
			t.Fatal(err)
		}
		return all.Items
	}
	for _, path := range []string{"config", "grants", "tokens", "credentials", "sessions", "usage", "budgets", "status", "doctor"} {
		want(nobody, "GET", path, "", http.StatusUnauthorized)
	}
	for _, path := range []string{"config/theme", "grants/x", "tokens/x", "credentials?service=x", "sessions/x"} {
		want(nobody, "DELETE", path, "{}", http.StatusUnauthorized)
	}

	// Settings: one's own, never the house's.
	want(b, "PUT", "config/theme", `{"value":"dark"}`, 200)
	want(b, "PUT", "config/approvals.mode", `{"value":"none"}`, 400)
	want(b, "PUT", "config/theme", `{"value":"pink"}`, 400)
	for _, s := range items(b, "config") {
		if s.Name != "" { // its key is key
			t.Errorf("config has %+v", s)
		}
	}
	if body := want(b, "GET", "config", "", 200).body; strings.Contains(body, "data_dir") || strings.Contains(body, "approvals.") {
		t.Errorf("the page has settings of the house: %s", body)
	}
	if body := want(mia, "GET", "me", "", 200).body; !strings.Contains(body, `"theme":"auto"`) {
		t.Errorf("somebody else's theme: %s", body)
	}

	// Standing answers and sessions: somebody else's are not there, for admins neither.
	grant, err := api.AddGrant.Call(ctx, r.Client, api.AddGrantRequest{Tool: "toolbox:current_time"})
	if err != nil {
		t.Fatal(err)
	}
	if got := items(b, "grants"); len(got) != 1 || got[0].ID != grant.ID {
		t.Errorf("the grants are %v", got)
	}
	if body := want(b, "GET", "grants", "", 200).body; strings.Contains(body, "void") {
		t.Errorf("a grant that counts is marked: %s", body)
	}
	if _, err := api.RemoveServer.Call(ctx, r.Client, api.ServerRequest{Name: "toolbox"}); err != nil {
		t.Fatal(err)
	}
	if body := want(b, "GET", "grants", "", 200).body; !strings.Contains(body, `"void":"the tool does not exist now"`) {
		t.Errorf("a grant of a tool that is gone is not marked: %s", body)
	}
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "toolbox", Command: toolbox(t)}}); err != nil {
		t.Fatal(err)
	}
	if got := items(mia, "grants"); len(got) != 0 {
		t.Errorf("somebody else's grants are %v", got)
	}
	want(mia, "DELETE", "grants/"+grant.ID, "{}", http.StatusNotFound)
	theirs := items(mia, "sessions")
	if own := items(b, "sessions"); len(own) != 1 || len(theirs) != 1 || own[0].Kind != "browser" || own[0].ID == theirs[0].ID {
		t.Fatalf("the sessions are %v and %v", own, theirs)
	}
	want(b, "DELETE", "sessions/"+theirs[0].ID, "{}", http.StatusNotFound)
	want(b, "DELETE", "grants/"+grant.ID, "{}", 200)

	// Tokens: shown once, and their owner's alone.
	made := want(mia, "POST", "tokens", `{"name":"laptop"}`, 200)
	var token struct{ Token string }
	if err := json.Unmarshal([]byte(made.body), &token); err != nil || !strings.HasPrefix(token.Token, "nize_") {
		t.Fatalf("a token: %s", made.body)
	}
	if got := items(b, "tokens"); len(got) != 0 {
		t.Errorf("an admin's page has the tokens %v", got)
	}
	if body := want(mia, "GET", "tokens", "", 200).body; !strings.Contains(body, "laptop") || strings.Contains(body, token.Token) {
		t.Errorf("the tokens: %s", body)
	}
	want(b, "DELETE", "tokens/laptop", "{}", http.StatusNotFound)
	want(mia, "DELETE", "tokens/laptop", "{}", 200)

	// Credentials: given and removed, never read.
	if _, err := api.Declare.Call(ctx, r.Client, api.DeclareRequest{ID: "weather", Declaration: credential.Declaration{Name: "Weather", Mode: credential.UserKey}}); err != nil {
		t.Fatal(err)
	}
	want(mia, "PUT", "credentials", `{"service":"weather","name":"apiKey","secret":"s3cret-of-mia"}`, 200)
	if body := want(mia, "GET", "credentials", "", 200).body; !strings.Contains(body, `"connected":true`) || strings.Contains(body, "s3cret") {
		t.Errorf("the credentials: %s", body)
	}
	if body := want(b, "GET", "credentials", "", 200).body; strings.Contains(body, `"connected":true`) {
		t.Errorf("an admin's credentials: %s", body)
	}
	want(mia, "POST", "credentials/weather/login", "{}", http.StatusNotFound)
	want(b, "DELETE", "credentials?service=weather&name=apiKey", "{}", http.StatusNotFound)
	want(mia, "DELETE", "credentials?service=weather&name=apiKey", "{}", 200)

	// How nize is, and what everybody used.
	want(mia, "GET", "usage?by=user&all=1", "", 200)
	want(mia, "GET", "usage?by=provider&all=1", "", http.StatusForbidden)
	for _, path := range []string{"status", "doctor"} {
		want(mia, "GET", path, "", http.StatusNotFound)
	}
	if body := want(b, "GET", "status", "", 200).body; !strings.Contains(body, `"name":"toolbox"`) || strings.Contains(body, r.dir) {
		t.Errorf("the status: %s", body)
	}
	if body := want(b, "GET", "doctor", "", 200).body; !strings.Contains(body, `"text":"no budget is used up"`) {
		t.Errorf("what the doctor found: %s", body)
	}
	want(b, "PUT", "config/language", `{"value":"zh-Hant"}`, 200)
	if body := want(b, "GET", "doctor", "", 200).body; !strings.Contains(body, `"text":"沒有用完的預算"`) || strings.Contains(body, "there is no") {
		t.Errorf("what the doctor found, in Chinese: %s", body)
	}
	for _, path := range []string{"servers", "servers/toolbox/restart", "servers/toolbox/enable", "prices/x", "users", "bots", "backup", "declared-credentials/weather"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			if p := b.change(method, path, "{}"); !slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed}, p.status) {
				t.Errorf("%s %s: %d", method, path, p.status)
			}
		}
	}
}
