package asks

import (
	"context"
	"log/slog"
	"net/http"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/openapi"
	"nize/store"
)

// Options configure how the operations are served over HTTP.
type Options struct {
	// Caller returns the owner of a request's token for the API or project key.
	Caller func(*http.Request) (store.Caller, error)
	Fail   func(http.ResponseWriter, *api.Error)
	// Key is the security scheme of a project's key.
	Key string
	Log *slog.Logger
}

const (
	noAsk   = "the caller has no ask of that id"
	asked   = "The program may run the step only if the state is approved, and only with the arguments in the response."
	another = "the key was used for another ask"
)

var (
	postDoc = openapi.Doc{ID: "ask", Text: asked + " Without wait, or if no decision is made within it, the state is pending: ask again with GET.",
		Fails: map[int]string{400: "the request is invalid", 403: "the caller may not use the source", 404: "there is no such source for the caller", 409: another, 429: "the source's rate limit is reached, or too many asks are pending"},
		Examples: []openapi.Example{
			{Name: "shell", Summary: "a shell command", Value: `{"source": "deploy-script", "tool": "Bash", "title": "Restart the web servers", "arguments": {"command": "systemctl restart web"}, "why": "the new version is in place", "context": {"host": "build-7", "cwd": "/srv/web"}, "key": "deploy-2041-restart", "expires": "15m"}`},
		}}
	getDoc    = openapi.Doc{ID: "getAsk", Text: asked + " With wait, the response is sent as soon as a decision is made.", Fails: map[int]string{400: "wait is not a duration", 404: noAsk}}
	cancelDoc = openapi.Doc{ID: "cancelAsk", Text: "An ask that was already decided is not changed; the response has its state.", Fails: map[int]string{404: noAsk}}
)

// Routes returns the operations below /asks.
func (a *Asks) Routes(o Options) []openapi.Route {
	on := http.NewServeMux()
	m := mux.New(on, mux.Options{Log: o.Log, Fail: o.Fail, Caller: o.Caller, Strict: true})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		on.ServeHTTP(w, r)
	})
	by := []openapi.Security{{openapi.Token: {}}, {o.Key: {}}}
	return []openapi.Route{
		route(m, api.PostAskHTTP, a.Post, postDoc, h, by),
		route(m, api.GetAskHTTP, a.Get, getDoc, h, by),
		route(m, api.CancelAskHTTP, a.Cancel, cancelDoc, h, by),
	}
}

func route[Req, Res any](m *mux.Mux, op api.Op[Req, Res], do func(context.Context, store.Caller, Req) (Res, error), doc openapi.Doc, h http.Handler, by []openapi.Security) openapi.Route {
	mux.Handle(m, op, do)
	return openapi.Handle(op, doc, h, by...)
}
