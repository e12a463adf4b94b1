// Package people is users and how they come in: identities, teams, codes that join
// two of them, the bots and who claimed one.
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
//	identity_people    identity       JSON: what the provider last said about the person
//	scim_users     id                 JSON: a person as a directory keeps them
//	scim_groups    id                 JSON: a group as a directory keeps it; its members are in provided
//	scim_index     u, ue, g, ge 0 value  id: names of people and groups, and the directory's own ids
//	identity_used      h hash         until when it matters that it was used; t until hash
//
// Forms are those of package commit.
package people

// Buckets are those of the nouns here.
var Buckets = []string{"users", "identities", "members", "members_user", "links", "link_tries", "removed", "bots", "claims", "identity_provider", "identity_people", "identity_used", "scim_users", "scim_groups", "scim_index"}
