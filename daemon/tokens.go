package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/people"
	"nize/store"
)

// tokenLife is how long a token lives unless told otherwise.
const tokenLife = 90 * 24 * time.Hour

func (d *Daemon) listTokens(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	user := ""
	if who := r.URL.Query().Get("user"); who != "" || !by.IsAdmin() {
		var err error
		if user, err = d.directory.Owner(ctx, by, who); err != nil {
			return nil, err
		}
	}
	tokens, err := d.db.ListTokens(ctx, user)
	if err != nil {
		return nil, fmt.Errorf("listing tokens: %w", err)
	}
	names, err := d.directory.Names(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]api.TokenView, len(tokens))
	for i, t := range tokens {
		views[i] = api.TokenView{Token: t, State: t.State(d.now()), UserName: names[t.User]}
	}
	return items(views), nil
}

func (d *Daemon) createToken(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.CreateToken](r)
	if err != nil {
		return nil, err
	}
	return d.mint(ctx, by, req)
}

// mint makes a token. Its secret is in the answer and nowhere else.
func (d *Daemon) mint(ctx context.Context, by store.Caller, req api.CreateToken) (api.CreatedToken, error) {
	var none api.CreatedToken
	if !people.NamePattern.MatchString(req.Name) {
		return none, fmt.Errorf("%w token name %q: use 1 to 63 letters, digits, dots, dashes or underscores", store.ErrInvalid, req.Name)
	}
	switch req.Audience {
	case "":
		req.Audience = store.ForMCP
	case store.ForMCP, store.ForAPI:
	default:
		return none, fmt.Errorf("%w audience %q: use %s or %s", store.ErrInvalid, req.Audience, store.ForMCP, store.ForAPI)
	}
	user, err := d.directory.Owner(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	for _, s := range req.Scopes {
		if p, ok := strings.CutPrefix(s, "tools:"); !ok || p == "" {
			return none, fmt.Errorf("%w scope %q: use tools:PATTERN, such as tools:github:*", store.ErrInvalid, s)
		}
	}
	life := time.Duration(req.Expires)
	if life == 0 {
		life = tokenLife
	}
	if life < 0 || life > 10*365*24*time.Hour {
		return none, fmt.Errorf("%w expiry %s: use up to 3650d", store.ErrInvalid, req.Expires)
	}
	now := d.now()
	secret, made := store.NewToken(now)
	t, err := d.db.CreateToken(ctx, by, store.Token{
		ID: made.ID, Name: req.Name, User: user, Prefix: made.Prefix, Hash: made.Hash, Audience: req.Audience,
		Scopes: req.Scopes, Created: now, Expires: now.Add(life),
	}, req.Overwrite)
	if errors.Is(err, store.ErrExists) {
		return none, fmt.Errorf("token %q %w: replace it with --overwrite, or nizectl tokens rotate %s", req.Name, store.ErrExists, req.Name)
	}
	if err != nil {
		return none, fmt.Errorf("storing token %s: %w", req.Name, err)
	}
	return api.CreatedToken{Token: t, Secret: api.Secret{Secret: secret}}, nil
}

func (d *Daemon) rotateToken(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name := r.PathValue("name")
	req, err := decode[api.RotateToken](r)
	if err != nil {
		return nil, err
	}
	user, err := d.directory.Owner(ctx, by, req.User)
	if err != nil {
		return nil, err
	}
	if req.Grace < 0 || time.Duration(req.Grace) > 30*24*time.Hour {
		return nil, fmt.Errorf("%w grace %s: use up to 30d", store.ErrInvalid, req.Grace)
	}
	secret, made := store.NewToken(d.now())
	t, err := d.db.RotateToken(ctx, by, store.Rotation{User: user, Name: name, Next: made, Grace: time.Duration(req.Grace)})
	if errors.Is(err, store.ErrNotFound) {
		return nil, d.unknownToken(ctx, user, name)
	}
	if err != nil {
		return nil, fmt.Errorf("rotating token %s: %w", name, err)
	}
	return api.CreatedToken{Token: t, Secret: api.Secret{Secret: secret}}, nil
}

func (d *Daemon) unknownToken(ctx context.Context, user, name string) error {
	tokens, err := d.db.ListTokens(ctx, user)
	if err != nil {
		return fmt.Errorf("listing tokens: %w", err)
	}
	var names []string
	for _, t := range tokens {
		if t.State(d.now()) == "active" {
			names = append(names, t.Name)
		}
	}
	return store.Unknown("active token", name, names)
}

func (d *Daemon) revokeToken(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name := r.PathValue("name")
	user, err := d.directory.Owner(ctx, by, r.URL.Query().Get("user"))
	if err != nil {
		return nil, err
	}
	n, err := d.db.RevokeTokens(ctx, by, user, name)
	if err != nil {
		return nil, fmt.Errorf("revoking token %s: %w", name, err)
	}
	if n == 0 {
		return nil, d.unknownToken(ctx, user, name)
	}
	return api.Revoked{Revoked: n}, nil
}

// revokeTokens revokes all tokens of one user; for admins who name nobody,
// everybody's.
func (d *Daemon) revokeTokens(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	if r.URL.Query().Get("all") == "" {
		return nil, fmt.Errorf("%w request: name a token, or say all", store.ErrInvalid)
	}
	user := ""
	if who := r.URL.Query().Get("user"); who != "" || !by.IsAdmin() {
		var err error
		if user, err = d.directory.Owner(ctx, by, who); err != nil {
			return nil, err
		}
	}
	n, err := d.db.RevokeTokens(ctx, by, user, "")
	if err != nil {
		return nil, fmt.Errorf("revoking tokens: %w", err)
	}
	return api.Revoked{Revoked: n}, nil
}
