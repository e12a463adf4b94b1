package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/mcp/expose"
	"nize/store"
	"nize/store/oauth"
)

// tokenLife is the default lifetime of a token.
const tokenLife = 90 * 24 * time.Hour

// Tokens implements the operations on the bearer tokens of MCP clients and of the HTTP API.
type Tokens struct {
	Store     store.Tokens
	Pages     *people.Tokens
	Directory *people.Directory
	Config    store.Config
	Now       func() time.Time
	// CheckPattern is as in [Agents].
	CheckPattern func(string) error
}

// Mount registers the operations.
func (t *Tokens) Mount(m *mux.Mux) {
	mux.Handle(m, api.RevokeTokens, t.RevokeAll)
	mux.Handle(m, api.ListTokens, t.List)
	mux.Handle(m, api.CreateToken, t.Create)
	mux.Handle(m, api.RevokeToken, t.Revoke)
	mux.Handle(m, api.RotateToken, t.Rotate)
}

func (t *Tokens) quota() store.Quota {
	return store.QuotaOf(t.Config, "limits.user.tokens", "limits.tokens")
}

// owner returns the user whose tokens are meant; if an admin names no one, it returns ""
// for everyone.
func (t *Tokens) owner(ctx context.Context, by store.Caller, who string) (string, error) {
	if who == "" && by.IsAdmin() {
		return "", nil
	}
	return t.Directory.Owner(ctx, by, who)
}

// List returns the tokens of a user, or all that the caller may see.
func (t *Tokens) List(ctx context.Context, by store.Caller, req api.ListTokensRequest) (none api.TokenPage, err error) {
	user, err := t.owner(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	// Browsers have a list of their own.
	return t.Pages.Page(ctx, oauth.TokenQuery{User: user, Kinds: []string{oauth.Made, oauth.SignedInClient}}, req)
}

// Create creates a token. Only its response contains the secret.
func (t *Tokens) Create(ctx context.Context, by store.Caller, req api.CreateTokenRequest) (none api.CreatedToken, err error) {
	if !people.NamePattern.MatchString(req.Name) {
		return none, store.Errorf("%w token name %q: use 1 to 63 letters, digits, dots, dashes or underscores", store.ErrInvalid, req.Name)
	}
	switch req.Audience {
	case "":
		req.Audience = store.ForMCP
	case store.ForMCP, store.ForAPI:
	case store.ForSCIM:
		if !by.IsAdmin() || by.Token != "" {
			return none, store.Mark(fmt.Errorf("only an admin at the control socket makes a token for a directory"), store.ErrRefused)
		}
	default:
		return none, fmt.Errorf("%w audience %q: use %s, %s or %s", store.ErrInvalid, req.Audience, store.ForMCP, store.ForAPI, store.ForSCIM)
	}
	user, err := t.Directory.Owner(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	for _, s := range req.Scopes {
		_, pattern, _ := strings.Cut(s, ":")
		if err := t.CheckPattern(pattern); err != nil {
			return none, err
		}
		if expose.IsScope(s) {
			if err := expose.Check(s, t.CheckPattern); err != nil {
				return none, err
			}
			continue
		}
		if p, ok := strings.CutPrefix(s, "tools:"); !ok || p == "" {
			return none, fmt.Errorf("%w scope %q: use tools:PATTERN, such as tools:github:*, or expose:MODE", store.ErrInvalid, s)
		}
	}
	life := time.Duration(req.Expires)
	if life == 0 {
		life = tokenLife
	}
	if life < 0 || life > 10*365*24*time.Hour {
		return none, fmt.Errorf("%w expiry %s: use up to 3650d", store.ErrInvalid, req.Expires)
	}
	now := t.Now()
	secret, made := store.NewToken(now)
	token, err := t.Store.CreateTokenWithin(ctx, by, store.Token{
		ID: made.ID, Name: req.Name, User: user, Prefix: made.Prefix, Hash: made.Hash, Audience: req.Audience,
		Scopes: req.Scopes, Created: now, Expires: now.Add(life),
	}, req.Overwrite, t.quota())
	if errors.Is(err, store.ErrExists) {
		return none, fmt.Errorf("token %q %w: replace it with --overwrite, or nizectl tokens rotate %s", req.Name, store.ErrExists, req.Name)
	}
	if err != nil {
		return none, fmt.Errorf("storing token %s: %w", req.Name, err)
	}
	return api.CreatedToken{Token: token, Secret: api.Secret{Secret: secret}}, nil
}

// Rotate replaces a token with a new one of the same name and scopes.
func (t *Tokens) Rotate(ctx context.Context, by store.Caller, req api.RotateTokenRequest) (none api.CreatedToken, err error) {
	user, err := t.Directory.Owner(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	if req.Grace < 0 || time.Duration(req.Grace) > 30*24*time.Hour {
		return none, fmt.Errorf("%w grace %s: use up to 30d", store.ErrInvalid, req.Grace)
	}
	secret, made := store.NewToken(t.Now())
	token, err := t.Store.RotateToken(ctx, by, store.Rotation{User: user, Name: req.Name, Next: made, Grace: time.Duration(req.Grace), Quota: t.quota()})
	if errors.Is(err, store.ErrNotFound) {
		return none, t.unknown(ctx, user, req.Name)
	}
	if err != nil {
		return none, fmt.Errorf("rotating token %s: %w", req.Name, err)
	}
	return api.CreatedToken{Token: token, Secret: api.Secret{Secret: secret}}, nil
}

// active returns the names of a user's active tokens, for an audience or for any ("").
func (t *Tokens) active(ctx context.Context, user, audience string) ([]string, error) {
	tokens, err := t.Store.ListTokens(ctx, user)
	if err != nil {
		return nil, fmt.Errorf("listing tokens: %w", err)
	}
	var names []string
	for _, token := range tokens {
		if token.State(t.Now()) == "active" && (audience == "" || token.Audience == audience) {
			names = append(names, token.Name)
		}
	}
	return names, nil
}

func (t *Tokens) unknown(ctx context.Context, user, name string) error {
	names, err := t.active(ctx, user, "")
	if err != nil {
		return err
	}
	return store.Unknown("active token", name, names)
}

// Revoke revokes one token.
func (t *Tokens) Revoke(ctx context.Context, by store.Caller, req api.RevokeTokenRequest) (none api.Revoked, err error) {
	user, err := t.Directory.Owner(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	n, err := t.Store.RevokeTokens(ctx, by, user, req.Name)
	if err != nil {
		return none, fmt.Errorf("revoking token %s: %w", req.Name, err)
	}
	if n == 0 {
		return none, t.unknown(ctx, user, req.Name)
	}
	return api.Revoked{Revoked: n}, nil
}

// RevokeAll revokes all tokens of one user; if an admin names no one, everyone's.
func (t *Tokens) RevokeAll(ctx context.Context, by store.Caller, req api.RevokeTokensRequest) (none api.Revoked, err error) {
	if !req.All {
		return none, fmt.Errorf("%w request: name a token, or say all", store.ErrInvalid)
	}
	user, err := t.owner(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	return t.revokeOf(ctx, by, user)
}

func (t *Tokens) revokeOf(ctx context.Context, by store.Caller, user string) (api.Revoked, error) {
	n, err := t.Store.RevokeTokens(ctx, by, user, "")
	if err != nil {
		return api.Revoked{}, fmt.Errorf("revoking tokens: %w", err)
	}
	return api.Revoked{Revoked: n}, nil
}
