package daemon

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"nize/daemon/api"
	"nize/daemon/failure"
	"nize/daemon/mux"
	"nize/daemon/programs"
	"nize/store"
	"nize/store/outage"
	"nize/store/project"
)

// ownTokensHandler serves the HTTP API's operations on the caller's own tokens.
func (d *Daemon) ownTokensHandler() http.Handler {
	on := http.NewServeMux()
	m := mux.New(on, mux.Options{Caller: d.apiCaller, Fail: failure.HTTP.Write, Log: d.log})
	mux.Handle(m, api.CreateOwnToken, d.ops.ownTokens.Create)
	mux.Handle(m, api.ListOwnTokens, d.ops.ownTokens.List)
	mux.Handle(m, api.RevokeOwnToken, d.ops.ownTokens.Revoke)
	mux.Handle(m, api.RevokeOwnTokens, d.ops.ownTokens.RevokeAll)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		on.ServeHTTP(w, r)
	})
}

// apiCaller returns the owner of a request's token for the API, or the user who is signed
// in to the browser that sends it from nize's own page. A header takes precedence over the
// cookie.
func (d *Daemon) apiCaller(r *http.Request) (store.Caller, error) {
	if r.Header.Get("Authorization") == "" {
		by, err := d.ops.browser.Session(r)
		var e *api.Error
		if err == nil || outage.Is(err) || errors.As(err, &e) {
			return by, err
		}
	}
	by, err := d.bearer(r)
	if outage.Is(err) {
		return by, err
	}
	if err != nil {
		return by, &api.Error{Code: "invalid_token", Message: err.Error()}
	}
	return by, nil
}

// askCaller returns the owner of a request's token for the API or project key.
func (d *Daemon) askCaller(r *http.Request) (by store.Caller, err error) {
	refuse := func(err error) (store.Caller, error) {
		return store.Caller{}, &api.Error{Code: "authentication", Message: err.Error()}
	}
	key := r.Header.Get("x-api-key")
	if key != "" && (r.Header.Get("Authorization") != "" || len(r.Header.Values("x-api-key")) > 1) {
		return refuse(errors.New("send one x-api-key, or Authorization, and not both"))
	}
	var of project.Project
	if key == "" {
		by, err = d.bearer(r)
	} else if of, err = programs.UseKey(signedInProject(d.db.UseKey)).Project(r.Context(), key); err == nil {
		by = of.Caller()
	}
	if err != nil && !outage.Is(err) {
		return refuse(err)
	}
	return by, err
}

// bearer returns the caller of an Authorization header. The error is a sentence for the
// client, or an outage.
func (d *Daemon) bearer(r *http.Request) (store.Caller, error) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return store.Caller{}, errors.New("a token is needed: Authorization: Bearer nize_…")
	}
	hash, err := store.ReadToken(strings.TrimSpace(text))
	if err != nil {
		return store.Caller{}, err
	}
	t, u, err := signedIn{d.db}.Authenticate(r.Context(), hash)
	switch {
	case errors.Is(err, store.ErrExpired):
		return store.Caller{}, fmt.Errorf("the token expired on %s", t.Expires.UTC().Format("2006-01-02 15:04 MST"))
	case errors.Is(err, store.ErrRefused):
		return store.Caller{}, errors.New("the token was revoked")
	case errors.Is(err, store.ErrNotFound):
		return store.Caller{}, errors.New("the token is unknown")
	case outage.Is(err):
		return store.Caller{}, err
	case err != nil:
		d.log.Error("authenticating", "err", err)
		return store.Caller{}, errors.New("internal error")
	case t.Audience != store.ForAPI:
		return store.Caller{}, fmt.Errorf("the token is for %s, not for the API: nizectl tokens create NAME --audience api", t.Audience)
	}
	address := r.RemoteAddr
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnHTTP, Token: t.ID, Scopes: t.Scopes, Address: address}, nil
}
