package company

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"nize/daemon/api"
	"nize/store"
	"nize/store/identity"
	"nize/store/printable"
)

// DefaultGroupsClaim is the claim in which most providers list a person's groups.
const DefaultGroupsClaim = "groups"

// Set stores the provider. Unless forced, it tests discovery first.
func (c *Company) Set(ctx context.Context, by store.Caller, req api.SetOIDCRequest) (none api.OIDC, err error) {
	p := identity.Provider{
		Issuer: strings.TrimSpace(req.Issuer), Client: strings.TrimSpace(req.Client), Name: strings.TrimSpace(req.Name),
		Scopes: req.Scopes, GroupsClaim: strings.TrimSpace(req.GroupsClaim), Secret: req.ClientSecret.Secret,
	}
	if err := checkIssuer(p.Issuer); err != nil {
		return none, err
	}
	if p.Client == "" || printable.Escape(p.Client) != p.Client {
		return none, fmt.Errorf("%w client id: give the one that the provider shows for nize", store.ErrInvalid)
	}
	if p.GroupsClaim == "" {
		p.GroupsClaim = DefaultGroupsClaim
	}
	if p.Name == "" {
		u, err := url.Parse(p.Issuer)
		if err != nil {
			return none, err
		}
		p.Name = u.Hostname()
	}
	if len(p.Name) > identity.MaxName || printable.Escape(p.Name) != p.Name {
		return none, fmt.Errorf("%w name: use up to %d printable characters", store.ErrInvalid, identity.MaxName)
	}
	for _, s := range p.Scopes {
		if s == "" || strings.ContainsAny(s, " \t\n\"\\") {
			return none, fmt.Errorf("%w scope %q: give one scope at a time, without spaces", store.ErrInvalid, s)
		}
	}
	if !req.Force {
		if _, err := c.discover(ctx, p); err != nil {
			return none, store.Mark(fmt.Errorf("the provider can't be used: %w; nothing is stored (--force stores it all the same)", err), api.ErrUnavailable)
		}
	}
	if p, err = c.Store.PutIdentityProvider(ctx, by, p); err != nil {
		return none, fmt.Errorf("storing the identity provider: %w", err)
	}
	return c.view(p), nil
}

// Show returns the provider.
func (c *Company) Show(ctx context.Context, _ store.Caller, _ api.Empty) (none api.OIDC, err error) {
	p, err := c.provider(ctx)
	if err != nil {
		return none, err
	}
	return c.view(p), nil
}

func (c *Company) provider(ctx context.Context) (identity.Provider, error) {
	p, err := c.Store.GetIdentityProvider(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return p, fmt.Errorf("an identity provider %w: set one with nizectl identity oidc set --issuer URL --client-id ID", store.ErrNotFound)
	}
	return p, err
}

// Remove removes the provider.
func (c *Company) Remove(ctx context.Context, by store.Caller, _ api.Empty) (none api.Empty, err error) {
	if _, err := c.provider(ctx); err != nil {
		return none, err
	}
	if c.Only() {
		return none, store.Mark(errors.New("browsers sign in with the provider alone; set oidc.required to false first"), store.ErrRefused)
	}
	return none, c.Store.DeleteIdentityProvider(ctx, by)
}

// Test tests everything that a sign-in needs before a person is involved.
func (c *Company) Test(ctx context.Context, _ store.Caller, _ api.Empty) (none api.OIDCTest, err error) {
	p, err := c.provider(ctx)
	if err != nil {
		return none, err
	}
	return c.Look(ctx, p), nil
}

// Provider returns the provider; ok is false if none is set.
func (c *Company) Provider(ctx context.Context) (p identity.Provider, ok bool, err error) {
	p, err = c.Store.GetIdentityProvider(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return p, false, nil
	}
	return p, err == nil, err
}

// Redirect returns the address to which the provider redirects browsers, and whether
// providers accept it: it has to be https, except on loopback.
func (c *Company) Redirect() (address string, secure bool) {
	address = strings.TrimSuffix(c.Base(), "/") + redirectPath
	u, err := url.Parse(address)
	return address, err == nil && (u.Scheme == "https" || loopback(u.Hostname()))
}

// Look tests a provider step by step. It stops at a step that later steps depend on.
func (c *Company) Look(ctx context.Context, p identity.Provider) api.OIDCTest {
	t := api.OIDCTest{OIDC: c.view(p), OK: true}
	step := func(name string, err error, text, cure string) bool {
		s := api.OIDCStep{Name: name, OK: err == nil, Text: text}
		if err != nil {
			s.Text, s.Cure, t.OK = store.Clip(printable.Escape(err.Error()), 500), cure, false
		}
		t.Steps = append(t.Steps, s)
		return err == nil
	}
	m, err := c.discover(ctx, p)
	cure := "compare the issuer with the address at which the provider publishes /.well-known/openid-configuration, then nizectl identity oidc set"
	if refused := errors.Is(err, store.ErrRefused); refused {
		cure = "nizectl config set egress.allow with the provider's host, if it is in a private network"
	}
	if !step("discovery", err, "the provider publishes sign-in, token and key addresses as "+p.Issuer, cure) {
		return t
	}
	n, err := m.keys(ctx)
	step("keys", err, fmt.Sprintf("%d keys that nize can verify with", n), "ask whoever administers the provider why it publishes no signing key at "+m.document.Keys)
	clock := "the provider does not say what time it is"
	err = nil
	if m.hasClock {
		clock = "within " + skew.String() + " of the provider's"
		if apart := m.clock.Abs(); apart > skew {
			err = fmt.Errorf("the clock of nize is %s apart from the provider's", apart.Round(time.Second))
		}
	}
	step("clock", err, clock, "set the clock of this machine, such as with timedatectl set-ntp true")
	err = nil
	if _, secure := c.Redirect(); !secure {
		err = errors.New("people's browsers come back to " + t.RedirectURI + ", which is not https")
	}
	step("redirect address", err, "register "+t.RedirectURI+" at the provider", "set public_url to the https address of nize, then register its /login/oidc at the provider")
	return t
}

// keys returns the number of published keys that can verify a signature.
func (m *party) keys(ctx context.Context) (int, error) {
	set, err := fetchKeys(oidc.ClientContext(ctx, m.http), m.http, m.document.Keys)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, k := range set {
		if slices.Contains([]string{"RSA", "EC", "OKP"}, k.Type) && k.Use != "enc" {
			n++
		}
	}
	if n == 0 {
		return 0, errors.New("the provider publishes no key that signs")
	}
	return n, nil
}
