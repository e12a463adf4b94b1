package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"nize/mcp/expose"
	"nize/store"
	"nize/store/oauth"
)

// codeText has no letters or digits that look alike.
const codeText = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// codeOf returns the code that a request's page shows, XXXX-XXXX. Only the request's
// browser can know it: it is derived from the cookie, and only its hash is stored.
func codeOf(cookie string) string {
	sum := sha256.Sum256([]byte("code\x00" + cookie))
	b := make([]byte, 0, 9)
	for i := range 8 {
		if i == 4 {
			b = append(b, '-')
		}
		b = append(b, codeText[sum[i]%32])
	}
	return string(b)
}

// readCode returns the hash of a code as typed.
func readCode(text string) (oauth.Hash, error) {
	text = strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(strings.TrimSpace(text)))
	if len(text) != 8 || strings.Trim(text, codeText) != "" {
		return oauth.Hash{}, store.Errorf("%w code: it has 8 letters and digits, such as ABCD-EFGH", store.ErrInvalid)
	}
	return hashCode(text[:4] + "-" + text[4:]), nil
}

func hashCode(code string) oauth.Hash { return oauth.HashOf("code " + code) }

// newNumber returns six digits for a page, and their hash.
func newNumber(request string) (string, oauth.Hash) {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // never fails since Go 1.24
	}
	text := fmt.Sprintf("%06d", n)
	return text, hashNumber(request, text)
}

func hashNumber(request, number string) oauth.Hash {
	return oauth.HashOf("number " + request + " " + number)
}

// ours reports whether a resource is /mcp at the request's origin, or at another origin of
// this nized.
func (s *Server) ours(r *http.Request, resource string) bool {
	resource = strings.TrimSuffix(resource, "/")
	origin := s.Origin(r)
	if resource == origin+mcpPath || resource == origin {
		return true
	}
	u, err := url.Parse(resource)
	return err == nil && u.RawQuery == "" && u.Fragment == "" && (u.Path == mcpPath || u.Path == "") && s.Serves != nil && s.Serves(r, u)
}

// scopesOf parses the scopes of a request. It omits those that every token or every client
// gets anyway.
func scopesOf(text string) []string {
	var list []string
	for _, one := range strings.Fields(text) {
		if one != scopeMCP && one != "offline_access" && !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

func scopeText(scopes []string) string {
	return strings.Join(append([]string{scopeMCP}, scopes...), " ")
}

func (s *Server) checkScopes(scopes []string) error {
	if len(scopes) > 50 {
		return errors.New("too many scopes")
	}
	for _, one := range scopes {
		if expose.IsScope(one) {
			if err := expose.Check(one, s.CheckPattern); err != nil {
				return errors.New("unknown scope")
			}
		} else if p, ok := strings.CutPrefix(one, "tools:"); !ok || p == "" || len(p) > 200 {
			return errors.New("unknown scope: use mcp, tools:PATTERN or expose:MODE")
		}
	}
	return nil
}

// authorize serves /oauth/authorize: it stores a request and redirects to its page, which
// has a path of its own.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	if s.Origin(r) == "" {
		http.NotFound(w, r)
		return
	}
	q := r.URL.Query()
	if q.Has("request") {
		s.showRequest(w, r, q.Get("request"))
		return
	}
	for name, values := range q {
		if len(values) > 1 && name != "resource" {
			s.problem(w, r, http.StatusBadRequest, store.Textf("The client's request is invalid: its address contains a parameter twice."))
			return
		}
	}
	if !Navigates(r) {
		s.notHere(w, r)
		return
	}
	one, err := s.clients.find(r.Context(), q.Get("client_id"), Address(r))
	wrong := (*oauthError)(nil)
	switch {
	case errors.As(err, &wrong):
		s.problem(w, r, http.StatusBadRequest, store.Textf("The client is unknown: %s.", wrong.text))
		return
	case errors.Is(err, errTooMany):
		w.Header().Set("Retry-After", "60")
		s.problem(w, r, http.StatusTooManyRequests, store.Textf("Too many sign-ins were begun from your address. Try again in a minute."))
		return
	case err != nil:
		s.Log.Error("finding a client", "err", err)
		s.problem(w, r, http.StatusInternalServerError, store.Textf("Something went wrong inside nize. Please try again."))
		return
	case !one.redirect(q.Get("redirect_uri")) || !s.clients.allows(q.Get("redirect_uri")):
		s.problem(w, r, http.StatusBadRequest, store.Textf("The client did not register the address to which its code would be sent."))
		return
	case !s.clients.admits(one, q.Get("redirect_uri")):
		s.problem(w, r, http.StatusBadRequest, store.Textf("An admin does not allow people to sign in to this client."))
		return
	}
	asked := oauth.Request{
		ID: NewSecret()[:22], Address: Address(r), Agent: agent(r), Origin: s.Origin(r),
		Client: one.ID, Name: one.Name, Host: one.Host, Redirect: q.Get("redirect_uri"), State: q.Get("state"),
		Challenge: q.Get("code_challenge"), Scopes: scopesOf(q.Get("scope")),
	}
	if e := s.check(r, q, asked); e != nil {
		http.Redirect(w, r, answerTo(asked, "error", e.code, "error_description", e.text), http.StatusSeeOther)
		return
	}
	s.begin(w, r, asked, "/oauth/authorize?request=")
}

// check returns the error to send back to the client if the request is invalid.
func (s *Server) check(r *http.Request, q url.Values, asked oauth.Request) *oauthError {
	challenge := asked.Challenge
	switch {
	case q.Get("response_type") != "code":
		return &oauthError{"unsupported_response_type", "use response_type=code"}
	case challenge == "" || q.Get("code_challenge_method") != "S256":
		return &oauthError{"invalid_request", "PKCE is needed: code_challenge with code_challenge_method=S256"}
	case len(challenge) < 43 || len(challenge) > 128 || strings.Trim(challenge, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") != "":
		return &oauthError{"invalid_request", "code_challenge is no PKCE challenge"}
	case len(asked.State) > 4000:
		return &oauthError{"invalid_request", "state is too long"}
	}
	for _, resource := range q["resource"] {
		if !s.ours(r, resource) {
			return &oauthError{"invalid_target", "resource is not this server's /mcp"}
		}
	}
	if err := s.checkScopes(asked.Scopes); err != nil {
		return &oauthError{"invalid_scope", err.Error()}
	}
	return nil
}

// begin stores a request, binds it to the browser with a new cookie, and redirects to the
// request's page.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, asked oauth.Request, page string) {
	cookie := asked.ID + "." + NewSecret()
	asked.Browser, asked.Code = oauth.HashOf(cookie), hashCode(codeOf(cookie))
	if before, _, ok := s.request(r, id(ReadCookie(r, asked.Origin, requestCookie))); ok {
		asked.Before = before.ID // this browser can no longer reach that request's page
	}
	leave, err := s.enterStranger(r.Context())
	if err != nil {
		return // the browser has disconnected
	}
	err = s.Store.AddRequest(r.Context(), Anybody(r), asked)
	leave()
	if err != nil {
		s.Log.Error("keeping a sign-in", "err", err)
		s.problem(w, r, http.StatusInternalServerError, store.Textf("Something went wrong inside nize. Please try again."))
		return
	}
	SetCookie(w, asked.Origin, requestCookie, cookie, http.SameSiteLaxMode, oauth.RequestLife)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, page+url.QueryEscape(asked.ID), http.StatusSeeOther)
}

// enterStranger waits for a slot for an unauthenticated client.
func (s *Server) enterStranger(ctx context.Context) (leave func(), err error) {
	select {
	case s.strangers <- struct{}{}:
		return func() { <-s.strangers }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Navigates reports whether a person may see the response. Requests for embedded resources,
// frames and prefetches don't start a sign-in. If the browser sends no Sec-Fetch headers,
// it returns true.
func Navigates(r *http.Request) bool {
	is := func(name, want string) bool {
		v := r.Header.Get(name)
		return v == "" || v == want
	}
	ahead := strings.Contains(r.Header.Get("Sec-Purpose")+" "+r.Header.Get("Purpose")+" "+r.Header.Get("X-Moz"), "prefetch")
	return r.Method == http.MethodGet && is("Sec-Fetch-Mode", "navigate") && is("Sec-Fetch-Dest", "document") && !ahead
}

// notHere responds to a request that is not a navigation.
func (s *Server) notHere(w http.ResponseWriter, r *http.Request) {
	s.problem(w, r, http.StatusForbidden, store.Textf("A sign-in must start in a window of its own. Open this address in your browser."))
}

// id returns the id of the request that belongs to a cookie.
func id(cookie string) string {
	before, _, _ := strings.Cut(cookie, ".")
	return before
}

// request returns a request, if the browser is the one that started it.
func (s *Server) request(r *http.Request, id string) (asked oauth.Request, cookie string, ok bool) {
	cookie = ReadCookie(r, s.Origin(r), requestCookie)
	if !strings.HasPrefix(cookie, id+".") {
		return asked, "", false
	}
	asked, err := s.Store.GetRequest(r.Context(), id)
	return asked, cookie, err == nil && asked.Browser.Is(oauth.HashOf(cookie))
}

// answerTo returns a request's redirect URI with parameters added.
func answerTo(asked oauth.Request, pairs ...string) string {
	v := url.Values{"iss": {asked.Origin}}
	if asked.State != "" {
		v.Set("state", asked.State)
	}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	sep := "?"
	if strings.Contains(asked.Redirect, "?") {
		sep = "&"
	}
	return asked.Redirect + sep + v.Encode()
}

// decision is a browser's decision on a request: the number that the person got in a chat
// or, if they are signed in, yes or no.
type decision struct {
	Number string `json:"number"`
	Allow  *bool  `json:"allow"`
}

var (
	errEarly = errors.New("nobody has confirmed it")
	errWrong = errors.New("the number is wrong")
	errOver  = errors.New("the request has ended")
)

// decide serves POST /oauth/requests/{id}.
func (s *Server) decide(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	asked, cookie, ok := s.request(r, id)
	isJSON := strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") // a form of another site can't send this type
	if !ok || !sameSite(r) {
		s.refuse(w, r, isJSON, http.StatusForbidden)
		return
	}
	var d decision
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if isJSON {
		if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
			s.fail(w, &oauthError{"invalid_request", "send {number} or {allow}"})
			return
		}
	} else {
		if !Genuine(r, cookie) {
			s.refuse(w, r, false, http.StatusForbidden)
			return
		}
		d.Number = r.PostFormValue("number")
		if v := r.PostFormValue("allow"); v != "" {
			yes := v == "yes"
			d.Allow = &yes
		}
	}
	by, signedIn := s.Person(r)
	if d.Allow != nil && !signedIn {
		s.refuse(w, r, isJSON, http.StatusForbidden)
		return
	}
	if _, only := s.company(r.Context()); only && d.Allow == nil {
		s.refuse(w, r, isJSON, http.StatusForbidden)
		return
	}
	code := NewSecret()
	asked, err := s.settle(r, asked, d, by, code)
	switch {
	case errors.Is(err, errEarly), errors.Is(err, errWrong), errors.Is(err, errOver):
		if isJSON {
			s.fail(w, &oauthError{"conflict", err.Error()})
			return
		}
		s.page(w, r, asked, cookie, err)
		return
	case err != nil:
		s.Log.Error("settling a sign-in", "err", err)
		s.problem(w, r, http.StatusInternalServerError, store.Textf("Something went wrong inside nize. Please try again."))
		return
	}
	SetCookie(w, asked.Origin, requestCookie, "", http.SameSiteLaxMode, -1)
	next := "/login"
	switch {
	case asked.Ended == oauth.Denied && asked.Client != "":
		next = answerTo(asked, "error", "access_denied")
	case asked.Client != "":
		next = answerTo(asked, "code", code)
	default:
		if _, err := s.beginSession(w, r, asked); err != nil {
			s.Log.Error("beginning a session", "err", err)
			s.problem(w, r, http.StatusInternalServerError, store.Textf("Something went wrong inside nize. Please try again."))
			return
		}
		next = s.landing(w, r)
	}
	switch {
	case isJSON:
		writeJSON(w, http.StatusOK, struct {
			Redirect string `json:"redirect"`
		}{next})
	case asked.Client == "":
		http.Redirect(w, r, next, http.StatusSeeOther)
	default:
		s.finished(w, r, asked, next)
	}
}

// settle decides in one transaction.
func (s *Server) settle(r *http.Request, asked oauth.Request, d decision, by store.Caller, code string) (oauth.Request, error) {
	who := Anybody(r)
	if d.Allow != nil {
		who = by
	}
	kind := "signin.number"
	if d.Allow != nil {
		kind = "signin.allow"
	}
	return s.Store.ChangeRequest(r.Context(), who, asked.ID, kind, func(o *oauth.Request, now time.Time, _ func(string) int) (bool, error) {
		if !o.Open(now) {
			return false, errOver
		}
		switch {
		case d.Allow != nil && !*d.Allow:
			o.Ended, o.User = oauth.Denied, by.User
			return true, nil
		case d.Allow != nil:
			o.User = by.User
		case o.User == "":
			return false, errEarly
		case !o.Number.Is(hashNumber(o.ID, strings.TrimSpace(d.Number))):
			if o.Tries++; o.Tries >= oauth.NumberTries {
				o.Ended = oauth.Void
				return true, errOver
			}
			return true, errWrong
		}
		o.Ended, o.Granted = oauth.Allowed, now
		if o.Client != "" {
			o.Grant = oauth.HashOf(code)
		}
		return true, nil
	})
}

// refuse responds to a request that did not come from nize's own page.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, isJSON bool, status int) {
	if isJSON {
		s.fail(w, &oauthError{"access_denied", "this request belongs to another browser, or has ended"})
		return
	}
	s.problem(w, r, status, store.Textf("This sign-in belongs to another browser or another tab, or it has ended. Begin again where you came from."))
}

// requestState serves GET /oauth/requests/{id}, for the page's script.
func (s *Server) requestState(w http.ResponseWriter, r *http.Request) {
	asked, cookie, ok := s.request(r, r.PathValue("id"))
	if !ok {
		s.fail(w, &oauthError{"not_found", "there is no such request for this browser"})
		return
	}
	_, signedIn := s.Person(r)
	state := asked.Ended
	switch {
	case state != "":
	case !asked.Open(s.Now()):
		state = "expired"
	case asked.User != "":
		state = "confirmed"
	default:
		state = "open"
	}
	writeJSON(w, http.StatusOK, struct {
		State    string    `json:"state"`
		Client   string    `json:"client,omitempty"`
		Host     string    `json:"host,omitempty"`
		Redirect string    `json:"redirect_host,omitempty"`
		Scope    string    `json:"scope"`
		Code     string    `json:"code"`
		SignedIn bool      `json:"signed_in"`
		Expires  time.Time `json:"expires"`
	}{state, asked.Name, asked.Host, redirectHost(asked), scopeText(asked.Scopes), codeOf(cookie), signedIn, asked.Created.Add(oauth.RequestLife)})
}

// redirectHost returns the host to which the client's code is sent, for display.
func redirectHost(asked oauth.Request) string {
	u, err := url.Parse(asked.Redirect)
	switch {
	case err != nil || asked.Redirect == "":
		return ""
	case u.Scheme == "http" || u.Scheme == "https":
		return u.Host
	}
	return u.Scheme + ":"
}

func onThisComputer(asked oauth.Request) bool {
	u, err := url.Parse(asked.Redirect)
	return err == nil && (u.Scheme == "http" || u.Scheme != "https")
}
