// Package catalog stores servers with their tools, models, channels, and the vectors of an
// index.
//
// Value forms are those of package commit.
package catalog

import "nize/store/kv"

// Buckets are the buckets of this package.
var Buckets = []kv.Bucket{
	{Name: "servers", Key: "name", Value: "JSON"},
	{Name: "tools", Key: "server 0 name", Value: "pack: JSON, input schema, output schema, _meta"},
	{Name: "providers", Key: "name", Value: "pack: JSON, sealed key"},
	{Name: "models", Key: "name", Value: "JSON"},
	{Name: "channels", Key: "surface:team:channel", Value: "JSON"},
	{Name: "vectors", Key: "key", Value: "little-endian float32; each model has a bucket vectors/MODEL"},
}
