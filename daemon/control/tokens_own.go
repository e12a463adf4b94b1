package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/mcp/expose"
	"nize/store"
)

// OwnTokens lets a program with a token for the HTTP API manage its owner's tokens for MCP
// clients. Even if the owner is an admin, it reaches only the owner's own tokens.
type OwnTokens struct{ Tokens *Tokens }

// Create creates a token for an MCP client.
func (o *OwnTokens) Create(ctx context.Context, by store.Caller, req api.CreateOwnTokenRequest) (none api.MintedToken, err error) {
	scopes, err := limitScopes(by.Scopes, req.Scopes)
	if err != nil {
		return none, err
	}
	made, err := o.Tokens.Create(ctx, by, api.CreateTokenRequest{Name: req.Name, Expires: req.Expires, Scopes: scopes, Overwrite: req.Overwrite})
	if errors.Is(err, store.ErrExists) {
		return none, fmt.Errorf("token %q %w: say \"overwrite\": true to replace it", req.Name, store.ErrExists)
	}
	return api.MintedToken{Token: made.Token, Secret: made.Secret}, err
}

// limitScopes returns the scopes of a token created by a token: a subset of the maker's
// tools, or all of them if none are requested. The tools that it lists by name (expose:)
// are its own choice among these, and the maker's if it requests none.
func limitScopes(maker, asked []string) ([]string, error) {
	var patterns, kept []string
	choice := slices.ContainsFunc(asked, expose.IsScope)
	for _, s := range maker {
		if p, ok := strings.CutPrefix(s, "tools:"); ok {
			patterns = append(patterns, p)
		} else if expose.IsScope(s) && !choice {
			kept = append(kept, s)
		}
	}
	asked = append(kept, asked...)
	if len(patterns) == 0 {
		return asked, nil
	}
	if !slices.ContainsFunc(asked, func(s string) bool { return !expose.IsScope(s) }) {
		for _, p := range patterns {
			asked = append(asked, "tools:"+p)
		}
		return asked, nil
	}
	for _, s := range asked {
		if expose.IsScope(s) {
			continue
		}
		p := strings.TrimPrefix(s, "tools:")
		if !slices.Contains(patterns, p) && (strings.Contains(p, "*") || !store.MatchAny(patterns, p)) {
			return nil, store.Mark(fmt.Errorf("scope %q: the token that asks for it has only %s", s, strings.Join(maker, ", ")), store.ErrRefused)
		}
	}
	return asked, nil
}

// List returns the owner's tokens for MCP clients, oldest first, without revoked ones that
// no longer work.
func (o *OwnTokens) List(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[api.TokenView], err error) {
	tokens, err := o.Tokens.Store.ListTokens(ctx, by.User)
	if err != nil {
		return none, fmt.Errorf("listing tokens: %w", err)
	}
	var own []api.TokenView
	for _, t := range tokens {
		if state := t.State(o.Tokens.Now()); t.Audience == store.ForMCP && state != "revoked" {
			own = append(own, api.TokenView{Token: t, State: state, UserName: by.Name})
		}
	}
	return api.Items(own), nil
}

// Revoke revokes one of the owner's tokens.
func (o *OwnTokens) Revoke(ctx context.Context, by store.Caller, req api.RevokeOwnTokenRequest) (none api.Revoked, err error) {
	names, err := o.Tokens.active(ctx, by.User, store.ForMCP)
	if err != nil {
		return none, err
	}
	if !slices.Contains(names, req.Name) {
		return none, store.Unknown("active token", req.Name, names)
	}
	n, err := o.Tokens.Store.RevokeTokens(ctx, by, by.User, req.Name)
	if err != nil {
		return none, fmt.Errorf("revoking token %s: %w", req.Name, err)
	}
	return api.Revoked{Revoked: n}, nil
}

// RevokeAll revokes every token of the owner, including the one that authenticates the
// request.
func (o *OwnTokens) RevokeAll(ctx context.Context, by store.Caller, _ api.Empty) (api.Revoked, error) {
	return o.Tokens.revokeOf(ctx, by, by.User)
}
