// Package spending stores usage and budgets: the cost of calls, counters and limits.
//
// Value forms are those of package commit.
package spending

import "nize/store/kv"

// Buckets are the buckets of this package.
var Buckets = []kv.Bucket{
	{Name: "spends", Key: "time, id", Value: "fixed columns, then strings, see spend.go"},
	{Name: "usage", Key: "dimension, period, key", Value: "fixed counters"},
	{Name: "usage_user", Key: "user 0 dimension, period, key", Value: "fixed counters; r: calls of tools with a budget, as they began"},
	{Name: "budgets", Key: "subject 0 period 0 unit [0 tool]", Value: "JSON"},
	{Name: "budget_marks", Key: "subject 0 period 0 unit [0 tool] 0 user", Value: "end of the reported period, what was reported"},
	{Name: "reserved", Key: "spend id", Value: "JSON, of running model calls"},
}
