package policy

import (
	"context"
	"log/slog"
	"time"

	"nize/store"
	"nize/store/credential"
)

// Store is what the rules read, and where a standing answer is kept.
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

// Tools are the servers and tools that the rules are about, decoded; the
// gateway's catalog is the real one.
type Tools interface {
	// Load reads everything, once.
	Load(ctx context.Context) error
	// Get returns the tool of that id; server.tool is accepted where it names
	// just one.
	Get(id string) (*Tool, bool)
	// Each calls f for every tool while it returns true.
	Each(f func(*Tool) bool)
	EachServer(f func(store.Server))
	// Untrusted says whether a server's output is: of one that is gone, too.
	Untrusted(server string) bool
	AnyUntrusted() bool
}

// Channels tells who is in a channel of a chat, as it is now. The platforms
// are it; where there are none, nobody is in a channel. An error counts as no.
type Channels interface {
	// Member says whether the user is in the channel. Bots and guests are not.
	Member(ctx context.Context, at store.Address, user string) (bool, error)
	// Admins returns the ids of the users who administer the channel.
	Admins(ctx context.Context, at store.Address) ([]string, error)
}

// Groups tells who is in which group. Those of a chat platform are asked there,
// within a bound; an error counts as no, since groups only ever allow here.
type Groups interface {
	// GroupsOf names the groups that the user is in. What a platform said five
	// minutes ago at most counts.
	GroupsOf(ctx context.Context, user string) ([]string, error)
	// InGroup says whether the user is in the group now: for a press.
	InGroup(ctx context.Context, name, user string) (bool, error)
}

// Credentials tells whose value of a declared credential a call uses.
// *[credential.Resolver] is the one.
type Credentials interface {
	Find(ctx context.Context, user, id string) (credential.Declaration, credential.Value, error)
	Offered(ctx context.Context, user string) (map[string]credential.State, error)
}

// Options are what an Engine is made of. All fields but Channels are required.
type Options struct {
	Store    Store
	Tools    Tools
	Config   store.Config
	Groups   Groups // who is in which group; those of the store where no platform has any
	Channels Channels
	// Credentials tells of declared ones; nil is none.
	Credentials Credentials
	Log         *slog.Logger
	Now         func() time.Time
}

// Engine walks the rules. It holds no state of its own.
type Engine struct {
	*Approvers
	tools       Tools
	credentials Credentials
}

// New makes the engine.
func New(opt Options) *Engine {
	return &Engine{&Approvers{opt.Store, opt.Groups, opt.Channels, opt.Config, opt.Log, opt.Now}, opt.Tools, opt.Credentials}
}
