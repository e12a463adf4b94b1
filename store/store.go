// Package store defines the records, errors and storage interfaces that all packages share.
//
// It holds the records (Server, Tool, Call, Thread, Turn, Event, Spend …), the sentinel
// errors that every package wraps, and the small interfaces through which records are
// stored. It imports only the standard library, store/printable and store/secrettext;
// store/database is the implementation, and store/storetest is the contract test that every
// implementation passes.
//
// Three rules hold throughout:
//
//   - The caller is an argument. Every method that changes a record takes the
//     [Caller] and appends an [Event] in the same transaction, so every change
//     is attributed.
//   - Decisions by people are settled here, in one transaction: the first
//     answer wins and every later one gets [ErrDecided].
//   - A write is durable when its method returns nil. There are two exceptions:
//     [Calls.Record] may lag by 250 ms, and what [Calls.Finish] returned survives
//     a crash of the process at once, and of the machine after as long.
//
// Returned records are copies; the caller may keep and change them.
package store

import (
	"context"
	"crypto/ed25519"
	"iter"
	"time"
)

// Sentinel errors. Every package wraps them with %w and adds what was being done;
// daemon/api has the one table that maps them to wire codes and back.
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

// ErrNoDatabase is returned for a database on a server. Its text doesn't reveal the
// server's address.
var ErrNoDatabase = Errorf("the database can't be reached; try again later")

// sentinel is an error that [Textf] makes a part of the format, so that each sentence is
// translated as a whole.
type sentinel string

func (s sentinel) Error() string { return string(s) }

// Servers stores the registered MCP servers and their tools.
type Servers interface {
	// PutServer stores s. rev is the revision that the caller read: 0 creates the server
	// (ErrExists if the name is taken); any other must still be current (ErrConflict). It
	// returns the stored record with its new revision.
	PutServer(ctx context.Context, by Caller, s Server, rev uint64) (Server, error)
	// DeleteServer removes the server, its tools and the cache keys of its vectors.
	DeleteServer(ctx context.Context, by Caller, name string) error
	GetServer(ctx context.Context, name string) (Server, error)
	ListServers(ctx context.Context) ([]Server, error)
}

// Tools stores the tools of the servers as last listed.
type Tools interface {
	// PutTools replaces all tools of one server in one transaction and returns the changes.
	// It keeps pins that an admin accepted; see [Tool.Accepted].
	PutTools(ctx context.Context, by Caller, server string, tools []Tool) (ToolDiff, error)
	GetTool(ctx context.Context, id string) (Tool, error)
	// ListTools returns the tools of one server, or of all servers if server is "", by id.
	ListTools(ctx context.Context, server string) ([]Tool, error)
	// AcceptTool makes pin the accepted pin of the tool. It returns ErrConflict if the
	// tool's current pin differs.
	AcceptTool(ctx context.Context, by Caller, id, pin string) error
}

// Users stores people and their identities.
type Users interface {
	// EnsureUser returns the user that holds identity. If there is none, it creates one
	// with the given role and name.
	EnsureUser(ctx context.Context, identity, name string, role Role) (User, error)
	// AddUser creates a user with the given name, role and identities before any of these
	// identities was seen. It returns ErrExists if one is taken.
	AddUser(ctx context.Context, by Caller, u User) (User, error)
	GetUser(ctx context.Context, id string) (User, error)
	ListUsers(ctx context.Context) ([]User, error)
	// PutUser changes the name, role or state of an existing user.
	PutUser(ctx context.Context, by Caller, u User) error
}

// Contacts finds people by identity and records the notices they were shown.
type Contacts interface {
	// FindUser returns the user that holds the identity. It returns ErrNotFound if no user
	// does.
	FindUser(ctx context.Context, identity string) (User, error)
	// RecordPrivacyNotice records that a user was shown the privacy notice. Only the first
	// time is kept.
	RecordPrivacyNotice(ctx context.Context, by Caller, user string) error
}

// Tokens stores bearer tokens as hashes.
type Tokens interface {
	// CreateToken stores t, whose Hash the caller computed. If the user has an active token
	// of the same name, it returns ErrExists, or, with overwrite, revokes that token in the
	// same transaction. A token created with another token (by.Token) expires no later than
	// that token and is revoked with it.
	CreateToken(ctx context.Context, by Caller, t Token, overwrite bool) (Token, error)
	// CreateTokenWithin is CreateToken for a token that counts for a quota. It returns
	// ErrRefused if its user has q.Each active ones, or all users together have q.All. It
	// keeps as many of the user's ended tokens.
	CreateTokenWithin(ctx context.Context, by Caller, t Token, overwrite bool, q Quota) (Token, error)
	// RotateToken replaces the active token of that user and name by one with the same
	// scopes. It returns ErrNotFound if there is none. The old token counts for the quota
	// until its grace time ends.
	RotateToken(ctx context.Context, by Caller, r Rotation) (Token, error)
	// RevokeTokens revokes the active tokens of the user ("" is every user) with that name
	// ("" is every name) and returns their number.
	RevokeTokens(ctx context.Context, by Caller, user, name string) (int, error)
	ListTokens(ctx context.Context, user string) ([]Token, error)
	// Authenticate finds a token by its hash. It returns ErrNotFound if there is none, and
	// ErrExpired or ErrRefused (the token is revoked, or its user disabled) together with
	// the token for the log. It records the last use at most once a minute, without waiting
	// for the write.
	Authenticate(ctx context.Context, hash [32]byte) (Token, User, error)
}

// Credentials stores sealed values.
type Credentials interface {
	PutCredential(ctx context.Context, by Caller, c Credential) error
	// GetCredential returns one value, unsealed.
	GetCredential(ctx context.Context, key CredentialKey) (Credential, error)
	// ListCredentials never fills Secret.
	ListCredentials(ctx context.Context) ([]Credential, error)
	DeleteCredential(ctx context.Context, by Caller, key CredentialKey) error
}

// Calls stores every call of every tool. See [Call] for the states.
type Calls interface {
	// Begin stores a new call in the state it carries (planned, pending, running or
	// refused). It returns ErrExists if the id was used before. If the call Replaces
	// another, it becomes that call's Successor in the same transaction: a call that waits
	// for a person moves to cancelled (an edit); a failed or expired one keeps its state (a
	// retry). Begin returns ErrDecided if the replaced call is in another state or has a
	// successor.
	Begin(ctx context.Context, by Caller, c Call) error
	// Decide records one decision on a pending call. The first answer wins; later ones get
	// ErrDecided together with the call as it is. After its expiry the call becomes expired
	// and the caller gets ErrExpired. An approval leaves the call pending; once as many
	// different people approved as its policy needs, Approved is set and Start can run it.
	// A second approval by the same person returns ErrDecided; an approval by a requester
	// whom the policy excludes returns ErrRefused. The decision's Standing is stored in the
	// same transaction, and only if the decision counts. If the call is a question, the
	// Args of an approval are its answer and replace its arguments.
	Decide(ctx context.Context, by Caller, id string, d Decision) (Call, error)
	// Remind records, once, that people were reminded of a call that still waits, and
	// publishes a change of Kind "reminder". It returns ErrDecided if the call does not
	// wait, or a reminder was recorded before.
	Remind(ctx context.Context, id string) (Call, error)
	// Start moves an approved pending call to running under owner. It returns ErrDecided if
	// it was started before.
	Start(ctx context.Context, id, owner string) (Call, error)
	// NoteRemote records that the server of a running call runs it as a task. It returns
	// ErrDecided if the call is no longer running.
	NoteRemote(ctx context.Context, id string, task RemoteTask) error
	// Resume makes owner the instance that waits for the task of a running call that
	// another instance left. It returns ErrDecided if there is no such task, or owner has
	// it already.
	Resume(ctx context.Context, id, owner string) (Call, error)
	// Finish moves a call to the final state in o. It returns ErrDecided if the call is
	// final. On a full disk it uses the space that is reserved for this. If that is used up
	// too, it keeps the outcome in memory, GetCall returns it, and it is written once there
	// is space: the result is Late, which is not an error. If there is no memory for it
	// either, Finish returns ErrDiskFull with the call as it ended.
	Finish(ctx context.Context, by Caller, id string, o Outcome) (Call, error)
	// Record stores a finished read-only call as a whole. It returns at once; the record is
	// on disk within 250 ms. ErrExists and write errors are returned by the next call of
	// Flush.
	Record(by Caller, c Call)
	// GetCall returns the call with its arguments and result unsealed. It includes calls
	// that Record has not written yet.
	GetCall(ctx context.Context, id string) (Call, error)
	ListCalls(ctx context.Context, q CallQuery) ([]Call, error)
	// ListWaiting returns every call that waits for a person, newest first, without
	// arguments and results. All readers share the list until one of these calls changes,
	// so they must not modify it.
	ListWaiting(ctx context.Context) ([]Call, error)
	// GetWaiting returns the calls with these ids, with their arguments, in one read: of a
	// list by ListWaiting, whose order it keeps. It leaves out calls that were deleted.
	GetWaiting(ctx context.Context, ids []string) ([]Call, error)
	// FindWaiting returns the waiting calls with the same requester, token, surface, tool
	// and canonical arguments as like, newest first.
	FindWaiting(ctx context.Context, like Call) ([]Call, error)
	// CountWaiting returns how many calls wait for a person: the user's own, and all. It
	// reads no records.
	CountWaiting(ctx context.Context, user string) (own, all int, err error)
	// CountRunning returns how many calls are running. It reads no records.
	CountRunning(ctx context.Context) (int, error)
}

// Threads stores conversations.
type Threads interface {
	PutThread(ctx context.Context, by Caller, t Thread) error
	// StartThread is PutThread for a new conversation and applies the quota of the user who
	// begins it. To make room it deletes their conversations that have had no message for a
	// day, oldest first. It returns ErrRefused if that isn't enough.
	StartThread(ctx context.Context, by Caller, t Thread, q ThreadQuota) error
	// CheckThreads returns ErrRefused if a user's conversations have reached the quota's
	// size or, with another set, its number.
	CheckThreads(ctx context.Context, user string, q ThreadQuota, another bool) error
	GetThread(ctx context.Context, id string) (Thread, error)
	// EditThread changes the settings of a conversation in one transaction. edit must have
	// no other effect; its changes to id, user, address, times and Open are ignored.
	EditThread(ctx context.Context, by Caller, id string, edit func(*Thread)) (Thread, error)
	// ListThreads returns conversations, newest first; user "" is every user.
	ListThreads(ctx context.Context, user string, limit int) ([]Thread, error)
	// Append stores t as number t.N of its thread and sets the thread's Open to open. It
	// returns ErrExists if that number is taken: another writer was first, and the caller
	// must read the turns again. The first message of the thread's user becomes its title.
	Append(ctx context.Context, by Caller, t Turn, open bool) error
	// Turns returns all turns of a thread in order.
	Turns(ctx context.Context, thread string) ([]Turn, error)
	// Open lists the threads whose last turn still wants work.
	Open(ctx context.Context) ([]Thread, error)
}

// Privacy shares private turns and erases conversations.
type Privacy interface {
	// ShareTurns makes private turn number n of a conversation visible to everyone in it,
	// with the earlier private turns of the same answer, and returns it. It returns
	// ErrDecided, with the turn, if the caller did so before, and ErrRefused if the turn
	// isn't private or is private to another user.
	ShareTurns(ctx context.Context, by Caller, thread string, n int) (Turn, error)
	// ForgetThread erases a conversation, the arguments and results of its calls, and their
	// details in the audit trail. It returns ErrConflict while one of its calls is
	// unfinished, or a message in it is unanswered. It works in small transactions; after
	// an interruption the next call, or ResumeErasures, completes it.
	ForgetThread(ctx context.Context, by Caller, thread string) (Forgotten, error)
}

// Inbox stores incoming items until they are processed.
type Inbox interface {
	// Accept stores the item and returns true, at which point it is durable. It returns
	// false if one of its keys was seen within the last day.
	Accept(ctx context.Context, item Item) (bool, error)
	// Done marks the item processed; its keys are kept for deduplication.
	Done(ctx context.Context, id string) error
	// Pending returns the accepted items that are not done, oldest first.
	Pending(ctx context.Context) ([]Item, error)
	// CountPending returns how many items Pending would return. It reads no records.
	CountPending(ctx context.Context) (int, error)
}

// Feed is the commit-ordered stream of changes.
type Feed interface {
	// Last returns the sequence number of the newest committed change.
	Last() Seq
	// Watch yields every change after the given number, in commit order, and waits for more
	// until ctx ends; then it yields nothing further. If the changes are older than the
	// kept window, it yields an error wrapping ErrNotFound: read the records instead and
	// start from Last.
	Watch(ctx context.Context, after Seq) iter.Seq2[Change, error]
}

// Ledger stores the cost of model calls and the audit trail.
type Ledger interface {
	// AddSpend stores a row and adds it to the rollups in one transaction.
	AddSpend(ctx context.Context, s Spend) error
	// AddEvent appends an event for what is neither a call nor a change of a record, such
	// as the use of a meta-tool or an unauthorized button press. It fills Seq, Chain and
	// the caller's fields and returns at once; the event is on disk within 250 ms, like a
	// Record.
	AddEvent(by Caller, e Event)
	// Usage returns sums of the rollups.
	Usage(ctx context.Context, q UsageQuery) (UsageReport, error)
	// Events returns the audit trail, newest first unless q sets another order.
	Events(ctx context.Context, q EventQuery) ([]Event, error)
	// VerifyEvents recomputes the chain and returns how many events are valid; the error
	// names the first that is not.
	VerifyEvents(ctx context.Context) (int, error)
}

// Trail verifies that the audit trail is complete. A checkpoint is an event from which
// verification may start. Pruning, erasure and a daily check each append one.
type Trail interface {
	// VerifyFrom is VerifyEvents from a checkpoint on: after is the checkpoint's Seq, or 0
	// to begin at the oldest event. progress, which may be nil, is called from time to time
	// with the number of verified events and their total.
	VerifyFrom(ctx context.Context, after uint64, progress func(done, all int)) (int, error)
	// AddCheckpoint appends a checkpoint that records how many events were valid.
	AddCheckpoint(ctx context.Context, by Caller, held int) error
	// Checkpoints returns the checkpoints, newest first.
	Checkpoints(ctx context.Context, limit int) ([]Event, error)
	// WaitEvents returns when there is an event with a larger Seq than after.
	WaitEvents(ctx context.Context, after uint64) error
	// SignExport signs an export of the trail with a key derived from the trail's own key,
	// and returns the public part of that key.
	SignExport(message []byte) (signature []byte, key ed25519.PublicKey)
}

// Erasures removes people from the audit trail.
type Erasures interface {
	// EraseEvents removes personal data from the events of a person: their own events,
	// events about them, and other people's events that name them. The chain stays valid,
	// and a checkpoint records the erasure. It returns the number of events. It works in
	// small transactions; after an interruption the next call, or ResumeErasures, completes
	// it.
	EraseEvents(ctx context.Context, by Caller, user string) (int, error)
	// ResumeErasures completes interrupted erasures.
	ResumeErasures(ctx context.Context) (int, error)
}

// Settings stores the values that were set; the defaults are in [Keys].
type Settings interface {
	// PutSetting stores a value for the system (user "") or for a user; an empty value
	// unsets it. The caller has checked the value with [Key.Check].
	PutSetting(ctx context.Context, by Caller, user, key, value string) error
	// ListSettings returns the values set for the system (user "") or for a user.
	ListSettings(ctx context.Context, user string) (map[string]string, error)
}

// Models stores providers, logical model names and agents.
type Models interface {
	PutProvider(ctx context.Context, by Caller, p Provider) error
	// ListProviders returns the providers with their keys unsealed.
	ListProviders(ctx context.Context) ([]Provider, error)
	DeleteProvider(ctx context.Context, by Caller, name string) error
	PutModel(ctx context.Context, by Caller, m ModelName) error
	ListModels(ctx context.Context) ([]ModelName, error)
	DeleteModel(ctx context.Context, by Caller, name string) error
}

// Prices stores the model prices that admins set.
type Prices interface {
	PutPrice(ctx context.Context, by Caller, p Price) error
	// GetPrice returns the price set for provider/model, or ErrNotFound.
	GetPrice(ctx context.Context, model string) (Price, error)
	ListPrices(ctx context.Context) ([]Price, error)
	DeletePrice(ctx context.Context, by Caller, model string) error
}

// Agents stores the named profiles.
type Agents interface {
	PutAgent(ctx context.Context, by Caller, a Agent) error
	GetAgent(ctx context.Context, id string) (Agent, error)
	ListAgents(ctx context.Context) ([]Agent, error)
	DeleteAgent(ctx context.Context, by Caller, id string) error
}

// Vectors caches embeddings by model and content hash.
type Vectors interface {
	// GetVectors returns the cached vectors of the model, by key. Missing keys are omitted.
	GetVectors(ctx context.Context, model string, keys []string) (map[string][]float32, error)
	PutVectors(ctx context.Context, model string, vecs map[string][]float32) error
}

// DB is everything one backend stores. Packages depend on the small interfaces.
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
	// Flush waits until everything passed to Record is on disk.
	Flush(ctx context.Context) error
	// Prune deletes what exceeds its retention, in small transactions.
	Prune(ctx context.Context, keep Retention) (Pruned, error)
	Close() error
}

// Retention is how long growing records are kept; 0 keeps them forever.
type Retention struct{ Conversations, Output, Audit, Usage time.Duration }

// Pruned counts what Prune deleted.
type Pruned struct{ Threads, Outputs, Events, Spends int }
