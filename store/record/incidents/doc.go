// Package incidents stores the incidents that operators are notified of.
//
// Value forms are those of package commit.
package incidents

import "nize/store/kv"

// Buckets are the buckets of this package.
var Buckets = []kv.Bucket{
	{Name: "incidents", Key: "i id; a kind 0 subject; d id", Value: "JSON; id of the active incident; -, a message is due"},
}
