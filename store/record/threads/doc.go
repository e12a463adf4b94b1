// Package threads stores conversations: turns, files, places, incoming messages, and the
// rounds of programs.
//
// Value forms are those of package commit.
package threads

import "nize/store/kv"

// Buckets are the buckets of this package.
var Buckets = []kv.Bucket{
	{Name: "threads", Key: "id", Value: "JSON"},
	{Name: "threads_by", Key: "a|o, updated, id; u user 0, updated, id", Value: "-; the size of its turns in bytes; absent in entries of earlier versions"},
	{Name: "threads_at", Key: "surface 0 team 0 channel 0 thread", Value: "thread id"},
	{Name: "forgotten", Key: "surface 0 team 0 channel 0 thread", Value: "when a conversation there was forgotten"},
	{Name: "places", Key: "thread or call 0 message", Value: "JSON address"},
	{Name: "turns", Key: "thread 0 n", Value: "pack: JSON, opaque"},
	{Name: "files", Key: "thread 0 id", Value: "pack: time, bytes"},
	{Name: "files_by", Key: "time, thread 0 id", Value: "size in bytes"},
	{Name: "files_of", Key: "thread 0 id", Value: "the owner; older files have none and belong to the conversation's user"},
	{Name: "uploads", Key: "thread 0 id", Value: "time; of files that no turn names"},
	{Name: "behind", Key: "thread", Value: "n of the first turn that its chat may lack"},
	{Name: "inbox", Key: "id", Value: "pack: JSON, -, sealed payload; of old: JSON, payload"},
	{Name: "inbox_keys", Key: "key", Value: "time it was seen"},
	{Name: "inbox_seen", Key: "time, key"},
}
