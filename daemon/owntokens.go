package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/store"
)

// serveOwnTokens lets a program that holds a token for the API look after its
// owner's tokens for MCP clients: whoever the token belongs to, admin
// or not, only ever their own.
func (d *Daemon) serveOwnTokens(mux *http.ServeMux) {
	mux.Handle("POST /auth/mcp-tokens", d.asOwner(d.mintOwn))
	mux.Handle("GET /auth/mcp-tokens", d.asOwner(d.listOwn))
	mux.Handle("DELETE /auth/mcp-tokens/{name}", d.asOwner(d.revokeOwn))
	mux.Handle("POST /auth/logout-all", d.asOwner(d.logoutAll))
}

// asOwner answers a request of the HTTP API in the name of its token's owner.
func (d *Daemon) asOwner(h answerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		status, answer := http.StatusOK, any(nil)
		by, err := d.bearer(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			status, answer = http.StatusUnauthorized, httpFailure("invalid_token", err.Error())
		} else if err = d.guarded(func() (err error) { answer, err = h(r.Context(), by, r); return err }); err != nil {
			e, known := api.FromError(err)
			if !known {
				d.log.Error("http request", "route", r.Pattern, "err", err)
			}
			status, answer = e.Status(), httpFailure(e.Code, e.Message)
		}
		body, err := json.Marshal(answer)
		if err != nil {
			d.log.Error("encoding an answer", "route", r.Pattern, "err", err)
			status, body = http.StatusInternalServerError, []byte(`{"error":{"type":"internal","message":"internal error"}}`)
		}
		w.WriteHeader(status)
		_, _ = w.Write(append(body, '\n')) // the client has left: nothing to do
	})
}

// failure is an error of the HTTP API.
type failure struct {
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

func httpFailure(kind, message string) (f failure) {
	f.Error.Type, f.Error.Message = kind, message
	return f
}

// bearer turns the Authorization header into the caller. The error is the
// sentence that its client is told.
func (d *Daemon) bearer(r *http.Request) (store.Caller, error) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return store.Caller{}, errors.New("a token is needed: Authorization: Bearer nize_…")
	}
	hash, err := store.ReadToken(strings.TrimSpace(text))
	if err != nil {
		return store.Caller{}, err
	}
	t, u, err := d.db.Authenticate(r.Context(), hash)
	switch {
	case errors.Is(err, store.ErrExpired):
		return store.Caller{}, fmt.Errorf("the token expired on %s", t.Expires.UTC().Format("2006-01-02 15:04 MST"))
	case errors.Is(err, store.ErrRefused):
		return store.Caller{}, errors.New("the token was revoked")
	case errors.Is(err, store.ErrNotFound):
		return store.Caller{}, errors.New("the token is not known here")
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

func (d *Daemon) mintOwn(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.OwnToken](r)
	if err != nil {
		return nil, err
	}
	scopes, err := atMost(by.Scopes, req.Scopes)
	if err != nil {
		return nil, err
	}
	made, err := d.mint(ctx, by, api.CreateToken{Name: req.Name, Expires: req.Expires, Scopes: scopes, Overwrite: req.Overwrite})
	if errors.Is(err, store.ErrExists) {
		return nil, fmt.Errorf("token %q %w: say \"overwrite\": true to replace it", req.Name, store.ErrExists)
	}
	if err != nil {
		return nil, err
	}
	return api.MintedToken{Token: made.Token, Secret: made.Secret}, nil
}

// atMost is what a token that a token makes may have: at most its maker's
// scopes, and those where nothing is asked for.
func atMost(maker, asked []string) ([]string, error) {
	var patterns []string
	for _, s := range maker {
		if p, ok := strings.CutPrefix(s, "tools:"); ok {
			patterns = append(patterns, p)
		}
	}
	if len(patterns) == 0 {
		return asked, nil
	}
	if len(asked) == 0 {
		return maker, nil
	}
	for _, s := range asked {
		p := strings.TrimPrefix(s, "tools:")
		if !slices.Contains(patterns, p) && (strings.Contains(p, "*") || !store.MatchAny(patterns, p)) {
			return nil, fmt.Errorf("scope %q: %w: the token that asks for it has only %s", s, store.ErrRefused, strings.Join(maker, ", "))
		}
	}
	return asked, nil
}

func (d *Daemon) listOwn(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	tokens, err := d.db.ListTokens(ctx, by.User)
	if err != nil {
		return nil, fmt.Errorf("listing tokens: %w", err)
	}
	var own []api.TokenView
	for _, t := range tokens {
		if t.Audience == store.ForMCP {
			own = append(own, api.TokenView{Token: t, State: t.State(d.now()), UserName: by.Name})
		}
	}
	return items(own), nil
}

func (d *Daemon) revokeOwn(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name := r.PathValue("name")
	tokens, err := d.db.ListTokens(ctx, by.User)
	if err != nil {
		return nil, fmt.Errorf("listing tokens: %w", err)
	}
	var names []string
	for _, t := range tokens {
		if t.Audience == store.ForMCP && t.State(d.now()) == "active" {
			names = append(names, t.Name)
		}
	}
	if !slices.Contains(names, name) {
		return nil, store.Unknown("active token", name, names)
	}
	n, err := d.db.RevokeTokens(ctx, by, by.User, name)
	if err != nil {
		return nil, fmt.Errorf("revoking token %s: %w", name, err)
	}
	return api.Revoked{Revoked: n}, nil
}

// logoutAll revokes every token of the owner, the one that asks included.
func (d *Daemon) logoutAll(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	n, err := d.db.RevokeTokens(ctx, by, by.User, "")
	if err != nil {
		return nil, fmt.Errorf("revoking tokens: %w", err)
	}
	return api.Revoked{Revoked: n}, nil
}
