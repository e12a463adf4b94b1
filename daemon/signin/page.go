package signin

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	_ "embed"

	"nize/daemon/pages"
	"nize/store"
	"nize/store/oauth"
)

//go:embed pages.html
var middles string

// Each page's body is a separate template in one file.
var (
	requestPage  = pages.New(middle("request"))
	messagePage  = pages.New(middle("message"))
	linkPage     = pages.New(middle("link"))
	sessionsPage = pages.New(middle("sessions"))
)

func middle(name string) string {
	_, text, _ := strings.Cut(middles, "<!-- "+name+" -->\n")
	text, _, _ = strings.Cut(text, "<!-- ")
	return text
}

// message is a page with only a message.
type message struct {
	Text  store.Text
	Link  string
	Label store.Text
	// Button shows the link as a button.
	Button bool
}

func (s *Server) problem(w http.ResponseWriter, r *http.Request, status int, text store.Text) {
	messagePage.Write(w, r, status, pages.Page{Title: store.Textf("This did not work"), Data: message{Text: text}})
}

// Problem writes an error page.
func (s *Server) Problem(w http.ResponseWriter, r *http.Request, status int, text store.Text) {
	s.problem(w, r, status, text)
}

// Admit signs a browser in as a person authenticated by an identity provider, and redirects
// it to the client of its open request, or to the page. Since the browser comes from
// another site, it doesn't send the session's cookie yet; a page of nize's own makes the
// next request.
func (s *Server) Admit(w http.ResponseWriter, r *http.Request, user string, in store.SignedIn) error {
	if _, err := s.beginAs(r.Context(), w, r, oauth.Request{User: user}, in); err != nil {
		return err
	}
	s.wake()
	cookie := ReadCookie(r, s.Origin(r), requestCookie)
	next := ""
	if asked, _, ok := s.request(r, id(cookie)); ok && asked.Client != "" && asked.Open(s.Now()) {
		next = "/oauth/authorize?request=" + url.QueryEscape(asked.ID)
	} else {
		leave(s, r, cookie)
		SetCookie(w, s.Origin(r), requestCookie, "", http.SameSiteLaxMode, -1)
		next = s.landing(w, r)
	}
	s.oneMoment(w, r, next)
	return nil
}

// oneMoment writes a page that redirects to another page of nize's.
func (s *Server) oneMoment(w http.ResponseWriter, r *http.Request, next string) {
	messagePage.Write(w, r, http.StatusOK, pages.Page{Title: store.Textf("One moment"), Next: next, Data: message{Text: store.Textf("The page opens by itself."), Link: next, Label: store.Textf("Go on")}})
}

// companyPage writes the page of a browser that can sign in only with the company's
// account.
func (s *Server) companyPage(w http.ResponseWriter, r *http.Request, name string) {
	if name == "" {
		s.problem(w, r, http.StatusServiceUnavailable, store.Textf("Browsers sign in only with the company's account here, and no identity provider is set. An admin sets one with nizectl identity oidc set, or sets oidc.required to false."))
		return
	}
	messagePage.Write(w, r, http.StatusOK, pages.Page{Title: store.Textf("Sign in to nize"), Data: message{Text: store.Textf("You sign in here with your account at %s.", name), Link: CompanyPath, Label: store.Textf("Continue with %s", name), Button: true}})
}

// finished writes the last page. It redirects to the client, and stays visible if the
// client is a program that opens no page.
func (s *Server) finished(w http.ResponseWriter, r *http.Request, asked oauth.Request, next string) {
	title, text := store.Textf("You are signed in to %s", asked.Name), store.Textf("You can close this page.")
	if asked.Ended == oauth.Denied {
		title = store.Textf("%s was denied access", asked.Name)
	}
	messagePage.Write(w, r, http.StatusOK, pages.Page{Title: title, Next: next, Data: message{Text: text, Link: next, Label: store.Textf("Go back to %s", asked.Name)}})
}

// fact is a line shown to a person before they decide.
type fact struct {
	Name  store.Text
	Value store.Text
}

type requestView struct {
	ID, Form, Code, Person string
	Facts                  []fact
	Warning, Problem       store.Text
	Ask, Command           store.Text
	Number, Submit         store.Text
	Allow, Deny            store.Text
	Admin                  store.Text
	Secret                 bool
	Company                store.Text // sign-in with the company's account
	Only                   bool       // that is the only way
	SecretLabel, Enter     store.Text
}

// ScopeWords describes what scopes let a client do.
func ScopeWords(scopes []string) []store.Text {
	var tools []string
	for _, one := range scopes {
		if p, ok := strings.CutPrefix(one, "tools:"); ok {
			tools = append(tools, p)
		}
	}
	if len(tools) > 0 {
		return []store.Text{store.Textf("find and run the tools %s, where you may, under the same approvals", strings.Join(tools, ", "))}
	}
	return []store.Text{store.Textf("find and run every tool that you may use, under the same approvals")}
}

// showRequest serves a request's page.
func (s *Server) showRequest(w http.ResponseWriter, r *http.Request, id string) {
	// A browser that comes from the client's page doesn't send the session's cookie. It
	// sends it with the next request, from nize's own page.
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		s.oneMoment(w, r, r.URL.RequestURI())
		return
	}
	asked, cookie, ok := s.request(r, id)
	if !ok {
		s.refuse(w, r, false, http.StatusBadRequest)
		return
	}
	s.page(w, r, asked, cookie, nil)
}

// page writes the page of a request in its current state. why is the error of the last
// decision.
func (s *Server) page(w http.ResponseWriter, r *http.Request, asked oauth.Request, cookie string, why error) {
	switch {
	case asked.Ended == oauth.Allowed:
		s.problem(w, r, http.StatusConflict, store.Textf("This sign-in is done. You can close this page."))
		return
	case asked.Ended == oauth.Denied:
		s.problem(w, r, http.StatusForbidden, store.Textf("This sign-in was denied in the chat. If that was not you, ask who else has your account."))
		return
	case asked.Ended == oauth.Void:
		s.problem(w, r, http.StatusForbidden, store.Textf("The number was wrong three times, so this sign-in has ended. Begin again where you came from."))
		return
	case !asked.Open(s.Now()):
		s.problem(w, r, http.StatusGone, store.Textf("This sign-in was not finished within ten minutes, so it has ended. Begin again where you came from."))
		return
	}
	v := requestView{
		ID: asked.ID, Form: FormToken(cookie), Code: codeOf(cookie),
		Ask:     store.Textf("You are not signed in here yet. Confirm this code where nize already knows you:"),
		Command: store.Textf("In Slack, Discord or nizectl chat, write"),
		Admin:   store.Textf("or an admin runs"),
		Number:  store.Textf("The six digits that you get there"), Submit: store.Textf("Sign in"),
		Allow: store.Textf("Allow"), Deny: store.Textf("Deny"),
	}
	if name, only := s.company(r.Context()); name != "" || only {
		v.Only = only
		if name != "" {
			v.Company = store.Textf("Continue with %s", name)
		}
		v.Ask = store.Textf("Or confirm this code where nize already knows you:")
		if only {
			v.Ask = store.Textf("You sign in here with your account at %s.", name)
		}
	}
	status := http.StatusOK
	switch {
	case errors.Is(why, errEarly):
		status, v.Problem = http.StatusConflict, store.Textf("The code was not confirmed yet. Confirm it first; then you get six digits.")
	case errors.Is(why, errWrong):
		status, v.Problem = http.StatusForbidden, store.Textf("That number is wrong. After three wrong ones this sign-in ends.")
	}
	title := store.Textf("Sign in to nize")
	if asked.Client != "" {
		title = store.Textf("Let %s use nize?", asked.Name)
		v.Facts = factsOf(asked)
		if onThisComputer(asked) {
			v.Warning = store.Textf("The code is sent to a program on this computer. Continue only if you started it yourself.")
		}
		if by, ok := s.Person(r); ok {
			v.Person, v.Ask = by.Name, store.Textf("You are signed in as %s.", by.Name)
		}
	} else {
		v.Secret, v.SecretLabel, v.Enter = true, store.Textf("Or the part after the # that nizectl login printed"), store.Textf("Sign in with it")
	}
	requestPage.Write(w, r, status, pages.Page{Title: title, Fragment: v.Secret, Data: v})
}

// factsOf returns what a person must know about a client before they decide.
func factsOf(asked oauth.Request) []fact {
	name := store.Textf("%s (an unverified name)", asked.Name)
	if asked.Host != "" {
		name = store.Textf("%s, according to %s", asked.Name, asked.Host)
	}
	facts := []fact{{store.Textf("Client"), name}, {store.Textf("Sends its code to"), store.Plain(redirectHost(asked))}}
	for _, one := range ScopeWords(asked.Scopes) {
		facts = append(facts, fact{store.Textf("May, as you"), one})
	}
	return facts
}

// login serves /login: a code for a browser that is not signed in, else its sessions.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if by, ok := s.Person(r); ok {
		s.showSessions(w, r, by)
		return
	}
	if name, only := s.company(r.Context()); only {
		s.companyPage(w, r, name)
		return
	}
	if asked, cookie, ok := s.request(r, id(ReadCookie(r, s.Origin(r), requestCookie))); ok && asked.Client == "" && asked.Open(s.Now()) {
		s.page(w, r, asked, cookie, nil)
		return
	}
	if r.URL.Query().Has("request") { // the request has just begun, so the browser doesn't keep cookies
		s.problem(w, r, http.StatusBadRequest, store.Textf("Your browser keeps no cookie for this page, so you can't sign in with it."))
		return
	}
	if !Navigates(r) {
		s.notHere(w, r)
		return
	}
	s.begin(w, r, oauth.Request{ID: NewSecret()[:22], Address: Address(r), Agent: agent(r), Origin: s.Origin(r)}, "/login?request=")
}

// enter accepts the secret of nizectl login. A request that only shows it returns who would
// be signed in, and leaves the secret valid for its single use.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	cookie := ReadCookie(r, s.Origin(r), requestCookie)
	if !Genuine(r, cookie) && !s.Sessions.Genuine(r) { // or from the page of a signed-in person
		s.refuse(w, r, false, http.StatusForbidden)
		return
	}
	if name, only := s.company(r.Context()); only {
		s.companyPage(w, r, name)
		return
	}
	secret := strings.TrimPrefix(strings.TrimSpace(r.PostFormValue("secret")), "#")
	ended := store.Textf("This address was already used, or is older than five minutes. Run nizectl login for a new one.")
	asked, err := s.Store.FindRequest(r.Context(), hashLogin(secret))
	switch {
	case err != nil:
	case !s.entersBy(asked, s.Now()):
		err = errOver
	case r.PostFormValue("show") != "":
		s.showLink(w, r, asked, secret)
		return
	default:
		asked, err = s.Store.ChangeRequest(r.Context(), Anybody(r), asked.ID, "signin.link", func(o *oauth.Request, now time.Time, _ func(string) int) (bool, error) {
			if !s.entersBy(*o, now) {
				return false, errOver
			}
			o.Ended, o.Agent, o.Address = oauth.Allowed, agent(r), Address(r)
			return true, nil
		})
	}
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, errOver) {
		s.problem(w, r, http.StatusForbidden, ended)
		return
	}
	if err == nil {
		_, err = s.beginSession(w, r, asked)
	}
	if err != nil {
		s.Log.Error("signing in", "err", err)
		s.problem(w, r, http.StatusInternalServerError, store.Textf("Something went wrong inside nize. Please try again."))
		return
	}
	leave(s, r, cookie)
	SetCookie(w, s.Origin(r), requestCookie, "", http.SameSiteLaxMode, -1)
	http.Redirect(w, r, s.landing(w, r), http.StatusSeeOther)
}

// entersBy reports whether a request is a link that can still sign a person in.
func (s *Server) entersBy(asked oauth.Request, now time.Time) bool {
	return asked.Open(now) && now.Sub(asked.Created) < oauth.LoginLife && asked.User != "" && asked.Client == ""
}

type linkView struct {
	Form, Secret           string
	Other, Submit, Another store.Text
}

// showLink shows where and as whom a link signs in, which only its secret reveals, so that
// a link sent by someone else is recognized. Signing in is then one click.
func (s *Server) showLink(w http.ResponseWriter, r *http.Request, asked oauth.Request, secret string) {
	u, err := s.Directory.Find(r.Context(), asked.User)
	if err != nil {
		s.Log.Error("showing a sign-in link", "err", err)
		s.problem(w, r, http.StatusInternalServerError, store.Textf("Something went wrong inside nize. Please try again."))
		return
	}
	v := linkView{Form: r.PostFormValue("form"), Secret: secret, Submit: store.Textf("Sign in"), Another: store.Textf("Sign in another way")}
	if by, ok := s.Person(r); ok {
		if by.User == asked.User { // already signed in as that person
			http.Redirect(w, r, s.landing(w, r), http.StatusSeeOther)
			return
		}
		v.Another = store.Textf("Stay signed in as %s", by.Name)
		v.Other = store.Textf("You are signed in here as %s. Signing in as %s ends that.", by.Name, u.Name)
	}
	host := s.Origin(r)
	if at, err := url.Parse(host); err == nil {
		host = at.Hostname()
	}
	linkPage.Write(w, r, http.StatusOK, pages.Page{Title: store.Textf("Sign in to nize on %s as %s", host, u.Name), Fragment: true, Data: v})
}

// leave ends the open request of a page's code after its browser signed in another way. It
// would otherwise count among the open requests of its address.
func leave(s *Server, r *http.Request, cookie string) {
	asked, _, ok := s.request(r, id(cookie))
	if !ok {
		return
	}
	_, err := s.Store.ChangeRequest(r.Context(), Anybody(r), asked.ID, "signin.leave", func(o *oauth.Request, now time.Time, _ func(string) int) (bool, error) {
		o.Ended = oauth.Denied
		return true, nil
	})
	if err != nil {
		s.Log.Warn("ending a sign-in that its browser left", "err", err)
	}
}

type sessionsView struct {
	Form, Person              string
	As                        store.Text
	Browsers, Clients, Tokens list
	Out, All                  store.Text
	Next                      string // start of the next page; "" on the last
	Older                     store.Text
	Home                      string // the chat page; "" if there is none
	Back                      store.Text
}

// Lists returns all lists, for the template.
func (v sessionsView) Lists() []list { return []list{v.Browsers, v.Clients, v.Tokens} }

type list struct {
	Head, None store.Text
	Items      []item
}

type item struct {
	ID               string
	Name, About, End store.Text
}

// showSessions writes the page with a person's sessions.
func (s *Server) showSessions(w http.ResponseWriter, r *http.Request, by store.Caller) {
	before := r.URL.Query().Get("before")
	tokens, next, err := s.Pages.Store.PageTokens(r.Context(), oauth.TokenQuery{User: by.User, Active: true, Before: before, Limit: 50})
	if err != nil {
		s.Log.Error("listing tokens", "err", err)
		s.problem(w, r, http.StatusInternalServerError, store.Textf("Something went wrong inside nize. Please try again."))
		return
	}
	v := sessionsView{
		Form: s.Sessions.Form(r), Person: by.Name, As: store.Textf("You are signed in as %s.", by.Name),
		Browsers: list{Head: store.Textf("Browsers")}, Out: store.Textf("Sign out"), All: store.Textf("Sign out everywhere"),
		Clients: list{Head: store.Textf("Clients that you signed in to")},
		Tokens:  list{Head: store.Textf("Tokens")},
		Next:    next, Older: store.Textf("Older ones"),
	}
	if home := s.landing(w, r); home != "/login" {
		v.Home, v.Back = home, store.Textf("Go back to %s", "nize")
	}
	if before == "" && next == "" { // otherwise it may be on another page
		v.Clients.None, v.Tokens.None = store.Textf("None."), store.Textf("None.")
	}
	for _, t := range tokens {
		one := item{ID: t.ID, End: store.Textf("Revoke"), About: store.Textf("since %s", store.Moment{Time: t.Created})}
		switch in := t.SignedIn; {
		case in != nil && t.Audience == store.ForWeb:
			one.Name, one.End = store.Textf("%s, from %s", in.Browser, in.Address), store.Textf("Sign out")
			if t.ID == by.Token {
				one.Name, one.End = store.Textf("This browser, from %s", in.Address), store.Text{}
			}
			v.Browsers.Items = append(v.Browsers.Items, one)
		case in != nil:
			one.Name = store.Textf("%s, at %s", strings.TrimPrefix(t.Name, "oauth:"), in.Redirect)
			v.Clients.Items = append(v.Clients.Items, one)
		default:
			one.Name = store.Plain(t.Name)
			v.Tokens.Items = append(v.Tokens.Items, one)
		}
	}
	sessionsPage.Write(w, r, http.StatusOK, pages.Page{Title: store.Textf("Your sign-ins"), Fragment: true, Data: v})
}

// leave ends the session or sessions that a person chose: this browser, one, or all.
func (s *Server) leave(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	by, ok := s.Person(r)
	if !ok || !s.Sessions.Genuine(r) {
		s.refuse(w, r, false, http.StatusForbidden)
		return
	}
	var err error
	switch what := r.PostFormValue("what"); what {
	case "":
		err = s.End(w, r)
	case "all":
		_, err = s.Tokens.RevokeTokens(r.Context(), by, by.User, "")
	default:
		err = s.endOne(r, by, what)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		s.Log.Error("signing out", "err", err)
		s.problem(w, r, http.StatusInternalServerError, store.Textf("Something went wrong inside nize. Please try again."))
		return
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (s *Server) endOne(r *http.Request, by store.Caller, id string) error {
	t, err := s.Pages.Store.GetToken(r.Context(), id)
	switch {
	case err != nil:
		return err
	case t.User != by.User:
		return store.ErrNotFound
	case t.SignedIn != nil:
		return s.Store.RevokeSignIn(r.Context(), by, id)
	}
	_, err = s.Tokens.RevokeTokens(r.Context(), by, by.User, t.Name)
	return err
}

func loginURL(base, secret string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base + "/login#" + secret
	}
	u.Path, u.Fragment = "/login", secret
	return u.String()
}
