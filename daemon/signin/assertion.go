package signin

import (
	"errors"
	"net/http"
	"slices"

	"nize/store"
	"nize/store/oauth"
)

const (
	grantAssertion   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	profileAssertion = "urn:ietf:params:oauth:grant-profile:id-jag"
)

// assert exchanges an identity assertion authorization grant of the company's identity
// provider for an access token. There is no page and no refresh token: the client asks the
// provider for the next grant, and the provider decides each time.
func (s *Server) assert(r *http.Request) (none tokenAnswer, err error) {
	f := r.PostForm
	id := f.Get("client_id")
	if f.Get("assertion") == "" {
		return none, &oauthError{"invalid_request", "assertion is needed"}
	}
	// By address: anyone may send an assertion in the name of a client.
	if !s.assertions.Take(oauth.Network(Address(r)), s.Now()) {
		return none, errTooMany
	}
	one, err := s.clients.find(r.Context(), id, Address(r))
	if err != nil {
		return none, err
	}
	redirect := ""
	if len(one.Redirects) > 0 {
		redirect = one.Redirects[0]
	}
	if !s.clients.admits(one, redirect) {
		return none, &oauthError{"unauthorized_client", "the setting oauth.clients does not admit this client"}
	}
	got, err := s.Company.Assert(r.Context(), Anybody(r), f.Get("assertion"), Audience{
		Issuer: s.Origin(r), Client: id, Resource: func(resource string) bool { return s.ours(r, resource) },
	})
	if errors.Is(err, ErrAssertion) {
		return none, &oauthError{"invalid_grant", "the assertion is not valid for this client and server; an admin finds the reason in the log of nized"}
	}
	if err != nil {
		return none, err
	}
	if !s.exchanges.Take(id, s.Now()) {
		return none, errTooMany
	}
	if one.Host == "" {
		if err := s.Store.UseClient(r.Context(), id); err != nil {
			return none, err
		}
	}
	scopes := scopesOf(got.Scope)
	if asked := scopesOf(f.Get("scope")); len(asked) > 0 {
		for _, scope := range asked {
			if len(scopes) > 0 && !slices.Contains(scopes, scope) {
				return none, &oauthError{"invalid_scope", "the assertion grants less than is asked for"}
			}
		}
		scopes = asked
	}
	if err := s.checkScopes(scopes); err != nil {
		return none, &oauthError{"invalid_scope", err.Error()}
	}
	access, made := store.NewToken(s.Now())
	now, tokenID := s.Now(), store.NewID(s.Now())
	by := store.Caller{User: got.User.ID, Name: got.User.Name, Surface: store.OnHTTP, Address: Address(r)}
	_, err = s.Tokens.CreateToken(r.Context(), by, store.Token{
		ID: tokenID, Name: "oauth:" + slug(oauth.Request{Host: one.Host, Name: one.Name}) + ":" + tokenID, User: got.User.ID, Prefix: "nize_", Hash: made.Hash,
		Audience: store.ForMCP, Scopes: scopes, Created: now, Expires: now.Add(accessLife(s.Config)),
		SignedIn: &store.SignedIn{Client: id, Address: Address(r), Identity: got.Identity},
	}, false)
	if err != nil {
		return none, err
	}
	return s.answer(access, "", scopes), nil
}
