// Package oauth is the words of signing in: the clients that people sign in to,
// the requests of browsers to let them, and the families of tokens that come of
// it. A family is a [store.Token] whose SignedIn is set: it is listed, revoked,
// and moved to another user as every token is; what is kept besides are the
// hashes of its access and refresh tokens.
//
// No secret is kept, only the SHA-256 of it.
package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/netip"
	"strings"
	"time"

	"nize/store"
)

// How long things live.
const (
	RequestLife = 10 * time.Minute // of a request, from its beginning to its code
	CodeLife    = time.Minute      // of an authorization code
	LoginLife   = 5 * time.Minute  // of the secret that nizectl login prints
	FamilyIdle  = 30 * 24 * time.Hour
	FamilyLife  = 90 * 24 * time.Hour
	UnusedLife  = 24 * time.Hour // of a client that registered and never signed anybody in

	NumberTries = 3    // of the number that a person types
	MaxClients  = 1000 // that registered
	MaxRequests = 1000 // that are open and that nobody confirmed
	MaxPerHost  = 20   // of them, those of one network
	MaxPerUser  = 3    // that one person confirmed and that are open; besides, links of nizectl login for one person
	MaxPairs    = 64   // of a family: more than hosts refresh at once within a grace time
)

// Hash is what is kept of a secret.
type Hash [sha256.Size]byte

// HashOf hashes a secret.
func HashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// Is compares in constant time. The zero Hash is nothing's.
func (h Hash) Is(o Hash) bool {
	return h != Hash{} && subtle.ConstantTimeCompare(h[:], o[:]) == 1
}

// String is h in hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText implements [encoding.TextMarshaler].
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *Hash) UnmarshalText(b []byte) error {
	if len(b) != hex.EncodedLen(len(h)) {
		return hex.ErrLength
	}
	_, err := hex.Decode(h[:], b)
	return err
}

// Client is one that registered itself.
type Client struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Redirects []string  `json:"redirects"`
	Created   time.Time `json:"created"`
	Used      time.Time `json:"used,omitzero"` // when somebody last signed in to it
	Address   string    `json:"address,omitempty"`
}

// Request is a browser that wants to let a client in, or to come in itself.
type Request struct {
	ID      string `json:"id"`
	Browser Hash   `json:"browser"` // of the cookie to which it is bound
	Code    Hash   `json:"code"`    // of what the page shows, or of the secret of nizectl login
	Address string `json:"address,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Origin  string `json:"origin"` // of the page

	// What the client asked for; a browser that wants in for itself has none.
	Client    string   `json:"client,omitempty"`
	Name      string   `json:"name,omitempty"` // as the client calls itself
	Host      string   `json:"host,omitempty"` // that vouches for the name, "" for a registered client
	Redirect  string   `json:"redirect,omitempty"`
	State     string   `json:"state,omitempty"`
	Challenge string   `json:"challenge,omitempty"`
	Scopes    []string `json:"scopes,omitempty"`

	// Before is the id of the request that the same browser had until now.
	Before string `json:"-"`

	Created time.Time     `json:"created"`
	User    string        `json:"user,omitempty"`    // who confirmed it
	Surface store.Surface `json:"surface,omitempty"` // where they did
	Number  Hash          `json:"number"`            // that they were given
	Tries   int           `json:"tries,omitempty"`
	Ended   string        `json:"ended,omitempty"` // "", or one of the states below
	Grant   Hash          `json:"grant"`           // of the authorization code
	Granted time.Time     `json:"granted,omitzero"`
	Spent   bool          `json:"spent,omitempty"`  // the code was used
	Family  string        `json:"family,omitempty"` // the token that came of it
}

// How a request ended.
const (
	Denied  = "denied"
	Void    = "void" // too many wrong numbers
	Allowed = "allowed"
)

// Open says whether the request still waits for somebody.
func (r Request) Open(now time.Time) bool {
	return r.Ended == "" && now.Before(r.Created.Add(RequestLife))
}

// IsLink says whether the request is a link that nizectl login made: it is somebody's
// from the start, and no browser's.
func (r Request) IsLink() bool { return r.Browser == Hash{} && r.User != "" }

// Network is what counts as one address: of IPv6, a /64, since one host has as many
// addresses there as it likes.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	network, _ := ip.Prefix(64) // which every IPv6 address has
	return network.String()
}

// Pair is an access token and the refresh token beside it.
type Pair struct {
	Access  Hash      `json:"access"`
	Until   time.Time `json:"until"` // of the access token
	Refresh Hash      `json:"refresh"`
	Rotated time.Time `json:"rotated,omitzero"` // when the refresh token was first used
}

// Family is the pairs of one sign-in.
type Family struct {
	Token  string `json:"token"` // its id as a [store.Token]
	Client string `json:"client"`
	Pairs  []Pair `json:"pairs"`
}

// Redeeming is the use of an authorization code.
type Redeeming struct {
	Code    Hash
	Check   func(Request) error // looks at what it was given for; an error spends it
	Family  Hash                // of the part that all refresh tokens of the family will have
	Token   store.Token
	Next    Pair
	Life    time.Duration // of its access token, by the clock of the store
	Address string        // where the use comes from
}

// Refreshing is the use of a refresh token.
type Refreshing struct {
	Family  Hash // of the part that all refresh tokens of a family have
	Given   Hash
	Client  string
	Next    Pair
	Life    time.Duration // of its access token, by the clock of the store
	Grace   time.Duration // in which one that was rotated gives another pair
	Admit   func() bool   // is asked for one that is good; false is ErrRefused
	Address string        // where the use comes from
}

// Notice is what a person is told of their sign-ins. It is kept until it was
// told, and what operators see as an incident for [NoticeLife].
type Notice struct {
	ID      string        `json:"id"`
	Kind    string        `json:"kind"`
	User    string        `json:"user"`
	Surface store.Surface `json:"surface,omitempty"` // where they are told; "" is wherever they can be
	Name    string        `json:"name,omitempty"`    // of the client
	Address string        `json:"address,omitempty"`
	Agent   string        `json:"agent,omitempty"`
	Since   time.Time     `json:"since"`
	Told    time.Time     `json:"told,omitzero"`
}

// The kinds of notices.
const (
	Reused     = "reused"  // a secret was used twice, and what it belonged to was ended
	NotMe      = "not-me"  // they denied what they had not asked for; they were told when they did
	NewBrowser = "browser" // a browser is signed in as them
)

// How long notices are kept: those that were told, and those that can't be.
const (
	NoticeLife = time.Hour
	NoticeTime = 24 * time.Hour
)

// Notices keeps them.
type Notices interface {
	// PutNotice stores one, new or changed.
	PutNotice(ctx context.Context, n Notice) error
	// ListNotices lists those that are kept, the oldest first.
	ListNotices(ctx context.Context) ([]Notice, error)
}

// The kinds of tokens, as they are listed. A token's name says which it is: people
// can't choose one with a colon.
const (
	Made           = "made"    // by somebody who keeps its secret
	SignedInClient = "client"  // a family
	Browser        = "browser" // a session
)

// KindOf is the kind of a token of that name.
func KindOf(name string) string {
	switch prefix, _, ok := strings.Cut(name, ":"); {
	case ok && prefix == "oauth":
		return SignedInClient
	case ok && prefix == "browser":
		return Browser
	}
	return Made
}

// TokenQuery asks for tokens, the newest first.
type TokenQuery struct {
	User   string   // "" is everybody
	Kinds  []string // nil is all
	Active bool     // leave out those that have ended
	// Unrevoked leaves out those that were revoked, once they work no more.
	Unrevoked bool
	Before    string // only ids before this one: where the last page ended
	Limit     int    // 0 is no limit
}

// Tokens are looked at as the one thing that all of them are.
type Tokens interface {
	// PageTokens returns the tokens of a query. Where next is not "", there may be
	// more, before it: a page ends after its limit, or when it has looked at many
	// that are none of it. Reading a page costs the same however many there are,
	// but for a look at each one's key.
	PageTokens(ctx context.Context, q TokenQuery) (page []store.Token, next string, err error)
	// ExpiringTokens returns the active tokens of kind [Made] that expire by a time, the
	// first first. Until a token is made or deleted, it reads no others again.
	ExpiringTokens(ctx context.Context, by time.Time) ([]store.Token, error)
	// GetToken finds one by its id. ErrNotFound.
	GetToken(ctx context.Context, id string) (store.Token, error)
}

// Store keeps all of it.
type Store interface {
	// PutClient stores a client that registers, after those that nobody used
	// within [UnusedLife] were forgotten. If there are [MaxClients] all the same, the
	// oldest unused one of the network with the most goes for it. ErrRefused if all
	// are used.
	PutClient(ctx context.Context, by store.Caller, c Client) error
	GetClient(ctx context.Context, id string) (Client, error)

	// AddRequest stores a new request and deletes r.Before, unless that was
	// confirmed. Beyond [MaxPerHost] it deletes the oldest unconfirmed request of the
	// same network, and beyond [MaxRequests] that of the network with the most, so
	// that nobody locks others out. Links of nizectl login have room of their own:
	// beyond [MaxPerUser] the oldest one for the same person goes. What takes another
	// one's place leaves no event, so that the trail does not grow with a flood.
	AddRequest(ctx context.Context, by store.Caller, r Request) error
	GetRequest(ctx context.Context, id string) (Request, error)
	// FindRequest finds the request whose Code that is.
	FindRequest(ctx context.Context, code Hash) (Request, error)
	// FindGrant finds the request whose Grant that is.
	FindGrant(ctx context.Context, code Hash) (Request, error)
	// ChangeRequest lets change decide about a request in one transaction, and
	// leaves an event of that kind. open counts the requests besides that a
	// person confirmed and that are open. An error of change is returned;
	// what it changed is stored where keep is true.
	ChangeRequest(ctx context.Context, by store.Caller, id, kind string, change func(r *Request, now time.Time, open func(user string) int) (keep bool, err error)) (Request, error)

	// Redeem makes a family of an authorization code. ErrExpired and ErrNotFound;
	// ErrDecided where it was used before, which ends the family that came of it
	// and leaves a notice. A code that Check refuses is spent.
	Redeem(ctx context.Context, d Redeeming) (store.Token, error)
	// Refresh adds a pair. ErrNotFound for what is no refresh token, ErrExpired
	// where the family has ended, ErrDecided where the token was rotated before
	// the grace time, which ends the family and leaves a notice.
	Refresh(ctx context.Context, f Refreshing) (store.Token, error)
	// EndFamily revokes the family of a refresh token (by its Family) or an
	// access token, of that client. ErrNotFound.
	EndFamily(ctx context.Context, by store.Caller, family, access Hash, client string) error
	// RevokeSignIn revokes one family or session by its id, and what it made.
	RevokeSignIn(ctx context.Context, by store.Caller, id string) error
	// PruneSignIns forgets what ended.
	PruneSignIns(ctx context.Context) error
}
