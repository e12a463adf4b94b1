// Package people stores users, identities, teams, link codes and bots.
//
// # The buckets
//
//	users         id                  JSON
//	identities    identity            user id
//	members       team 0 user         JSON
//	members_user  user 0 team         -
//	links         hash of a code      JSON
//	link_tries    user                JSON
//	removed       user                JSON
//	bots          surface             pack: JSON, sealed tokens
//	claims        surface             JSON with hash
//	identity_provider  oidc           JSON; its secret is sealed in identity_secrets
//	identity_people    identity       JSON: the provider's latest data about the person
//	scim_users     id                 JSON: a person as stored by a directory
//	scim_groups    id                 JSON: a group as stored by a directory; its members are in provided
//	scim_index     u, ue, g, ge 0 value  id: names of people and groups, and the directory's own ids
//	identity_used      h hash         until when a second use must be refused; t until hash
//
// Value forms are those of package commit.
package people

// Buckets are the buckets of this package.
var Buckets = []string{"users", "identities", "members", "members_user", "links", "link_tries", "removed", "bots", "claims", "identity_provider", "identity_people", "identity_used", "scim_users", "scim_groups", "scim_index"}
