package storetest

import (
	"errors"
	"fmt"
	"strings"

	"nize/store"
)

// unmetRequests: near-duplicates count together, the most wanted come first, nothing
// personal is kept, they can be forgotten, and one person counts so often a day.
func unmetRequests(e *env) {
	ctx := e.Context()
	for _, text := range []string{"book a flight to Lisbon", "Book flights to Lisbon, please", "print a label", "book a flight to Lisbon", "", "the of a"} {
		e.RecordUnmetRequest("ada", text)
	}
	e.RecordUnmetRequest("bert", "mail ada@example.org the key sk-abcdefghijklmnopqrstuvwxyz and call +41 79 123 45 67 "+strings.Repeat("now ", 500))
	e.ok(e.Flush(ctx))
	e.reopen()
	list, err := e.ListUnmetRequests(ctx)
	e.ok(err)
	if len(list) != 3 || list[0].Text != "book a flight to Lisbon" || list[0].Count != 3 || list[0].Last.Before(list[0].First) {
		e.Fatalf("unmet requests: %+v", list)
	}
	for _, w := range list {
		if len(w.Text) > 200 || strings.Contains(w.Text, "ada@") || strings.Contains(w.Text, "sk-a") || strings.Contains(w.Text, "123 45") {
			e.Errorf("kept: %q", w.Text)
		}
	}
	if _, err := e.DeleteUnmetRequests(ctx, ada, "launch a rocket"); !errors.Is(err, store.ErrNotFound) {
		e.Errorf("forgetting what is not there: %v", err)
	}
	n, err := e.DeleteUnmetRequests(ctx, ada, "flight to Lisbon, book")
	e.ok(err)
	if list, err = e.ListUnmetRequests(ctx); err != nil || n != 1 || len(list) != 2 {
		e.Errorf("after one was forgotten (%d): %+v, %v", n, list, err)
	}
	for i := range 1100 {
		e.RecordUnmetRequest(fmt.Sprint("person", i%100), fmt.Sprintf("request%d other%d", i, i))
	}
	e.ok(e.Flush(ctx))
	if list, err = e.ListUnmetRequests(ctx); err != nil || len(list) != 1000 {
		e.Errorf("%d requests are kept, %v", len(list), err)
	}
	if n, err = e.DeleteUnmetRequests(ctx, ada, ""); err != nil || n != 1000 {
		e.Errorf("forgot %d, %v", n, err)
	}
	e.RecordUnmetRequest("bert", "print a label")
	for i := range 1100 { // one person alone pushes out nothing
		e.RecordUnmetRequest("mia", fmt.Sprintf("thing%d object%d", i, i))
	}
	e.ok(e.Flush(ctx))
	if list, err = e.ListUnmetRequests(ctx); err != nil || len(list) != 1+store.MaxUnmetRequests {
		e.Errorf("%d requests of two people are kept, %v", len(list), err)
	}
}
