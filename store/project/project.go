// Package project has the words of what a program belongs to that comes over
// HTTP: its project, the keys by which it is known, and its rounds with a model.
//
// A project acts under the id project:ID wherever a user's id stands: as who
// asks for a call, whom a server is shared with, and who pays. No id of a user
// has a colon.
package project

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"nize/store"
)

// Project is what programs act for.
type Project struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"` // unique, of the form of a server's name
	Owner   string    `json:"owner"`
	Members []string  `json:"members"` // users' ids, without the owner's; they may act for it
	Created time.Time `json:"created"`
	// Unattended are patterns of the tools that a round may run without a person:
	// server:tool of registered servers, label:tool of those that a request brings.
	Unattended []string `json:"unattended,omitempty"`
}

// Unattends says whether a round may run a tool of that id without a person.
func (p Project) Unattends(id string) bool { return store.MatchAny(p.Unattended, id) }

// ReadPattern reads a pattern of [Project.Unattended]; a name alone is all tools of
// that server or label.
func ReadPattern(text string) (string, error) {
	text = strings.TrimSpace(text)
	server, tool, exact := strings.Cut(text, ":")
	switch {
	case text == "*":
		return text, nil
	case server == "" || exact && tool == "" || len(text) > 300 || strings.ContainsFunc(text, unicode.IsControl):
		return "", store.Errorf("%w tool pattern %q: want server:tool, server:* or a label", store.ErrInvalid, store.Clip(text, 100))
	case !exact:
		return text + ":*", nil
	}
	return text, nil
}

const prefix = "project:"

// Actor is what stands for a project where a user's id would.
func Actor(id string) string { return prefix + id }

// IDOf is the project behind an [Actor].
func IDOf(user string) (id string, ok bool) { return strings.CutPrefix(user, prefix) }

// Caller is who acts for the project, in a request over HTTP.
func (p Project) Caller() store.Caller {
	return store.Caller{User: Actor(p.ID), Name: p.Name, Role: store.Member, Surface: store.OnHTTP, Identity: Actor(p.ID)}
}

// User is the project as rules about people see it. It has a place to decide
// about its own calls, the HTTP API.
func (p Project) User() store.User {
	return store.User{ID: Actor(p.ID), Name: p.Name, Role: store.Member, State: store.Active, Identities: []string{Actor(p.ID)}, Created: p.Created}
}

// Key is what a program sends as x-api-key. Its secret is kept as a hash only.
type Key struct {
	ID       string    `json:"id"`
	Project  string    `json:"project"`
	Name     string    `json:"name"`
	Prefix   string    `json:"prefix"` // the head of the secret, to recognise it by
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"last_used,omitzero"` // to the hour
	Revoked  time.Time `json:"revoked,omitzero"`
}

// Round is a request of a program that goes on until the model has answered. Its
// state is the engine's, which alone reads it; it is sealed.
type Round struct {
	ID, Project, Conversation string
	State                     json.RawMessage
}

// Step is what a round came to since it was last stored.
type Step struct {
	Round
	Thread *store.Thread // its conversation, where that is new
	Turns  []store.Turn  // that follow those of the conversation
}

// Projects keeps them.
type Projects interface {
	// PutProject stores p by its id. ErrExists if another one has its name, and
	// ErrNotFound if its owner or a member is no user.
	PutProject(ctx context.Context, by store.Caller, p Project) error
	GetProject(ctx context.Context, id string) (Project, error)
	// ListProjects returns all of them by id.
	ListProjects(ctx context.Context) ([]Project, error)
	// DeleteProject removes it with its keys and rounds.
	DeleteProject(ctx context.Context, by store.Caller, id string) error

	// PutKey stores a key under the hash of its secret. ErrExists if the project
	// has one of that name that is not revoked.
	PutKey(ctx context.Context, by store.Caller, hash [32]byte, k Key) error
	// ListKeys returns those of a project, the oldest first.
	ListKeys(ctx context.Context, project string) ([]Key, error)
	// RevokeKey ends the key of that name. ErrNotFound if there is none that
	// works.
	RevokeKey(ctx context.Context, by store.Caller, project, name string) (Key, error)
	// UseKey returns the key with that hash and its project, and notes that it
	// was used. ErrNotFound for one that is unknown, ErrRefused for a revoked one.
	UseKey(ctx context.Context, hash [32]byte) (Key, Project, error)
}

// Rounds keeps them.
type Rounds interface {
	// PutRound stores a step of one, all of it or nothing; it becomes the newest of
	// its conversation. If it need not be durable by itself, it outlives this
	// process, and is durable with whatever is stored durably after it.
	PutRound(ctx context.Context, s Step, durable bool) error
	// GetRound returns one of the project's. ErrNotFound for another's too.
	GetRound(ctx context.Context, project, id string) (Round, error)
	// LastRound returns the id of the newest of a conversation of the project's.
	LastRound(ctx context.Context, project, conversation string) (string, error)
	// PruneRounds forgets those that began before a time, some at a time, and
	// says how many; so it does with temporary servers.
	PruneRounds(ctx context.Context, before time.Time) (int, error)
}
