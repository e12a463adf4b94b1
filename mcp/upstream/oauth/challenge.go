package oauth

import "strings"

// Challenge is the information about signing in from a server's 401 or 403 response.
type Challenge struct {
	Bearer   bool   // the server requires a bearer token
	Metadata string // URL of the server's own document, verbatim; "" if not included
	Scopes   []string
	Error    string // insufficient_scope, invalid_token …
}

// ParseChallenge reads WWW-Authenticate headers. Servers write them incorrectly in many
// ways: values without quotes or with wrong ones, unclosed quotes, no commas, no scheme. It
// reads as much as possible. The content is not trusted: the document's URL is only one of
// several that are tried.
func ParseChallenge(headers []string) (c Challenge) {
	for _, h := range headers {
		if len(h) > 8<<10 {
			continue
		}
		one := parseChallenge(h)
		if one.Bearer && (!c.Bearer || c.Metadata == "" && one.Metadata != "") {
			c = one
		}
	}
	return c
}

// parseChallenge reads one header, which may contain several challenges.
func parseChallenge(h string) (c Challenge) {
	const gap, ends = " \t,;", " \t,;=\"'"
	scheme := ""
	for {
		h = strings.TrimLeft(h, gap)
		if h == "" {
			return c
		}
		n := strings.IndexAny(h, ends)
		if n < 0 {
			n = len(h)
		}
		word := h[:n]
		value, ok := strings.CutPrefix(strings.TrimLeft(h[n:], " \t"), "=")
		if !ok { // a scheme, or text without meaning
			if word != "" {
				scheme = strings.ToLower(strings.TrimSuffix(word, ":"))
				c.Bearer = c.Bearer || scheme == "bearer"
			} else {
				n = 1
			}
			h = h[n:]
			continue
		}
		value, h = challengeValue(strings.TrimLeft(value, " \t"))
		key := strings.ToLower(word)
		if scheme != "bearer" && scheme != "" && key != "resource_metadata" {
			continue
		}
		switch {
		case key == "resource_metadata" && c.Metadata == "":
			c.Bearer = true
			if n := strings.IndexAny(value, " \t,;\""); n >= 0 { // from an unclosed quote
				value = value[:n]
			}
			c.Metadata = strings.Trim(value, "<>")
		case key == "scope" && c.Scopes == nil:
			c.Scopes = splitScopes(strings.ReplaceAll(value, ",", " "))
		case key == "error" && c.Error == "":
			c.Error = value
		}
		if !c.Bearer {
			c.Scopes, c.Error = nil, ""
		}
	}
}

// challengeValue returns the value after a "=", and the rest of the header.
func challengeValue(s string) (value, rest string) {
	if s == "" {
		return "", ""
	}
	if quote := s[0]; quote == '"' || quote == '\'' {
		var b strings.Builder
		for i := 1; i < len(s); i++ {
			switch {
			case s[i] == quote:
				return b.String(), s[i+1:]
			case s[i] == '\\' && i+1 < len(s):
				i++
			}
			b.WriteByte(s[i])
		}
		return b.String(), ""
	}
	n := strings.IndexAny(s, " \t,;")
	if n < 0 {
		n = len(s)
	}
	return s[:n], s[n:]
}
