// Package incidents is what operators were alerted of.
//
// # The buckets
//
//	incidents     i id; a kind 0 subject; d id                        JSON; id of the active one; -, its message is due
//
// Forms are those of package commit.
package incidents

// Buckets are those of the nouns here.
var Buckets = []string{"incidents"}
