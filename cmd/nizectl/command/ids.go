package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/store"
)

// ID is something that has one, and a word on what it is.
type ID struct{ ID, About string }

// Finder lists what an id may be the id of, the newest last or first.
type Finder func(ctx context.Context, c *api.Client) ([]ID, error)

// names makes a finder complete ids.
func (f Finder) names() Completer {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, c *api.Client) ([]string, error) {
		list, err := f(ctx, c)
		return Each(list, func(id ID) string { return id.ID }), err
	}
}

// leastHead is how much of an id must be given: it begins with the time, and less
// would be a head of all of a month.
const leastHead = 4

// shownMatches is how many ids an ambiguous head lists.
const shownMatches = 8

// WholeID returns the id that given is, or is the head of. What is the head of none
// is returned as it is: the daemon says that it isn't there.
func WholeID(ctx context.Context, c *api.Client, given string, find Finder) (string, error) {
	head := strings.ToUpper(strings.TrimSpace(given))
	if store.ValidID(head) {
		return head, nil
	}
	if len(head) < leastHead || len(head) > 26 || strings.ContainsFunc(head, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z')
	}) {
		return given, nil
	}
	list, err := find(ctx, c)
	if err != nil {
		return "", err
	}
	var found []ID
	for _, id := range list {
		if strings.HasPrefix(id.ID, head) && !slices.ContainsFunc(found, func(had ID) bool { return had.ID == id.ID }) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return given, nil
	case 1:
		return found[0].ID, nil
	}
	matches := Each(found[:min(len(found), shownMatches)], func(id ID) string {
		if id.About == "" {
			return id.ID
		}
		return fmt.Sprintf("%s (%s)", id.ID, Clip(id.About, 40))
	})
	if more := len(found) - len(matches); more > 0 {
		matches = append(matches, fmt.Sprintf("and %d more", more))
	}
	return "", Usagef("%s is the head of %d ids: %s; give more of it", given, len(found), strings.Join(matches, ", "))
}
