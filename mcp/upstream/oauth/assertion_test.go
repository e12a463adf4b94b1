package oauth_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"nize/mcp/upstream/oauth"
	"nize/store"
)

// TestExchangeOfTheSDK shows why the exchange is not oauthex.ExchangeToken: that sends the
// client's secret in the form, also to a provider that takes it only in the header.
func TestExchangeOfTheSDK(t *testing.T) {
	assertion := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"oauth-id-jag+jwt"}`)) + ".e30.x"
	kind := oauthex.TokenTypeIDJAG
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if id, secret, ok := r.BasicAuth(); !ok || id != "nize" || secret != "s" || r.PostFormValue("client_secret") != "" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":"invalid_client"}`))
			return
		}
		_, _ = w.Write([]byte(`{"access_token":"` + assertion + `","issued_token_type":"` + kind + `","token_type":"N_A"}`))
	}))
	defer provider.Close()
	want := oauth.AssertionRequest{Issuer: "https://as.example", Resource: "https://mcp.example/mcp", Client: "c"}
	_, err := oauthex.ExchangeToken(t.Context(), provider.URL, &oauthex.TokenExchangeRequest{RequestedTokenType: oauthex.TokenTypeIDJAG, Audience: want.Issuer, Resource: want.Resource,
		SubjectToken: "id", SubjectTokenType: oauthex.TokenTypeIDToken}, &oauthex.ClientCredentials{ClientID: "nize", ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: "s"}}, nil)
	if err == nil {
		t.Error("the SDK sends the secret in the header now: use oauthex.ExchangeToken")
	}
	exchange := oauth.Exchange{HTTP: provider.Client(), URL: provider.URL, Client: "nize", Secret: store.NewSecret("s"), InHeader: true}
	if got, err := exchange.Assertion(t.Context(), store.NewSecret("id"), want); err != nil || got.Reveal() != assertion {
		t.Errorf("%q %v", got.Reveal(), err)
	}
	// Anything else than such an assertion is not passed on.
	for _, c := range [][2]string{{oauthex.TokenTypeIDToken, assertion}, {kind, "opaque"}, {kind, base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT"}`)) + ".e30.x"}} {
		kind, assertion = c[0], c[1]
		if got, err := exchange.Assertion(t.Context(), store.NewSecret("id"), want); err == nil {
			t.Errorf("%q was taken: %s", c, got.Reveal())
		}
	}
}
