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

// GrantScope is for whose calls a standing answer holds.
type GrantScope string

const (
	ForMe       GrantScope = "me"
	ForChannel  GrantScope = "channel"    // everybody's calls in one channel
	ForEveryone GrantScope = "everywhere" // everybody's calls; made by admins only
	// ForConversation is the calls of one conversation that who gave it may approve.
	ForConversation GrantScope = "conversation"
)

// Grant is a person's standing answer. A yes holds for this exact
// pin only, and where the arguments fit the pattern.
type Grant struct {
	ID      string          `json:"id"`
	User    string          `json:"user"` // who gave it, and whose calls it is for with the scope "me"
	Scope   GrantScope      `json:"scope,omitempty"`
	Channel string          `json:"channel,omitempty"` // with the scope "channel": [Address.Place]
	Thread  string          `json:"thread,omitempty"`  // with the scope "conversation"
	Tool    string          `json:"tool"`              // server:tool
	Pin     string          `json:"pin"`
	Pattern json.RawMessage `json:"pattern,omitempty"` // see [matchArgs]; none is any arguments
	Exact   string          `json:"exact,omitempty"`   // hex SHA-256 of the only arguments that it is for; "" is any
	// Repository and Host are where alone it holds: for asks that say that they are in
	// this repository on this machine, and don't leave it. "" is anywhere.
	Repository string `json:"repository,omitempty"`
	Host       string `json:"host,omitempty"`

	Deny    bool      `json:"deny,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	// Quota is what storing it is held to: how many User has given, whoever they are
	// for. The zero value is no bound. It is not stored.
	Quota Quota `json:"-"`
}

// Matches says whether the grant is for calls with these canonical arguments.
func (g Grant) Matches(args json.RawMessage) bool {
	return (g.Exact == "" || g.Exact == SumArgs(args)) && matchArgs(g.Pattern, args)
}

// SumArgs is the hex SHA-256 of canonical arguments.
func SumArgs(args json.RawMessage) string {
	sum := sha256.Sum256(args)
	return hex.EncodeToString(sum[:])
}

// Owner is under what the grant is kept: the user's id, a channel, a conversation or
// everybody.
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

// Place names the channel of an address, "" outside one.
func (a Address) Place() string {
	if a.Channel == "" {
		return ""
	}
	return string(a.Surface) + ":" + a.Team + ":" + a.Channel
}

// Grants keeps what is always allowed or always denied.
type Grants interface {
	// PutGrant stores g. It returns ErrRefused if g is one more than its Quota; what
	// has expired of the same person's is deleted first.
	PutGrant(ctx context.Context, by Caller, g Grant) error
	// ListGrants returns the grants of the owners given ([Grant.Owner]) in one
	// look; of all for "".
	ListGrants(ctx context.Context, owners ...string) ([]Grant, error)
	DeleteGrant(ctx context.Context, by Caller, id string) error
}

// maxPattern bounds an argument pattern, in bytes.
const maxPattern = 4 << 10

// CheckPattern returns an argument pattern in its canonical bytes.
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

// matchArgs says whether arguments fit a pattern: an object fits if each of the
// pattern's fields is there and fits; a text that ends with * fits what begins
// so, unless ".." begins a part of the path from there on, in any spelling of
// URLs; all else must be the same. No pattern fits everything; what can't be read
// fits nothing.
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
		begun := strings.LastIndexAny(head, `/\`) + 1 // of the part in which the pattern ends
		return strings.HasPrefix(g, head) && !climbs(g[begun:])
	}
	return want == got // numbers as they were written, booleans, null
}

// climbs says whether a path may leave where it began, for any reader of it:
// some decode what is escaped in a URL, once or again and again, and some drop
// what follows the dots (";x", a blank). What is escaped deeper than anybody needs
// counts as one that does.
func climbs(path string) bool {
	for range 4 {
		for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
			if part != "..." && strings.HasPrefix(strings.TrimLeft(part, " "), "..") { // Go's "./..." is everything below
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

// unescaped is a text without its escapes of the form %2E; what only looks like
// one stays.
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
