package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

// GrantScope selects the calls that a standing answer applies to.
type GrantScope string

const (
	ForMe       GrantScope = "me"
	ForChannel  GrantScope = "channel"    // everyone's calls in one channel
	ForEveryone GrantScope = "everywhere" // everyone's calls; created by admins only
	// ForConversation is the calls of one conversation that the grant's author may approve.
	ForConversation GrantScope = "conversation"
)

// Grant is a person's standing answer. An approval applies only to this exact pin, and only
// if the arguments match the pattern.
type Grant struct {
	ID      string          `json:"id"`
	User    string          `json:"user"` // its author, and the requester of the calls with the scope "me"
	Scope   GrantScope      `json:"scope,omitempty"`
	Channel string          `json:"channel,omitempty"` // with the scope "channel": [Address.Place]
	Thread  string          `json:"thread,omitempty"`  // with the scope "conversation"
	Tool    string          `json:"tool"`              // server:tool
	Pin     string          `json:"pin"`
	Pattern json.RawMessage `json:"pattern,omitempty"` // see [matchArgs]; none is any arguments
	Exact   string          `json:"exact,omitempty"`   // hex SHA-256 of the only arguments that it applies to; "" is any
	// Repository and Host restrict it to asks that claim to be in this repository on this
	// machine and don't leave it. "" is anywhere.
	Repository string `json:"repository,omitempty"`
	Host       string `json:"host,omitempty"`

	Deny    bool      `json:"deny,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	// Quota limits how many grants User has given, in any scope. The zero value is
	// unlimited. It is not stored.
	Quota Quota `json:"-"`
}

// Matches reports whether the grant applies to calls with these canonical arguments.
func (g Grant) Matches(args json.RawMessage) bool {
	return (g.Exact == "" || g.Exact == SumArgs(args)) && matchArgs(g.Pattern, args)
}

// SumArgs returns the hex SHA-256 of canonical arguments.
func SumArgs(args json.RawMessage) string {
	sum := sha256.Sum256(args)
	return hex.EncodeToString(sum[:])
}

// Owner returns the key under which the grant is stored: the user's id, a channel, a
// conversation or everyone.
func (g Grant) Owner() string {
	switch g.Scope {
	case ForChannel:
		return ChannelGrants(g.Channel)
	case ForEveryone:
		return EveryoneGrants
	case ForConversation:
		return ConversationGrants(g.Thread)
	}
	return g.User
}

// EveryoneGrants owns the grants with the scope "everywhere".
const EveryoneGrants = "everywhere"

// ChannelGrants owns the grants of a channel.
func ChannelGrants(place string) string { return "channel:" + place }

// ConversationGrants owns the grants of a conversation.
func ConversationGrants(thread string) string { return "conversation:" + thread }

// Place returns the name of the address's channel, "" outside one.
func (a Address) Place() string {
	if a.Channel == "" {
		return ""
	}
	return string(a.Surface) + ":" + a.Team + ":" + a.Channel
}

// Grants stores standing answers.
type Grants interface {
	// PutGrant stores g. It returns ErrRefused if g exceeds its Quota; expired grants of
	// the same person are deleted first.
	PutGrant(ctx context.Context, by Caller, g Grant) error
	// ListGrants returns the grants of the given owners ([Grant.Owner]) from one snapshot,
	// or all grants for "".
	ListGrants(ctx context.Context, owners ...string) ([]Grant, error)
	DeleteGrant(ctx context.Context, by Caller, id string) error
}

// maxPattern limits the size of an argument pattern, in bytes.
const maxPattern = 4 << 10

// CheckPattern validates an argument pattern and returns its canonical bytes.
func CheckPattern(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if len(raw) > maxPattern {
		return nil, Errorf("%w argument pattern: more than %d bytes", ErrInvalid, maxPattern)
	}
	c, err := Canonical(raw)
	if err != nil || c[0] != '{' {
		return nil, Errorf(`%w argument pattern: want a JSON object such as {"path":"/srv/docs/*"}`, ErrInvalid)
	}
	if string(c) == "{}" {
		return nil, nil
	}
	return c, nil
}

// matchArgs reports whether arguments match a pattern. An object matches if it has each of
// the pattern's fields with a matching value. A string that ends with * matches every
// string with that prefix, unless a part of the path from there on begins with "..", in any
// URL spelling. All other values must be equal. An empty pattern matches everything;
// unreadable arguments or patterns match nothing.
func matchArgs(pattern, args json.RawMessage) bool {
	if len(pattern) == 0 {
		return true
	}
	want, err := decodeExact(pattern)
	if err != nil {
		return false
	}
	got, err := decodeExact(args)
	return err == nil && fits(want, got)
}

func decodeExact(raw json.RawMessage) (v any, err error) {
	c, err := Canonical(raw)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(c))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

func fits(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range w {
			if have, ok := g[k]; !ok || !fits(v, have) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !fits(w[i], g[i]) {
				return false
			}
		}
		return true
	case string:
		g, ok := got.(string)
		head, open := strings.CutSuffix(w, "*")
		if !ok || !open {
			return ok && g == w
		}
		begun := strings.LastIndexAny(head, `/\`) + 1 // start of the path part in which the pattern ends
		return strings.HasPrefix(g, head) && !climbs(g[begun:])
	}
	return want == got // numbers as written, booleans, null
}

// climbs reports whether any reader could resolve a path to a place above its start. Some
// readers decode URL escapes, once or repeatedly, and some drop characters after the dots
// (";x", a blank). If a path is escaped more deeply than any legitimate one, climbs returns
// true.
func climbs(path string) bool {
	for range 4 {
		for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
			if part != "..." && strings.HasPrefix(strings.TrimLeft(part, " "), "..") { // Go's "./..." matches everything below
				return true
			}
		}
		plain := unescaped(path)
		if plain == path {
			return false
		}
		path = plain
	}
	return true
}

// unescaped decodes the escapes of the form %2E in s; invalid ones are kept.
func unescaped(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b, i = append(b, c...), i+2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}
