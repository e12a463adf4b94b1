// Package threads is conversations: turns, files, where they are, what came in and
// waits, and the rounds of programs.
//
// # The buckets
//
//	threads       id                  JSON
//	threads_by    a|o, updated, id    -
//	              u user 0, updated, id    how many bytes its turns have; none in what earlier versions wrote
//	threads_at    surface 0 team 0 channel 0 thread    thread id
//	forgotten     surface 0 team 0 channel 0 thread    when a conversation there was forgotten
//	places        thread or call 0 message    JSON address
//	turns         thread 0 n          pack: JSON, opaque
//	files         thread 0 id         pack: time, bytes
//	files_by      time, thread 0 id   how many bytes
//	files_of      thread 0 id         who gave it; older files have none, and are whose conversation it is
//	uploads       thread 0 id         time; of files that no turn names
//	behind        thread              n of the first turn that its chat may lack
//	inbox         id                  pack: JSON, -, sealed payload; of old: JSON, payload
//	inbox_keys    key                 time it was seen
//	inbox_seen    time, key           -
//
// Forms are those of package commit.
package threads

// Buckets are those of the nouns here.
var Buckets = []string{"threads", "threads_by", "threads_at", "forgotten", "places", "turns", "files", "files_by", "files_of", "uploads", "behind", "inbox", "inbox_keys", "inbox_seen"}
