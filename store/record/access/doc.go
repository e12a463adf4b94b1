// Package access stores permissions: groups, standing answers, tokens, credentials.
//
// # The buckets
//
//	tokens        id                  JSON with hash
//	tokens_hash   hash                token id
//	tokens_name   user 0 name 0 id    -
//	credentials   scope 0 owner 0 service 0 name    pack: JSON, sealed secret
//	grants        id                  owner
//	grants_user   owner 0 id          JSON
//	grants_by     author 0 id         -
//	groups        name                JSON
//	groups_user   user 0 name         -, of groups that are lists
//	groups_live   name                JSON: the last check of a live group
//	groups_in     name 0 identity     1, its members at that time
//	provided      name 0 identity     1, the members of a group of the identity provider
//	provided_of   identity 0 name     1
//	provided_to   name 0 group        1, the groups here that have its members
//
// Value forms are those of package commit.
package access

// Buckets are the buckets of this package.
var Buckets = []string{"tokens", "tokens_hash", "tokens_name", "credentials", "grants", "grants_user", "grants_by", "groups", "groups_user", "groups_live", "groups_in", "provided", "provided_of", "provided_to"}
