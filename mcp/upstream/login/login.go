// Package login manages the OAuth logins for MCP servers: it stores them, provides their
// tokens, and refreshes these.
//
// A login is the credential (scope, owner, server, "oauth"): sealed, bound to the server's
// host, and for one issuer. A server's Authorization header refers to it like to a key, so
// that its owner, its description and the visibility of its results follow the rules of all
// credentials. nize's registration at an issuer is the credential (system, server,
// "oauth-client").
//
// # Guarantees
//
//   - A token is refreshed a minute before its expiry, by one goroutine; all others
//     that need it wait for that. Rotated tokens are stored before
//     a caller gets them: if nized is killed at any moment, it has the newest token that it
//     ever used.
//   - A refresh continues if the call that needed it is abandoned, because its response may
//     have invalidated the old token.
//   - After a 401, one refresh and one retry are made. If the server still rejects the login,
//     or the refresh token is rejected, the login is lost: its record stays and says
//     so, and it is not used again. Only [Logins.Keep] and [Logins.Join] replace it.
//   - No function waits for a person.
package login

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/mcp/upstream/oauth"
	"nize/store"
)

// clientName is the name of the credential that holds the registrations of a server.
const clientName = "oauth-client"

// Options configures Logins; all fields but Company are required.
type Options struct {
	Credentials store.Credentials
	// HTTP returns the client for the authorization servers of a server.
	HTTP func(ctx context.Context, server store.Server) *oauth.Client
	// Company is the identity provider that signs people in at servers without a browser;
	// nil if there can't be one.
	Company Company
	Now     func() time.Time
	Log     *slog.Logger
}

// Logins manages the logins at all servers. It is safe for concurrent use.
type Logins struct {
	opt Options

	mu         sync.Mutex
	refreshing map[store.CredentialKey]*refresh
	refused    map[store.CredentialKey]refusal
}

// refresh is one change of a login in progress.
type refresh struct {
	done chan struct{}
	err  error
}

// New returns Logins, which have no background work.
func New(opt Options) *Logins {
	return &Logins{opt: opt, refreshing: map[store.CredentialKey]*refresh{}, refused: map[store.CredentialKey]refusal{}}
}

// Show returns the login of one holder. It returns ErrNotFound if there is none.
func (l *Logins) Show(ctx context.Context, server string, h store.Holder) (oauth.Grant, error) {
	c, err := l.opt.Credentials.GetCredential(ctx, h.Key(server, store.LoginName))
	if err != nil {
		return oauth.Grant{}, fmt.Errorf("reading the login at %s: %w", server, err)
	}
	return oauth.OpenGrant(c.Secret)
}

// errKey means that a holder's credential with the name of a login is an ordinary key,
// which a user has set.
var errKey = errors.New("it is a key, not a login")

// first returns the login of the first of the holders who is logged in.
func (l *Logins) first(ctx context.Context, server store.Server, holders []store.Holder) (h store.Holder, g oauth.Grant, err error) {
	for _, h := range holders {
		c, err := l.opt.Credentials.GetCredential(ctx, h.Key(server.Name, store.LoginName))
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return h, g, fmt.Errorf("reading the login at %s: %w", server.Name, err)
		}
		g, err = oauth.OpenGrant(c.Secret)
		switch {
		case err != nil:
			return h, g, errKey
		case c.Host != hostOf(server):
			return h, g, store.Mark(fmt.Errorf("the login at %s is for host %s, not for %s; log in again: nizectl servers login %s", server.Name, c.Host, hostOf(server), server.Name), store.ErrRefused)
		}
		return h, g, nil
	}
	return h, g, store.ErrNotFound
}

func hostOf(server store.Server) string {
	u, err := url.Parse(server.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// CheckSecret returns an error for a value set by hand that would be parsed as a login:
// users must not choose the authorization server and the token endpoint.
func CheckSecret(key store.CredentialKey, secret store.Secret) error {
	_, err := oauth.OpenGrant(secret)
	if key.Name == clientName || key.Name == store.LoginName && err == nil {
		return store.Errorf("%w credential %s: it is made by signing in: nizectl servers login %s", store.ErrInvalid, key.Name, key.Service)
	}
	return nil
}

// needed returns the error for a call that requires a login.
func needed(server store.Server) error {
	return &oauth.LoginError{Call: store.LoginNeeded(server.Name, server.Auth)}
}

// Token returns the access token of the first of the holders who is logged in, refreshed if
// it is about to expire. If no holder is logged in, or the login is lost, the error is a
// [*oauth.LoginError]. It returns the zero value if the credential is a key that was set by
// hand.
func (l *Logins) Token(ctx context.Context, server store.Server, holders []store.Holder) (store.Secret, error) {
	h, g, err := l.first(ctx, server, holders)
	switch {
	case errors.Is(err, errKey):
		return store.Secret{}, nil
	case errors.Is(err, store.ErrNotFound), err == nil && g.Lost != "":
		return l.joinFirst(ctx, server, holders)
	case err != nil:
		return store.Secret{}, err
	case !g.Due(l.opt.Now()):
		return g.Access, nil
	}
	switch err := l.refresh(ctx, server, h, g.Access); {
	case errors.As(err, new(*oauth.LoginError)):
		return store.Secret{}, err
	case err != nil && !l.opt.Now().Before(g.Expires):
		return store.Secret{}, err
	case err != nil: // the token is valid for another minute, in which the service may recover
		return g.Access, nil
	}
	if g, err = l.Show(ctx, server.Name, h); err != nil {
		return store.Secret{}, err
	}
	return g.Access, nil
}

// Denied handles a 401 or 403 response. again means that the request may be sent once more,
// with the then current token. The error is for the caller; it is nil if the response has
// nothing to do with logins.
func (l *Logins) Denied(ctx context.Context, server store.Server, holders []store.Holder, d oauth.Denial) (again bool, err error) {
	h, g, err := l.first(ctx, server, holders)
	switch {
	case errors.Is(err, store.ErrNotFound) && d.Status == 401 && d.Challenge.Bearer:
		return false, needed(server)
	case errors.Is(err, store.ErrNotFound), errors.Is(err, errKey):
		return false, nil
	case err != nil:
		return false, err
	case d.Status == 403 && d.Challenge.Error == "insufficient_scope":
		return false, l.noteWanted(ctx, server, h, d.Challenge.Scopes)
	case d.Status != 401:
		return false, nil
	case g.Lost != "":
		return false, needed(server)
	case d.Again:
		return false, l.lose(ctx, server, h, g.Access, "the server refuses a fresh token")
	case g.Access.Reveal() != d.Token.Reveal():
		return true, nil // another goroutine was first
	}
	return true, l.refresh(ctx, server, h, g.Access)
}

// noteWanted stores the additional scopes that a server requires, and returns the error
// that says so.
func (l *Logins) noteWanted(ctx context.Context, server store.Server, h store.Holder, scopes []string) error {
	err := l.change(ctx, server, h, func(g *oauth.Grant) bool {
		before := len(g.Wanted)
		for _, s := range scopes {
			if !slices.Contains(g.Scopes, s) && !slices.Contains(g.Wanted, s) && len(g.Wanted) < 100 {
				g.Wanted = append(g.Wanted, s)
			}
		}
		return len(g.Wanted) > before
	})
	if err != nil {
		return err
	}
	text := store.Textf("%s requires more scopes for this (%s): /nize credentials connect %s", server.Name, listed(scopes), server.Name)
	if len(scopes) == 0 {
		text = store.Textf("%s requires more scopes for this and does not say which: /nize credentials connect %s", server.Name, server.Name)
	}
	return &store.CallError{Code: store.CodeUnavailable, Message: text}
}

func listed(scopes []string) string {
	return store.Clip(store.Line(strings.Join(scopes, " ")), 300)
}

// change updates a stored login if do returns true. It waits for a concurrent refresh of
// that login.
func (l *Logins) change(ctx context.Context, server store.Server, h store.Holder, do func(*oauth.Grant) bool) error {
	end, err := l.exclusive(ctx, h.Key(server.Name, store.LoginName))
	if err != nil {
		return err
	}
	defer end(nil)
	g, err := l.Show(ctx, server.Name, h)
	if err != nil || !do(&g) {
		return err
	}
	return l.put(context.WithoutCancel(ctx), store.System, server, h, g)
}

// lose marks a login as lost, unless it has been replaced in the meantime.
func (l *Logins) lose(ctx context.Context, server store.Server, h store.Holder, token store.Secret, why string) error {
	err := l.change(ctx, server, h, func(g *oauth.Grant) bool {
		if g.Access.Reveal() != token.Reveal() || g.Lost != "" {
			return false
		}
		g.Lost = why
		return true
	})
	if err != nil {
		return err
	}
	l.opt.Log.Warn("a login is lost", "server", server.Name, "owner", h.Label(), "why", why)
	return needed(server)
}

// put stores a login.
func (l *Logins) put(ctx context.Context, by store.Caller, server store.Server, h store.Holder, g oauth.Grant) error {
	secret, err := g.Seal()
	if err != nil {
		return fmt.Errorf("encoding the login at %s: %w", server.Name, err)
	}
	c := store.Credential{CredentialKey: h.Key(server.Name, store.LoginName), Host: hostOf(server), Secret: secret, Updated: l.opt.Now()}
	if err := l.opt.Credentials.PutCredential(ctx, by, c); err != nil {
		return fmt.Errorf("storing the login at %s: %w", server.Name, err)
	}
	return nil
}

// exclusive waits until no other goroutine changes the login. end releases it.
func (l *Logins) exclusive(ctx context.Context, key store.CredentialKey) (end func(error), err error) {
	for {
		l.mu.Lock()
		under := l.refreshing[key]
		if under == nil {
			mine := &refresh{done: make(chan struct{})}
			l.refreshing[key] = mine
			l.mu.Unlock()
			return func(err error) {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.refreshing, key)
				mine.err = err
				close(mine.done)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-under.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// refreshTime is the timeout of a refresh, whoever waits for it.
const refreshTime = 30 * time.Second

// refresh renews a login, unless another goroutine has done so: then its token differs from
// the given one.
func (l *Logins) refresh(ctx context.Context, server store.Server, h store.Holder, token store.Secret) error {
	end, err := l.exclusive(ctx, h.Key(server.Name, store.LoginName))
	if err != nil {
		return err
	}
	done := make(chan error, 1) // capacity 1: the waiting caller may have left
	go func() {                 // ends within refreshTime; it must not be abandoned with the call
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTime)
		defer cancel()
		err := l.renew(ctx, server, h, token)
		end(err)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// renew requests fresh tokens and stores them. The caller must hold exclusive.
func (l *Logins) renew(ctx context.Context, server store.Server, h store.Holder, token store.Secret) error {
	g, err := l.Show(ctx, server.Name, h)
	switch {
	case errors.Is(err, store.ErrNotFound): // the user logged out in the meantime
		return needed(server)
	case err != nil:
		return err
	case g.Lost != "":
		return needed(server)
	case g.Access.Reveal() != token.Reveal():
		return nil
	}
	why := "its access token ended, and it has no refresh token"
	switch {
	case g.Person != "":
		fresh, err := l.assert(ctx, server, g.Person)
		if err != nil {
			return err
		}
		return l.put(ctx, store.System, server, h, fresh)
	case !g.Refresh.IsZero():
		fresh, err := l.opt.HTTP(ctx, server).Renew(ctx, g, l.opt.Now())
		if err == nil {
			return l.put(ctx, store.System, server, h, fresh)
		}
		if !oauth.IsCode(err, "invalid_grant") && !oauth.IsCode(err, "invalid_client") && !oauth.IsCode(err, "unauthorized_client") {
			l.opt.Log.Warn("refreshing a login", "server", server.Name, "owner", h.Label(), "err", err)
			return fmt.Errorf("refreshing the login at %s: %w", server.Name, err)
		}
		why = err.Error()
	}
	g.Lost = why
	if err := l.put(ctx, store.System, server, h, g); err != nil {
		return err
	}
	l.opt.Log.Warn("a login is lost", "server", server.Name, "owner", h.Label(), "why", why)
	return needed(server)
}
