package policy

import (
	"context"
	"log/slog"
	"time"

	"nize/store"
	"nize/store/credential"
)

// Store provides the data that the rules read, and stores standing answers.
type Store interface {
	GetUser(ctx context.Context, id string) (store.User, error)
	ListUsers(ctx context.Context) ([]store.User, error)
	ListMembers(ctx context.Context, team, user string) ([]store.Membership, error)
	ListTokens(ctx context.Context, user string) ([]store.Token, error)
	GetAgent(ctx context.Context, id string) (store.Agent, error)
	GetThread(ctx context.Context, id string) (store.Thread, error)
	GetChannel(ctx context.Context, place string) (store.Channel, error)
	ListChannels(ctx context.Context) ([]store.Channel, error)
	ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error)
	GetCredential(ctx context.Context, key store.CredentialKey) (store.Credential, error)
	ListGrants(ctx context.Context, owners ...string) ([]store.Grant, error)
	PutGrant(ctx context.Context, by store.Caller, g store.Grant) error
}

// Tools provides the decoded servers and tools for the rules; the gateway's catalog is the
// real implementation.
type Tools interface {
	// Load reads everything, once.
	Load(ctx context.Context) error
	// Get returns the tool with that id; it also accepts server.tool if that is
	// unambiguous.
	Get(id string) (*Tool, bool)
	// Each calls f for every tool until f returns false.
	Each(f func(*Tool) bool)
	EachServer(f func(store.Server))
	// Untrusted reports whether a server's output is untrusted, even if the server was
	// removed.
	Untrusted(server string) bool
	AnyUntrusted() bool
}

// Channels provides the current members of chat channels. The platforms implement it;
// without platforms, no user is in a channel. An error counts as no.
type Channels interface {
	// Member reports whether the user is in the channel. It returns false for bots and
	// guests.
	Member(ctx context.Context, at store.Address, user string) (bool, error)
	// Admins returns the ids of the users who administer the channel.
	Admins(ctx context.Context, at store.Address) ([]string, error)
}

// Groups provides the members of groups. For groups of a chat platform it queries the
// platform, with a timeout. An error counts as no, because groups only ever allow here.
type Groups interface {
	// GroupsOf returns the groups that the user is in. It may use a platform's answer that
	// is up to five minutes old.
	GroupsOf(ctx context.Context, user string) ([]string, error)
	// InGroup reports whether the user is in the group, for finding who could decide.
	InGroup(ctx context.Context, name, user string) (bool, error)
	// StillInGroup is InGroup for a decision: it makes the groups of the identity provider
	// current first.
	StillInGroup(ctx context.Context, name, user string) (bool, error)
	// StillAdmin reports whether a user who is an admin by a group of the identity provider
	// is one now; it is used for decisions.
	StillAdmin(ctx context.Context, user string) (bool, error)
}

// Credentials determines which holder's value of a declared credential a call uses.
// daemon/credentials implements it.
type Credentials interface {
	Find(ctx context.Context, user, id string) (credential.Declaration, credential.Value, error)
	Offered(ctx context.Context, user string) (map[string]credential.State, error)
}

// Options configures an Engine. All fields but Channels are required.
type Options struct {
	Store    Store
	Tools    Tools
	Config   store.Config
	Groups   Groups // group members; the store's own groups if no platform has any
	Channels Channels
	// Credentials resolves declared credentials; may be nil.
	Credentials Credentials
	Log         *slog.Logger
	Now         func() time.Time
}

// Engine evaluates the rules. It is stateless.
type Engine struct {
	*Approvers
	tools       Tools
	credentials Credentials
	taints      func(ctx context.Context, thread string) (bool, error) // see ReadOnce; nil reads it each time
}

// New returns an engine.
func New(opt Options) *Engine {
	return &Engine{&Approvers{opt.Store, opt.Groups, opt.Channels, opt.Config, opt.Log, opt.Now, nil}, opt.Tools, opt.Credentials, nil}
}
