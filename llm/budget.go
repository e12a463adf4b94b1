package llm

import (
	"fmt"
	"strings"
	"time"

	"nize/store"
)

// budgetName says whose budget it is, to the person who is refused or warned.
func budgetName(s store.BudgetState) string {
	kind, name, _ := strings.Cut(s.Subject, ":")
	if kind == "user" {
		return fmt.Sprintf("Your %s budget of %s", s.Period, s.Amount(s.Limit))
	}
	return fmt.Sprintf("The %s budget of %s %s (%s)", s.Period, kind, name, s.Amount(s.Limit))
}

// resetText says when a budget does, in a person's zone.
func resetText(s store.BudgetState, zone *time.Location) string {
	name := zone.String()
	return fmt.Sprintf("It resets on %s (%s).", s.Resets.In(zone).Format("Monday, 2 January, 15:04"), name)
}

// budgetRefusal is what a person is told whom a budget refuses.
func budgetRefusal(e *store.BudgetError, zone *time.Location) string {
	name := budgetName(e.BudgetState)
	switch {
	case e.Unpriced != "":
		return fmt.Sprintf("%s is in money, and nize was not told what %s costs. An admin can tell it: nizectl models price %s --in USD --out USD", name, e.Unpriced, e.Unpriced)
	case !e.Spent():
		return fmt.Sprintf("%s is nearly used up, and answers that are being written now may need the rest. Please try again when they are there. %s", name, resetText(e.BudgetState, zone))
	}
	return fmt.Sprintf("%s is used up. %s An admin can raise it.", name, resetText(e.BudgetState, zone))
}

// budgetWarning is what a person is told once when a budget gets short.
func budgetWarning(s store.BudgetState, zone *time.Location) string {
	if s.Spent() {
		return fmt.Sprintf("%s is used up with this answer. %s", budgetName(s), resetText(s, zone))
	}
	return fmt.Sprintf("%s is used to %d %%: %s. %s", budgetName(s), s.Used*100/s.Limit, s.Amount(s.Used), resetText(s, zone))
}
