package daemon_test

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/mcp/upstream/authtest"
	"nize/store"
	"nize/store/credential"
)

// Somebody connects a server with a link that nize gives them alone, and is told there
// that it worked; the link is of no use to others.
func testConnecting(m *meeting) {
	t := m.t
	behind := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo"}}, Stateless: true, JSON: true})
	auth := authtest.New(behind.HTTP())
	t.Cleanup(auth.Close)
	if _, err := api.AddServer.Call(t.Context(), m.Client, api.AddServerRequest{Server: store.Server{Name: "far", URL: auth.MCP, Auth: store.AuthUserLogin, Visibility: []string{"all"}}}); err != nil {
		t.Fatal(err)
	}
	link := func(who, what string) string {
		t.Helper()
		slash(t, m.chat, who, "/nize credentials connect "+what)
		m.told(who, "To connect "+what)
		for _, s := range m.alone(who) {
			if _, rest, ok := strings.Cut(s.text, "http://127.0.0.1"); ok && strings.Contains(rest, "/connect/") && strings.Contains(s.text, "To connect "+what) {
				return "http://127.0.0.1" + rest[:strings.IndexAny(rest+" ", " \n\"\\>)|")]
			}
		}
		t.Fatal("no link")
		return ""
	}
	signIn := func(who string) *browser {
		t.Helper()
		b := browserAt(t, m.Client)
		shown := b.get(b.get("/login").location)
		users, err := api.ListUsers.Call(t.Context(), m.Client, api.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(users.Items, func(u store.User) bool { return strings.Contains(strings.Join(u.Identities, " "), m.id(who)) })
		approved, err := api.ApproveLogin.Call(t.Context(), m.Client, api.LoginCodeRequest{Code: codeOf(shown), User: users.Items[i].ID})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.post(regexp.MustCompile(`/oauth/requests/[A-Za-z0-9_-]+`).FindString(shown.body), form, "form="+formOf(shown)+"&number="+approved.Number.Reveal()); got.status >= 400 {
			t.Fatalf("signing %s in: %d %s", who, got.status, got.body)
		}
		return b
	}
	address, secret, _ := strings.Cut(link("ben", "far"), "#")
	at, err := url.Parse(address)
	if err != nil || secret == "" {
		t.Fatalf("the link %s, %v", address, err)
	}

	// Nobody, and somebody else, though they have the whole link.
	for who, b := range map[string]*browser{"nobody": browserAt(t, m.Client), "Ann": signIn("ann")} {
		if p := b.get(at.Path); p.status != 403 || strings.Contains(p.body, "data-fragment") {
			t.Errorf("the page of Ben shows %s %d: %s", who, p.status, p.body)
		}
		if p := b.post(at.Path, form, "secret="+secret); p.status != 403 || refreshTo.MatchString(p.body) {
			t.Errorf("%s goes on: %d", who, p.status)
		}
	}
	ben := signIn("ben")
	p := ben.post(at.Path, form, "secret="+secret)
	next := refreshTo.FindStringSubmatch(p.body)
	if next == nil {
		t.Fatalf("Ben does not go on: %d %s", p.status, p.body)
	}
	back := ben.get(strings.ReplaceAll(next[1], "&amp;", "&")).location
	if p := ben.get(back); p.status != 200 || !strings.Contains(p.body, "far is connected") {
		t.Fatalf("the callback: %d %s", p.status, p.body)
	}
	m.told("ben", "far is connected")
	for _, s := range m.alone("ann") {
		if strings.Contains(s.text, "far is connected") || strings.Contains(s.text, secret) {
			t.Errorf("Ann reads %q", s.text)
		}
	}

	// A declared credential likewise, and back.
	auth.Set(func(f *authtest.Faults) { f.Plain = true })
	auth.AddClient("nize", "", "http://"+at.Host+"/oauth/callback")
	d := credential.Declaration{Name: "Mail", Mode: credential.UserOAuth, Host: "mail.example", OAuth: &credential.OAuth{AuthorizationURL: auth.URL + "/authorize", TokenURL: auth.URL + "/token", RevocationURL: auth.URL + "/revoke", ClientID: "nize"}}
	if _, err := api.Declare.Call(t.Context(), m.Client, api.DeclareRequest{ID: "mail", Declaration: d}); err != nil {
		t.Fatal(err)
	}
	address, secret, _ = strings.Cut(link("ben", "mail"), "#")
	p = ben.post("/connect/"+address[strings.LastIndex(address, "/")+1:], form, "secret="+secret)
	if next = refreshTo.FindStringSubmatch(p.body); next == nil {
		t.Fatalf("Ben does not go on: %d %s", p.status, p.body)
	}
	ben.get(ben.get(strings.ReplaceAll(next[1], "&amp;", "&")).location)
	m.told("ben", "Mail is connected")
	families := auth.Families()
	slash(t, m.chat, "ben", "/nize credentials disconnect mail")
	m.until("it is revoked", func() bool { return auth.Families() == families-1 })
	if wrong := m.mistakes(); len(wrong) > 0 {
		t.Errorf("mistakes: %v", wrong)
	}
}
