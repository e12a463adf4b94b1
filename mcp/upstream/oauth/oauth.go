// Package oauth is the client side of OAuth 2.1 as MCP servers require it.
//
// It finds a server's authorization server, registers nize there, builds the URL that a
// person opens, and exchanges the result for tokens. It stores nothing; the caller stores
// the results.
//
//	Probe ─ the challenge of a 401 ─▶ Discover ─▶ Register ─▶ Begin ─▶ the
//	browser of a person ─▶ Finish ─▶ Grant ─▶ Refresh … Revoke
//
// Every address comes from the server or from its authorization server, which are treated
// as hostile: all addresses must be https or loopback, only documents may redirect and only
// within their origin, bodies are limited to 64 KiB, and the caller's HTTP client controls
// where connections go. A document counts only if it declares itself to be about this
// server, or from this issuer; the iss of a response is compared with the issuer byte for
// byte. A grant is for one resource, one issuer and one client: none of the three is ever
// replaced.
//
// golang.org/x/oauth2 builds the URL, and the SDK's oauthex has the form of a registration.
// Nothing else of them is used, because services that people use do not keep to the letter:
// oauthex refuses their documents and registrations, x/oauth2 their tokens, and it can't
// send the resource with a refresh. Both accept what is refused here (TestOfTheLibraries).
// A company's identity provider keeps to the letter, so x/oauth2 sends what it is asked for
// (assertion.go).
package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"nize/store"
)

// MaxBody is the maximum size of a response that is read.
const MaxBody = 64 << 10

// Client sends requests to authorization servers. HTTP must not follow redirects, and must
// limit the time of each request.
type Client struct {
	HTTP *http.Client
}

// Error is an error response of an authorization server.
type Error struct {
	Code        string // such as invalid_grant, chosen by the server
	Description string
}

func (e *Error) Error() string {
	text := "the sign-in service answered " + store.Clip(store.Line(e.Code), 60)
	if e.Description != "" {
		text += ": " + store.Clip(store.Line(e.Description), 300)
	}
	return text
}

// otherCodes maps some services' own error codes to those of the standard.
var otherCodes = map[string]string{
	"bad_refresh_token": "invalid_grant", "bad_verification_code": "invalid_grant", "incorrect_client_credentials": "invalid_client", // GitHub, HubSpot
	"invalid_refresh_token": "invalid_grant", "token_expired": "invalid_grant", "token_revoked": "invalid_grant", "invalid_code": "invalid_grant", "bad_client_secret": "invalid_client", "invalid_client_id": "invalid_client", // Slack
	"expired_token": "invalid_grant", "refresh_token_expired": "invalid_grant", "refresh_token_revoked": "invalid_grant", "invalid_token": "invalid_grant",
	"interaction_required": "invalid_grant", "login_required": "invalid_grant", "consent_required": "invalid_grant", // OpenID: the user must interact
}

// IsCode reports whether an authorization server responded with that error code, or with a
// synonym. An invalid_request about the refresh token counts as an invalid_grant.
func IsCode(err error, code string) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	got := strings.ToLower(e.Code)
	if about := strings.ToLower(strings.ReplaceAll(e.Description, "_", " ")); got == "invalid_request" && strings.Contains(about, "refresh token") && !strings.Contains(about, "missing") && !strings.Contains(about, "required") {
		got = "invalid_grant"
	}
	return got == code || otherCodes[got] == code
}

// RefusesResource reports whether an authorization server refused the parameter resource,
// as servers do that don't support RFC 8707.
func RefusesResource(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Code == "invalid_target" || strings.Contains(e.Description, "AADSTS9010010") || strings.Contains(e.Description, "AADSTS901002") // Microsoft Entra's
}

// statusError is a response without a readable body.
type statusError int

func (e statusError) Error() string {
	if e >= 300 && e < 400 {
		return fmt.Sprintf("it answered %d: redirects are not followed to another host", int(e))
	}
	return fmt.Sprintf("it answered %d %s", int(e), http.StatusText(int(e)))
}

// do sends a request and reads the size-limited body of its response.
func (c *Client) do(req *http.Request) (status int, header http.Header, body []byte, err error) {
	req.Header.Set("Accept", "application/json")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return 0, nil, nil, hideURL(err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	if err == nil && len(body) > MaxBody {
		err = fmt.Errorf("the answer is over %d KiB", MaxBody>>10)
	}
	if err != nil {
		return 0, nil, nil, fmt.Errorf("reading the answer: %w", err)
	}
	return resp.StatusCode, resp.Header, body, nil
}

// hideURL removes the URL from an HTTP client's error: the reader already has it, and it
// may contain secrets.
func hideURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return store.NetworkError(err)
}

// maxMoves is how many redirects of a document within its origin are followed.
const maxMoves = 3

// getJSON fetches a document. It returns a statusError if the status is not 200. It follows
// redirects within the document's origin, which the same host controls, and no others.
func (c *Client) getJSON(ctx context.Context, address string, into any) error {
	var body []byte
	for moves := 0; ; moves++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return fmt.Errorf("%w address %q", store.ErrInvalid, store.Clip(address, 200))
		}
		status, header, answer, err := c.do(req)
		if err != nil {
			return err
		}
		if body = answer; status == http.StatusOK {
			break
		}
		next, err := req.URL.Parse(header.Get("Location"))
		if status/100 != 3 || header.Get("Location") == "" || moves == maxMoves || err != nil || next.Scheme != req.URL.Scheme || !strings.EqualFold(next.Host, req.URL.Host) || next.User != nil {
			return statusError(status)
		}
		address = next.String()
	}
	switch err := json.Unmarshal(plainJSON(body), into); {
	case err != nil && looksLikePage(body):
		return errors.New("it answered with a web page instead of that document")
	case err != nil:
		return errors.New("it answered with something else than that document")
	}
	return nil
}

// plainJSON returns a body without the byte order mark that some servers write.
func plainJSON(body []byte) []byte { return bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")) }

// checkAddress returns an error for a URL to which no secret may be sent, or which no
// browser should open.
func checkAddress(what, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, fmt.Errorf("%w %s %q: it is not a URL", store.ErrInvalid, what, store.Clip(address, 200))
	case u.User != nil || u.Fragment != "":
		return nil, fmt.Errorf("%w %s %q: it holds a name, a password or a fragment", store.ErrInvalid, what, store.Clip(u.Redacted(), 200))
	case u.Scheme == "https" || u.Scheme == "http" && IsLoopback(u.Hostname()):
		return u, nil
	}
	return nil, fmt.Errorf("%w %s %q: it must be https", store.ErrInvalid, what, store.Clip(address, 200))
}

// IsLoopback reports whether a host is this machine by its name.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
