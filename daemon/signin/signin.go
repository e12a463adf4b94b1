// Package signin is the OAuth authorization server of nize's own /mcp, and the sign-in of
// browsers.
//
// A client discovers the documents (metadata.go) from the 401 at /mcp, identifies itself
// with a document of its own or by registering (client.go), and sends its person's browser
// to /oauth/authorize (authorize.go). That stores a request, bound to the browser by a
// cookie, and shows a code. The person enters the code where nize has authenticated them
// already, in a chat or at the control socket (logins.go). There they see who requests the
// sign-in, from where and for what, and get six digits for that page. An attacker who sends
// someone a link therefore gains nothing, and neither does one who reads the code over a
// shoulder: both the page and the person are needed. In a browser that is signed in
// (session.go) the person allows or denies on the page itself.
//
// The resulting authorization code is valid once and for one minute. It yields an access
// token, which is checked like every other token, and a refresh token (token.go), which
// rotates. The tokens of one sign-in are a family, which is revoked as a whole: if one of
// its tokens is used twice, by its person, by an admin, or with its user.
//
// Anyone may start a sign-in, so no one may exhaust the capacity for others. Only a
// navigation starts one, never an image or a frame of another page. A browser has one open
// request and a network a few; beyond these limits the oldest unconfirmed request is
// removed, so that a new one is always accepted. Links from nizectl login have a separate
// limit.
//
// Only hashes of secrets are stored, and they are compared in constant time. Anything that
// is not exactly as expected is rejected.
package signin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/limit"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/store"
	"nize/store/oauth"
)

// Options are a Server's dependencies.
type Options struct {
	Sessions  *Sessions
	Store     oauth.Store
	Pages     *people.Tokens
	Tell      Teller
	Directory *people.Directory
	// Base returns the origin for links in cases without a request.
	Base func() string
	// Serves reports whether a URL belongs to another origin of this nized.
	Serves func(*http.Request, *url.URL) bool
	// CheckPattern returns an error for a pattern of native tools that matches none.
	CheckPattern func(string) error
	// Transport fetches clients' documents; it must reach only public addresses.
	Transport http.RoundTripper
	Log       *slog.Logger
	// Landing returns the path to which a browser is redirected after signing in; if nil,
	// /login.
	Landing func(w http.ResponseWriter, r *http.Request) string
	// Company is the company's identity provider, or nil.
	Company Company
}

// Company is an identity provider for browsers. Package daemon/company has the only
// implementation.
type Company interface {
	// Name returns its display name, or "" if none is set.
	Name(ctx context.Context) string
	// Only reports whether browsers can sign in only with it.
	Only() bool
	// Assert redeems an identity assertion authorization grant, which works once, and
	// returns its user. It returns an error that wraps [ErrAssertion] if the grant is not
	// valid for want.
	Assert(ctx context.Context, by store.Caller, raw string, want Audience) (Asserted, error)
}

// ErrAssertion is returned for an assertion that is not accepted. Details are in the log
// only.
var ErrAssertion = errors.New("the assertion is not accepted")

// Audience is what an identity assertion authorization grant has to be for.
type Audience struct {
	Issuer   string                     // this authorization server
	Client   string                     // the client that redeems it
	Resource func(resource string) bool // reports whether a resource is /mcp here
}

// Asserted is the result of an identity assertion authorization grant.
type Asserted struct {
	User     store.User
	Identity string // the user's at the provider
	Scope    string
}

// CompanyPath is the path that starts a sign-in with the company's account.
const CompanyPath = "/login/oidc/start"

// company returns the provider's name, or "", and whether it is the only way to sign in.
func (o Options) company(ctx context.Context) (name string, only bool) {
	if o.Company == nil {
		return "", false
	}
	return o.Company.Name(ctx), o.Company.Only()
}

// errOnly is returned for other ways to sign in if the provider is the only one.
var errOnly = store.Mark(store.Errorf("browsers sign in only with the company's account (the setting oidc.required)"), store.ErrRefused)

// landing returns the path to which a browser is redirected after signing in.
func (o Options) landing(w http.ResponseWriter, r *http.Request) string {
	if o.Landing == nil {
		return "/login"
	}
	return o.Landing(w, r)
}

// Server serves clients, browsers, and the operations on both.
type Server struct {
	Options
	*Sessions
	clients clients

	registrations limit.Limit // by address
	exchanges     limit.Limit // by client
	assertions    limit.Limit // by network: each may cost a request to the identity provider
	guesses       limit.Limit // wrong codes, by person

	due chan struct{} // capacity 1: signals that a notice is due

	// strangers limits how many unauthenticated requests write to the database at once:
	// they wait for each other, and authenticated requests don't wait for them.
	strangers chan struct{}
}

// Mount registers the operations.
func (s *Server) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListLogins, s.List)
	mux.Handle(m, api.StartLogin, s.Start)
	mux.Handle(m, api.ApproveLogin, s.Approve)
	mux.Handle(m, api.DenyLogin, s.Deny)
	mux.Handle(m, api.ShowLogin, s.Show)
	mux.Handle(m, api.RevokeLogin, s.Revoke)
}

// New returns a Server.
func New(opt Options) *Server {
	s := &Server{Options: opt, Sessions: opt.Sessions, due: make(chan struct{}, 1), strangers: make(chan struct{}, 2)}
	s.clients = clients{store: opt.Store, config: s.Config, now: s.Now, http: &http.Client{
		Transport: opt.Transport, Timeout: documentTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	s.clients.fetches = limit.Limit{Most: 10, Per: time.Minute}
	s.registrations = limit.Limit{Most: 10, Per: time.Minute}
	s.exchanges = limit.Limit{Most: 30, Per: time.Minute}
	s.assertions = limit.Limit{Most: 60, Per: time.Minute}
	s.guesses = limit.Limit{Most: 5, Per: oauth.RequestLife}
	return s
}

// Handler returns the handler of the documents, the endpoints and the pages.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range metadataPaths {
		about := s.resource
		if path == serverMetadata {
			about = s.server
		}
		if strings.HasSuffix(path, "/") {
			path += "{$}"
		}
		mux.HandleFunc("GET "+path, about)
		mux.HandleFunc("OPTIONS "+path, about)
	}
	secure := func(pattern string, do http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if s.Origin(r) == "" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Cache-Control", "no-store")
			do(w, r)
		})
	}
	secure("POST /oauth/register", s.register)
	secure("GET /oauth/authorize", s.authorize)
	secure("GET /oauth/requests/{id}", s.requestState)
	secure("POST /oauth/requests/{id}", s.decide)
	secure("POST /oauth/token", s.token)
	secure("POST /oauth/revoke", s.revoke)
	secure("GET /login", s.login)
	secure("POST /login", s.enter)
	secure("POST /login/end", s.leave)
	return mux
}
