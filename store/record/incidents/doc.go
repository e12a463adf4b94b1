// Package incidents stores the incidents that operators are notified of.
//
// # The buckets
//
//	incidents     i id; a kind 0 subject; d id                        JSON; id of the active incident; -, a message is due
//
// Value forms are those of package commit.
package incidents

// Buckets are the buckets of this package.
var Buckets = []string{"incidents"}
