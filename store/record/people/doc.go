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
//
// Forms are those of package commit.
package people

// Buckets are those of the nouns here.
var Buckets = []string{"users", "identities", "members", "members_user", "links", "link_tries", "removed", "bots", "claims"}
