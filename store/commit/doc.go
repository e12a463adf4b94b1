// Package commit is a database as the nouns below store/record see it: transactions
// over a [kv.Engine], and what goes with every one of them: the audit trail, the feed
// of changes, a clock that never goes back, the sealing of secrets. It knows no noun
// but users, whom the trail names.
//
// # The buckets
//
// All buckets stand at the top; 0 is a zero byte, numbers are big-endian,
// "pack" is length-prefixed parts (see pack.go). A field that must come back
// byte for byte (arguments, results, schemas) is a part of its own and never
// goes through encoding/json, which would rewrite its spaces and escapes.
//
//	meta                              schema, clock, clock_breaks, audit_key, audit_head, audit_base, journal, vectors/MODEL: how many; sealed at rest where secret
//	keys          number              wrapped data key
//	feed          seq                 pack: kind, id, thread, state, approved
//	events        seq                 pack, see audit.go
//	event_blocks  seq / 1024          pack: what occurs in these events, see block.go
//	checkpoints   seq of an event     its head, see checkpoint.go
//	erasures      user, or thread:id  JSON, while it is under way
//
// # Writing
//
// One goroutine writes (writer.go). It merges all operations that wait into
// one transaction, so sixteen at once share the flushes of a commit. An
// operation that errs is told its error and leaves no trace; the others of the
// same transaction are not disturbed. Results are handed out after the commit
// only. The record of a read-only call and the noting of a token's last use do not wait: they go
// with the next transaction, at the latest after [Options].ReadOnlyLag. So do calls
// that belong to no conversation of a chat, the rounds of programs and what model
// calls cost, once a journal beside the file has them; see journal.go.
//
// # Reading
//
// Reads are short transactions; every value is copied before the transaction
// ends (it may be mapped memory, and touching it later a fault that cannot be
// recovered). Nothing does I/O or calls a stranger inside a transaction: a long
// reader can stall the writer.
//
// # A full disk
//
// A write that finds no room is store.ErrDiskFull, and the records that nobody
// waits for are kept until there is some; so is the end of a call that ran. A
// refusing decision still gets through, in room that is kept for it (reserve.go).
//
// # Time
//
// Decisions about expiry use a clock that never goes back: the largest reading
// ever taken is stored with every commit, so that a clock jump revives nothing.
package commit

// Buckets are those that are drawn here; meta is made with the schema.
var Buckets = []string{"keys", "feed", "events", "event_blocks", "checkpoints", "erasures"}

// Appended are those of them that are only ever appended to.
var Appended = []string{"events", "feed"}
