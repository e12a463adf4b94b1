package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"nize/store"
)

// Methods of client authentication at the token endpoint.
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
)

// Registration is nize's client registration at one authorization server. It is bound to
// that issuer and to the redirect URL.
type Registration struct {
	Issuer   string
	Redirect string
	ID       string
	Secret   store.Secret
	Method   string    // of client authentication
	Given    bool      // entered by an admin, not issued to nize by the authorization server
	Expires  time.Time // expiry of the secret; zero means never
	// Unlisted means that an admin lets people sign in there although the issuer doesn't
	// list PKCE with S256.
	Unlisted bool
	// NoResource means that an admin chose to omit the parameter resource there.
	NoResource bool
	// Company means that an admin lets the company's identity provider sign people in there.
	Company bool
}

// Fits reports whether a registration can be reused.
func (r Registration) Fits(s Service, redirect string, now time.Time) bool {
	return r.ID != "" && SameIdentifier(r.Issuer, s.Issuer) && (r.Given || r.Redirect == redirect) && (r.Expires.IsZero() || now.Before(r.Expires))
}

// GivenClient returns the client whose id, and perhaps secret, an admin entered.
func GivenClient(s Service, redirect, id string, secret store.Secret) Registration {
	r := Registration{Issuer: s.Issuer, Redirect: redirect, ID: id, Secret: secret, Method: authNone, Given: true}
	if !secret.IsZero() {
		r.Method = authBasic
		if s.AuthMethods != nil && !slices.Contains(s.AuthMethods, authBasic) && slices.Contains(s.AuthMethods, authPost) {
			r.Method = authPost
		}
	}
	return r
}

// DocumentClient returns the client whose id is the URL of its own document.
func DocumentClient(s Service, redirect, document string) Registration {
	return Registration{Issuer: s.Issuer, Redirect: redirect, ID: document, Method: authNone}
}

// describe returns the description of nize for a registration.
func describe(redirect, method string) oauthex.ClientRegistrationMetadata {
	m := oauthex.ClientRegistrationMetadata{ClientName: "nize", RedirectURIs: []string{redirect}, GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: method, ApplicationType: "web"}
	if u, err := url.Parse(redirect); err == nil && IsLoopback(u.Hostname()) {
		m.ApplicationType = "native"
	}
	return m
}

// Document returns the client id metadata document at the URL id, with the redirect URL
// redirect.
func Document(id, redirect, home string) ([]byte, error) {
	m := describe(redirect, authNone)
	m.ClientURI = home
	return json.Marshal(struct {
		ID string `json:"client_id"`
		oauthex.ClientRegistrationMetadata
	}{id, m})
}

// Register registers nize at an authorization server. It sends no scopes: a server's scopes
// are not always among those for which its authorization server registers clients, and some
// refuse them.
//
// Some authorization servers refuse an authentication method that they list, or accept only
// one and list nothing: Register then tries the next method.
func (c *Client) Register(ctx context.Context, s Service, redirect string) (none Registration, err error) {
	ways := []string{authBasic, authPost, authNone}
	if s.AuthMethods != nil {
		ways = slices.DeleteFunc(ways, func(m string) bool { return !slices.Contains(s.AuthMethods, m) })
		if len(ways) == 0 {
			return none, fmt.Errorf("%s requires the client authentication %s, which nize does not support", s.Issuer, store.Clip(strings.Join(s.AuthMethods, ", "), 200))
		}
	}
	var first error
	for _, method := range ways {
		r, err := c.register(ctx, s, redirect, method)
		if err == nil || !IsCode(err, "invalid_client_metadata") {
			return r, err
		}
		if first == nil {
			first = err
		}
	}
	return none, first
}

// register is [Client.Register] with one authentication method.
func (c *Client) register(ctx context.Context, s Service, redirect, method string) (none Registration, err error) {
	body, err := json.Marshal(describe(redirect, method))
	if err != nil {
		return none, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Registration, bytes.NewReader(body))
	if err != nil {
		return none, fmt.Errorf("%w registration endpoint", store.ErrInvalid)
	}
	req.Header.Set("Content-Type", "application/json")
	status, _, body, err := c.do(req)
	if err != nil {
		return none, fmt.Errorf("registering at %s: %w", s.Issuer, err)
	}
	switch status {
	case http.StatusCreated, http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return none, &unregistered{s.Issuer, refusal(status, body)} // the endpoint exists, but not for everyone
	default:
		return none, fmt.Errorf("registering at %s: %w", s.Issuer, refusal(status, body))
	}
	var got struct {
		ID      idText `json:"client_id"`
		Secret  text   `json:"client_secret"`
		Method  text   `json:"token_endpoint_auth_method"`
		Expires number `json:"client_secret_expires_at"`
	}
	if err := json.Unmarshal(plainJSON(body), &got); err != nil || got.ID == "" || len(got.ID) > 4<<10 || len(got.Secret) > 8<<10 {
		if e := errorIn(body); e != nil {
			return none, fmt.Errorf("registering at %s: %w", s.Issuer, e)
		}
		return none, fmt.Errorf("registering at %s: it answered without a client_id", s.Issuer)
	}
	r := Registration{Issuer: s.Issuer, Redirect: redirect, ID: string(got.ID), Secret: store.NewSecret(string(got.Secret)), Method: string(got.Method)}
	switch {
	case r.Method == "" && r.Secret.IsZero():
		r.Method = authNone
	case r.Method == "":
		r.Method = method
		if method == authNone {
			r.Method = authBasic
		}
	}
	if r.Secret.IsZero() && (r.Method == authBasic || r.Method == authPost) {
		r.Method = authNone // it names a method, but issued no secret for it
	}
	if !slices.Contains([]string{authBasic, authPost, authNone}, r.Method) {
		return none, fmt.Errorf("registering at %s: it requires the client authentication %q", s.Issuer, store.Clip(r.Method, 60))
	}
	if got.Expires > 0 {
		r.Expires = time.Unix(int64(min(got.Expires, 1<<40)), 0)
	}
	return r, nil
}

// ErrUnregistered means that an authorization server doesn't register clients dynamically.
var ErrUnregistered = errors.New("it does not register clients by itself")

// unregistered is ErrUnregistered for one issuer.
type unregistered struct {
	issuer string
	why    error // the error of its registration endpoint; nil if it has none
}

func (e *unregistered) Error() string {
	if e.why != nil {
		return fmt.Sprintf("%s does not register nize by itself (%v)", e.issuer, e.why)
	}
	return e.issuer + " does not register clients by itself"
}

func (e *unregistered) Is(target error) bool { return target == ErrUnregistered }

// idText is an id; some services send a number.
type idText string

func (t *idText) UnmarshalJSON(b []byte) error {
	var n json.Number // also accepts a string that contains a number
	if json.Unmarshal(b, &n) == nil {
		*t = idText(n)
		return nil
	}
	return (*text)(t).UnmarshalJSON(b)
}
