// Package people stores users, identities, teams, link codes and bots.
//
// Value forms are those of package commit.
package people

import "nize/store/kv"

// Buckets are the buckets of this package.
var Buckets = []kv.Bucket{
	{Name: "users", Key: "id", Value: "JSON"},
	{Name: "identities", Key: "identity", Value: "user id"},
	{Name: "members", Key: "team 0 user", Value: "JSON"},
	{Name: "members_user", Key: "user 0 team"},
	{Name: "links", Key: "hash of a code", Value: "JSON"},
	{Name: "link_tries", Key: "user", Value: "JSON"},
	{Name: "removed", Key: "user", Value: "JSON"},
	{Name: "bots", Key: "surface", Value: "pack: JSON, sealed tokens"},
	{Name: "claims", Key: "surface", Value: "JSON with hash"},
	{Name: "identity_provider", Key: "oidc", Value: "JSON; its secret is sealed in identity_secrets"},
	{Name: "identity_people", Key: "identity", Value: "JSON: the provider's latest data about the person"},
	{Name: "identity_used", Key: "h hash", Value: "until when a second use must be refused; t until hash"},
	{Name: "scim_users", Key: "id", Value: "JSON: a person as stored by a directory"},
	{Name: "scim_groups", Key: "id", Value: "JSON: a group as stored by a directory; its members are in provided"},
	{Name: "scim_index", Key: "u, ue, g, ge 0 value", Value: "id: names of people and groups, and the directory's own ids"},
}
