// Package company lets people sign in through their company's OpenID Connect provider.
//
// A sign-in begins at /login/oidc/start, which sets a cookie and sends the browser to
// the provider; it ends at /login/oidc. State, nonce and PKCE verifier are derived
// from the cookie's secret and from the revision of the provider's settings. So a
// sign-in belongs to one browser, ends when the settings change, and needs nothing
// stored while nobody is known. Its secret is noted when it is used: a callback works
// once.
//
// The provider is asked through the guarded HTTP client. What it answers is trusted as
// far as it is proven: the issuer byte for byte, a signature by a key of the issuer with
// an asymmetric algorithm that the issuer lists, nize as audience, the nonce of this
// sign-in, times within [skew]. What was discovered is kept for an hour, keys are read
// again when an unknown one signs.
//
// The provider also lets MCP clients in for a person without a page, by identity assertion
// authorization grants (assertion.go).
//
// Who the person is, and may be, is decided in one transaction of the store
// ([identity.Store]). Each failure has two texts: the page says what an admin has to do,
// the log says why.
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
	"nize/daemon/signin"
	"nize/store"
	"nize/store/identity"
	"nize/store/oauth"
)

// Options are what a Company needs.
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
	// HTTP returns the guarded client for what an admin registered at an address.
	HTTP func(ctx context.Context, address string) *http.Client
	// Base is the origin that people use.
	Base func() string
	Now  func() time.Time
	Log  *slog.Logger
}

// Company is the company's identity provider.
type Company struct {
	Options
	SignIn *signin.Server // set before the first request

	people  sync.Mutex  // held while a person of the directory is read and changed
	logouts limit.Limit // by address: each may cost a look at the provider's keys

	mu       sync.Mutex // guards what follows; held while the provider is asked
	party    *party
	failed   error
	failedAt time.Time
	failedOf string // the revision that failed
}

// New returns one.
func New(opt Options) *Company {
	return &Company{Options: opt, logouts: limit.Limit{Most: 60, Per: time.Minute}}
}

// Name returns how people call the provider, or "" if none is set.
func (c *Company) Name(ctx context.Context) string {
	p, err := c.Store.GetIdentityProvider(ctx)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		c.Log.Error("reading the identity provider", "err", err)
	}
	return p.Name
}

// Only reports whether browsers sign in with the provider alone.
func (c *Company) Only() bool { return store.GetBool(c.Config, "", "oidc.required") }

// rules are the settings about sign-ins.
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

// AdminsChanged takes the role back from admins by group who are in no such group now.
func (c *Company) AdminsChanged(ctx context.Context) {
	if err := c.Store.EndGroupAdmins(ctx, store.System, c.rules().Admins); err != nil {
		c.Log.Error("reading the groups of admins again", "err", err)
	}
}

// CheckRequired refuses to require a provider that is not set.
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

// Handler serves the pages of a sign-in and the provider's sign-outs.
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

// view is a provider as an admin sees it.
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
