package connect

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"nize/daemon/api"
	"nize/daemon/failure"
	"nize/daemon/pages"
	"nize/daemon/signin"
	"nize/mcp/upstream/oauth"
	"nize/store"
)

const (
	pagePath     = "/connect/"
	callbackPath = "/oauth/callback"
	documentPath = "/oauth/client.json"

	maxForm = 4 << 10
)

var page = pages.New(`{{range .Lines}}<p>{{say .}}</p>
{{end}}
{{with .Facts}}<dl>{{range .}}<div><dt>{{say .Name}}</dt><dd>{{say .Value}}</dd></div>{{end}}</dl>
{{end}}
{{with .Form}}<form method="post">
{{if .Ask}}<label for="secret">{{say .Label}}</label>
<input class="long" id="secret" type="password" name="secret" data-fragment required autocomplete="off">
<p class="quiet">{{say .Paste}}</p>
{{end}}<button>{{say .Button}}</button>
</form>
{{end}}
{{with .Link}}<p><a href="{{.Address}}">{{say .Text}}</a></p>
{{end}}`)

// view is the body of a page.
type view struct {
	Lines []store.Text
	Facts []fact
	Form  *form
	Link  *link
}

type fact struct{ Name, Value store.Text }

type form struct {
	Ask                  bool
	Paste, Label, Button store.Text
}

type link struct {
	Address string
	Text    store.Text
}

// Handler returns the handler of the pages, the callback and the document.
func (c *Connect) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pagePath+"{flow}", c.show)
	mux.HandleFunc("POST "+pagePath+"{flow}", c.goOn)
	mux.HandleFunc("GET "+callbackPath, c.callback)
	mux.HandleFunc("GET "+documentPath, c.document)
	return mux
}

// document serves nize's client metadata document for sign-in services.
func (c *Connect) document(w http.ResponseWriter, r *http.Request) {
	redirect, id, err := c.addresses()
	if err != nil || id == "" {
		http.NotFound(w, r)
		return
	}
	origin, _ := c.opt.Origin()
	body, err := oauth.Document(id, redirect, origin)
	if err != nil {
		failure.Internal(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=3600")
	_, _ = w.Write(body) // the client has disconnected
}

func (c *Connect) say(w http.ResponseWriter, r *http.Request, status int, title, text store.Text) {
	page.Write(w, r, status, pages.Page{Title: title, Data: view{Lines: []store.Text{text}}})
}

func (c *Connect) gone(w http.ResponseWriter, r *http.Request) {
	c.say(w, r, http.StatusNotFound, store.Textf("This link is no longer valid"), store.Textf("It works once, for ten minutes. Ask for another one where you got it."))
}

// describe returns the facts about a flow for the person at the browser.
func describe(f *flow) []fact {
	whose := store.Textf("everyone who may use the server")
	switch kind, name, _ := strings.Cut(f.forWhom, ":"); kind {
	case "user":
		whose = store.Plain(store.Line(name))
	case "team":
		whose = store.Textf("the team %s", store.Line(name))
	}
	kind, at := store.Textf("Server"), hostOf(f.server.URL)
	if f.service != nil {
		kind, at = store.Textf("Service"), f.service.Host
	}
	facts := []fact{
		{kind, store.Plain(store.Line(f.name()))},
		{store.Textf("Its address"), store.Plain(store.Line(at))},
		{store.Textf("Connected for"), whose},
		{store.Textf("Asked by"), store.Plain(store.Line(f.by.Name))},
		{store.Textf("You sign in at"), store.Plain(store.Line(hostOf(f.request.Service.Authorization)))},
	}
	if len(f.request.Scopes) > 0 {
		facts = append(facts, fact{store.Textf("It asks for"), store.Plain(store.Clip(store.Line(strings.Join(f.request.Scopes, " ")), 500))})
	}
	return facts
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// mayGoOn reports whether a request's browser may continue a flow: it must be signed in as
// the owner of the login. A shared login needs only the secret, which only an admin was
// given.
func (c *Connect) mayGoOn(r *http.Request, f *flow) bool {
	if f.holder.Scope != "user" {
		return true
	}
	by, ok := c.opt.Person(r)
	return ok && by.User == f.holder.Owner
}

// show serves the page of a flow.
func (c *Connect) show(w http.ResponseWriter, r *http.Request) {
	f, ok := c.find(r.PathValue("flow"))
	if !ok || c.view(f).State != api.LoginWaiting {
		c.gone(w, r)
		return
	}
	v := view{Facts: describe(f)}
	title := store.Textf("Connect %s", f.name())
	if !c.mayGoOn(r, f) {
		v.Lines = []store.Text{store.Textf("This link is for one person only. Sign in to nize in this browser as that person, then open the link again.")}
		v.Link = &link{"/login", store.Textf("Sign in")}
		page.Write(w, r, http.StatusForbidden, pages.Page{Title: title, Data: v})
		return
	}
	v.Lines = []store.Text{store.Textf("nize will be able to call this server with what you allow there. Continue only if you know who requested it.")}
	if f.service != nil {
		v.Lines[0] = store.Textf("Tools of nize will be able to use this service with what you allow there. Continue only if you know who requested it.")
	}
	v.Form = &form{Ask: true, Paste: store.Textf("It is the part of the link after the #, and is filled in automatically if scripts are enabled."), Label: store.Textf("The link's secret"), Button: store.Textf("Continue to %s", store.Line(hostOf(f.request.Service.Authorization)))}
	page.Write(w, r, http.StatusOK, pages.Page{Title: title, Fragment: true, Data: v})
}

// goOn redirects the browser to the sign-in service, once.
func (c *Connect) goOn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	f, ok := c.find(r.PathValue("flow"))
	site := r.Header.Get("Sec-Fetch-Site")
	if !ok || site != "" && site != "same-origin" {
		c.gone(w, r)
		return
	}
	if !c.mayGoOn(r, f) {
		c.show(w, r)
		return
	}
	if err := c.stillAllowed(r.Context(), f); err != nil {
		c.say(w, r, http.StatusForbidden, store.Textf("This can't continue"), store.TextOf(err))
		return
	}
	origin, _ := c.opt.Origin()
	value, ok := c.leave(f, r.PostFormValue("secret"), signin.ReadCookie(r, origin, cookie))
	if !ok {
		c.gone(w, r)
		return
	}
	signin.SetCookie(w, origin, cookie, value, http.SameSiteLaxMode, flowTime)
	next := f.request.URL()
	page.Write(w, r, http.StatusOK, pages.Page{Title: store.Textf("Connect %s", f.name()), Next: next,
		Data: view{Link: &link{next, store.Textf("Continue to %s", store.Line(hostOf(next)))}}})
}

// leave lets a browser with the secret continue, and returns the cookie that identifies it
// when it comes back. It rejects a second browser; the first may try again.
func (c *Connect) leave(f *flow, secret, known string) (value string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.taken || f.tries >= maxTries {
		return "", false
	}
	if !equal(f.secret, secret) {
		f.tries++
		return "", false
	}
	if f.cookie != [sha256.Size]byte{} {
		return known, equal(f.cookie, known)
	}
	value = oauth.RandomText()
	f.cookie = sha256.Sum256([]byte(value))
	return value, true
}

// callback serves the redirect URI. It does nothing unless the request has a flow's cookie
// and state.
func (c *Connect) callback(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	origin, _ := c.opt.Origin()
	f := c.returned(q.Get("state"), signin.ReadCookie(r, origin, cookie))
	if f == nil {
		c.say(w, r, http.StatusBadRequest, store.Textf("Nothing was changed"), store.Textf("nize does not expect this response in this browser: it came too late, twice, or from another site."))
		return
	}
	signin.SetCookie(w, origin, cookie, "", http.SameSiteLaxMode, -1)
	if err := c.finish(r.Context(), f, q); err != nil {
		text := store.Textf("%s was not connected: %s", f.name(), store.TextOf(err))
		if errors.Is(err, oauth.ErrIssuer) {
			text = store.Textf("%s was not connected: the response is from a different sign-in service than expected, so it was ignored.", f.name())
		}
		c.say(w, r, http.StatusBadGateway, store.Textf("It did not work"), text)
		return
	}
	c.say(w, r, http.StatusOK, store.Textf("%s is connected", f.name()), store.Textf("You can close this page."))
}

// returned returns the flow of a callback and claims it.
func (c *Connect) returned(state, known string) *flow {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.flows {
		if state == "" || f.request.State != state {
			continue
		}
		if f.taken || f.cookie == [sha256.Size]byte{} || !equal(f.cookie, known) || !c.opt.Now().Before(f.expires) {
			return nil
		}
		f.taken = true
		return f
	}
	return nil
}

// cookie identifies a returning browser. It is not SameSite=Strict, since it must be sent
// with the redirect from the sign-in service.
const cookie = "nize-connect"
