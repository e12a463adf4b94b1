package wire

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"nize/store"
)

// Redirects are not followed: headers are for the registered address, and what
// answers elsewhere is another server. The one exception adds or takes away the
// last slash of the path, as the routers of many servers do.

// redirects says whether an answer is a redirect.
func redirects(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// slashRedirect returns where a redirect leads that changes nothing about the
// address but the last slash of its path. It stays at the origin of from: a server
// behind a proxy that ends TLS may name http in place of https, and is still asked
// over https. The method is kept, so a 303, which wants another one, is not
// followed.
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

// hostOf is the host of an address, without the port if that is the usual one.
func hostOf(u *url.URL, usual string) string {
	if host, port, err := net.SplitHostPort(u.Host); err == nil && port == usual {
		return host
	}
	return u.Host
}

// redirectTarget is where a redirect leads, to be shown: without its user and
// query, which may hold secrets. "" is none.
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
