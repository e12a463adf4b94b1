// Package store is the ground floor of nize: the words that all rooms share.
//
// It holds the records (Server, Tool, Call, Thread, Turn, Event, Spend …), the
// sentinels that every room wraps, and the small interfaces through which the
// records are kept. It imports the standard library and store/printable alone;
// store/database is the real implementation and store/storetest the contract that
// every implementation passes.
//
// Three rules run through all of it:
//
//   - Who acts is an argument. Every method that changes a fact takes the
//     [Caller] and appends an [Event] in the same transaction, so there is no
//     change without a name.
//   - What is decided by people is decided here, in one transaction: the first
//     answer stands and every later one gets [ErrDecided].
//   - A returned error-free write is durable. Two exceptions are stated where
//     they are made: [Calls.Record] may lag by 250 ms, and what [Calls.Finish]
//     returned survives the process, and the machine after as long.
//
// Records handed out are copies; a caller may keep and change them.
package store

import (
	"context"
	"crypto/ed25519"
	"iter"
	"time"
)

// The sentinels. Every room wraps these with %w and says what was being done;
// daemon/api has the one table that turns them into wire codes and back.
var (
	ErrNotFound  error = sentinel("not found")
	ErrExists    error = sentinel("already exists")
	ErrConflict  error = sentinel("changed meanwhile")
	ErrDecided   error = sentinel("already decided")
	ErrRefused   error = sentinel("refused")
	ErrInvalid   error = sentinel("invalid")
	ErrExpired   error = sentinel("expired")
	ErrDiskFull  error = sentinel("no space left for the database")
	ErrNotOpen   error = sentinel("store is closed")
	ErrOldSchema error = sentinel("database was written by a newer nize")
)

// ErrNoDatabase is of a database on a server, and says nothing of where that is.
var ErrNoDatabase = Errorf("the database can't be reached; try again later")

// sentinel is an error that a [Text] says in its own words.
type sentinel string

func (s sentinel) Error() string { return string(s) }

// Servers keeps the registered MCP servers and their tools.
type Servers interface {
	// PutServer stores s. rev is the revision that the caller read: 0 creates
	// (ErrExists if the name is taken), any other must still be current
	// (ErrConflict). It returns the record as stored, with its new revision.
	PutServer(ctx context.Context, by Caller, s Server, rev uint64) (Server, error)
	// DeleteServer removes the server, its tools and its vectors' cache keys.
	DeleteServer(ctx context.Context, by Caller, name string) error
	GetServer(ctx context.Context, name string) (Server, error)
	ListServers(ctx context.Context) ([]Server, error)
}

// Tools keeps the tools of the servers as they were last listed.
type Tools interface {
	// PutTools replaces all tools of one server in one transaction and says
	// what changed. Pins that an admin accepted are kept: see [Tool.Accepted].
	PutTools(ctx context.Context, by Caller, server string, tools []Tool) (ToolDiff, error)
	GetTool(ctx context.Context, id string) (Tool, error)
	// ListTools returns the tools of one server, or of all for "", by id.
	ListTools(ctx context.Context, server string) ([]Tool, error)
	// AcceptTool makes pin the accepted one of the tool; ErrConflict when the
	// tool's present pin is another.
	AcceptTool(ctx context.Context, by Caller, id, pin string) error
}

// Users keeps people and their identities.
type Users interface {
	// EnsureUser returns the user that holds identity and makes one with the
	// role and name given if there is none.
	EnsureUser(ctx context.Context, identity, name string, role Role) (User, error)
	// AddUser makes a user with the name, role and identities given before
	// anybody came with one of them. ErrExists if one is taken.
	AddUser(ctx context.Context, by Caller, u User) (User, error)
	GetUser(ctx context.Context, id string) (User, error)
	ListUsers(ctx context.Context) ([]User, error)
	// PutUser changes name, role or state of an existing user.
	PutUser(ctx context.Context, by Caller, u User) error
}

// Contacts finds people by how they come, and notes what they were told.
type Contacts interface {
	// FindUser returns the user that holds the identity. ErrNotFound if nobody
	// does.
	FindUser(ctx context.Context, identity string) (User, error)
	// RecordPrivacyNotice notes that a user was told what is kept of them; the
	// first time stands.
	RecordPrivacyNotice(ctx context.Context, by Caller, user string) error
}

// Tokens keeps bearer tokens as hashes.
type Tokens interface {
	// CreateToken stores t, whose Hash the caller computed. An active token of
	// the same user and name is ErrExists, unless overwrite, which revokes it
	// in the same transaction. One that a token makes (by.Token) ends with that
	// token at the latest, and is revoked with it.
	CreateToken(ctx context.Context, by Caller, t Token, overwrite bool) (Token, error)
	// CreateTokenWithin is CreateToken for a token that somebody keeps: ErrRefused if
	// its user has q.Each active ones, or everybody q.All. Of a user's ended ones that
	// many are kept.
	CreateTokenWithin(ctx context.Context, by Caller, t Token, overwrite bool, q Quota) (Token, error)
	// RotateToken replaces the active token of that user and name by one with
	// the same scopes. ErrNotFound if there is none. The old one counts for the
	// quota as long as its grace time lasts.
	RotateToken(ctx context.Context, by Caller, r Rotation) (Token, error)
	// RevokeTokens revokes the active tokens of the user ("" is every user)
	// with that name ("" is every name) and returns how many.
	RevokeTokens(ctx context.Context, by Caller, user, name string) (int, error)
	ListTokens(ctx context.Context, user string) ([]Token, error)
	// Authenticate finds the token by its hash. ErrNotFound, or ErrExpired and
	// ErrRefused (revoked, user disabled) together with the token for the log.
	// It notes the last use, at most once a minute and without waiting.
	Authenticate(ctx context.Context, hash [32]byte) (Token, User, error)
}

// Credentials keeps sealed values.
type Credentials interface {
	PutCredential(ctx context.Context, by Caller, c Credential) error
	// GetCredential opens one sealed value.
	GetCredential(ctx context.Context, key CredentialKey) (Credential, error)
	// ListCredentials never fills Secret.
	ListCredentials(ctx context.Context) ([]Credential, error)
	DeleteCredential(ctx context.Context, by Caller, key CredentialKey) error
}

// Calls keeps every call of every tool. See [Call] for the states.
type Calls interface {
	// Begin stores a new call in the state it carries (planned, pending,
	// running or refused). ErrExists if the id was used before. A call that
	// Replaces another becomes its Successor in the same transaction: one that
	// waits for a person moves to cancelled (an edit), one that failed or
	// expired stays as it is (a retry). ErrDecided if it is in another state or
	// has a successor.
	Begin(ctx context.Context, by Caller, c Call) error
	// Decide settles a pending call: first answer stands, later ones get
	// ErrDecided together with the call as it is; past its expiry it becomes
	// expired and the answer is ErrExpired. An approval leaves it pending; with
	// as many different people's as its policy wants, Approved is set: Start
	// moves it on. A second yes of one person is ErrDecided, one of a requester
	// whom the policy leaves out is ErrRefused. The decision's Standing is stored
	// in the same transaction, and only if the decision counts.
	Decide(ctx context.Context, by Caller, id string, d Decision) (Call, error)
	// Remind notes that people were told of a call that still waits, once, and
	// tells the feed (Kind "reminder"). ErrDecided if it does not wait, or they
	// were told before.
	Remind(ctx context.Context, id string) (Call, error)
	// Start moves an approved pending call to running under owner. ErrDecided
	// if somebody did so before.
	Start(ctx context.Context, id, owner string) (Call, error)
	// NoteRemote notes that the server of a running call runs it as a task.
	// ErrDecided if the call does not run any more.
	NoteRemote(ctx context.Context, id string, task RemoteTask) error
	// Resume makes owner the one who waits for the task of a running call that
	// another one left. ErrDecided if there is no such task, or it is owner's.
	Resume(ctx context.Context, id, owner string) (Call, error)
	// Finish moves a call to the final state in o. ErrDecided if it is final. On
	// a full disk it uses the room that is kept for that; without any the end is kept in memory, shown by GetCall, and written when
	// there is room: the result is Late, and that is no error. ErrDiskFull with
	// the call as it ended where even that has no room.
	Finish(ctx context.Context, by Caller, id string, o Outcome) (Call, error)
	// Record stores a read-only call that ran, whole. It returns at once; the
	// record is on disk within 250 ms. ErrExists and write errors
	// show in the next call of Flush.
	Record(by Caller, c Call)
	// GetCall opens the call's arguments and result, those that Record has not
	// written yet included.
	GetCall(ctx context.Context, id string) (Call, error)
	ListCalls(ctx context.Context, q CallQuery) ([]Call, error)
	// ListWaiting returns every call that waits for a person, the newest first,
	// without arguments and results. All readers share the list until one of these
	// calls changes, so they must not modify it.
	ListWaiting(ctx context.Context) ([]Call, error)
	// FindWaiting returns the waiting calls that are the same as like but for their id,
	// the newest first: their requester, token, surface, tool and canonical arguments are.
	FindWaiting(ctx context.Context, like Call) ([]Call, error)
	// CountWaiting returns how many calls wait for a person: those that a user made, and
	// all. It reads none of them.
	CountWaiting(ctx context.Context, user string) (own, all int, err error)
}

// Threads keeps conversations.
type Threads interface {
	PutThread(ctx context.Context, by Caller, t Thread) error
	// StartThread is PutThread for a new conversation, held to the quota of who begins it.
	// Conversations of theirs in which nothing was said for a day are deleted for it, the
	// oldest first. ErrRefused if that isn't enough.
	StartThread(ctx context.Context, by Caller, t Thread, q ThreadQuota) error
	// CheckThreads returns ErrRefused if a user may not say more: their conversations
	// are as large as the quota allows or, for another one, as many.
	CheckThreads(ctx context.Context, user string, q ThreadQuota, another bool) error
	GetThread(ctx context.Context, id string) (Thread, error)
	// EditThread changes the settings of a conversation in one transaction;
	// edit must do nothing else, and what it does to id, user, address, times
	// and Open has no effect.
	EditThread(ctx context.Context, by Caller, id string, edit func(*Thread)) (Thread, error)
	// ListThreads returns the newest first; user "" is every user.
	ListThreads(ctx context.Context, user string, limit int) ([]Thread, error)
	// Append stores t as number t.N of its thread. ErrExists if that place is
	// taken: somebody was first, look again. The thread's Open becomes open, and
	// the first message of who began it gives it its title.
	Append(ctx context.Context, by Caller, t Turn, open bool) error
	// Turns returns all turns of a thread in order.
	Turns(ctx context.Context, thread string) ([]Turn, error)
	// Open lists the threads whose last turn still wants work.
	Open(ctx context.Context) ([]Thread, error)
}

// Privacy keeps apart and takes back what was said.
type Privacy interface {
	// ShareTurns makes the private turn number n of a conversation everybody's
	// there, with the private turns before it that belong to the same answer,
	// and returns it. ErrDecided, with the turn, if the caller did so before;
	// ErrRefused for everybody but whom it is for, and where nothing is private.
	ShareTurns(ctx context.Context, by Caller, thread string, n int) (Turn, error)
	// ForgetThread erases a conversation, with what was asked and answered in
	// its calls, and what the audit trail tells of them. ErrConflict while one
	// of its calls has not ended, or a message in it waits for an answer. It
	// goes in small transactions; after an interruption it goes on when it is
	// asked again, or by ResumeErasures.
	ForgetThread(ctx context.Context, by Caller, thread string) (Forgotten, error)
}

// Inbox keeps what came in until it is worked off.
type Inbox interface {
	// Accept stores the item unless one of its keys was seen within the last
	// day, and returns false then. It is durable when it returns true.
	Accept(ctx context.Context, item Item) (bool, error)
	// Done marks the item worked off; its keys stay for deduplication.
	Done(ctx context.Context, id string) error
	// Pending returns what was accepted and is not done, oldest first.
	Pending(ctx context.Context) ([]Item, error)
}

// Feed is the commit-ordered stream of changes.
type Feed interface {
	// Last returns the sequence number of the newest committed change.
	Last() Seq
	// Watch yields every change after the given number, in commit order, and
	// waits for more until ctx ends (it then yields nothing further). Changes
	// older than the kept window are an error wrapping ErrNotFound: read the
	// records instead and start from Last.
	Watch(ctx context.Context, after Seq) iter.Seq2[Change, error]
}

// Ledger keeps what model calls cost and what happened.
type Ledger interface {
	// AddSpend stores the row and adds it to the rollups in one transaction.
	AddSpend(ctx context.Context, s Spend) error
	// AddEvent appends an event for what is neither a call nor a change of a
	// record: the use of a meta-tool, a press by somebody who may not. It fills
	// Seq, Chain and the caller's fields, returns at once, and the event is on
	// disk within 250 ms, like a Record.
	AddEvent(by Caller, e Event)
	// Usage sums the rollups.
	Usage(ctx context.Context, q UsageQuery) (UsageReport, error)
	// Events returns the audit trail, newest first unless q says otherwise.
	Events(ctx context.Context, q EventQuery) ([]Event, error)
	// VerifyEvents recomputes the chain and returns how many events hold; the
	// error names the first that does not.
	VerifyEvents(ctx context.Context) (int, error)
}

// Trail proves that the audit trail is whole. A checkpoint is an
// event from which verifying may start: pruning and erasure leave one, and so
// does a daily check.
type Trail interface {
	// VerifyFrom is VerifyEvents from a checkpoint on: after is its Seq, or 0 to
	// begin at the oldest event. progress, which may be nil, is told now and
	// then how many events of how many were verified.
	VerifyFrom(ctx context.Context, after uint64, progress func(done, all int)) (int, error)
	// AddCheckpoint appends a checkpoint that says how many events held.
	AddCheckpoint(ctx context.Context, by Caller, held int) error
	// Checkpoints returns the events that are checkpoints, newest first.
	Checkpoints(ctx context.Context, limit int) ([]Event, error)
	// WaitEvents returns when there is an event with a larger Seq.
	WaitEvents(ctx context.Context, after uint64) error
	// SignExport signs what leaves the trail with a key that is derived from the
	// trail's own, and returns the public part of that.
	SignExport(message []byte) (signature []byte, key ed25519.PublicKey)
}

// Erasures forgets people in the audit trail.
type Erasures interface {
	// EraseEvents takes out of the trail who and what a person's events name:
	// those of their own, those about them, and those of others that name them.
	// The chain stays valid, and a checkpoint says that it was done. It returns
	// how many events there were. It goes in small transactions; after an
	// interruption it goes on when it is asked again, or by ResumeErasures.
	EraseEvents(ctx context.Context, by Caller, user string) (int, error)
	// ResumeErasures ends the erasures that were interrupted.
	ResumeErasures(ctx context.Context) (int, error)
}

// Settings keeps the values that were set; defaults are in [Keys].
type Settings interface {
	// PutSetting stores a value of the system (user "") or of a user; "" as
	// value unsets it. The value was checked by [Key.Check].
	PutSetting(ctx context.Context, by Caller, user, key, value string) error
	// ListSettings returns what was set for the system (user "") or a user.
	ListSettings(ctx context.Context, user string) (map[string]string, error)
}

// Models keeps providers, logical model names and agents.
type Models interface {
	PutProvider(ctx context.Context, by Caller, p Provider) error
	// ListProviders opens the keys.
	ListProviders(ctx context.Context) ([]Provider, error)
	DeleteProvider(ctx context.Context, by Caller, name string) error
	PutModel(ctx context.Context, by Caller, m ModelName) error
	ListModels(ctx context.Context) ([]ModelName, error)
	DeleteModel(ctx context.Context, by Caller, name string) error
}

// Prices keeps what admins know of models' prices.
type Prices interface {
	PutPrice(ctx context.Context, by Caller, p Price) error
	// GetPrice returns what was set for provider/model, or ErrNotFound.
	GetPrice(ctx context.Context, model string) (Price, error)
	ListPrices(ctx context.Context) ([]Price, error)
	DeletePrice(ctx context.Context, by Caller, model string) error
}

// Agents keeps the named profiles.
type Agents interface {
	PutAgent(ctx context.Context, by Caller, a Agent) error
	GetAgent(ctx context.Context, id string) (Agent, error)
	ListAgents(ctx context.Context) ([]Agent, error)
	DeleteAgent(ctx context.Context, by Caller, id string) error
}

// Vectors caches embeddings by model and content hash.
type Vectors interface {
	// GetVectors returns those of the keys that are kept for the model.
	GetVectors(ctx context.Context, model string, keys []string) (map[string][]float32, error)
	PutVectors(ctx context.Context, model string, vecs map[string][]float32) error
}

// DB is everything one backend keeps. Rooms ask for the small interfaces.
type DB interface {
	Servers
	Tools
	Users
	Contacts
	Members
	Links
	Leavers
	Tokens
	Credentials
	Calls
	Grants
	Groups
	LiveGroups
	Threads
	Privacy
	Files
	Inbox
	Feed
	Ledger
	Trail
	Erasures
	Settings
	Models
	Prices
	Budgets
	Meter
	Agents
	Vectors
	Examples
	RelevanceFeedback
	Incidents
	Bots
	Sweeps
	Channels
	Places
	Backlog
	UnmetRequests
	// Flush waits until everything given to Record is on disk.
	Flush(ctx context.Context) error
	// Prune deletes what retention no longer keeps, in small transactions.
	Prune(ctx context.Context, keep Retention) (Pruned, error)
	Close() error
}

// Retention says how long growing records are kept; 0 keeps them for ever.
type Retention struct{ Conversations, Output, Audit, Usage time.Duration }

// Pruned counts what Prune deleted.
type Pruned struct{ Threads, Outputs, Events, Spends int }
