// Package company lets people sign in through their company's OpenID Connect provider.
//
// nize is a client of the company's OpenID Connect provider. A sign-in begins at
// /login/oidc/start, which sets a cookie and redirects the browser to the provider; it ends
// at /login/oidc. State, nonce and PKCE verifier are derived from the secret in the cookie
// and the revision of the provider's settings. So a sign-in is bound to one browser,
// becomes invalid when the settings change, and stores nothing before the person is
// authenticated. The secret is recorded when it is used, so that a callback works once.
//
// Requests to the provider go through the guarded HTTP client. An ID token is accepted if
// its issuer is equal byte for byte, a key of the issuer signed it with an asymmetric
// algorithm that the issuer lists, its audience is nize, its nonce is that of this sign-in,
// and its times are valid within [skew]. The discovery document is cached for an hour. If a
// signature can't be verified, keys and document are read again.
//
// The provider can also authorize MCP clients for a person without a page, with identity
// assertion authorization grants (assertion.go), and issues such grants for the MCP servers
// that people use here (exchange.go). A directory provisions people and groups by SCIM 2.0
// (scim.go, patch.go).
//
// The store decides in one transaction who the person is and what they may do
// ([identity.Store]). Each failure has two texts: the page says what an admin has to do,
// and the log says why it failed.
package company

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/daemon/limit"
	"nize/daemon/mux"
	"nize/daemon/signin"
	"nize/store"
	"nize/store/identity"
	"nize/store/oauth"
)

// Options are a Company's dependencies.
type Options struct {
	Store interface {
		identity.Store
		identity.Directory
		Authenticate(ctx context.Context, hash [32]byte) (store.Token, store.User, error)
		oauth.Tokens
		RevokeSignIn(ctx context.Context, by store.Caller, id string) error
		store.Contacts
	}
	Config store.Config
	// HTTP returns the guarded client for a server that an admin registered at an address.
	HTTP func(ctx context.Context, address string) *http.Client
	// Base returns the origin that people use.
	Base func() string
	Now  func() time.Time
	Log  *slog.Logger
}

// Company is a client of the company's identity provider, and the server of its directory.
type Company struct {
	Options
	SignIn *signin.Server // set before the first request

	refreshing sync.Map // by identity: *refreshing

	people  sync.Mutex  // held while a person of the directory is read and then changed
	logouts limit.Limit // by address: each may cost a request for the provider's keys

	mu       sync.Mutex // guards the fields below; held during requests to the provider
	party    *party
	failed   error
	failedAt time.Time
	failedOf string // revision of the settings with which discovery failed
}

// Mount registers the operations.
func (c *Company) Mount(m *mux.Mux) {
	mux.Handle(m, api.GetOIDC, c.Show)
	mux.Handle(m, api.SetOIDC, c.Set)
	mux.Handle(m, api.TestOIDC, c.Test)
	mux.Handle(m, api.RemoveOIDC, c.Remove)
}

// New returns a Company.
func New(opt Options) *Company {
	return &Company{Options: opt, logouts: limit.Limit{Most: 60, Per: time.Minute}}
}

// Name returns the provider's display name, or "" if none is set.
func (c *Company) Name(ctx context.Context) string {
	p, err := c.Store.GetIdentityProvider(ctx)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		c.Log.Error("reading the identity provider", "err", err)
	}
	return p.Name
}

// Only reports whether browsers can sign in only with the provider.
func (c *Company) Only() bool { return store.GetBool(c.Config, "", "oidc.required") }

// rules returns the settings that apply to sign-ins.
func (c *Company) rules() identity.Rules {
	return identity.Rules{
		LinkByEmail: store.GetBool(c.Config, "", "oidc.link_by_email"),
		Allowed:     names(store.GetList(c.Config, "", "oidc.allowed_groups")),
		Admins:      names(store.GetList(c.Config, "", "oidc.admin_groups")),
	}
}

func names(list []string) (out []string) {
	for _, name := range list {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// AdminsChanged removes the admin role from those who have it by a group that no longer
// grants it.
func (c *Company) AdminsChanged(ctx context.Context) {
	if err := c.Store.EndGroupAdmins(ctx, store.System, c.rules().Admins); err != nil {
		c.Log.Error("reading the groups of admins again", "err", err)
	}
}

// CheckRequired returns ErrRefused if oidc.required is set without a provider.
func (c *Company) CheckRequired(ctx context.Context) error {
	_, err := c.Store.GetIdentityProvider(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return store.Mark(fmt.Errorf("no identity provider is set, so nobody could sign in: nizectl identity oidc set --issuer URL --client-id ID"), store.ErrRefused)
	}
	return err
}

const (
	redirectPath = "/login/oidc"
	startPath    = "/login/oidc/start"
	logoutPath   = "/login/oidc/logout"
)

// Handler serves the pages of a sign-in and the provider's back-channel logout.
func (c *Company) Handler() http.Handler {
	mux := http.NewServeMux()
	secure := func(pattern string, do http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if c.SignIn.Origin(r) == "" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Cache-Control", "no-store")
			do(w, r)
		})
	}
	secure("GET "+startPath, c.start)
	secure("GET "+redirectPath, c.finish)
	secure("POST "+logoutPath, c.logout)
	return mux
}

// view returns a provider as admins see it, without its secret.
func (c *Company) view(p identity.Provider) api.OIDC {
	base := strings.TrimSuffix(c.Base(), "/")
	scopes := p.Scopes
	if scopes == nil {
		scopes = []string{}
	}
	return api.OIDC{
		Issuer: p.Issuer, Client: p.Client, Name: p.Name, Scopes: scopes, GroupsClaim: p.GroupsClaim, HasSecret: !p.Secret.IsZero(), Updated: p.Updated,
		RedirectURI: base + redirectPath, LogoutURI: base + logoutPath,
	}
}
