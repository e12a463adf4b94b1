package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/daemon/api"
	"nize/daemon/company/oidctest"
	"nize/mcp/mcptest"
	"nize/mcp/upstream/authtest"
	"nize/store"
)

const trackerClient, trackerSecret = "nize-at-the-tracker", "the secret of nize at the tracker"

// newTracker returns an MCP server with an authorization server. It must be made before the
// daemon, since it waits at the end for the daemon's connections.
func newTracker(t *testing.T) *authtest.Service {
	t.Helper()
	behind := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo"}}, Stateless: true, JSON: true})
	s := authtest.New(behind.HTTP())
	t.Cleanup(s.Close)
	s.AddClient(trackerClient, trackerSecret, "https://nize.example/unused")
	return s
}

// allow makes a server trust the provider's assertions, and the provider issue them.
func (a *acme) allow(s *authtest.Service) {
	s.Set(func(f *authtest.Faults) { f.Trusts = a.trusts(s) })
	a.idp.Allow(s.URL, trackerClient)
}

// trusts checks an assertion as the tracker's authorization server does.
func (a *acme) trusts(s *authtest.Service) func(assertion, client string) (string, error) {
	return func(assertion, client string) (string, error) {
		token, err := jose.ParseSignedCompact(assertion, []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			return "", err
		}
		body, err := token.Verify(a.idp.JWK())
		if err != nil {
			return "", err
		}
		var c struct {
			Issuer   string `json:"iss"`
			Audience string `json:"aud"`
			Client   string `json:"client_id"`
			Resource string `json:"resource"`
			Subject  string `json:"sub"`
		}
		if err := json.Unmarshal(body, &c); err != nil {
			return "", err
		}
		if c.Issuer != a.idp.URL || c.Audience != s.URL || c.Client != client || c.Resource != s.MCP {
			return "", fmt.Errorf("the assertion is for %+v", c)
		}
		return c.Subject, nil
	}
}

// use calls echo of the tracker over MCP with a token, and returns what the client gets.
func (a *acme) use(token string) string {
	a.t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(a.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: "http://" + a.listens(a.t) + "/mcp", HTTPClient: &http.Client{Transport: withToken{token, http.DefaultTransport}}}, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	done, err := session.CallTool(a.t.Context(), &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "tracker:echo", "params": map[string]any{}}})
	if err != nil {
		return err.Error()
	}
	got, err := json.Marshal(done)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(got)
}

// TestCompanyAtServers: people get in at a server with the company's account, without a
// browser, as themselves, for as long as the provider allows it, and only through the
// authorization server that an admin accepted.
func TestCompanyAtServers(t *testing.T) {
	for _, refresh := range []bool{false, true} {
		t.Run(fmt.Sprint("refresh=", refresh), func(t *testing.T) {
			t.Parallel()
			var ahead atomic.Int64
			tracker, elsewhere := newTracker(t), newTracker(t)
			a := newAcme(t, clock(&ahead))
			a.allow(tracker)
			a.allow(elsewhere)
			a.idp.Refreshes(refresh)
			ctx := t.Context()
			tokens := map[string]string{} // by person
			wants := func(who, text string) {
				t.Helper()
				if tokens[who] == "" {
					made, err := api.CreateToken.Call(ctx, a.Client, api.CreateTokenRequest{Name: "for-" + who, User: who, Audience: store.ForMCP})
					if err != nil {
						t.Fatal(err)
					}
					tokens[who] = made.Secret.Reveal()
				}
				got := ""
				for range 1000 { // a failed attempt counts for the calls of the next 100 ms
					if got = a.use(tokens[who]); strings.Contains(got, text) {
						return
					}
				}
				t.Errorf("%s got %s, want %q", who, got, text)
			}
			record := store.Server{Name: "tracker", URL: tracker.MCP, Approval: store.ApproveNever, Visibility: []string{"all"}, Enterprise: true}
			if _, err := api.AddServer.Call(ctx, a.Client, api.AddServerRequest{Server: record}); err == nil || !strings.Contains(err.Error(), "user-oauth") {
				t.Errorf("without the auth: %v", err)
			}
			record.Auth = store.AuthUserLogin
			if _, err := api.AddServer.Call(ctx, a.Client, api.AddServerRequest{Server: record}); err != nil {
				t.Fatal(err)
			}
			for sub, name := range map[string]string{"ana-1": "Ana", "bea-1": "Bea"} {
				a.idp.Person(oidctest.Claims{"sub": sub, "name": name})
				if p := a.login(newBrowser(t, a.testDaemon)); p.status != http.StatusOK {
					t.Fatalf("signing in: %d %s", p.status, mainOf(p))
				}
			}
			accept := api.LoginServerRequest{Name: "tracker", ClientID: trackerClient, ClientSecret: api.NewSecret(trackerSecret)}
			if _, err := api.LoginServer.Call(ctx, a.Client, accept); err == nil || !strings.Contains(err.Error(), "name a person who signs in with the company's account") {
				t.Errorf("an admin without an account: %v", err)
			}
			// The double knows one person at a time, whose tokens a refresh token brings.
			is := func(sub string) { a.idp.Person(oidctest.Claims{"sub": sub}) }
			is("ana-1")
			accept.User = "Ana"
			if flow, err := api.LoginServer.Call(ctx, a.Client, accept); err != nil || flow.State != api.LoginDone || flow.Issuer != tracker.URL || flow.URL != "" {
				t.Fatalf("an admin for a person: %+v %v", flow, err)
			}
			wants("Ana", `"text":"`)
			if n := tracker.Count("as bea-1"); n != 0 {
				t.Errorf("Bea was there %d times", n)
			}
			is("bea-1")
			wants("Bea", `"text":"`)
			if n := tracker.Count("as bea-1"); n == 0 || tracker.Count("GET /authorize") != 0 {
				t.Errorf("Bea was there %d times, a browser %d times", n, tracker.Count("GET /authorize"))
			}
			if _, err := api.AddUser.Call(ctx, a.Client, api.AddUserRequest{Name: "cleo", Role: store.Member}); err != nil {
				t.Fatal(err)
			}
			wants("cleo", "This is used with your company's account: sign in to nize with it")

			// A server that moves its people elsewhere gets no assertion for there.
			before := elsewhere.Count("POST /token")
			tracker.Set(func(f *authtest.Faults) {
				f.Edit = func(name string, doc map[string]any) {
					if name == "resource" {
						doc["authorization_servers"] = []string{elsewhere.URL}
					}
				}
			})
			tracker.EndAccess()
			wants("Bea", "An admin has to accept where tracker signs people in")
			tracker.Set(func(f *authtest.Faults) { f.Edit = nil })
			if n := elsewhere.Count("POST /token"); n != before {
				t.Errorf("the other authorization server was asked %d times", n-before)
			}

			// The provider decides about each token.
			ahead.Add(int64(10 * time.Second)) // the answer before is not remembered any more
			wants("Bea", `"text":"`)
			a.idp.Allow(tracker.URL, "")
			tracker.EndAccess()
			wants("Bea", "Acme doesn't let you use tracker (access_denied)")
			a.idp.Allow(tracker.URL, trackerClient)
			ahead.Add(int64(10 * time.Second)) // the answer before is not remembered any more
			wants("Bea", `"text":"`)
			if refresh {
				a.idp.Refreshes(false) // it ended their sessions
			} else {
				a.idp.Advance(time.Hour) // the ID token of the sign-in ended
			}
			tracker.EndAccess()
			wants("Bea", "sign in to nize with it in your browser")

			// A server that doesn't announce it signs people in itself.
			tracker.Set(func(f *authtest.Faults) { f.Trusts = nil })
			ahead.Add(int64(10 * time.Second)) // the answer before is not remembered any more
			wants("Bea", "tracker is not connected for you")
			if text := a.log.String(); strings.Contains(text, trackerSecret) || strings.Contains(text, "eyJ") || strings.Contains(text, "access-") {
				t.Errorf("a secret is in the log: %s", text)
			}
		})
	}
}
