// Package threads stores conversations: turns, files, places, incoming messages, and the
// rounds of programs.
//
// # The buckets
//
//	threads       id                  JSON
//	threads_by    a|o, updated, id    -
//	              u user 0, updated, id    the size of its turns in bytes; absent in entries of earlier versions
//	threads_at    surface 0 team 0 channel 0 thread    thread id
//	forgotten     surface 0 team 0 channel 0 thread    when a conversation there was forgotten
//	places        thread or call 0 message    JSON address
//	turns         thread 0 n          pack: JSON, opaque
//	files         thread 0 id         pack: time, bytes
//	files_by      time, thread 0 id   size in bytes
//	files_of      thread 0 id         the owner; older files have none and belong to the conversation's user
//	uploads       thread 0 id         time; of files that no turn names
//	behind        thread              n of the first turn that its chat may lack
//	inbox         id                  pack: JSON, -, sealed payload; of old: JSON, payload
//	inbox_keys    key                 time it was seen
//	inbox_seen    time, key           -
//
// Value forms are those of package commit.
package threads

// Buckets are the buckets of this package.
var Buckets = []string{"threads", "threads_by", "threads_at", "forgotten", "places", "turns", "files", "files_by", "files_of", "uploads", "behind", "inbox", "inbox_keys", "inbox_seen"}
