// Package oauth is the client's half of OAuth 2.1 as MCP servers want it: it
// finds out who signs people in for a server, registers nize there, makes the
// address that a person opens, and turns what comes back into tokens. It keeps
// nothing; what it returns is kept by who asked.
//
//	Probe ─ the challenge of a 401 ─▶ Discover ─▶ Register ─▶ Begin ─▶ the
//	browser of a person ─▶ Finish ─▶ Grant ─▶ Refresh … Revoke
//
// Every address in it comes from the server or from its authorization server,
// which are hostile until shown otherwise: all of them are https or loopback,
// redirects are not followed, bodies end at 64 KiB, and the HTTP client that is
// handed in guards where connections go. A document counts only if it is about the
// very server, or of the very issuer, by its own words; the iss of an answer is
// compared with the issuer byte for byte.
// A grant is for one resource, one issuer and one client: none of the three is
// ever exchanged for another.
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

// MaxBody is all that is read of an answer.
const MaxBody = 64 << 10

// Client asks authorization servers. HTTP must follow no redirect; it bounds
// the time of each request.
type Client struct {
	HTTP *http.Client
}

// Error is the answer of an authorization server that refuses.
type Error struct {
	Code        string // invalid_grant …, of its own choice
	Description string
}

func (e *Error) Error() string {
	text := "the sign-in service answered " + store.Clip(store.Line(e.Code), 60)
	if e.Description != "" {
		text += ": " + store.Clip(store.Line(e.Description), 300)
	}
	return text
}

// otherCodes are what some services call the errors of the standard.
var otherCodes = map[string]string{
	"bad_refresh_token": "invalid_grant", "bad_verification_code": "invalid_grant", "incorrect_client_credentials": "invalid_client", // GitHub
}

// IsCode says whether an authorization server answered with that error code.
func IsCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == code || otherCodes[e.Code] == code)
}

// statusError is an answer without a body that could be read.
type statusError int

func (e statusError) Error() string {
	if e >= 300 && e < 400 {
		return fmt.Sprintf("it answered %d: redirects are not followed", int(e))
	}
	return fmt.Sprintf("it answered %d %s", int(e), http.StatusText(int(e)))
}

// do sends a request and reads the bounded body of its answer.
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

// hideURL is an error of an HTTP client without the address: who reads it was
// told, and it may hold what is secret.
func hideURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return store.NetworkError(err)
}

// getJSON fetches a document. statusError if its status is not 200.
func (c *Client) getJSON(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("%w address %q", store.ErrInvalid, store.Clip(address, 200))
	}
	status, _, body, err := c.do(req)
	switch {
	case err != nil:
		return err
	case status != http.StatusOK:
		return statusError(status)
	}
	switch err := json.Unmarshal(plainJSON(body), into); {
	case err != nil && looksLikePage(body):
		return errors.New("it answered with a web page, which is no such document")
	case err != nil:
		return errors.New("it answered with something that is no such document")
	}
	return nil
}

// plainJSON is a body without the byte order mark that some servers write.
func plainJSON(body []byte) []byte { return bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")) }

// checkAddress refuses an address to which no secret may go, or which no
// browser should open.
func checkAddress(what, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, fmt.Errorf("%w %s %q: it is no address", store.ErrInvalid, what, store.Clip(address, 200))
	case u.User != nil || u.Fragment != "":
		return nil, fmt.Errorf("%w %s %q: it holds a name, a password or a fragment", store.ErrInvalid, what, store.Clip(u.Redacted(), 200))
	case u.Scheme == "https" || u.Scheme == "http" && IsLoopback(u.Hostname()):
		return u, nil
	}
	return nil, fmt.Errorf("%w %s %q: it must be https", store.ErrInvalid, what, store.Clip(address, 200))
}

// IsLoopback says whether a host is this machine by its name.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
