package daemon

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
func (l *lookout) budgets(ctx context.Context, s *alert.Sight) error {
	if err := l.readBudgets(ctx); err != nil {
		return err
	}
	if len(l.spent) == 0 {
		return nil
	}
	names, err := l.d.directory.Names(ctx)
	if err != nil {
		return err
	}
	now := l.d.now()
	for _, k := range slices.SortedFunc(maps.Keys(l.spent), func(a, b alert.Key) int { return strings.Compare(a.Kind+a.Subject, b.Kind+b.Subject) }) {
		e := l.spent[k]
		if !now.Before(e.Resets) {
			delete(l.spent, k)
			continue
		}
		if _, out := l.spent[alert.Key{Kind: alert.BudgetOut, Subject: k.Subject}]; out && k.Kind == alert.BudgetLow {
			continue // it says less
		}
		s.Wrong = append(s.Wrong, budgetShort(k, e, names))
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
		a.Title, a.Text = "The "+what+" is used up", "Model calls on it are refused until "+resets+"."
	} else {
		a.Title, a.Text = "The "+what+" is nearly used up", "Model calls on it are refused once it is; it starts anew at "+resets+"."
	}
	return a
}

// readBudgets reads the events since the last look, and at first those of the
// longest period, a month.
func (l *lookout) readBudgets(ctx context.Context) error {
	const page = 500
	newest, err := l.d.db.Events(ctx, store.EventQuery{Limit: 1})
	if err != nil {
		return fmt.Errorf("reading the audit trail: %w", err)
	}
	if len(newest) == 0 || newest[0].Seq == l.after {
		return nil
	}
	for {
		q := store.EventQuery{Kind: "budget", After: l.after, Limit: page}
		if l.after == 0 {
			q.Since, q.Forward = l.d.now().Add(-budgetLonger), true
		}
		events, err := l.d.db.Events(ctx, q)
		if err != nil {
			return fmt.Errorf("reading the audit trail: %w", err)
		}
		for _, e := range events {
			l.noteBudget(e)
			l.after = max(l.after, e.Seq)
		}
		if len(events) < page {
			break
		}
	}
	l.after = max(l.after, newest[0].Seq) // or the next look goes through all of that again
	return nil
}

func (l *lookout) noteBudget(e store.Event) {
	b := budgetEvent{Subject: e.Subject}
	_ = json.Unmarshal(e.Data, &b) // data that says nothing leaves the defaults
	b.at = e.At
	switch e.Kind {
	case "budget.put", "budget.delete":
		for k, old := range l.spent {
			limit := b.Limit
			if e.Kind == "budget.delete" {
				limit = 0
			}
			same := old.Subject == b.Subject && old.Period == b.Period && old.Unit == b.Unit
			if same && old.at.Before(e.At) && (limit == 0 || old.Used < limit) {
				delete(l.spent, k)
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
		if old, ok := l.spent[k]; !ok || old.at.Before(e.At) {
			l.spent[k] = b
		}
	}
}
