package company

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"nize/store"
	"nize/store/identity"
)

const (
	// skew is the maximum difference between the clocks of nize and the provider.
	skew = 2 * time.Minute
	// partyLife is how long a discovery document is cached. It is also the longest time
	// that a withdrawn key is still trusted.
	partyLife = time.Hour
	// failedLife is the minimum time between two reads after a failure, so that many people
	// at the page don't cause many requests to the provider.
	failedLife = 5 * time.Second
)

// algorithms are the accepted ones, all asymmetric. Neither none nor a shared secret proves
// who signed.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// party is nize as a client of the provider, with the provider's document.
type party struct {
	identity.Provider
	since    time.Time
	oidc     *oidc.Provider
	verifier *oidc.IDTokenVerifier
	signed   *oidc.IDTokenVerifier // for tokens with an audience other than the client
	oauth    oauth2.Config         // without the redirect address
	document document
	http     *http.Client
	clock    time.Duration // how far the provider's clock was ahead
	hasClock bool
}

// document has the fields of the discovery document that go-oidc does not return.
type document struct {
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
	Algorithms  []string `json:"id_token_signing_alg_values_supported"`
	Challenges  []string `json:"code_challenge_methods_supported"`
	Keys        string   `json:"jwks_uri"`
	IssAnswer   bool     `json:"authorization_response_iss_parameter_supported"`
	Logout      bool     `json:"backchannel_logout_supported"`
}

// current returns the party of the configured provider. It returns ErrNotFound if none is
// set, and a failure if the provider can't be used.
func (c *Company) current(ctx context.Context) (*party, error) {
	p, err := c.Store.GetIdentityProvider(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Now()
	if c.party != nil && c.party.Revision == p.Revision && now.Sub(c.party.since) < partyLife && now.Sub(c.party.since) > -skew {
		return c.party, nil
	}
	if c.failed != nil && c.failedOf == p.Revision && now.Sub(c.failedAt) < failedLife && now.Sub(c.failedAt) >= 0 {
		return nil, c.failed
	}
	return c.discoverLocked(ctx, p)
}

func (c *Company) discoverLocked(ctx context.Context, p identity.Provider) (*party, error) {
	made, err := c.discover(ctx, p)
	if err != nil {
		if ctx.Err() == nil { // otherwise only the browser disconnected
			c.failed, c.failedAt, c.failedOf = err, c.Now(), p.Revision
		}
		return nil, err
	}
	c.party, c.failed = made, nil
	return made, nil
}

// renewed returns a party with the provider's present document. It returns m itself if that
// was read less than [failedLife] ago, or can't be read now.
func (c *Company) renewed(ctx context.Context, m *party) *party {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.party == nil || c.party.Revision != m.Revision || c.Now().Sub(c.party.since) < failedLife {
		return m
	}
	if c.party == m {
		if _, err := c.discoverLocked(ctx, m.Provider); err != nil {
			return m
		}
	}
	return c.party
}

// checkIssuer returns ErrInvalid for an address that can't be an issuer.
func checkIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(issuer, "#"):
		return fmt.Errorf("%w issuer %q: use the address under which the provider publishes /.well-known/openid-configuration", store.ErrInvalid, issuer)
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%w issuer %q: it must begin with https://", store.ErrInvalid, issuer)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// discover reads the provider's discovery document and checks what nize needs of it.
func (c *Company) discover(ctx context.Context, p identity.Provider) (*party, error) {
	m := &party{Provider: p, since: c.Now(), http: c.HTTP(ctx, p.Issuer)}
	dated := *m.http
	dated.Transport = &dateReader{m.http.Transport, m, c.Now}
	asking := oidc.ClientContext(ctx, &dated)
	var err error
	if m.oidc, err = oidc.NewProvider(asking, p.Issuer); err != nil {
		var other *oidc.IssuerMismatchError
		if errors.As(err, &other) {
			return nil, &pageError{http.StatusBadGateway, store.Textf("%s reports another issuer than the one that is set in nize. An admin can see both with nizectl identity oidc test, and set the right one with nizectl identity oidc set.", p.Name), err}
		}
		return nil, unreachable(p, err)
	}
	if err := m.oidc.Claims(&m.document); err != nil {
		return nil, unreachable(p, err)
	}
	ends := m.oidc.Endpoint()
	for _, address := range []string{ends.AuthURL, ends.TokenURL, m.document.Keys} {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
			return nil, unreachable(p, fmt.Errorf("the provider publishes the address %q, which is not an https address", address))
		}
	}
	if m.document.Challenges != nil && !slices.Contains(m.document.Challenges, "S256") {
		return nil, unreachable(p, errors.New("the provider lists code_challenge_methods_supported without S256"))
	}
	usable := algorithms
	if m.document.Algorithms != nil {
		usable = slices.DeleteFunc(slices.Clone(algorithms), func(a string) bool { return !slices.Contains(m.document.Algorithms, a) })
	}
	if len(usable) == 0 {
		return nil, unreachable(p, fmt.Errorf("the provider signs with %s alone, and none of them has a public key", strings.Join(m.document.Algorithms, ", ")))
	}
	keys := oidc.ClientContext(context.WithoutCancel(ctx), m.http)
	late := func() time.Time { return c.Now().Add(-skew) }
	m.verifier = m.oidc.VerifierContext(keys, &oidc.Config{ClientID: p.Client, SupportedSigningAlgs: usable, Now: late})
	m.signed = m.oidc.VerifierContext(keys, &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: usable, Now: late})
	ends.AuthStyle = oauth2.AuthStyleInHeader // the default of OpenID Connect; trying both would use up the code
	if p.Secret.IsZero() || m.document.AuthMethods != nil && !slices.Contains(m.document.AuthMethods, "client_secret_basic") {
		ends.AuthStyle = oauth2.AuthStyleInParams
	}
	m.oauth = oauth2.Config{ClientID: p.Client, ClientSecret: p.Secret.Reveal(), Endpoint: ends, Scopes: scopes(p)}
	return m, nil
}

// scopes returns the scopes of every sign-in and those that an admin added.
func scopes(p identity.Provider) []string {
	list := []string{oidc.ScopeOpenID, "profile", "email"}
	for _, s := range p.Scopes {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// dateReader records the provider's clock from the Date header. The error is at most the
// age of the response, which is negligible compared with [skew].
type dateReader struct {
	http.RoundTripper
	party *party
	now   func() time.Time
}

// RoundTrip implements [http.RoundTripper].
func (d *dateReader) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := d.RoundTripper.RoundTrip(r)
	if err == nil {
		if at, err := http.ParseTime(res.Header.Get("Date")); err == nil {
			d.party.clock, d.party.hasClock = at.Sub(d.now()), true
		}
	}
	return res, err
}

// pageError is a failed sign-in: the text for the page, and the reason for the log.
type pageError struct {
	status int
	text   store.Text
	err    error
}

func (f *pageError) Error() string { return f.err.Error() }
func (f *pageError) Unwrap() error { return f.err }

func unreachable(p identity.Provider, err error) *pageError {
	return &pageError{http.StatusBadGateway, store.Textf("%s can't be reached, so signing in with it doesn't work now. An admin can find the cause with nizectl identity oidc test.", p.Name), err}
}
