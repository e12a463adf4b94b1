package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"time"
)

// LocalTeam is the team of the users of the control socket.
const LocalTeam = "local"

// Membership records that a user is in a team: a Slack workspace (slack:T…), a Discord
// guild (discord:…) or [LocalTeam].
type Membership struct {
	Team     string    `json:"team"`
	User     string    `json:"user"`
	Identity string    `json:"identity"` // the identity that is the member
	Since    time.Time `json:"since"`
}

// Members stores team memberships. [Users.EnsureUser] adds those of [LocalTeam] itself.
type Members interface {
	// PutMember stores a membership; an existing one is unchanged. It returns ErrNotFound
	// if there is no such user.
	PutMember(ctx context.Context, by Caller, m Membership) error
	// DeleteMember removes the user from the team. It returns ErrNotFound if the user is
	// not a member.
	DeleteMember(ctx context.Context, by Caller, team, user string) error
	// ListMembers returns the memberships of the team ("" is every team) and the user (""
	// is every user), by team and user.
	ListMembers(ctx context.Context, team, user string) ([]Membership, error)
}

// Limits of link codes.
const (
	LinkLife  = 10 * time.Minute
	LinkTries = 5 // wrong codes that one person may enter within LinkLife
)

// Links joins a person's identities: a code created under one identity is redeemed under
// another.
type Links interface {
	// PutLink stores the hash of a code of the user, valid once and for [LinkLife]; an
	// earlier code of the user becomes invalid. It returns the expiry.
	PutLink(ctx context.Context, by Caller, user string, hash [32]byte) (time.Time, error)
	// FindLink returns the owner of the code, so that a person sees whom they are about to
	// be joined with. It returns ErrNotFound if the code is unknown, used or the caller's
	// own, ErrExpired if it is expired, and ErrRefused if the caller entered [LinkTries]
	// wrong codes, until LinkLife has passed.
	FindLink(ctx context.Context, by Caller, hash [32]byte) (User, error)
	// Join redeems the code and joins its owner with the caller, in one transaction. The
	// caller survives with both users' identities, teams, groups, tokens, settings and
	// personal credentials (the caller's own takes precedence if both have one), and the
	// stricter of their budgets. References to the other user are changed to the caller:
	// shares, policies of servers, channels and waiting calls, the settings
	// approvals.approvers and bots.access, and the other's approvals. If a policy needs
	// more different people than remain among those it names, admins are added to it. The
	// other's standing answers are deleted and waiting calls cancelled; the other's id
	// remains as an alias. Errors are FindLink's, and ErrRefused if a user is disabled, no
	// admin would be left, or a non-admin sets role ("" is the lower of the two).
	Join(ctx context.Context, by Caller, hash [32]byte, role Role) (Joined, error)
	// Unlink removes an identity from a user. When it appears again it creates a new user.
	// It returns ErrRefused for the user's last identity, for the last admin's, and if the
	// user is disabled.
	Unlink(ctx context.Context, by Caller, user, identity string) (User, error)
}

// Joined is the result of Join.
type Joined struct {
	User     User     `json:"user"`
	Absorbed User     `json:"absorbed"`          // as before
	Renamed  []string `json:"renamed,omitempty"` // new names of the absorbed user's tokens whose name was taken
}

// Leavers removes people.
type Leavers interface {
	// RemoveUser ends the user's access, as disabling does, and deletes the record,
	// identities, memberships and settings, in one transaction. The user's other records
	// stay until their retention ends. It returns ErrRefused for the last admin.
	RemoveUser(ctx context.Context, by Caller, user string) error
	// ForgetUser removes the user if they still exist, and erases all their stored data
	// except numbers: conversations, arguments and results of their calls, their names and
	// words elsewhere, and their part of the audit trail. erase, if not nil, erases what other
	// packages store about the user, by all of the user's ids, before the audit trail is
	// erased. It works in small transactions; after an interruption the next call continues,
	// and calls erase again. It returns ErrNotFound if there was never such a user, or
	// everything is erased.
	ForgetUser(ctx context.Context, by Caller, user string, erase Eraser) (Forgotten, error)
	// RemovedUser reports whether the id belongs to a user who was removed but not
	// forgotten, and returns all ids of that user.
	RemovedUser(ctx context.Context, user string) (ids []string, ok bool, err error)
}

// Eraser erases records of a user and counts them in f.
type Eraser func(ctx context.Context, ids []string, f *Forgotten) error

// Forgotten counts erased records.
type Forgotten struct {
	Conversations int `json:"conversations"`
	Turns         int `json:"turns"` // in other people's conversations
	Calls         int `json:"calls"`
	Running       int `json:"running"`             // running calls, whose data stays until the next attempt
	Feedback      int `json:"lessons"`             // requests that the index had learned from
	Documents     int `json:"documents,omitempty"` // of their own
	Events        int `json:"events"`
}

// codeText has no letters that are easily confused.
const codeText = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// codeLen letters are 60 random bits.
const codeLen = 12

// NewCode returns a code for a person to type, such as ABCD-EFGH-JKLM, and the hash that is
// stored.
func NewCode() (Secret, [32]byte) {
	b := make([]byte, codeLen)
	rand.Read(b) // never fails since Go 1.24
	for i := range b {
		b[i] = codeText[int(b[i])%len(codeText)] // 256 is a multiple of 32, so no letter is more likely
	}
	return NewSecret(string(b[:4]) + "-" + string(b[4:8]) + "-" + string(b[8:])), sha256.Sum256(b)
}

// ReadCode returns the hash of a typed code: letters of either case, with or without dashes
// and spaces. It returns ErrInvalid if the text can't be a code.
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
