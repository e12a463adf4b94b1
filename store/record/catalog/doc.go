// Package catalog stores servers with their tools, models, channels, and the vectors of an
// index.
//
// # The buckets
//
//	servers       name                JSON
//	tools         server 0 name       pack: JSON, input schema, output schema, _meta
//	providers     name                pack: JSON, sealed key
//	models        name                JSON
//	channels      surface:team:channel               JSON
//	vectors/MODEL  key                little-endian float32; a bucket for each model
//
// Value forms are those of package commit.
package catalog

// Buckets are the buckets of this package.
var Buckets = []string{"servers", "tools", "providers", "models", "channels", "vectors"}
