// Package project defines projects: their keys for programs over HTTP, and their rounds
// with a model.
//
// A project acts under the id project:ID in place of a user's id: as the requester of a
// call, in the shares of a server, and in budgets. User ids contain no colon.
package project

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"nize/store"
)

// Project is the owner of what programs do.
type Project struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"` // unique, with the form of a server's name
	Owner   string    `json:"owner"`
	Members []string  `json:"members"` // users' ids, without the owner; they may act for it
	Created time.Time `json:"created"`
	// Unattended are patterns of the tools that a round may run without approval:
	// server:tool of registered servers, label:tool of those sent with a request.
	Unattended []string `json:"unattended,omitempty"`
}

// Unattends reports whether a round may run a tool of that id without approval.
func (p Project) Unattends(id string) bool { return store.MatchAny(p.Unattended, id) }

// ReadPattern parses a pattern of [Project.Unattended]; a name alone is all tools of that
// server or label.
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

// Actor returns the id that represents a project in place of a user's id.
func Actor(id string) string { return prefix + id }

// IDOf returns the project of an [Actor].
func IDOf(user string) (id string, ok bool) { return strings.CutPrefix(user, prefix) }

// Caller returns the caller that acts for the project in a request over HTTP.
func (p Project) Caller() store.Caller {
	return store.Caller{User: Actor(p.ID), Name: p.Name, Role: store.Member, Surface: store.OnHTTP, Identity: Actor(p.ID)}
}

// User returns the project as a user, for rules about people. It can decide about its own
// calls, through the HTTP API.
func (p Project) User() store.User {
	return store.User{ID: Actor(p.ID), Name: p.Name, Role: store.Member, State: store.Active, Identities: []string{Actor(p.ID)}, Created: p.Created}
}

// Key is an API key, sent as x-api-key. Only the hash of its secret is stored.
type Key struct {
	ID       string    `json:"id"`
	Project  string    `json:"project"`
	Name     string    `json:"name"`
	Prefix   string    `json:"prefix"` // the beginning of the secret, to recognize it
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"last_used,omitzero"` // to the hour
	Revoked  time.Time `json:"revoked,omitzero"`
}

// Round is a request of a program that continues until the model has answered. Only the
// engine of rounds reads its state, which is sealed.
type Round struct {
	ID, Project, Conversation string
	State                     json.RawMessage
}

// Step is the progress of a round since it was last stored.
type Step struct {
	Round
	Thread *store.Thread // its conversation, if that is new
	Turns  []store.Turn  // new turns of the conversation
}

// Projects stores projects and their keys.
type Projects interface {
	// PutProject stores p by its id. It returns ErrExists if another one has its name, and
	// ErrNotFound if its owner or a member is not a user.
	PutProject(ctx context.Context, by store.Caller, p Project) error
	GetProject(ctx context.Context, id string) (Project, error)
	// ListProjects returns all projects by id.
	ListProjects(ctx context.Context) ([]Project, error)
	// DeleteProject removes a project with its keys and rounds.
	DeleteProject(ctx context.Context, by store.Caller, id string) error

	// PutKey stores a key under the hash of its secret. It returns ErrExists if the project
	// has an unrevoked one of that name.
	PutKey(ctx context.Context, by store.Caller, hash [32]byte, k Key) error
	// ListKeys returns the keys of a project, oldest first.
	ListKeys(ctx context.Context, project string) ([]Key, error)
	// RevokeKey revokes the key of that name. It returns ErrNotFound if there is no valid
	// one.
	RevokeKey(ctx context.Context, by store.Caller, project, name string) (Key, error)
	// UseKey returns the key with that hash and its project, and records its use. It
	// returns ErrNotFound for an unknown key and ErrRefused for a revoked one.
	UseKey(ctx context.Context, hash [32]byte) (Key, Project, error)
}

// Rounds stores rounds.
type Rounds interface {
	// PutRound stores a step of a round atomically; the round becomes the newest of its
	// conversation. If durable is false, the step survives a crash of this process, and
	// becomes durable together with any later durable write.
	PutRound(ctx context.Context, s Step, durable bool) error
	// GetRound returns a round of the project. It returns ErrNotFound also for another
	// project's.
	GetRound(ctx context.Context, project, id string) (Round, error)
	// LastRound returns the id of the newest round of a conversation of the project.
	LastRound(ctx context.Context, project, conversation string) (string, error)
	// PruneRounds deletes some of the rounds that began before a time, and returns their
	// number. It prunes temporary servers in the same way.
	PruneRounds(ctx context.Context, before time.Time) (int, error)
}
