// Package login keeps the OAuth logins with which MCP servers are called: it
// makes them, gives their tokens out, and refreshes those.
//
// A login is the credential (scope, owner, server, "oauth"): sealed, bound to the
// server's host, and for one issuer. A server's header Authorization names it as
// it would name a key, so that whose it is, what is said of it and who may see
// its results follow the rules of all credentials. How nize is registered at an issuer is the
// credential (system, server, "oauth-client").
//
// # What holds
//
//   - A token is refreshed a minute before its end, by one at a time; whoever
//     else needs it waits for that. What was rotated is stored before anybody
//     gets it: nized may be killed at any moment and has the newest token it
//     ever used.
//   - A refresh goes on when the call that needed it is given up: its answer may
//     have ended the old token.
//   - 401 is answered by one refresh and one more try. A login that is refused
//     after that, or whose refresh token is, is lost: it stays as a record that
//     says so, and nothing is asked with it again. Only [Logins.Finish] mends it.
//   - Nothing waits for a person.
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

// clientName is the credential that holds the registrations of a server.
const clientName = "oauth-client"

// Options say what logins work with; all of them are needed.
type Options struct {
	Credentials store.Credentials
	// HTTP is what asks the authorization servers of one server.
	HTTP func(ctx context.Context, server store.Server) *oauth.Client
	Now  func() time.Time
	Log  *slog.Logger
}

// Logins are the logins at all servers. It is safe for concurrent use.
type Logins struct {
	opt Options

	mu         sync.Mutex
	refreshing map[store.CredentialKey]*refresh
}

// refresh is one that is under way.
type refresh struct {
	done chan struct{}
	err  error
}

// New returns logins that do nothing by themselves.
func New(opt Options) *Logins {
	return &Logins{opt: opt, refreshing: map[store.CredentialKey]*refresh{}}
}

// Show is the login of one holder. ErrNotFound if there is none.
func (l *Logins) Show(ctx context.Context, server string, h store.Holder) (oauth.Grant, error) {
	c, err := l.opt.Credentials.GetCredential(ctx, h.Key(server, store.LoginName))
	if err != nil {
		return oauth.Grant{}, fmt.Errorf("reading the login at %s: %w", server, err)
	}
	return oauth.OpenGrant(c.Secret)
}

// errKey says that what a holder has under the name of a login is a key like any
// other, which somebody has set.
var errKey = errors.New("it is a key and no login")

// first is the first of the holders who is logged in.
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

// CheckSecret refuses a value that somebody sets by hand and that would be read as a
// login: who signs people in, and where tokens are asked for, is not for them to say.
func CheckSecret(key store.CredentialKey, secret store.Secret) error {
	_, err := oauth.OpenGrant(secret)
	if key.Name == clientName || key.Name == store.LoginName && err == nil {
		return store.Errorf("%w credential %s: it is made by signing in: nizectl servers login %s", store.ErrInvalid, key.Name, key.Service)
	}
	return nil
}

// needed is what a call is told that needs a login.
func needed(server store.Server) error {
	return &oauth.LoginError{Call: store.LoginNeeded(server.Name, server.Auth)}
}

// Token is the access token of the first of the holders who is logged in,
// refreshed where it is about to end. The error where nobody is, or the login is
// lost, is a [*oauth.LoginError]. It is zero where the credential is a key that
// was set by hand.
func (l *Logins) Token(ctx context.Context, server store.Server, holders []store.Holder) (store.Secret, error) {
	h, g, err := l.first(ctx, server, holders)
	switch {
	case errors.Is(err, errKey):
		return store.Secret{}, nil
	case errors.Is(err, store.ErrNotFound):
		return store.Secret{}, needed(server)
	case err != nil:
		return store.Secret{}, err
	case g.Lost != "":
		return store.Secret{}, needed(server)
	case !g.Due(l.opt.Now()):
		return g.Access, nil
	}
	switch err := l.refresh(ctx, server, h, g.Access); {
	case errors.As(err, new(*oauth.LoginError)):
		return store.Secret{}, err
	case err != nil && !l.opt.Now().Before(g.Expires):
		return store.Secret{}, err
	case err != nil: // there is a minute left for the service to come back
		return g.Access, nil
	}
	if g, err = l.Show(ctx, server.Name, h); err != nil {
		return store.Secret{}, err
	}
	return g.Access, nil
}

// Denied says what follows from an answer 401 or 403: again is that the request
// may be sent once more, with the token of then. The error is for who called;
// nil where it is no matter of logins.
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
		return true, nil // somebody was first
	}
	return true, l.refresh(ctx, server, h, g.Access)
}

// noteWanted keeps which scopes a server wants besides, and is the error that
// tells of it.
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
	text := store.Textf("%s wants more rights for this (%s): /nize credentials connect %s", server.Name, listed(scopes), server.Name)
	if len(scopes) == 0 {
		text = store.Textf("%s wants more rights for this and does not say which: /nize credentials connect %s", server.Name, server.Name)
	}
	return &store.CallError{Code: store.CodeUnavailable, Message: text}
}

func listed(scopes []string) string {
	return store.Clip(store.Line(strings.Join(scopes, " ")), 300)
}

// change changes a login as it is stored, where do says that it did. Of two
// changes at once one is a refresh, which is under way, and waited for.
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

// lose marks a login as lost, unless it is another one by now.
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

// exclusive waits until nobody else changes a login. end lets the next one.
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

// refreshTime bounds a refresh, whoever waits for it.
const refreshTime = 30 * time.Second

// refresh renews a login, unless its token is another than the given one by the
// time that nobody else does: then somebody has.
func (l *Logins) refresh(ctx context.Context, server store.Server, h store.Holder, token store.Secret) error {
	end, err := l.exclusive(ctx, h.Key(server.Name, store.LoginName))
	if err != nil {
		return err
	}
	done := make(chan error, 1) // one: who waits for it may have left
	go func() {                 // ends within refreshTime; it must not be given up with the call
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

// renew asks for fresh tokens and stores them. It needs to be exclusive.
func (l *Logins) renew(ctx context.Context, server store.Server, h store.Holder, token store.Secret) error {
	g, err := l.Show(ctx, server.Name, h)
	switch {
	case errors.Is(err, store.ErrNotFound): // logged out meanwhile
		return needed(server)
	case err != nil:
		return err
	case g.Lost != "":
		return needed(server)
	case g.Access.Reveal() != token.Reveal():
		return nil
	}
	why := "its access token ended, and it has no refresh token"
	if !g.Refresh.IsZero() {
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
