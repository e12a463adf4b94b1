package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/daemon/company/oidctest"
	"nize/store"
)

// directory is a client of /scim/v2.
type directory struct {
	t     *testing.T
	base  string
	token string
}

func newDirectory(t *testing.T, r *testDaemon) *directory {
	t.Helper()
	made, err := api.CreateToken.Call(t.Context(), r.Client, api.CreateTokenRequest{Name: "directory", Audience: store.ForSCIM})
	if err != nil {
		t.Fatal(err)
	}
	return &directory{t, newBrowser(t, r).base + "/scim/v2", made.Secret.Reveal()}
}

// resource is what tests look at.
type resource struct {
	ID, UserName, ExternalID, DisplayName, Detail, ScimType string
	Active                                                  bool
	Name                                                    json.RawMessage
	Emails                                                  []struct{ Value string }
	Members                                                 []struct{ Value, Display string }
	TotalResults, StartIndex, ItemsPerPage                  int
	Resources                                               []resource
}

func (d *directory) do(method, path, body string, want int) (v resource) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.base+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+d.token)
	req.Header.Set("Content-Type", "application/scim+json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		d.t.Fatalf("%s %s %s: %d %s %v, want %d", method, path, body, res.StatusCode, raw, err, want)
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &v); err != nil || res.Header.Get("Content-Type") != "application/scim+json" {
			d.t.Fatalf("%s %s: %s %v", method, path, raw, err)
		}
	}
	return v
}

// The bodies as Okta's and Microsoft's pages about SCIM have them, with other names.
const (
	oktaUser = `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"ana@acme.example","name":{"givenName":"Ana","familyName":"Sommer"},
		"emails":[{"primary":true,"value":"ana@acme.example","type":"work"}],"displayName":"Ana Sommer","locale":"en-US","externalId":"00ujl29u0le5T6Aj10h7","groups":[],"password":"1mz050nq","active":true}`
	oktaOff = `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"replace","value":{"active":false}}]}`
	oktaOn  = `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"replace","value":{"active":true}}]}`

	entraUser = `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],"externalId":"0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
		"userName":"Bea_Winter_AB6490EE@acme.example","active":true,"emails":[{"primary":true,"type":"work","value":"bea@acme.example"}],"meta":{"resourceType":"User"},
		"name":{"formatted":"givenName familyName","familyName":"Winter","givenName":"Bea"},"roles":[]}`
	entraChange = `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"Replace","path":"emails[type eq \"work\"].value","value":"beate@acme.example"},
		{"op":"Replace","path":"name.familyName","value":"Herbst"},{"op":"Add","path":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department","value":"IT"}]}`
	entraOff = `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"Replace","path":"active","value":"False"}]}`
)

func TestSCIMUsers(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	d := newDirectory(t, a.testDaemon)
	for _, path := range []string{"/ServiceProviderConfig", "/Schemas", "/ResourceTypes"} {
		d.do("GET", path, "", 200)
	}
	q := func(filter string) string { return "/Users?" + url.Values{"filter": {filter}}.Encode() }
	if got := d.do("GET", q(`userName eq "ana@acme.example"`), "", 200); got.TotalResults != 0 || got.Resources == nil {
		t.Errorf("nobody: %+v", got)
	}
	ana := d.do("POST", "/Users", oktaUser, 201)
	if ana.UserName != "ana@acme.example" || !ana.Active || ana.Emails[0].Value != "ana@acme.example" || ana.ExternalID == "" {
		t.Errorf("Okta's: %+v", ana)
	}
	if got := d.do("POST", "/Users", oktaUser, 409); got.ScimType != "uniqueness" {
		t.Errorf("twice: %+v", got)
	}
	for _, filter := range []string{`userName eq "ANA@acme.example"`, `externalId eq "00ujl29u0le5T6Aj10h7"`, `USERNAME Eq "ana@acme.example"`} {
		if got := d.do("GET", q(filter), "", 200); got.TotalResults != 1 || got.Resources[0].ID != ana.ID {
			t.Errorf("%s: %+v", filter, got)
		}
	}
	for _, filter := range []string{`userName sw "a"`, `password eq "x"`, `userName eq ana`, `userName eq "a" or userName eq "b"`} {
		if got := d.do("GET", q(filter), "", 400); got.ScimType != "invalidFilter" {
			t.Errorf("%s: %+v", filter, got)
		}
	}
	bea := d.do("POST", "/Users", entraUser, 201)
	if u := a.user("Bea Winter"); u.Email != "bea@acme.example" || u.CanApprove() || !slices.Contains(u.Teams, "local") {
		t.Errorf("Entra's: %+v", u)
	}
	if got := d.do("PATCH", "/Users/"+bea.ID, entraChange, 200); got.Emails[0].Value != "beate@acme.example" || !strings.Contains(string(got.Name), `"familyName":"Herbst"`) {
		t.Errorf("Entra's change: %+v", got)
	}
	if u := a.user("Bea Herbst"); u.Email != "beate@acme.example" {
		t.Errorf("after the change: %+v", u)
	}
	// Who was provisioned is who signs in with that subject.
	a.idp.Person(oidctest.Claims{"sub": "00ujl29u0le5T6Aj10h7", "name": "Ana Sommer"})
	b := newBrowser(t, a.testDaemon)
	a.login(b)
	if u := a.user("Ana Sommer"); len(u.Identities) != 2 || !u.CanApprove() || b.as() != "Ana Sommer" {
		t.Errorf("signed in as %q: %+v", b.as(), u)
	}
	for off, on := range map[string]string{oktaOff: oktaOn, entraOff: strings.Replace(entraOff, "False", "True", 1)} {
		if got := d.do("PATCH", "/Users/"+ana.ID, off, 200); got.Active || b.as() != "" || a.user("Ana Sommer").State != store.Disabled {
			t.Errorf("off: %+v, signed in as %q", got, b.as())
		}
		if p := a.login(newBrowser(t, a.testDaemon)); p.status != http.StatusForbidden || !strings.Contains(p.body, "disabled") {
			t.Errorf("a sign-in of a leaver: %d %s", p.status, mainOf(p))
		}
		d.do("PATCH", "/Users/"+ana.ID, on, 200)
		if p := a.login(b); p.status != http.StatusOK {
			t.Errorf("back: %d %s", p.status, mainOf(p))
		}
	}
	// Pages.
	for i := range 5 {
		d.do("POST", "/Users", fmt.Sprintf(`{"userName":"p%d","active":true}`, i), 201)
	}
	seen := map[string]bool{}
	for start := 1; start <= 7; start += 3 {
		got := d.do("GET", fmt.Sprintf("/Users?startIndex=%d&count=3", start), "", 200)
		for _, r := range got.Resources {
			seen[r.ID] = true
		}
		if got.TotalResults != 7 || got.StartIndex != start || got.ItemsPerPage != len(got.Resources) {
			t.Errorf("page from %d: %+v", start, got)
		}
	}
	if len(seen) != 7 {
		t.Errorf("pages have %d people", len(seen))
	}
	if got := d.do("GET", "/Users?startIndex=100&count=0", "", 200); got.TotalResults != 7 || len(got.Resources) != 0 {
		t.Errorf("behind the end: %+v", got)
	}
	// A deleted person is out, stays out, and their name is free.
	d.do("DELETE", "/Users/"+ana.ID, "", 204)
	d.do("GET", "/Users/"+ana.ID, "", 404)
	d.do("DELETE", "/Users/"+ana.ID, "", 404)
	if u := a.user("Ana Sommer"); u.State != store.Disabled || b.as() != "" {
		t.Errorf("deleted: %+v", u.User)
	}
	again := d.do("POST", "/Users", oktaUser, 201)
	if u := a.user("Ana Sommer"); again.ID == ana.ID || u.State != store.Active {
		t.Errorf("hired again: %+v %+v", again, u.User)
	}
	for _, body := range []string{`{}`, `[]`, `{"userName":""}`, `{"userName":"x","active":"perhaps"}`, `{"userName":"a\u0000b"}`} {
		if body == `{"userName":"a\u0000b"}` {
			d.do("POST", "/Users", body, 201) // written so that it is seen
			continue
		}
		d.do("POST", "/Users", body, 400)
	}
	for _, body := range []string{`{}`, `{"Operations":[{"op":"replace"}]}`, `{"Operations":[{"op":"move","path":"active","value":true}]}`, `{"Operations":[{"op":"replace","path":"active","value":7}]}`, `{"Operations":[{"op":"replace","path":"userName","value":""}]}`} {
		d.do("PATCH", "/Users/"+bea.ID, body, 400)
	}
}

// TestSCIMAuthorization: a token of another audience, of a member and of nobody opens
// nothing.
func TestSCIMAuthorization(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	d := newDirectory(t, a.testDaemon)
	good := d.token
	for _, audience := range []string{store.ForMCP, store.ForAPI} {
		made, err := api.CreateToken.Call(t.Context(), a.Client, api.CreateTokenRequest{Name: "t-" + audience, Audience: audience})
		if err != nil {
			t.Fatal(err)
		}
		d.token = made.Secret.Reveal()
		d.do("GET", "/Users", "", 401)
		d.do("POST", "/Users", oktaUser, 401)
	}
	d.token = ""
	d.do("GET", "/Users", "", 401)
	if _, err := api.AddUser.Call(t.Context(), a.Client, api.AddUserRequest{Name: "mia"}); err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(t.Context(), a.Client, api.CreateTokenRequest{Name: "hers", User: "mia", Audience: store.ForSCIM})
	if err != nil {
		t.Fatal(err)
	}
	d.token = made.Secret.Reveal()
	d.do("GET", "/Users", "", 403)
	d.token = good
	d.do("GET", "/Users", "", 200)
	// And it opens nothing else.
	b := newBrowser(t, a.testDaemon)
	req, err := http.NewRequest(http.MethodPost, b.base+"/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+good)
	if p := b.send(req); p.status != http.StatusUnauthorized && p.status != http.StatusForbidden {
		t.Errorf("/mcp: %d %s", p.status, p.body)
	}
	if _, err := api.RevokeToken.Call(t.Context(), a.Client, api.RevokeTokenRequest{Name: "directory"}); err != nil {
		t.Fatal(err)
	}
	d.do("GET", "/Users", "", 401)
}

// TestSCIMGroups: the directory's groups, by the requests of Okta and Entra, and what
// follows here at once: approvers, admins, names.
func TestSCIMGroups(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	d := newDirectory(t, a.testDaemon)
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ana, bea := d.do("POST", "/Users", oktaUser, 201), d.do("POST", "/Users", entraUser, 201)
	group := d.do("POST", "/Groups", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":"Leads","externalId":"e1","members":[]}`, 201)
	d.do("POST", "/Groups", `{"displayName":"leads"}`, 409)
	path := "/Groups/" + group.ID
	must(api.AddGroup.Call(ctx, a.Client, api.AddGroupRequest{Name: "leads", OIDCGroup: "Leads"}))
	members := func() (names []string) {
		g, err := api.GetGroup.Call(ctx, a.Client, api.GetGroupRequest{Name: "leads"})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range g.Members {
			names = append(names, m.Name)
		}
		slices.Sort(names)
		return names
	}
	patch := func(ops string) {
		d.do("PATCH", path, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[`+ops+`]}`, 200)
	}
	for _, tt := range []struct {
		name, ops string
		want      []string
	}{
		{"Okta adds", `{"op":"add","path":"members","value":[{"value":"` + ana.ID + `","display":"ana@acme.example"}]}`, []string{"Ana Sommer"}},
		{"Entra adds", `{"op":"Add","path":"members","value":[{"$ref":null,"value":"` + bea.ID + `"}]}`, []string{"Ana Sommer", "Bea Winter"}},
		{"Okta removes", `{"op":"remove","path":"members[value eq \"` + ana.ID + `\"]"}`, []string{"Bea Winter"}},
		{"Entra removes", `{"op":"Remove","path":"members","value":[{"$ref":null,"value":"` + bea.ID + `"}]}`, nil},
		{"Okta replaces", `{"op":"replace","path":"members","value":[{"value":"` + ana.ID + `"},{"value":"` + bea.ID + `"}]}`, []string{"Ana Sommer", "Bea Winter"}},
		{"in order", `{"op":"remove","path":"members[value eq \"` + bea.ID + `\"]"},{"op":"add","path":"members","value":{"value":"` + bea.ID + `"}},{"op":"remove","path":"members[value eq \"` + ana.ID + `\"]"}`, []string{"Bea Winter"}},
		{"all out", `{"op":"remove","path":"members"}`, nil},
		{"back in", `{"op":"add","value":{"members":[{"value":"` + ana.ID + `"}]}}`, []string{"Ana Sommer"}},
	} {
		patch(tt.ops)
		if got := members(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	d.do("PATCH", path, `{"Operations":[{"op":"add","path":"members","value":[{"value":"nobody"}]}]}`, 400)
	if g := d.do("GET", path, "", 200); len(g.Members) != 1 || g.Members[0].Value != ana.ID {
		t.Errorf("the group: %+v", g)
	}
	if g := d.do("GET", path+"?excludedAttributes=members", "", 200); len(g.Members) != 0 {
		t.Errorf("without members: %+v", g)
	}
	if g := d.do("GET", "/Groups?"+url.Values{"filter": {`displayName eq "Leads"`}, "excludedAttributes": {"members"}}.Encode(), "", 200); g.TotalResults != 1 {
		t.Errorf("by name: %+v", g)
	}
	// Both directories rename; the group here follows, with its members.
	patch(`{"op":"replace","value":{"id":"` + group.ID + `","displayName":"Leaders"}}`)
	patch(`{"op":"Replace","path":"displayName","value":"Tech Leads"}`)
	if g, err := api.GetGroup.Call(ctx, a.Client, api.GetGroupRequest{Name: "leads"}); err != nil || g.Handle != "Tech Leads" || len(g.Members) != 1 {
		t.Errorf("after a rename: %+v %v", g, err)
	}
	// A role follows at once, also out of the group.
	a.set("oidc.admin_groups", "Tech Leads")
	patch(`{"op":"add","path":"members","value":[{"value":"` + bea.ID + `"}]}`)
	if u := a.user("Bea Winter"); u.Role != store.Admin {
		t.Errorf("in a group of admins: %+v", u.User)
	}
	patch(`{"op":"remove","path":"members[value eq \"` + bea.ID + `\"]"}`)
	if u := a.user("Bea Winter"); u.Role != store.Member {
		t.Errorf("out of it: %+v", u.User)
	}
	// So does an approver, whose card is shown and whose session stays.
	a.idp.Person(oidctest.Claims{"sub": ana.ExternalID, "name": "Ana Sommer"})
	b := newBrowser(t, a.testDaemon)
	a.login(b)
	if got := members(); !slices.Equal(got, []string{"Ana Sommer"}) {
		t.Errorf("after a sign-in that named no groups: %q", got)
	}
	must(api.AddServer.Call(ctx, a.Client, api.AddServerRequest{Server: store.Server{Name: "agent-steps", Transport: store.External, Visibility: []string{"all"}, Approvers: "group:leads"}}))
	ask, err := api.PostAsk.Call(ctx, a.Client, api.AskRequest{Source: "agent-steps", Tool: "Bash", Arguments: []byte(`{"command":"make"}`)})
	must(nil, err)
	patch(`{"op":"remove","path":"members[value eq \"` + ana.ID + `\"]"}`)
	if p := b.ask("approvals/"+ask.ID, `{"verb":"approve","digest":"`+ask.Digest+`"}`); p.status == http.StatusOK {
		t.Errorf("an approver who lost the group: %d %s", p.status, p.body)
	}
	// And who may be signed in at all.
	a.set("oidc.allowed_groups", "Staff")
	staff := d.do("POST", "/Groups", `{"displayName":"Staff","members":[{"value":"`+ana.ID+`"}]}`, 201)
	a.login(b)
	if b.as() != "Ana Sommer" {
		t.Fatalf("in an allowed group: %q", b.as())
	}
	d.do("DELETE", "/Groups/"+staff.ID, "", 204)
	if b.as() != "" {
		t.Errorf("still signed in as %q without the group", b.as())
	}
	d.do("GET", "/Groups/"+staff.ID, "", 404)
}

// TestSCIMDeactivation: active: false ends all that goes on for a person: a call that
// waits, its card before an approver, a page and an MCP client that listen, a browser, a
// token. Each end is an event that the test waits for.
func TestSCIMDeactivation(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	d := newDirectory(t, a.testDaemon)
	ctx := t.Context()
	ana := d.do("POST", "/Users", oktaUser, 201)
	a.idp.Person(oidctest.Claims{"sub": ana.ExternalID, "name": "Ana Sommer"})
	b := newBrowser(t, a.testDaemon)
	a.login(b)
	if _, err := api.AddServer.Call(ctx, a.Client, api.AddServerRequest{Server: store.Server{Name: "agent-steps", Transport: store.External, Visibility: []string{"all"}, Approvers: "admins"}}); err != nil {
		t.Fatal(err)
	}
	a.idp.Person(oidctest.Claims{"sub": "boss-1", "name": "Boss"})
	boss := newBrowser(t, a.testDaemon)
	a.login(boss)
	if _, err := api.PatchUser.Call(ctx, a.Client, api.PatchUserRequest{ID: "Boss", Role: ptr(store.Admin)}); err != nil {
		t.Fatal(err)
	}
	token, err := api.CreateToken.Call(ctx, a.Client, api.CreateTokenRequest{Name: "hers", User: "Ana Sommer", Audience: store.ForAPI})
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(ctx, method, b.base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token.Secret.Reveal())
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(raw)
	}
	status, body := send("POST", "/asks", `{"source":"agent-steps","tool":"Bash","arguments":{"command":"make"}}`)
	var ask api.Ask
	if err := json.Unmarshal([]byte(body), &ask); err != nil || ask.State != "pending" {
		t.Fatalf("an ask: %d %s", status, body)
	}
	var th store.Thread
	if p := b.ask("chat/threads", `{}`); json.Unmarshal([]byte(p.body), &th) != nil || th.ID == "" {
		t.Fatalf("a conversation: %d %s", p.status, p.body)
	}
	_, events := b.follow(ctx, th.ID)
	_, approvals := boss.follow(ctx, "")
	until(t, approvals, "the card", func(e pageEvent) bool { return e.name == "waiting" && slices.Contains(e.data.IDs, ask.ID) })
	client, err := api.CreateToken.Call(ctx, a.Client, api.CreateTokenRequest{Name: "client", User: "Ana Sommer", Audience: store.ForMCP})
	if err != nil {
		t.Fatal(err)
	}
	listening := b.listen(client.Secret.Reveal())
	defer listening.Close()

	d.do("PATCH", "/Users/"+ana.ID, oktaOff, 200)
	for range events { // ends when the stream does
	}
	if _, err := io.Copy(io.Discard, listening); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the client's stream: %v", err)
	}
	until(t, approvals, "the end of the card", func(e pageEvent) bool { return e.name == "waiting" && !slices.Contains(e.data.IDs, ask.ID) })
	if p := boss.ask("approvals/"+ask.ID, `{"verb":"approve","digest":"`+ask.Digest+`"}`); p.status < 400 {
		t.Errorf("a press on the card of before: %d %s", p.status, p.body)
	}
	call, err := api.GetCall.Call(ctx, a.Client, api.CallRequest{ID: ask.ID, Reason: "the test looks"})
	if err != nil || call.State != store.Cancelled {
		t.Errorf("the waiting call is %s: %v", call.State, err)
	}
	if b.as() != "" {
		t.Errorf("still signed in as %q", b.as())
	}
	if status, body := send("GET", "/api/servers", ""); status != http.StatusUnauthorized {
		t.Errorf("the token: %d %s", status, body)
	}
	// The last admin by a group is no exception.
	if _, err := api.GetUser.Call(ctx, a.Client, api.GetUserRequest{ID: "Ana Sommer"}); err != nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("the user: %v", err)
	}
}
