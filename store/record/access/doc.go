// Package access stores permissions: groups, standing answers, tokens, credentials.
//
// Value forms are those of package commit.
package access

import "nize/store/kv"

// Buckets are the buckets of this package.
var Buckets = []kv.Bucket{
	{Name: "tokens", Key: "id", Value: "JSON with hash"},
	{Name: "tokens_hash", Key: "hash", Value: "token id"},
	{Name: "tokens_name", Key: "user 0 name 0 id"},
	{Name: "credentials", Key: "scope 0 owner 0 service 0 name", Value: "pack: JSON, sealed secret"},
	{Name: "grants", Key: "id", Value: "owner"},
	{Name: "grants_user", Key: "owner 0 id", Value: "JSON"},
	{Name: "grants_by", Key: "author 0 id"},
	{Name: "groups", Key: "name", Value: "JSON"},
	{Name: "groups_user", Key: "user 0 name", Value: "-, of groups that are lists"},
	{Name: "groups_live", Key: "name", Value: "JSON: the last check of a live group"},
	{Name: "groups_in", Key: "name 0 identity", Value: "1, its members at that time"},
	{Name: "provided", Key: "name 0 identity", Value: "1, the members of a group of the identity provider"},
	{Name: "provided_of", Key: "identity 0 name", Value: "1"},
	{Name: "provided_to", Key: "name 0 group", Value: "1, the groups here that have its members"},
}
