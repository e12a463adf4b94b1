// Package spending is what models and tools were used for and what may be: rows of
// what calls cost, counters, budgets.
//
// # The buckets
//
//	spends        time, id            fixed columns, then strings, see spend.go
//	usage         dimension, period, key         fixed counters
//	usage_user    user 0 dimension, period, key  fixed counters; r: calls of tools with a budget, as they began
//	budgets       subject 0 period 0 unit [0 tool]   JSON
//	budget_marks  subject 0 period 0 unit [0 tool] 0 user  end of the period that was told of, what was told
//	reserved      spend id            JSON, of model calls that run
//
// Forms are those of package commit.
package spending

// Buckets are those of the nouns here.
var Buckets = []string{"spends", "usage", "usage_user", "budgets", "budget_marks", "reserved"}
