package oauth

import "strings"

// Challenge is what a server says of signing in with a 401 or 403.
type Challenge struct {
	Bearer   bool   // it wants a bearer token
	Metadata string // where its own document is, as it was written; "" if the server does not say
	Scopes   []string
	Error    string // insufficient_scope, invalid_token …
}

// ParseChallenge reads WWW-Authenticate. Servers get it wrong in every way: values
// without quotes or with the wrong ones, quotes that are not closed, no commas, no
// scheme. What can be read is read. Nothing is trusted because it stands here:
// the address of the document is one place among others to look at.
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

// parseChallenge reads one header, which may hold several challenges.
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
		if !ok { // a scheme, or something that says nothing
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
			if n := strings.IndexAny(value, " \t,;\""); n >= 0 { // of a quote that was not closed
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

// challengeValue is what stands after a "=", and the rest of the header.
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
