package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nize/daemon/alert"
	"nize/store"
)

const (
	// budgetLasts is how long a budget's event counts that does not say when
	// the budget starts anew.
	budgetLasts  = 24 * time.Hour
	budgetLonger = 31 * 24 * time.Hour
)

// budgetEvent is one warning or refusal of a budget. Its fields are those of
// the event's data that matter here.
type budgetEvent struct {
	at      time.Time
	Subject string    `json:"subject"` // of the budget; that of everybody is user:*
	Period  string    `json:"period"`
	Unit    string    `json:"unit"`
	Limit   int64     `json:"limit"`
	Used    int64     `json:"used"`
	Resets  time.Time `json:"resets"`
}

// budgets follows the audit trail, where budget.warned and budget.exceeded
// stand. An event counts until the budget starts anew, or has more room.
func (m *Monitor) budgets(ctx context.Context, r *alert.Result) error {
	if err := m.readBudgets(ctx); err != nil {
		return err
	}
	if len(m.spent) == 0 {
		return nil
	}
	names, err := m.Directory.Names(ctx)
	if err != nil {
		return err
	}
	now := m.Now()
	for _, k := range slices.SortedFunc(maps.Keys(m.spent), func(a, b alert.Key) int { return strings.Compare(a.Kind+a.Subject, b.Kind+b.Subject) }) {
		e := m.spent[k]
		if !now.Before(e.Resets) {
			delete(m.spent, k)
			continue
		}
		if _, out := m.spent[alert.Key{Kind: alert.BudgetOut, Subject: k.Subject}]; out && k.Kind == alert.BudgetLow {
			continue // it says less
		}
		r.Wrong = append(r.Wrong, budgetShort(k, e, names))
	}
	return nil
}

func budgetShort(k alert.Key, e budgetEvent, names map[string]string) alert.Symptom {
	a := alert.Symptom{Key: k, Cure: "nizectl budgets list"}
	whose, _, _ := strings.Cut(k.Subject, " ")
	if id, ok := strings.CutPrefix(whose, "user:"); ok && names[id] != "" {
		whose, a.Users = names[id], []string{id}
	}
	what := strings.Join(strings.Fields(e.Period+" budget of "+whose), " ")
	resets := e.Resets.UTC().Format("2006-01-02 15:04 MST")
	if k.Kind == alert.BudgetOut {
		a.Title, a.Text = store.Textf("The %s is used up", what), store.Textf("Model calls on it are refused until %s.", resets)
	} else {
		a.Title, a.Text = store.Textf("The %s is nearly used up", what), store.Textf("Model calls on it are refused once it is; it starts anew at %s.", resets)
	}
	return a
}

// readBudgets reads the events since the last check, and at first those of the
// longest period, a month.
func (m *Monitor) readBudgets(ctx context.Context) error {
	const page = 500
	newest, err := m.Store.Events(ctx, store.EventQuery{Limit: 1})
	if err != nil {
		return fmt.Errorf("reading the audit trail: %w", err)
	}
	if len(newest) == 0 || newest[0].Seq == m.after {
		return nil
	}
	for {
		q := store.EventQuery{Kind: "budget", After: m.after, Limit: page}
		if m.after == 0 {
			q.Since, q.Forward = m.Now().Add(-budgetLonger), true
		}
		events, err := m.Store.Events(ctx, q)
		if err != nil {
			return fmt.Errorf("reading the audit trail: %w", err)
		}
		for _, e := range events {
			m.noteBudget(e)
			m.after = max(m.after, e.Seq)
		}
		if len(events) < page {
			break
		}
	}
	m.after = max(m.after, newest[0].Seq) // or the next check goes through all of that again
	return nil
}

func (m *Monitor) noteBudget(e store.Event) {
	b := budgetEvent{Subject: e.Subject}
	_ = json.Unmarshal(e.Data, &b) // data that says nothing leaves the defaults
	b.at = e.At
	switch e.Kind {
	case "budget.put", "budget.delete":
		for k, old := range m.spent {
			limit := b.Limit
			if e.Kind == "budget.delete" {
				limit = 0
			}
			same := old.Subject == b.Subject && old.Period == b.Period && old.Unit == b.Unit
			if same && old.at.Before(e.At) && (limit == 0 || old.Used < limit) {
				delete(m.spent, k)
			}
		}
	case alert.BudgetLow, alert.BudgetOut:
		if e.Subject == "" {
			return
		}
		if b.Resets.IsZero() {
			b.Resets = e.At.Add(budgetLasts)
		}
		k := alert.Key{Kind: e.Kind, Subject: strings.Join(strings.Fields(e.Subject+" "+b.Period+" "+b.Unit), " ")}
		if old, ok := m.spent[k]; !ok || old.at.Before(e.At) {
			m.spent[k] = b
		}
	}
}
