package spending

import (
	"cmp"
	"context"
	"slices"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/record"
)

// NearlyUsedDefaults implements [store.Budgets]. It reads the counters of a period instead
// of each person's, so that the people who spent nothing cost nothing.
func (d Spending) NearlyUsedDefaults(ctx context.Context, userDaily int64) (list []store.BudgetState, err error) {
	if err := d.db.CatchUp(ctx); err != nil {
		return nil, err
	}
	now := d.db.Now()
	err = d.db.Read(ctx, "reading the budgets of all people", func(t *commit.Tx) error {
		t.Now, list = now, nil
		budgets, err := defaultBudgets(t, userDaily)
		if err != nil {
			return err
		}
		e := everyone{own: ownBudgets(t), spent: map[store.Period]map[string]record.Counters{}}
		for _, b := range budgets {
			if b.Limit == 0 {
				continue
			}
			found, err := e.nearly(t, b)
			if err != nil {
				return err
			}
			list = append(list, found...)
		}
		return nil
	})
	return list, err
}

// ownBudgets returns the keys of the budgets of single people.
func ownBudgets(t *commit.Tx) map[string]bool {
	own := map[string]bool{}
	for k := range t.Scan("budgets", kv.Range{Prefix: []byte("user:")}) {
		own[string(k)] = true
	}
	return own
}

// everyone is the use of the default budgets by each person, read when it is first needed.
type everyone struct {
	own      map[string]bool // keys of the budgets of single people
	spent    map[store.Period]map[string]record.Counters
	reserved map[string]store.Reservation // sums by user
	ids      []string                     // of all people
}

// nearly returns a default budget of each person who has used nearly all of it, the highest
// use first.
func (e *everyone) nearly(t *commit.Tx, b store.Budget) (list []store.BudgetState, err error) {
	from, resets := b.Period.Bounds(t.Now)
	used := map[string]int64{}
	if b.Unit == store.InCalls {
		if e.ids == nil {
			for _, k := range t.Keys("users", nil, 0) {
				e.ids = append(e.ids, string(k))
			}
		}
		for _, id := range e.ids {
			for _, stored := range t.DB.AllIDs(id) {
				n, err := runsOf(t, stored, b.Tool, from, resets)
				if err != nil {
					return nil, err
				}
				used[id] += n
			}
		}
	} else {
		if e.spent[b.Period] == nil {
			if e.spent[b.Period], err = spentByUser(t, from); err != nil {
				return nil, err
			}
		}
		for id, c := range e.spent[b.Period] {
			used[id] = of(b.Unit, c.Prompt+c.Completion, c.MicroUSD)
		}
	}
	for id, n := range used {
		s := store.BudgetState{Budget: b, User: id, Used: n, Resets: resets}
		own := b
		own.Subject = "user:" + id
		if !s.Nearly() || id == store.System.User || e.own[string(budgetKey(own))] {
			continue
		}
		if b.Unit != store.InCalls {
			if s.Reserved, err = e.reservedBy(t, id, b.Unit); err != nil {
				return nil, err
			}
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y store.BudgetState) int {
		return cmp.Or(cmp.Compare(y.Used, x.Used), cmp.Compare(x.User, y.User))
	})
	return list, nil
}

// spentByUser sums the cost of model calls by user, from the start of a period until now.
func spentByUser(t *commit.Tx, from time.Time) (map[string]record.Counters, error) {
	dim := Dimensions["user"]
	sums := map[string]record.Counters{}
	for k, v := range t.Scan("usage", kv.Range{Prefix: []byte{dim}, From: UsageKey(dim, from, ""), Before: UsageKey(dim, t.Now.AddDate(0, 0, 1), "")}) {
		c, err := record.DecodeCounters(v)
		if err != nil || len(k) < 5 {
			return nil, commit.ErrDamaged
		}
		id := t.DB.Alias(string(k[5:]))
		sum := sums[id]
		sum.Add(&c)
		sums[id] = sum
	}
	return sums, nil
}

// reservedBy returns the amount that a person's running model calls reserve.
func (e *everyone) reservedBy(t *commit.Tx, id string, unit store.Unit) (int64, error) {
	if e.reserved == nil {
		list, err := commit.ListJSON[store.Reservation](t, "reserved", nil)
		if err != nil {
			return 0, err
		}
		e.reserved = map[string]store.Reservation{}
		for _, r := range list {
			user := t.DB.Alias(r.Spend.User)
			sum := e.reserved[user]
			sum.Tokens, sum.MicroUSD = sum.Tokens+r.Tokens, sum.MicroUSD+r.MicroUSD
			e.reserved[user] = sum
		}
	}
	return of(unit, e.reserved[id].Tokens, e.reserved[id].MicroUSD), nil
}
