package company

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"nize/daemon/signin"
	upstream "nize/mcp/upstream/oauth"
	"nize/store"
	"nize/store/identity"
	"nize/store/oauth"
)

// assertionLife is the longest validity of an assertion. Its id is stored for that long,
// so that it works once.
const assertionLife = time.Hour

// Assert implements [signin.Company] (draft-ietf-oauth-identity-assertion-authz-grant). Every
// claim that says what the grant is for is required and compared byte for byte.
func (c *Company) Assert(ctx context.Context, by store.Caller, raw string, want signin.Audience) (none signin.Asserted, err error) {
	m, err := c.current(ctx)
	if err != nil {
		return none, fmt.Errorf("asking the identity provider: %w", err) // the assertion may still be valid
	}
	id, all, err := c.verifyAssertion(ctx, m, raw, want)
	if err != nil {
		return none, c.rejectAssertion(want.Client, err)
	}
	p, err := readPerson(m.Issuer, id.Subject, all, m.GroupsClaim)
	if err != nil {
		return none, c.rejectAssertion(want.Client, err)
	}
	err = c.Store.UseOnce(ctx, oauth.HashOf("oidc assertion "+m.Issuer+" "+all.text("jti")), id.Expiry.Add(skew))
	if errors.Is(err, store.ErrDecided) {
		return none, c.rejectAssertion(want.Client, errors.New("the assertion was used before"))
	}
	if err != nil {
		return none, err
	}
	p.Partial = true
	u, err := c.Store.SignInPerson(ctx, by, p, c.rules())
	switch {
	case errors.Is(err, identity.ErrNotAllowed), errors.Is(err, identity.ErrDisabled), errors.Is(err, identity.ErrAmbiguous):
		return none, c.rejectAssertion(want.Client, fmt.Errorf("%s: %w", p.Identity(), err))
	case err != nil:
		return none, err
	}
	c.Log.Info("the identity provider let a client in for a person", "user", u.ID, "identity", p.Identity(), "client", want.Client)
	return signin.Asserted{User: u, Identity: p.Identity(), Scope: all.text("scope")}, nil
}

// rejectAssertion logs why an assertion is not accepted. The client gets no reason, so that
// it can't probe which people exist.
func (c *Company) rejectAssertion(client string, err error) error {
	c.Log.Warn("an identity assertion was refused", "client", client, "err", err)
	return fmt.Errorf("%w: %w", signin.ErrAssertion, err)
}

// verifyAssertion verifies an assertion and returns its claims.
func (c *Company) verifyAssertion(ctx context.Context, m *party, raw string, want signin.Audience) (*oidc.IDToken, claims, error) {
	if kind := upstream.HeaderType(raw); kind != upstream.AssertionType {
		return nil, nil, fmt.Errorf("its type is %q, want %q", store.Clip(kind, 60), upstream.AssertionType)
	}
	m, id, err := c.verifySigned(ctx, m, raw, func(m *party) *oidc.IDTokenVerifier { return m.signed })
	if err != nil {
		return nil, nil, err
	}
	var all claims
	if err := id.Claims(&all); err != nil {
		return nil, nil, err
	}
	now, jti := c.Now(), all.text("jti")
	switch {
	case id.Issuer != m.Issuer:
		return nil, nil, fmt.Errorf("it is of the issuer %q", store.Clip(id.Issuer, 200))
	case len(id.Audience) != 1 || id.Audience[0] != want.Issuer:
		return nil, nil, fmt.Errorf("its audience is %q, want %q", id.Audience, want.Issuer)
	case all.text("client_id") != want.Client:
		return nil, nil, fmt.Errorf("it is for the client %q", store.Clip(all.text("client_id"), 200))
	case !want.Resource(all.text("resource")) || all.text("resource") == "":
		return nil, nil, fmt.Errorf("its resource is %q, which is not /mcp of this server", store.Clip(all.text("resource"), 200))
	case id.IssuedAt.IsZero() || id.IssuedAt.After(now.Add(skew)):
		return nil, nil, fmt.Errorf("it was issued at %s; compare the clocks with nizectl identity oidc test", id.IssuedAt.UTC().Format(time.RFC3339))
	case id.Expiry.After(now.Add(assertionLife + skew)):
		return nil, nil, fmt.Errorf("it is valid until %s, more than %s", id.Expiry.UTC().Format(time.RFC3339), assertionLife)
	case jti == "" || len(jti) > identity.MaxSubject:
		return nil, nil, errors.New("it has no id (jti)")
	}
	return id, all, nil
}
