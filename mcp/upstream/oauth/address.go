package oauth

import (
	"net/url"
	"strings"
)

// identifier is an issuer or a resource in a form that can be compared. Under the URL
// standard, addresses are equal if they differ only in the case of scheme and host, in a
// default port, or in an empty path versus "/". A trailing slash of the path is also
// ignored, because both have the same well-known URL. Everything else is compared byte for
// byte.
type identifier struct {
	origin string // scheme, host and port
	path   string // escaped, without a trailing slash
	query  string
}

// parseIdentifier returns false for URLs that can't be compared safely: those with dot
// segments in the path, which some programs resolve and others don't, and those with a user
// name, a password or a fragment.
func parseIdentifier(address string) (id identifier, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || u.Host == "" || u.User != nil || strings.Contains(address, "#") || strings.ContainsAny(address, "\\ \t\r\n") {
		return id, false
	}
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	if port == "443" && scheme == "https" || port == "80" && scheme == "http" {
		port = ""
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" {
		host += ":" + port
	}
	id = identifier{origin: scheme + "://" + host, path: strings.TrimSuffix(u.EscapedPath(), "/"), query: u.RawQuery}
	for segment := range strings.SplitSeq(strings.ToLower(id.path), "/") {
		if dots := strings.ReplaceAll(segment, "%2e", "."); dots == "." || dots == ".." {
			return id, false
		}
	}
	return id, scheme != ""
}

// SameIdentifier reports whether two issuers, or two resources, are the same.
func SameIdentifier(a, b string) bool {
	if a == b {
		return a != ""
	}
	x, okX := parseIdentifier(a)
	y, okY := parseIdentifier(b)
	return okX && okY && x == y
}

// covered reports whether the resource covers the server, exactly or as a wider one.
func covered(resource, server string) bool {
	_, ok := covers(resource, server)
	return ok
}

// covers reports whether a resource is the server at that URL, or a wider one: its origin,
// or a path above it. Whole segments are compared, so that /mcp does not cover /mcp-other.
func covers(resource, server string) (exact, ok bool) {
	if SameIdentifier(resource, server) {
		return true, true
	}
	r, okR := parseIdentifier(resource)
	s, okS := parseIdentifier(server)
	if !okR || !okS || r.origin != s.origin || r.query != "" {
		return false, false
	}
	if r.path == s.path { // the server's URL has its own query
		return true, true
	}
	return false, strings.HasPrefix(s.path, r.path+"/")
}
