package oauth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"nize/mcp/upstream/oauth"
	"nize/store"
)

// TestOfTheLibraries compares the SDK's oauthex and golang.org/x/oauth2 with this package:
// what services send that a library refuses, and what a library accepts that has to be
// refused. If a row fails because a library has changed, its part here may go.
func TestOfTheLibraries(t *testing.T) {
	const both, ours, theirs = "both", "ours", "the library" // who accepts it

	type doc = map[string]any
	for name, c := range map[string]struct {
		resource, service doc // members that differ; nil removes one; @ is the base URL
		media, prefix     string
		accepted          string
	}{
		"to the letter":                    {accepted: both},
		"a document of another media type": {media: "text/plain", accepted: ours},
		"a byte order mark":                {prefix: "\xef\xbb\xbf", accepted: ours},
		"a resource with a slash":          {resource: doc{"resource": "@/mcp/"}, accepted: ours},
		"a resource that is the origin":    {resource: doc{"resource": "@"}, accepted: ours},
		"a service as a text":              {resource: doc{"authorization_servers": "@"}, accepted: ours},
		"scopes as a text":                 {resource: doc{"scopes_supported": "a b"}, accepted: ours},
		"scopes that are a number":         {service: doc{"scopes_supported": 5}, accepted: ours},
		"PKCE as a text":                   {service: doc{"code_challenge_methods_supported": "S256 plain"}, accepted: ours},
		"a flag as a text":                 {service: doc{"client_id_metadata_document_supported": "true"}, accepted: ours},
		"PKCE without S256":                {service: doc{"code_challenge_methods_supported": []string{"plain"}}, accepted: theirs},
		"no token endpoint":                {service: doc{"token_endpoint": nil}, accepted: theirs},
		"a password in an endpoint":        {service: doc{"token_endpoint": "https://a:b@a.example/token"}, accepted: theirs},
		"a revocation without TLS":         {service: doc{"revocation_endpoint": "http://a.example/revoke"}, accepted: theirs},
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			base := "http://" + r.Host
			var d doc
			switch r.URL.Path {
			case "/.well-known/oauth-protected-resource/mcp":
				d = doc{"resource": base + "/mcp", "authorization_servers": []string{base}}
				maps.Copy(d, c.resource)
			case "/.well-known/oauth-authorization-server":
				d = doc{"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token", "code_challenge_methods_supported": []string{"S256"}}
				maps.Copy(d, c.service)
			default:
				w.WriteHeader(http.StatusNotFound)
				return
			}
			maps.DeleteFunc(d, func(_ string, v any) bool { return v == nil })
			b, err := json.Marshal(d)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			if c.media != "" {
				w.Header().Set("Content-Type", c.media)
			}
			fmt.Fprint(w, c.prefix+strings.NewReplacer(`"@"`, `"`+base+`"`, `"@/`, `"`+base+`/`).Replace(string(b)))
		}))
		client := newClient(t)
		_, library := oauthex.GetProtectedResourceMetadata(t.Context(), web.URL+"/.well-known/oauth-protected-resource/mcp", web.URL+"/mcp", client.HTTP)
		if library == nil {
			_, library = oauthex.GetAuthServerMeta(t.Context(), web.URL+"/.well-known/oauth-authorization-server", web.URL, client.HTTP)
		}
		_, own := client.Discover(t.Context(), web.URL+"/mcp", oauth.Challenge{}, nil)
		if (library == nil) != (c.accepted != ours) || (own == nil) != (c.accepted != theirs) {
			t.Errorf("%s is to be accepted by %s; the library: %v; ours: %v", name, c.accepted, library, own)
		}
		web.Close()
	}

	for body, accepted := range map[string]string{
		`{"client_id":"abc"}`: both,
		`{"client_id":5}`:     ours,
		`{"client_id":"abc","client_secret":"s","client_secret_expires_at":"0"}`: ours,
		`{"client_id":"abc","redirect_uris":"x"}`:                                ours,
		"\xef\xbb\xbf" + `{"client_id":"abc"}`:                                   ours,
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		client := newClient(t)
		_, library := oauthex.RegisterClient(t.Context(), web.URL, &oauthex.ClientRegistrationMetadata{}, client.HTTP)
		_, own := client.Register(t.Context(), oauth.Service{Issuer: web.URL, Registration: web.URL}, "http://127.0.0.1/back")
		if (library == nil) != (accepted != ours) || own != nil {
			t.Errorf("the registration %s; the library: %v; ours: %v", body, library, own)
		}
		web.Close()
	}

	for body, accepted := range map[string]string{
		`{"access_token":"abc","token_type":"Bearer","expires_in":3600}`: both,
		`{"data":{"access_token":"abc"}}`:                                ours, // TikTok, Lark
		`{"ok":true,"authed_user":{"access_token":"abc"}}`:               ours, // Slack
		`{"access_token":"abc","expires_in":3600.0}`:                     ours,
		`{"access_token":"abc","expires_in":"3600s"}`:                    ours,
		`{"access_token":"abc","error":false}`:                           ours,
		`access_token=abc&token_type=bearer`:                             ours, // without the media type of a form
		"\xef\xbb\xbf" + `{"access_token":"abc"}`:                        ours,
		`{"access_token":"abc","token_type":"DPoP"}`:                     theirs,
		`{"access_token":"a\r\nX: 1"}`:                                   theirs,
	} {
		var form url.Values
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseForm(); err != nil {
				t.Error(err)
			}
			form = r.PostForm
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, body)
		}))
		client := newClient(t)
		conf := oauth2.Config{ClientID: "x", Endpoint: oauth2.Endpoint{TokenURL: web.URL + "/token", AuthStyle: oauth2.AuthStyleInParams}}
		_, library := conf.TokenSource(context.WithValue(t.Context(), oauth2.HTTPClient, client.HTTP), &oauth2.Token{RefreshToken: "r"}).Token()
		if form.Has("resource") {
			t.Error("the library sends the resource with a refresh: see whether it can be given")
		}
		g := oauth.Grant{Service: oauth.Service{Resource: "https://a.example/mcp", Token: web.URL + "/token", Issuer: web.URL}, Client: oauth.Registration{ID: "x", Method: "none"}, Refresh: store.NewSecret("r")}
		_, own := client.Renew(t.Context(), g, time.Now())
		if form.Get("resource") != "https://a.example/mcp" {
			t.Errorf("the resource is not sent with a refresh: %v", form)
		}
		if (library == nil) != (accepted != ours) || (own == nil) != (accepted != theirs) {
			t.Errorf("the token %s is to be accepted by %s; the library: %v; ours: %v", body, accepted, library, own)
		}
		web.Close()
	}

	for header, accepted := range map[string]string{
		`Bearer error="invalid_token", resource_metadata="https://a.example/m"`: both,
		`Bearer error="invalid_token" resource_metadata="https://a.example/m"`:  ours,
		`Bearer resource_metadata="https://a.example/m`:                         ours,
		`Bearer resource_metadata='https://a.example/m'`:                        ours,
		`Bearer: resource_metadata="https://a.example/m"`:                       ours,
		`resource_metadata="https://a.example/m"`:                               ours,
		`Bearer realm=, resource_metadata="https://a.example/m"`:                ours,
	} {
		library := false
		list, err := oauthex.ParseWWWAuthenticate([]string{header})
		for _, c := range list {
			library = library || err == nil && c.Scheme == "bearer" && c.Params["resource_metadata"] == "https://a.example/m"
		}
		own := oauth.ParseChallenge([]string{header}).Metadata == "https://a.example/m"
		if library != (accepted == both) || !own {
			t.Errorf("the challenge %s: read by the library: %v, by ours: %v", header, library, own)
		}
	}
}

// TestAddressOfALogin: each parameter stands in the address once, whatever the endpoint has.
func TestAddressOfALogin(t *testing.T) {
	s := oauth.Service{Authorization: "https://a.example/authorize?tenant=t&client_id=evil&state=evil&code_challenge=evil&redirect_uri=https://evil.example&prompt=none", Resource: "https://b.example/mcp?x=1"}
	r := oauth.Begin(s, oauth.Registration{ID: "me & co"}, "http://127.0.0.1/back?a=b", []string{"read", "offline_access"})
	u, err := url.Parse(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for name, want := range map[string]string{
		"tenant": "t", "response_type": "code", "client_id": "me & co", "redirect_uri": "http://127.0.0.1/back?a=b", "state": r.State,
		"code_challenge_method": "S256", "resource": s.Resource, "scope": "read offline_access", "prompt": "consent",
	} {
		if len(q[name]) != 1 || q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q[name], want)
		}
	}
	if len(q) != 10 || len(q["code_challenge"]) != 1 || len(q.Get("code_challenge")) != 43 || u.Host != "a.example" || u.Path != "/authorize" {
		t.Errorf("the address is %s", u)
	}
}
