package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"time"
)

// LocalTeam is the team of those who come over the control socket.
const LocalTeam = "local"

// Membership says that a user is in a team: a Slack workspace (slack:T…), a
// Discord guild (discord:…) or [LocalTeam].
type Membership struct {
	Team     string    `json:"team"`
	User     string    `json:"user"`
	Identity string    `json:"identity"` // by which they are in it
	Since    time.Time `json:"since"`
}

// Members keeps who is in which team. [Users.EnsureUser] notes those of
// [LocalTeam] by itself.
type Members interface {
	// PutMember notes a membership; one that is there stays as it is.
	// ErrNotFound if there is no such user.
	PutMember(ctx context.Context, by Caller, m Membership) error
	// DeleteMember takes the user out of the team. ErrNotFound if not in it.
	DeleteMember(ctx context.Context, by Caller, team, user string) error
	// ListMembers returns those of the team ("" is every team) and the user
	// ("" is every user), by team and user.
	ListMembers(ctx context.Context, team, user string) ([]Membership, error)
}

// Codes of linking.
const (
	LinkLife  = 10 * time.Minute
	LinkTries = 5 // wrong codes that one person may give within LinkLife
)

// Links joins a person's identities: who has a code from one of them gives it
// under another.
type Links interface {
	// PutLink stores the hash of a code of the user, good once and for
	// [LinkLife]; an older one of theirs stops working. It returns when the
	// code expires.
	PutLink(ctx context.Context, by Caller, user string, hash [32]byte) (time.Time, error)
	// FindLink returns whose code that is, so that a person sees whom they are
	// joined with. ErrNotFound for a code that is unknown, used or the caller's
	// own, ErrExpired, and ErrRefused for a caller who gave [LinkTries] wrong
	// ones, until LinkLife has passed.
	FindLink(ctx context.Context, by Caller, hash [32]byte) (User, error)
	// Join uses the code up and makes one user of the caller and its owner, in
	// one transaction: the caller survives, with both users' identities, teams,
	// groups, tokens, settings and personal credentials (the caller's own first
	// where both have one), and the narrower of their budgets. Whatever names
	// the other names the caller: what is shared, policies of servers, channels,
	// waiting calls and the setting approvals.approvers, bots.access, and the
	// yes that the other gave. A policy that needs more different people than
	// are left of those it names also takes admins. The other's standing answers
	// are dropped and waiting calls cancelled; its id stays as an alias. Errors are FindLink's,
	// and ErrRefused if somebody is disabled, no admin would be left, or role
	// ("" is the lower of the two) is given by somebody who is none.
	Join(ctx context.Context, by Caller, hash [32]byte, role Role) (Joined, error)
	// Unlink takes an identity from a user. Who comes with it again is somebody
	// new. ErrRefused for the last identity, for that of the last admin, and
	// for somebody who is disabled.
	Unlink(ctx context.Context, by Caller, user, identity string) (User, error)
}

// Joined is what became of two users.
type Joined struct {
	User     User     `json:"user"`
	Absorbed User     `json:"absorbed"`          // as it was
	Renamed  []string `json:"renamed,omitempty"` // new names of the absorbed user's tokens whose name was taken
}

// Leavers takes people out.
type Leavers interface {
	// RemoveUser ends the user's access, as disabling does, and forgets the
	// record, identities, memberships and settings, in one transaction. What
	// they did stays until its retention ends. ErrRefused for the last admin.
	RemoveUser(ctx context.Context, by Caller, user string) error
	// ForgetUser removes the user if they are still there, and erases what is
	// kept of them but numbers: conversations, what was in their calls, their
	// names and words elsewhere, and their part of the audit trail. It goes in
	// small transactions; after an interruption it goes on when it is asked
	// again. ErrNotFound if there was never such a user, or all is gone.
	ForgetUser(ctx context.Context, by Caller, user string) (Forgotten, error)
	// RemovedUser says whether the id is of a user who was removed and not
	// forgotten, and under which ids they were known.
	RemovedUser(ctx context.Context, user string) (ids []string, ok bool, err error)
}

// Forgotten counts what was erased.
type Forgotten struct {
	Conversations int `json:"conversations"`
	Turns         int `json:"turns"` // in other people's conversations
	Calls         int `json:"calls"`
	Running       int `json:"running"`             // calls that run still, which keep what they hold until it is asked again
	Feedback      int `json:"lessons"`             // requests from which the index had learned
	Documents     int `json:"documents,omitempty"` // of their own
	Events        int `json:"events"`
}

// codeText has no letter that is read as another.
const codeText = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// codeLen letters are 60 random bits.
const codeLen = 12

// NewCode makes a code for a person to type, such as ABCD-EFGH-JKLM, and the
// hash by which it is kept.
func NewCode() (Secret, [32]byte) {
	b := make([]byte, codeLen)
	rand.Read(b) // never fails since Go 1.24
	for i := range b {
		b[i] = codeText[int(b[i])%len(codeText)] // 32 letters divide 256
	}
	return NewSecret(string(b[:4]) + "-" + string(b[4:8]) + "-" + string(b[8:])), sha256.Sum256(b)
}

// ReadCode returns the hash of a code as it was typed: letters of any case,
// with or without dashes and spaces. What can be no code is ErrInvalid.
func ReadCode(text string) ([32]byte, error) {
	var b []byte
	if len(text) <= 64 {
		for _, r := range strings.ToUpper(text) {
			switch {
			case r == '-' || r == ' ':
			case r < 128 && strings.ContainsRune(codeText, r):
				b = append(b, byte(r))
			default:
				b = append(b, 0)
			}
		}
	}
	if len(b) != codeLen || strings.ContainsRune(string(b), 0) {
		return [32]byte{}, Errorf("%w code: it has %d letters and digits, such as ABCD-EFGH-JKLM", ErrInvalid, codeLen)
	}
	return sha256.Sum256(b), nil
}
