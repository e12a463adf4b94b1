// Package record stores records as keys and values over a [kv.DB], one file for each kind.
//
// Records that contain texts store their formats and arguments (texts.go), so that they can
// be printed in another language later.
//
// The packages below it store calls, people, conversations and other records that share
// transactions with them. They need more of a database than package kv offers and use
// package commit.
package record

import "nize/store/kv"

// Buckets are the buckets of this package. An engine creates them in a new database and in
// one that lacks them.
var Buckets = []kv.Bucket{
	{Name: "agents", Key: "id", Value: "JSON"},
	{Name: "prices", Key: "provider/model", Value: "JSON"},
	{Name: "examples", Key: "hash", Value: "JSON"},
	{Name: "hooks", Key: "name", Value: "JSON; a person's: owner/name"},
	{Name: "hook_revisions", Key: "id 0 revision", Value: "JSON"},
	{Name: "hook_secrets", Key: "id 0 revision", Sealed: true},
	{Name: "projects", Key: "id", Value: "JSON"},
	{Name: "project_keys", Key: "hash", Value: "JSON"},
	{Name: "rounds", Key: "project round", Sealed: true},
	{Name: "last_rounds", Key: "project conversation", Value: "round"},
	{Name: "temporary_servers", Key: "name", Value: "project 0 record", Sealed: true},
	{Name: "sweeps", Key: "surface", Value: "JSON"},
	{Name: "homes", Key: "identity", Value: "JSON, of earlier versions"},
	{Name: "settings", Key: "user 0 key", Value: "value"},
	{Name: "lessons", Key: "server 0 name", Value: "JSON list: the relevance feedback of a tool"},
	{Name: "oauth_clients", Key: "id", Value: "JSON"},
	{Name: "oauth_requests", Key: "id", Value: "JSON"},
	{Name: "oauth_codes", Key: "hash", Value: "id of the request"},
	{Name: "oauth_open", Key: "start time, id", Value: "whose quota the request counts for: a network's, or a person's by a link"},
	{Name: "oauth_families", Key: "hash", Value: "JSON: what the refresh tokens of a family share"},
	{Name: "oauth_access", Key: "hash", Value: "id of the family's token 0 its expiry"},
	{Name: "oauth_notices", Key: "id", Value: "JSON: a notice to a person about a sign-in"},
	{Name: "wishes", Key: "sorted words", Value: "JSON: an unmet request, counted by day"},
	{Name: "view_contexts", Key: "conversation 0 call", Value: "JSON: a view's context for the next message"},
	{Name: "view_states", Key: "call 0 user", Value: "the state of a view", Sealed: true},
	{Name: "identity_secrets", Key: "oidc", Value: "the client secret at the identity provider", Sealed: true},
}

// ErrDamaged is returned if a stored record cannot be read: the file is damaged.
var ErrDamaged = kv.ErrDamaged
