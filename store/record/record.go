// Package record stores records as keys and values over a [kv.DB], one file for each kind.
//
// Records that contain texts store their formats and arguments (texts.go), so that they can
// be printed in another language later.
//
// The packages below it store calls, people, conversations and other records that share
// transactions with them. They need more of a database than package kv offers and use
// package commit.
//
// # The buckets
//
//	agents          id              JSON
//	prices          provider/model  JSON
//	examples        hash            JSON
//	hooks           name            JSON; a person's: owner/name
//	hook_revisions  id 0 revision   JSON
//	hook_secrets    id 0 revision   sealed
//	projects        id              JSON
//	project_keys    hash            JSON
//	rounds          project round   sealed
//	last_rounds     project conversation  round
//	temporary_servers  name         sealed: project 0 record
//	extensions      name            JSON: the accepted definition
//	sweeps          surface         JSON
//	homes           identity        JSON, of earlier versions
//	settings        user 0 key      value
//	lessons         server 0 name   JSON list: the relevance feedback of a tool
//	oauth_clients   id              JSON
//	oauth_requests  id              JSON
//	oauth_codes     hash            id of the request
//	oauth_open      start time, id  whose quota the request counts for: a network's, or a person's by a link
//	oauth_families  hash            JSON: what the refresh tokens of a family share
//	oauth_access    hash            id of the family's token 0 its expiry
//	oauth_notices   id              JSON: a notice to a person about a sign-in
//	credential_declarations  id     JSON
//	plans           id              JSON
//	plan_assignments  subject       JSON
//	plan_messages   counter 0 month JSON: the number, and the newest keys
//	renderers       tool            JSON
//	link_keys       keys            sealed JSON list: keys that sign links, newest first
//	wishes          sorted words    JSON: an unmet request, counted by day
//	view_contexts   conversation 0 call  JSON: a view's context for the next message
//	view_states     call 0 user     sealed: the state of a view
//	identity_secrets  oidc          sealed: the client secret at the identity provider
package record

import "nize/store/kv"

// Buckets are the buckets of this package. An engine creates them in a new database and in
// one that lacks them.
var Buckets = []string{"agents", "prices", "examples", "hooks", "hook_revisions", "hook_secrets", "projects", "project_keys", "rounds", "last_rounds", "temporary_servers", "extensions", "sweeps", "homes", "settings", "lessons", "oauth_clients", "oauth_requests", "oauth_codes", "oauth_open", "oauth_families", "oauth_access", "oauth_notices", "credential_declarations", "plans", "plan_assignments", "plan_messages", "renderers", "wishes", "link_keys", "view_contexts", "view_states", "identity_secrets"}

// Sealed are the buckets with values stored by [kv.Tx.PutSealed].
var Sealed = []string{"hook_secrets", "rounds", "temporary_servers", "link_keys", "view_states", "identity_secrets"}

// ErrDamaged is returned if a stored record cannot be read: the file is damaged.
var ErrDamaged = kv.ErrDamaged
