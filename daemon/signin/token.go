package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
	"time"

	"nize/store"
	"nize/store/oauth"
)

const (
	refreshPrefix = "nizr_"
	familyBytes   = 16 // the part of a refresh token that its family shares
	secretBytes   = 32
)

var refreshText = base32.StdEncoding.WithPadding(base32.NoPadding)

// newRefresh returns a refresh token: the part that its family shares, which is also random
// and secret, 32 random bytes, and a checksum. The first part distinguishes an old token
// from one that never existed, without storing every old one.
func newRefresh(family []byte) (text string, shared []byte) {
	b := make([]byte, familyBytes+secretBytes, familyBytes+secretBytes+4)
	rand.Read(b) // never fails since Go 1.24
	if family != nil {
		copy(b, family)
	}
	shared = slices.Clone(b[:familyBytes])
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return refreshPrefix + strings.ToLower(refreshText.EncodeToString(b)), shared
}

// readRefresh returns the part of a refresh token that its family shares.
func readRefresh(text string) (family []byte, ok bool) {
	body, ok := strings.CutPrefix(text, refreshPrefix)
	b, err := refreshText.DecodeString(strings.ToUpper(body))
	if !ok || err != nil || len(b) != familyBytes+secretBytes+4 || body != strings.ToLower(refreshText.EncodeToString(b)) ||
		binary.BigEndian.Uint32(b[len(b)-4:]) != crc32.ChecksumIEEE(b[:len(b)-4]) {
		return nil, false
	}
	return b[:familyBytes], true
}

// pair creates an access token and a refresh token of a family.
func (s *Server) pair(family []byte) (p oauth.Pair, access store.Secret, refresh string, shared []byte) {
	access, made := store.NewToken(s.Now())
	refresh, shared = newRefresh(family)
	p = oauth.Pair{Access: made.Hash, Refresh: oauth.HashOf(refresh)}
	return p, access, refresh, shared
}

func accessLife(c store.Config) time.Duration {
	return store.GetSpan(c, "", "oauth.access_expiry")
}

// token serves /oauth/token.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Pragma", "no-cache")
	if err := readForm(w, r); err != nil {
		s.fail(w, err)
		return
	}
	if r.PostForm.Get("client_id") == "" {
		s.fail(w, &oauthError{"invalid_client", "client_id is missing"})
		return
	}
	if r.PostForm.Has("resource") && !s.ours(r, r.PostForm.Get("resource")) {
		s.fail(w, &oauthError{"invalid_target", "resource is not this server's /mcp"})
		return
	}
	answer, err := s.exchange(r)
	dead := (*oauthError)(nil)
	switch {
	// An invalid grant gets its error however often it is retried: a client that got "slow
	// down" instead would retry forever.
	case errors.As(err, &dead):
		s.fail(w, dead)
	case errors.Is(err, errTooMany):
		w.Header().Set("Retry-After", "60")
		s.fail(w, &oauthError{"temporarily_unavailable", "too many requests of this client; try again in a minute"})
	case err != nil:
		s.internal(w, "giving a token", err)
	default:
		writeJSON(w, http.StatusOK, answer)
	}
}

var errTooMany = errors.New("too many")

type tokenAnswer struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"`
	Refresh string `json:"refresh_token,omitempty"`
	Scope   string `json:"scope"`
}

func (s *Server) exchange(r *http.Request) (tokenAnswer, error) {
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		return s.redeem(r)
	case "refresh_token":
		return s.refresh(r)
	case grantAssertion:
		if name, _ := s.company(r.Context()); name != "" {
			return s.assert(r)
		}
	}
	return tokenAnswer{}, &oauthError{"unsupported_grant_type", "use a grant type that the metadata lists"}
}

func (s *Server) answer(access store.Secret, refresh string, scopes []string) tokenAnswer {
	return tokenAnswer{access.Reveal(), "Bearer", int(accessLife(s.Config).Seconds()), refresh, scopeText(scopes)}
}

func (s *Server) redeem(r *http.Request) (none tokenAnswer, err error) {
	f := r.PostForm
	if f.Get("code") == "" || f.Get("code_verifier") == "" || f.Get("redirect_uri") == "" {
		return none, &oauthError{"invalid_request", "code, code_verifier and redirect_uri are needed"}
	}
	code := oauth.HashOf(f.Get("code"))
	asked, err := s.Store.FindGrant(r.Context(), code)
	if err == nil && !asked.Spent && !s.exchanges.Take(f.Get("client_id"), s.Now()) {
		return none, errTooMany
	}
	name := ""
	if err == nil {
		name = "oauth:" + slug(asked)
	}
	p, access, refresh, shared := s.pair(nil)
	unused := oauth.Hash{}
	rand.Read(unused[:]) // no secret has this hash: the token exists only for its family and is never sent
	tok := store.Token{ID: store.NewID(s.Now()), Name: name, Prefix: "nize_", Hash: unused, Audience: store.ForMCP}
	tok, err = s.Store.Redeem(r.Context(), oauth.Redeeming{Code: code, Family: oauth.HashOf(string(shared)), Token: tok, Next: p, Life: accessLife(s.Config), Address: Address(r), Check: func(o oauth.Request) error {
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		if o.Client != f.Get("client_id") || o.Redirect != f.Get("redirect_uri") ||
			!oauth.HashOf(base64.RawURLEncoding.EncodeToString(sum[:])).Is(oauth.HashOf(o.Challenge)) {
			return store.ErrInvalid
		}
		return nil
	}})
	switch {
	case errors.Is(err, store.ErrDecided):
		s.wake()
		fallthrough
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrExpired), errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrRefused):
		return none, &oauthError{"invalid_grant", "the code is not good any more, or not for this client, redirect_uri and code_verifier"}
	case err != nil:
		return none, err
	}
	return s.answer(access, refresh, tok.Scopes), nil
}

func (s *Server) refresh(r *http.Request) (none tokenAnswer, err error) {
	f := r.PostForm
	gone := &oauthError{"invalid_grant", "the refresh token is not good any more; sign in again"}
	if f.Get("refresh_token") == "" {
		return none, &oauthError{"invalid_request", "refresh_token is needed"}
	}
	family, ok := readRefresh(f.Get("refresh_token"))
	if !ok {
		return none, gone
	}
	p, access, refresh, _ := s.pair(family)
	tok, err := s.Store.Refresh(r.Context(), oauth.Refreshing{
		Family: oauth.HashOf(string(family)), Given: oauth.HashOf(f.Get("refresh_token")), Client: f.Get("client_id"), Next: p, Life: accessLife(s.Config),
		Grace: store.GetSpan(s.Config, "", "oauth.refresh_grace"), Admit: func() bool { return s.exchanges.Take(f.Get("client_id"), s.Now()) }, Address: Address(r),
	})
	switch {
	case errors.Is(err, store.ErrDecided):
		s.wake()
		return none, gone
	case errors.Is(err, store.ErrRefused):
		return none, errTooMany
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrExpired):
		return none, gone
	case err != nil:
		return none, err
	}
	if asked := f.Get("scope"); asked != "" && !slices.Equal(scopesOf(asked), tok.Scopes) && asked != scopeText(tok.Scopes) {
		for _, one := range scopesOf(asked) {
			if !slices.Contains(tok.Scopes, one) {
				return none, &oauthError{"invalid_scope", "only what was signed in for can be asked for again"}
			}
		}
	}
	return s.answer(access, refresh, tok.Scopes), nil
}

// revoke serves /oauth/revoke. It returns success for an unknown token, too.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	if err := readForm(w, r); err != nil {
		s.fail(w, err)
		return
	}
	text := r.PostForm.Get("token")
	if text == "" || r.PostForm.Get("client_id") == "" {
		s.fail(w, &oauthError{"invalid_request", "token and client_id are needed"})
		return
	}
	family, access := oauth.Hash{}, oauth.Hash{}
	if shared, ok := readRefresh(text); ok {
		family = oauth.HashOf(string(shared))
	} else if hash, err := store.ReadToken(text); err == nil {
		access = hash
	}
	err := s.Store.EndFamily(r.Context(), Anybody(r), family, access, r.PostForm.Get("client_id"))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		s.internal(w, "revoking a token", err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}

// readForm reads a form and rejects repeated fields.
func readForm(w http.ResponseWriter, r *http.Request) *oauthError {
	r.Body = http.MaxBytesReader(w, r.Body, documentBytes)
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") || r.ParseForm() != nil {
		return &oauthError{"invalid_request", "send application/x-www-form-urlencoded"}
	}
	for name, values := range r.PostForm {
		if len(values) > 1 {
			return &oauthError{"invalid_request", "a field is there twice: " + store.Clip(name, 40)}
		}
	}
	return nil
}

// slug returns a client's name in lists of tokens: the host that vouches for it, which
// contains a dot, or letters and digits of a name it chose itself, which doesn't.
func slug(r oauth.Request) string {
	if r.Host != "" {
		return r.Host
	}
	var b strings.Builder
	for _, c := range strings.ToLower(r.Name) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	text := strings.Trim(b.String(), "-")
	if len(text) > 40 {
		text = text[:40]
	}
	if text == "" {
		return "client"
	}
	return text
}
