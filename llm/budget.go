package llm

import (
	"strings"
	"time"

	"nize/store"
)

// budgetName says whose budget it is, to the person who is refused or warned.
// What is behind a model's name is for admins.
func budgetName(s store.BudgetState, forAdmin bool) store.Text {
	kind, name, _ := strings.Cut(s.Subject, ":")
	switch {
	case kind == "user":
		return store.Textf("Your %s budget of %s", s.Period.Word(), s.Amount(s.Limit))
	case kind == "model" && !forAdmin:
		return store.Textf("The %s budget of the model (%s)", s.Period.Word(), s.Amount(s.Limit))
	}
	return store.Textf("The %s budget of %s %s (%s)", s.Period.Word(), kindWord(kind), name, s.Amount(s.Limit))
}

// resetText says when a budget does, in a person's zone.
func resetText(s store.BudgetState, zone *time.Location) store.Text {
	name := zone.String()
	return store.Textf("It resets on %s (%s).", store.Moment{Time: s.Resets.In(zone)}, name)
}

// budgetRefusal is what a person is told whom a budget refuses.
func budgetRefusal(e *store.BudgetError, zone *time.Location, forAdmin bool) store.Text {
	name := budgetName(e.BudgetState, forAdmin)
	switch {
	case e.Unpriced != "" && !forAdmin:
		return store.Textf("%s is in money, and nize was not told what the model costs. An admin can tell it.", name)
	case e.Unpriced != "":
		return store.Textf("%s is in money, and nize was not told what %s costs. An admin can tell it: nizectl models price %s --in USD --out USD", name, e.Unpriced, e.Unpriced)
	case !e.Spent():
		return store.Textf("%s is nearly used up, and answers that are being written now may need the rest. Please try again when they are there. %s", name, resetText(e.BudgetState, zone))
	}
	return store.Textf("%s is used up. %s An admin can raise it.", name, resetText(e.BudgetState, zone))
}

// budgetWarning is what a person is told once when a budget gets short.
func budgetWarning(s store.BudgetState, zone *time.Location, forAdmin bool) store.Text {
	name := budgetName(s, forAdmin)
	if s.Spent() {
		return store.Textf("%s is used up with this answer. %s", name, resetText(s, zone))
	}
	return store.Textf("%s is used to %d %%: %s. %s", name, s.Used*100/s.Limit, s.Amount(s.Used), resetText(s, zone))
}

// kindWord is what a subject of a budget is.
func kindWord(kind string) store.Text {
	switch kind {
	case "group":
		return store.Textf("group")
	case "team":
		return store.Textf("team")
	case "model":
		return store.Textf("model")
	}
	return store.Plain(kind)
}
