package oauth

import (
	"net/url"
	"strings"
)

// identifier is an issuer or a resource in the form in which two of them are
// compared. The URL standard calls the same what differs in the case of scheme and
// host, in a default port, and in an empty path or "/". The last slash of a path
// counts for nothing, either: the well-known address of both is one. Everything else
// is compared byte for byte.
type identifier struct {
	origin string // scheme, host and port
	path   string // escaped, without its last slash
	query  string
}

// parseIdentifier returns false for what can't be compared safely: paths with dot
// segments, which some programs resolve and others don't, and addresses with a name,
// a password or a fragment.
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

// SameIdentifier reports whether two issuers, or two resources, are one.
func SameIdentifier(a, b string) bool {
	if a == b {
		return a != ""
	}
	x, okX := parseIdentifier(a)
	y, okY := parseIdentifier(b)
	return okX && okY && x == y
}

// covered is [covers], however wide.
func covered(resource, server string) bool {
	_, ok := covers(resource, server)
	return ok
}

// covers reports whether a resource is the server at that address, or wider: its
// origin, or a path above it. Whole segments count, so that /mcp does not cover
// /mcp-other.
func covers(resource, server string) (exact, ok bool) {
	if SameIdentifier(resource, server) {
		return true, true
	}
	r, okR := parseIdentifier(resource)
	s, okS := parseIdentifier(server)
	if !okR || !okS || r.origin != s.origin || r.query != "" {
		return false, false
	}
	if r.path == s.path { // the server's address has a query of its own
		return true, true
	}
	return false, strings.HasPrefix(s.path, r.path+"/")
}
