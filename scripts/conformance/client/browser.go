//go:build conformance

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"nize/mcp/upstream"
	"nize/mcp/upstream/login"
	"nize/mcp/upstream/oauth"
	"nize/store"
	"nize/store/database"
)

const (
	redirect  = "http://127.0.0.1:19560/oauth/callback"
	document  = "https://conformance-test.local/client-metadata.json" // the suite accepts it as a client's own
	maxLogins = 3
)

// browser simulates the person who signs in, and their browser: the suite's service
// redirects back at once.
type browser struct {
	logins *login.Logins
	pool   *upstream.Pool
	http   *http.Client
}

func newBrowser(db *database.DB, log *slog.Logger) *browser {
	b := &browser{http: &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	b.logins = login.New(login.Options{Credentials: db, Company: provider{b.http}, Now: time.Now, Log: log, HTTP: func(context.Context, store.Server) *oauth.Client { return &oauth.Client{HTTP: b.http} }})
	return b
}

// wanted reports whether signing in can resolve an error.
func (b *browser) wanted(err error) bool {
	var call *store.CallError
	return errors.As(err, &call) && call.Code == store.CodeUnavailable && strings.Contains(call.Message.String(), "/nize credentials connect")
}

// logIn signs in, and again if the server requires that at once, because its sign-in
// service may have changed meanwhile.
func (b *browser) logIn(ctx context.Context, db *database.DB) (err error) {
	for range maxLogins {
		if err = b.logInOnce(ctx, db); !b.wanted(err) {
			break
		}
	}
	return err
}

// logInOnce signs in as nized does, with the browser's part done at once.
func (b *browser) logInOnce(ctx context.Context, db *database.DB) error {
	admin := store.Caller{User: "conformance", Name: "conformance", Role: store.Admin, Surface: store.OnCLI}
	cfg, err := db.GetServer(ctx, server)
	if err != nil {
		return err
	}
	if cfg.Headers == nil {
		cfg.Headers = map[string]store.Value{"Authorization": {SecretKey: store.LoginName}}
		if cfg, err = db.PutServer(ctx, admin, cfg, cfg.Revision); err != nil {
			return err
		}
		if _, err := b.pool.Sync(ctx, admin, server); !b.wanted(err) {
			return fmt.Errorf("after the server was set up for logins: %w", err)
		}
	}
	given, err := suiteContext()
	if err != nil {
		return err
	}
	ask := login.Ask{Redirect: redirect, Document: document, ClientID: given.ID, Secret: store.NewSecret(given.Secret)}
	shared := store.ParseHolder("")
	if given.IDToken != "" {
		return b.join(ctx, db, cfg, shared, ask)
	}
	r, err := b.logins.Begin(ctx, admin, cfg, shared, ask)
	if err != nil {
		return err
	}
	resp, err := b.http.Get(r.URL())
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // it is a redirect
	back, err := resp.Location()
	if err != nil {
		return fmt.Errorf("the service answered %s: %w", resp.Status, err)
	}
	if back.Query().Get("state") != r.State {
		return errors.New("another state came back")
	}
	g, err := b.logins.Finish(ctx, admin, cfg, r, back.Query())
	if err != nil {
		return err
	}
	return b.pool.LogIn(ctx, admin, server, shared, func() error { return b.logins.Keep(ctx, admin, cfg, shared, g) })
}

// given is what the suite tells a client about a scenario.
type given struct {
	ID            string `json:"client_id"`
	Secret        string `json:"client_secret"`
	Provider      string `json:"idp_client_id"`
	IDToken       string `json:"idp_id_token"`
	TokenEndpoint string `json:"idp_token_endpoint"`
}

func suiteContext() (g given, err error) {
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" { // most scenarios have none
		err = json.Unmarshal([]byte(text), &g)
	}
	return g, err
}

// provider is the suite's identity provider, at which a person is signed in.
type provider struct{ http *http.Client }

func (p provider) Assertion(ctx context.Context, _ string, want oauth.AssertionRequest) (store.Secret, error) {
	g, err := suiteContext()
	if err != nil {
		return store.Secret{}, err
	}
	exchange := oauth.Exchange{HTTP: p.http, URL: g.TokenEndpoint, Client: g.Provider}
	return exchange.Assertion(ctx, store.NewSecret(g.IDToken), want)
}

// join signs in with the provider, as nized does for a server of a company.
func (b *browser) join(ctx context.Context, db *database.DB, cfg store.Server, h store.Holder, ask login.Ask) error {
	admin := store.Caller{User: "conformance", Name: "conformance", Role: store.Admin, Surface: store.OnCLI}
	cfg.Auth, cfg.Enterprise = store.AuthUserLogin, true
	cfg, err := db.PutServer(ctx, admin, cfg, cfg.Revision)
	if err != nil {
		return err
	}
	if _, err := b.logins.Adopt(ctx, admin, cfg, ask); err != nil {
		return err
	}
	return b.pool.LogIn(ctx, admin, server, h, func() error { return b.logins.Join(ctx, cfg, h, admin.User) })
}
