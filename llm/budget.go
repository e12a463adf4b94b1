package llm

import (
	"time"

	"nize/store"
)

// budgetRefusal returns the message for a person whose request exceeds a budget.
func budgetRefusal(e *store.BudgetError, zone *time.Location, forAdmin bool) store.Text {
	name := e.Name(forAdmin)
	switch {
	case e.Unpriced != "" && !forAdmin:
		return store.Textf("%s is in money, and nize was not told what the model costs. An admin can tell it.", name)
	case e.Unpriced != "":
		return store.Textf("%s is in money, and nize was not told what %s costs. An admin can tell it: nizectl models price %s --in USD --out USD", name, e.Unpriced, e.Unpriced)
	case !e.Spent():
		return store.Textf("%s is nearly used up, and answers that are being written now may need the rest. Please try again when they are there. %s", name, e.ResetText(zone))
	}
	return e.UsedUp(forAdmin, zone)
}

// budgetWarning returns the message that a person gets once when a budget is nearly used
// up.
func budgetWarning(s store.BudgetState, zone *time.Location, forAdmin bool) store.Text {
	name := s.Name(forAdmin)
	if s.Spent() {
		return store.Textf("%s is used up with this answer. %s", name, s.ResetText(zone))
	}
	return store.Textf("%s is used to %d %%: %s. %s", name, s.Used*100/s.Limit, s.Amount(s.Used), s.ResetText(zone))
}
