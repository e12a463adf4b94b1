// Package oauth defines the records of sign-ins: OAuth clients, browser requests and token
// families.
//
// People sign in to clients; a browser's request admits a client or the browser itself, and
// results in a family of tokens. A family is a [store.Token] with SignedIn set: it is
// listed, revoked, and moved to another user like every token. In addition the hashes of
// its access and refresh tokens are stored.
//
// No secret is stored, only its SHA-256.
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

// Lifetimes and limits.
const (
	RequestLife = 10 * time.Minute // of a request, from its start to its code
	CodeLife    = time.Minute      // of an authorization code
	LoginLife   = 5 * time.Minute  // of the secret that nizectl login prints
	FamilyIdle  = 30 * 24 * time.Hour
	FamilyLife  = 90 * 24 * time.Hour
	UnusedLife  = 24 * time.Hour // of a registered client that was never used for a sign-in

	NumberTries = 3    // attempts to enter the number
	MaxClients  = 1000 // registered clients
	MaxRequests = 1000 // open and unconfirmed requests
	MaxPerHost  = 20   // of these, from one network
	MaxPerUser  = 3    // open requests confirmed by one person; and separately, links of nizectl login for one person
	MaxPairs    = 64   // of a family: more than hosts refresh concurrently within a grace time
)

// Hash is the stored form of a secret.
type Hash [sha256.Size]byte

// HashOf returns the hash of a secret.
func HashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// Is compares in constant time. The zero Hash equals nothing.
func (h Hash) Is(o Hash) bool {
	return h != Hash{} && subtle.ConstantTimeCompare(h[:], o[:]) == 1
}

// String returns h in hex.
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

// Client is a client that registered itself.
type Client struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Redirects []string  `json:"redirects"`
	Created   time.Time `json:"created"`
	Used      time.Time `json:"used,omitzero"` // time of the last sign-in to it
	Address   string    `json:"address,omitempty"`
}

// Request is a browser's request to admit a client, or to sign in itself.
type Request struct {
	ID      string `json:"id"`
	Browser Hash   `json:"browser"` // of the cookie that it is bound to
	Code    Hash   `json:"code"`    // of the code that the page shows, or of the secret of nizectl login
	Address string `json:"address,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Origin  string `json:"origin"` // of the page

	// Parameters of the client; empty if the browser signs in itself.
	Client    string   `json:"client,omitempty"`
	Name      string   `json:"name,omitempty"` // the client's name for itself
	Host      string   `json:"host,omitempty"` // the host that vouches for the name, "" for a registered client
	Redirect  string   `json:"redirect,omitempty"`
	State     string   `json:"state,omitempty"`
	Challenge string   `json:"challenge,omitempty"`
	Scopes    []string `json:"scopes,omitempty"`

	// Before is the id of the previous request of the same browser.
	Before string `json:"-"`

	Created time.Time     `json:"created"`
	User    string        `json:"user,omitempty"`    // the user who confirmed it
	Surface store.Surface `json:"surface,omitempty"` // where they confirmed it
	Number  Hash          `json:"number"`            // shown to them
	Tries   int           `json:"tries,omitempty"`
	Ended   string        `json:"ended,omitempty"` // "", or one of the states below
	Grant   Hash          `json:"grant"`           // of the authorization code
	Granted time.Time     `json:"granted,omitzero"`
	Spent   bool          `json:"spent,omitempty"`  // the code was used
	Family  string        `json:"family,omitempty"` // the resulting token
}

// Results of a request.
const (
	Denied  = "denied"
	Void    = "void" // too many wrong numbers
	Allowed = "allowed"
)

// Open reports whether the request still waits for a person.
func (r Request) Open(now time.Time) bool {
	return r.Ended == "" && now.Before(r.Created.Add(RequestLife))
}

// IsLink reports whether the request is a link of nizectl login: it belongs to a user from
// the start, and to no browser.
func (r Request) IsLink() bool { return r.Browser == Hash{} && r.User != "" }

// Network returns the network that counts as one client: for IPv6 a /64, since one host can
// use as many addresses in it as it likes.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	network, _ := ip.Prefix(64) // can't fail for an IPv6 address
	return network.String()
}

// Pair is an access token and its refresh token.
type Pair struct {
	Access  Hash      `json:"access"`
	Until   time.Time `json:"until"` // of the access token
	Refresh Hash      `json:"refresh"`
	Rotated time.Time `json:"rotated,omitzero"` // when the refresh token was first used
}

// Family holds the pairs of one sign-in.
type Family struct {
	Token  string `json:"token"` // its id as a [store.Token]
	Client string `json:"client"`
	Pairs  []Pair `json:"pairs"`
}

// Redeeming is the redemption of an authorization code.
type Redeeming struct {
	Code    Hash
	Check   func(Request) error // checks the request; after an error the code is spent
	Family  Hash                // of the part that all refresh tokens of the family share
	Token   store.Token
	Next    Pair
	Life    time.Duration // of the access token, by the store's clock
	Address string        // the client's address
}

// Refreshing is the use of a refresh token.
type Refreshing struct {
	Family  Hash // of the part that all refresh tokens of a family share
	Given   Hash
	Client  string
	Next    Pair
	Life    time.Duration // of the access token, by the store's clock
	Grace   time.Duration // in which a rotated token still returns another pair
	Admit   func() bool   // called for a valid token; if it returns false, the result is ErrRefused
	Address string        // the client's address
}

// Notice is a message to a person about their sign-ins. It is kept until it was delivered,
// and for [NoticeLife] if operators see it as an incident.
type Notice struct {
	ID      string        `json:"id"`
	Kind    string        `json:"kind"`
	User    string        `json:"user"`
	Surface store.Surface `json:"surface,omitempty"` // where it is delivered; "" is anywhere
	Name    string        `json:"name,omitempty"`    // of the client
	Address string        `json:"address,omitempty"`
	Agent   string        `json:"agent,omitempty"`
	Since   time.Time     `json:"since"`
	Told    time.Time     `json:"told,omitzero"`
}

// Kinds of notices.
const (
	Reused     = "reused"  // a secret was used twice, and its token or session was revoked
	NotMe      = "not-me"  // they denied a request that wasn't theirs; it was delivered when they did
	NewBrowser = "browser" // a browser is signed in as them
)

// How long notices are kept: delivered ones, and undeliverable ones.
const (
	NoticeLife = time.Hour
	NoticeTime = 24 * time.Hour
)

// Notices stores notices.
type Notices interface {
	// PutNotice stores a new or changed notice.
	PutNotice(ctx context.Context, n Notice) error
	// ListNotices returns the stored notices, oldest first.
	ListNotices(ctx context.Context) ([]Notice, error)
}

// Kinds of tokens for listing. A token's name determines its kind: people can't choose a
// name with a colon.
const (
	Made           = "made"    // by a user who keeps its secret
	SignedInClient = "client"  // a family
	Browser        = "browser" // a session
)

// KindOf returns the kind of a token of that name.
func KindOf(name string) string {
	switch prefix, _, ok := strings.Cut(name, ":"); {
	case ok && prefix == "oauth":
		return SignedInClient
	case ok && prefix == "browser":
		return Browser
	}
	return Made
}

// TokenQuery selects tokens, newest first.
type TokenQuery struct {
	User   string   // "" is every user
	Kinds  []string // nil is all
	Active bool     // omit ended tokens
	// Unrevoked omits revoked tokens once they no longer work.
	Unrevoked bool
	Before    string // only ids before this one: the end of the last page
	Limit     int    // 0 is no limit
}

// Tokens lists tokens of all kinds.
type Tokens interface {
	// PageTokens returns the tokens of a query. If next is not "", there may be more before
	// it: a page ends at its limit, or after many tokens that don't match. Reading a page
	// costs the same for any number of tokens, apart from reading each one's key.
	PageTokens(ctx context.Context, q TokenQuery) (page []store.Token, next string, err error)
	// ExpiringTokens returns the active tokens of kind [Made] that expire by a time, in
	// order of expiry. Until a token is created or deleted, it doesn't read the other
	// tokens again.
	ExpiringTokens(ctx context.Context, by time.Time) ([]store.Token, error)
	// GetToken returns a token by its id, or ErrNotFound.
	GetToken(ctx context.Context, id string) (store.Token, error)
}

// Store stores clients, requests, families and notices.
type Store interface {
	// PutClient stores a client that registers, after deleting those that were not used
	// within [UnusedLife]. If there are still [MaxClients], it deletes the oldest unused
	// client of the network with the most. It returns ErrRefused if all are used.
	PutClient(ctx context.Context, by store.Caller, c Client) error
	GetClient(ctx context.Context, id string) (Client, error)
	// UseClient records that a registered client got a token without a sign-in of its own,
	// so that it isn't deleted as unused. It does nothing for other clients.
	UseClient(ctx context.Context, id string) error

	// AddRequest stores a new request and deletes r.Before, unless that was confirmed.
	// Beyond [MaxPerHost] it deletes the oldest unconfirmed request of the same network,
	// and beyond [MaxRequests] that of the network with the most, so that no network locks
	// others out. Links of nizectl login have a separate limit: beyond [MaxPerUser] the
	// oldest one for the same person is deleted. A request that replaces another appends no
	// event, so that a flood doesn't fill the trail.
	AddRequest(ctx context.Context, by store.Caller, r Request) error
	GetRequest(ctx context.Context, id string) (Request, error)
	// FindRequest returns the request with that Code.
	FindRequest(ctx context.Context, code Hash) (Request, error)
	// FindGrant returns the request with that Grant.
	FindGrant(ctx context.Context, code Hash) (Request, error)
	// ChangeRequest calls change for a request in one transaction, and appends an event of
	// that kind. open returns the number of other open requests that a person confirmed. An
	// error of change is returned; its changes are stored if keep is true.
	ChangeRequest(ctx context.Context, by store.Caller, id, kind string, change func(r *Request, now time.Time, open func(user string) int) (keep bool, err error)) (Request, error)

	// Redeem creates a family from an authorization code. It returns ErrNotFound,
	// ErrExpired, or ErrDecided if the code was used before, which revokes the resulting
	// family and stores a notice. A code that Check refuses is spent.
	Redeem(ctx context.Context, d Redeeming) (store.Token, error)
	// Refresh adds a pair. It returns ErrNotFound if the token is not a refresh token,
	// ErrExpired if the family has ended, and ErrDecided if the token was rotated longer
	// ago than the grace time, which revokes the family and stores a notice.
	Refresh(ctx context.Context, f Refreshing) (store.Token, error)
	// EndFamily revokes the family of a refresh token (by its Family) or an access token of
	// that client. It returns ErrNotFound if there is none.
	EndFamily(ctx context.Context, by store.Caller, family, access Hash, client string) error
	// RevokeSignIn revokes one family or session by its id, and the tokens that it created.
	RevokeSignIn(ctx context.Context, by store.Caller, id string) error
	// PruneSignIns deletes what has ended.
	PruneSignIns(ctx context.Context) error
}
