package commit

import (
	"context"
	"slices"

	"nize/store"
)

// When two users become one, what the absorbed one did keeps its old id on
// disk: a person may have made a hundred thousand calls. Whatever leaves the
// store names the surviving user, and a query for that one walks the entries
// of the old ids too.

// aliases are the ids that were absorbed.
type aliases struct {
	user map[string]string   // surviving id, by old id
	old  map[string][]string // old ids, by surviving id
}

// LoadAliases reads them again, after a change. Of two that run at once the
// second sees what both changed.
func (d *DB) LoadAliases(ctx context.Context) error {
	d.aliases.Lock()
	defer d.aliases.Unlock()
	var users []store.User
	err := d.Read(ctx, "listing users", func(t *Tx) (err error) {
		users, err = ListJSON[store.User](t, "users", nil)
		return err
	})
	if err != nil {
		return err
	}
	d.setAliases(users)
	return nil
}

func (d *DB) setAliases(users []store.User) {
	a := &aliases{user: map[string]string{}, old: map[string][]string{}}
	for _, u := range users {
		for _, id := range u.Aliases {
			a.user[id] = u.ID
			a.old[u.ID] = append(a.old[u.ID], id)
		}
	}
	d.aliases.Store(a)
}

// Aliases identifies the present aliases: it is comparable, and another value after
// they changed.
func (d *DB) Aliases() any { return d.aliases.Load() }

// Alias is the id under which a user goes now.
func (d *DB) Alias(id string) string {
	if a := d.aliases.Load(); a != nil {
		if now, ok := a.user[id]; ok {
			return now
		}
	}
	return id
}

// AllIDs are the ids under which a user's records stand.
func (d *DB) AllIDs(id string) []string {
	id = d.Alias(id)
	ids := []string{id}
	if a := d.aliases.Load(); a != nil {
		ids = slices.Concat(ids, a.old[id])
	}
	return ids
}

// EntriesOf are the prefixes of a user's entries, of calls by requester and of
// conversations by who began them.
func (d *DB) EntriesOf(user string) (prefixes []string) {
	for _, id := range d.AllIDs(user) {
		prefixes = append(prefixes, "u"+id+"\x00")
	}
	return prefixes
}
