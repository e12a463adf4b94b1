// Package database keeps everything in one database, nize.db.
//
// # The bucket tree
//
// All buckets stand at the top; 0 is a zero byte, numbers are big-endian,
// "pack" is length-prefixed parts (see pack.go). A field that must come back
// byte for byte (arguments, results, schemas) is a part of its own and never
// goes through encoding/json, which would rewrite its spaces and escapes.
//
//	meta                              schema, clock, audit_key, audit_head, audit_base, journal, vectors/MODEL: how many; sealed at rest where secret
//	keys          number              wrapped data key
//	servers       name                JSON
//	tools         server 0 name       pack: JSON, input schema, output schema, _meta
//	users         id                  JSON
//	identities    identity            user id
//	tokens        id                  JSON with hash
//	tokens_hash   hash                token id
//	tokens_name   user 0 name 0 id    -
//	credentials   scope 0 owner 0 service 0 name    pack: JSON, sealed secret
//	calls         id                  pack: JSON, sealed arguments, sealed result
//	calls_by      a|w|r|s state 0|u user 0|t thread 0|x thread 0, created, id    - (x: what tainted it)
//	grants        id                  owner
//	grants_user   owner 0 id          JSON
//	groups        name                JSON
//	groups_user   user 0 name         -, of those that are lists
//	groups_live   name                JSON: the last look at one that a platform keeps
//	groups_in     name 0 identity     1, who was in it then
//	members       team 0 user         JSON
//	members_user  user 0 team         -
//	links         hash of a code      JSON
//	link_tries    user                JSON
//	removed       user                JSON
//	threads       id                  JSON
//	threads_by    a|u user 0, updated, id; o id                       -
//	threads_at    surface 0 team 0 channel 0 thread    thread id
//	forgotten     surface 0 team 0 channel 0 thread    when a conversation there was forgotten
//	places        thread or call 0 message    JSON address
//	turns         thread 0 n          pack: JSON, opaque
//	files         thread 0 id         pack: time, bytes
//	files_by      time, thread 0 id   how many bytes
//	uploads       thread 0 id         time; of files that no turn names
//	behind        thread              n of the first turn that its chat may lack
//	inbox         id                  pack: JSON, -, sealed payload; of old: JSON, payload
//	inbox_keys    key                 time it was seen
//	inbox_seen    time, key           -
//	feed          seq                 pack: kind, id, thread, state, approved
//	events        seq                 pack, see audit.go
//	event_blocks  seq / 1024          pack: what occurs in these events, see block.go
//	checkpoints   seq of an event     its head, see checkpoint.go
//	erasures      user, or thread:id  JSON, while it is under way
//	spends        time, id            fixed columns, then strings, see spend.go
//	usage         dimension, period, key         fixed counters
//	usage_user    user 0 dimension, period, key  fixed counters; r: calls of tools with a budget, as they began
//	providers     name                pack: JSON, sealed key
//	models        name                JSON
//	budgets       subject 0 period 0 unit [0 tool]   JSON
//	budget_marks  subject 0 period 0 unit [0 tool] 0 user  end of the period that was told of, what was told
//	reserved      spend id            JSON, of model calls that run
//	incidents     i id; a kind 0 subject; d id                        JSON; id of the active one; -, its message is due
//	bots          surface             pack: JSON, sealed tokens
//	channels      surface:team:channel               JSON
//	claims        surface             JSON with hash
//	vectors/MODEL  key                little-endian float32; a bucket for each model
//
// The buckets of nouns that package record keeps, over kv.go, are drawn there.
//
// # Writing
//
// One goroutine writes (writer.go). It merges all operations that wait into
// one transaction, so sixteen at once share the flushes of a commit. An
// operation that errs is told its error and leaves no trace; the others of the
// same transaction are not disturbed. Results are handed out after the commit
// only. [DB.Record] and the noting of a token's last use do not wait: they go
// with the next transaction, at the latest after Options.ReadOnlyLag. So do calls
// that belong to no conversation of a chat, the rounds of programs and what model
// calls cost, once a journal beside the file has them; see early.go.
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
// refusing decision still gets
// through, in room that is kept for it (reserve.go).
//
// # Time
//
// Decisions about expiry use a clock that never goes back: the largest reading
// ever taken is stored with every commit, so that a clock jump revives nothing.
//
// # The engine
//
// Keys, values and transactions are a [kv.Engine]'s, of which package bolt below
// store/kv is the embedded one; its file is checked and opened there. What is
// here knows its interface alone.
package database
