// Package signin is how a client that can't be given a token gets one, and how a
// browser becomes somebody's: nize as the authorization server of its own /mcp.
//
// A client finds the documents (metadata.go) by the 401 at /mcp, says who it is
// by a document of its own or by registering (client.go), and sends its person's
// browser to /oauth/authorize (authorize.go). That keeps a request, bound to the
// browser by a cookie, and shows a code. The person gives the code where nize
// knows them already, in a chat or at the control socket (logins.go): they are
// shown who asks, from where and for what, and get six digits for that page. So
// who sends somebody a link gains nothing, and neither does who reads over a
// shoulder: it takes the page and the person. In a browser that is signed in
// (session.go) the person allows or denies on the page itself.
//
// The code that the client then has is good once and for a minute; it gives an
// access token, which is checked like every other token, and a refresh token
// (token.go), which rotates. What comes of one sign-in is a family, and it ends
// as a whole: where a token of it is used twice, by its person, by an admin, with
// its user.
//
// Anybody may begin a sign-in, so nobody may use up the room for them: only a
// navigation begins one, never an image or a frame of another page. A browser has one
// open request, a network a few, and beyond those bounds the oldest request that nobody
// confirmed goes, so that a newcomer always gets in. What nizectl login makes has room
// of its own.
//
// Secrets are compared by their hashes in constant time, and kept as those alone.
// Whatever is not as it must be is refused.
package signin

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"nize/daemon/limit"
	"nize/daemon/people"
	"nize/store"
	"nize/store/oauth"
)

// Options are what a Server needs.
type Options struct {
	Sessions  *Sessions
	Store     oauth.Store
	Pages     *people.Tokens
	Tell      Teller
	Directory *people.Directory
	// Base is the origin that pages are told of where no request says it.
	Base func() string
	// Serves says whether an address is of an origin under which this nized is
	// known besides.
	Serves func(*http.Request, *url.URL) bool
	// CheckPattern refuses a pattern of native tools that matches none.
	CheckPattern func(string) error
	// Transport reaches the documents of clients, and nothing that is not public.
	Transport http.RoundTripper
	Log       *slog.Logger
	// Landing is where a browser goes that has signed in; nil is /login.
	Landing func(w http.ResponseWriter, r *http.Request) string
	// Company is the identity provider of the company; nil is none.
	Company Company
}

// Company is an identity provider with which browsers sign in. Package daemon/company
// has the only one.
type Company interface {
	// Name returns how people call it, or "" if none is set.
	Name(ctx context.Context) string
	// Only reports whether browsers sign in with it alone.
	Only() bool
}

// CompanyPath is where a sign-in with the company's account begins.
const CompanyPath = "/login/oidc/start"

// company returns the provider's name, or "", and whether it is the only way in.
func (o Options) company(ctx context.Context) (name string, only bool) {
	if o.Company == nil {
		return "", false
	}
	return o.Company.Name(ctx), o.Company.Only()
}

// errOnly is for the other ways in if the provider is the only one.
var errOnly = store.Mark(store.Errorf("browsers sign in with the company's account alone (the setting oidc.required)"), store.ErrRefused)

// landing is where a browser goes that has signed in.
func (o Options) landing(w http.ResponseWriter, r *http.Request) string {
	if o.Landing == nil {
		return "/login"
	}
	return o.Landing(w, r)
}

// Server answers clients, browsers, and the operations about both.
type Server struct {
	Options
	*Sessions
	clients clients

	registrations limit.Limit // by address
	exchanges     limit.Limit // by client
	guesses       limit.Limit // wrong codes, by person

	due chan struct{} // holds one: somebody is to be told something

	// strangers holds as many as may write to the database at once on the way in, where
	// nobody is known yet: they wait for one another, and not others for them.
	strangers chan struct{}
}

// New returns a server.
func New(opt Options) *Server {
	s := &Server{Options: opt, Sessions: opt.Sessions, due: make(chan struct{}, 1), strangers: make(chan struct{}, 2)}
	s.clients = clients{store: opt.Store, config: s.Config, now: s.Now, http: &http.Client{
		Transport: opt.Transport, Timeout: documentTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	s.clients.fetches = limit.Limit{Most: 10, Per: time.Minute}
	s.registrations = limit.Limit{Most: 10, Per: time.Minute}
	s.exchanges = limit.Limit{Most: 30, Per: time.Minute}
	s.guesses = limit.Limit{Most: 5, Per: oauth.RequestLife}
	return s
}

// Handler serves the documents, the endpoints and the pages.
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
