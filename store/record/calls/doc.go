// Package calls is every call of every tool, from its plan to its end.
//
// # The buckets
//
//	calls         id                  pack: JSON, sealed arguments, sealed result; in the compact form flags and the same, each made short
//	calls_by      a|w|r|q|s state 0|u user 0|p user 0|k user 0 hash|t thread 0|x thread 0, created, id    - (w, p: waiting, p by requester; q: asks, k by their key; x: what tainted it)
//
// In the compact form, calls that are done have no entry by state (s), and none has one for
// its result (r), but for calls that were still open when the results of their time were
// removed. Forms are those of package commit.
package calls

// Buckets are those of the nouns here.
var Buckets = []string{"calls", "calls_by"}
