package wire

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"nize/store"
)

// Redirects are not followed: the headers are for the registered URL, and a different URL
// is a different server. The one exception adds or removes the trailing slash of the path,
// as many servers' routers do.

// redirects reports whether a response is a redirect.
func redirects(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// slashRedirect returns the target of a redirect that changes only the trailing slash of
// the path. The target keeps the origin of from: a server behind a proxy that terminates
// TLS may name http instead of https, and is still called over https. The method is kept,
// so a 303, which requires another method, is not followed.
func slashRedirect(from *url.URL, resp *http.Response) (*url.URL, bool) {
	if from == nil || !redirects(resp) || resp.StatusCode == http.StatusSeeOther {
		return nil, false
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || to.User != nil || to.RawQuery != from.RawQuery {
		return nil, false
	}
	sameHost := to.Scheme == from.Scheme && strings.EqualFold(to.Host, from.Host)
	behindTLS := from.Scheme == "https" && to.Scheme == "http" && strings.EqualFold(hostOf(from, "443"), hostOf(to, "80"))
	was, is := from.EscapedPath(), to.EscapedPath()
	if !sameHost && !behindTLS || was+"/" != is && was != is+"/" {
		return nil, false
	}
	target := *from
	target.Path, target.RawPath = to.Path, to.RawPath
	return &target, true
}

// hostOf returns the host of a URL, without the port if it is the usual one.
func hostOf(u *url.URL, usual string) string {
	if host, port, err := net.SplitHostPort(u.Host); err == nil && port == usual {
		return host
	}
	return u.Host
}

// redirectTarget returns the target of a redirect for display, or "". It omits user and
// query, which may contain secrets.
func redirectTarget(resp *http.Response) string {
	if !redirects(resp) {
		return ""
	}
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return ""
	}
	if resp.Request != nil && resp.Request.URL != nil {
		to = resp.Request.URL.ResolveReference(to)
	}
	return store.Clip((&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path, RawPath: to.RawPath}).String(), 200)
}
