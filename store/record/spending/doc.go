// Package spending stores usage and budgets: the cost of calls, counters and limits.
//
// # The buckets
//
//	spends        time, id            fixed columns, then strings, see spend.go
//	usage         dimension, period, key         fixed counters
//	usage_user    user 0 dimension, period, key  fixed counters; r: calls of tools with a budget, as they began
//	budgets       subject 0 period 0 unit [0 tool]   JSON
//	budget_marks  subject 0 period 0 unit [0 tool] 0 user  end of the reported period, what was reported
//	reserved      spend id            JSON, of running model calls
//
// Value forms are those of package commit.
package spending

// Buckets are the buckets of this package.
var Buckets = []string{"spends", "usage", "usage_user", "budgets", "budget_marks", "reserved"}
