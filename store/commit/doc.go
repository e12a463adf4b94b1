// Package commit provides transactions over a [kv.Engine] with an audit trail, a change
// feed and sealed secrets.
//
// The packages below store/record store their records through it. Its clock never goes
// back. Of the records it knows only users, whom the trail names.
//
// # The buckets
//
// All buckets are at the top level; 0 is a zero byte, numbers are big-endian, "pack" is
// length-prefixed parts (see pack.go). A field that must be returned byte for byte
// (arguments, results, schemas) is a part of its own and never passes through
// encoding/json, which would rewrite its spaces and escapes.
//
// # Writing
//
// One goroutine writes (writer.go). It merges all waiting operations into one transaction,
// so sixteen concurrent ones share the flushes of a commit. If an operation fails, its
// caller gets the error and none of its changes remain; the other operations of the same
// transaction are unaffected. Results are returned only after the commit. The record of a
// read-only call and a token's last use are written without a waiting caller: they join the
// next transaction, at the latest after [Options].ReadOnlyLag. So do calls outside a chat
// conversation, the rounds of programs and the cost of model calls, once a journal beside
// the file has them; see journal.go.
//
// # Reading
//
// Reads are short transactions. Every value is copied before the transaction ends, because
// it may be mapped memory, and accessing it later would be an unrecoverable fault. Nothing
// does I/O or calls foreign code inside a transaction: a long reader can stall the writer.
//
// # A full disk
//
// A write returns store.ErrDiskFull if there is no space. Records without a waiting caller
// are kept in memory until there is space; so is the end of a call that ran. A denial is
// still written, in reserved space (reserve.go).
//
// # Time
//
// Expiry decisions use a clock that never goes back: the largest reading ever taken is
// stored with every commit, so a clock jump can't make anything valid again.
package commit

import "nize/store/kv"

// Buckets are the buckets of this package.
var Buckets = []kv.Bucket{
	{Name: "meta", Key: "schema, clock, clock_breaks, audit_key, audit_head, audit_base, journal, outputs_pruned, vectors/MODEL: how many", Value: "sealed at rest if secret"},
	{Name: "keys", Key: "number", Value: "wrapped data key"},
	{Name: "feed", Key: "seq", Value: "pack: kind, id, thread, state, approved; or compact, see form.go"},
	{Name: "events", Key: "seq", Value: "pack, see audit.go; or compact, see form.go"},
	{Name: "event_blocks", Key: "seq / 1024", Value: "pack: values that occur in these events, see block.go"},
	{Name: "checkpoints", Key: "seq of an event", Value: "its head, see checkpoint.go"},
	{Name: "erasures", Key: "user, or thread:id", Value: "JSON, while the erasure is unfinished"},
}
