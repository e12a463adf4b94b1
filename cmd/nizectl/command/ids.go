package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/store"
)

// ID is an id and a description of its object.
type ID struct{ ID, About string }

// Finder returns the objects with ids of one kind, newest first or last.
type Finder func(ctx context.Context, c *api.Client) ([]ID, error)

// names returns a completer for the ids.
func (f Finder) names() Completer {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, c *api.Client) ([]string, error) {
		list, err := f(ctx, c)
		return Each(list, func(id ID) string { return id.ID }), err
	}
}

// leastHead is the minimum length of an id's prefix: an id begins with the time, and a
// shorter one would match all ids of a month.
const leastHead = 4

// shownMatches is how many ids an error about an ambiguous prefix lists.
const shownMatches = 8

// WholeID returns the id that given is, or is a prefix of. If it is a prefix of none, it is
// returned unchanged, and the daemon returns the error.
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
	return "", Usagef("%s is a prefix of %d ids: %s; give more characters", given, len(found), strings.Join(matches, ", "))
}
