package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"nize/mcp/reply"
	"nize/store"
)

// A client to which a user signed in can request more scopes: if it calls a tool that the
// user may use but the client may not, the response's status names the missing scope. A
// token that was created by hand can't change, so a tool that it may not use doesn't exist
// for it.

// errScope is the reason why such a call is rejected.
var errScope = store.Mark(errors.New("the client was not signed in for this tool"), store.ErrRefused)

// stepUp responds 403 to a call that needs a scope which the caller's token lacks.
func (s *Server) stepUp(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := auth.TokenInfoFromContext(r.Context())
		by, _ := info.Extra["caller"].(store.Caller)
		if signedIn, _ := info.Extra["signed in"].(bool); !signedIn || len(by.Scopes) == 0 || r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body)) // the SDK refuses a body that is too long
		id := ""
		if err == nil {
			id, err = s.lacksScope(r.Context(), by, body)
		}
		switch {
		case err != nil && r.Context().Err() == nil:
			s.opt.Log.Error("checking the scopes of a token", "err", err)
			http.Error(w, "internal error", http.StatusInternalServerError)
		case id != "":
			s.opt.Gateway.turnAway(by, id, errScope)
			scopes := append(append([]string{"mcp"}, by.Scopes...), "tools:"+id)
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+strings.Join(scopes, " ")+`"`)
			http.Error(w, errScope.Error()+"; sign in again with the scope tools:"+id, http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// lacksScope returns the tool that a request calls if the user may use it but their token
// may not, and "" otherwise.
func (s *Server) lacksScope(ctx context.Context, by store.Caller, body []byte) (string, error) {
	var req rpc
	if json.Unmarshal(reply.Hold(body).Body, &req) != nil || req.Method != "tools/call" {
		return "", nil
	}
	wide := by
	wide.Token, wide.Scopes = "", slices.DeleteFunc(slices.Clone(by.Scopes), func(scope string) bool { return strings.HasPrefix(scope, "tools:") })
	id := ""
	switch name := req.Params.Name; {
	case name == Execute || name == Describe:
		if placed, err := s.opt.Gateway.validator.placeMeta(name, req.Params.Arguments); err == nil {
			if args, err := store.ReadExecute(placed); err == nil {
				id = args.Tool
			}
		}
	case !isMeta(name):
		found, _, err := s.findNamed(ctx, wide, name, false)
		if err != nil {
			return "", err
		}
		id = found
	}
	if id == "" || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
		return "", nil // not expressible as a scope
	}
	has, err := s.opt.Gateway.Policy.View(ctx, by, store.Scope{})
	if err != nil {
		return "", err
	}
	t, ok := s.opt.Gateway.Catalog.Get(id)
	if !ok || has.Usable(t) {
		return "", nil
	}
	may, err := s.opt.Gateway.Policy.View(ctx, wide, store.Scope{})
	if err != nil || !may.Usable(t) {
		return "", err
	}
	return id, nil
}
