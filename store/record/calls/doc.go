// Package calls is every call of every tool, from its plan to its end.
//
// In the compact form, calls that are done have no entry by state (s), and none has one for
// its result (r), but for calls that were still open when the results of their time were
// removed. Forms are those of package commit.
package calls

import "nize/store/kv"

// Buckets are those of the nouns here.
var Buckets = []kv.Bucket{
	{Name: "calls", Key: "id", Value: "pack: JSON, sealed arguments, sealed result; in the compact form flags and the same, each made short"},
	{Name: "calls_by", Key: "a|w|r|q|s state 0|u user 0|p user 0|k user 0 hash|t thread 0|x thread 0, created, id", Value: "- (w, p: waiting, p by requester; q: asks, k by their key; x: what tainted it)"},
}
