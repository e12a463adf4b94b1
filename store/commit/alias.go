package commit

import (
	"context"
	"slices"

	"nize/store"
)

// When two users are joined, the absorbed user's records keep the old id on disk, because a
// person may have made a hundred thousand calls. Whatever leaves the store names the
// surviving user, and a query for that user also walks the entries of the old ids.

// aliases are the absorbed ids.
type aliases struct {
	user map[string]string   // surviving id, by old id
	old  map[string][]string // old ids, by surviving id
}

// LoadAliases reads the aliases again after a change. If two run concurrently, the second
// sees both changes.
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

// Aliases returns a comparable value that identifies the current aliases and differs after
// every change.
func (d *DB) Aliases() any { return d.aliases.Load() }

// Alias returns the current id of a user.
func (d *DB) Alias(id string) string {
	if a := d.aliases.Load(); a != nil {
		if now, ok := a.user[id]; ok {
			return now
		}
	}
	return id
}

// AllIDs returns all ids under which a user's records are stored.
func (d *DB) AllIDs(id string) []string {
	id = d.Alias(id)
	ids := []string{id}
	if a := d.aliases.Load(); a != nil {
		ids = slices.Concat(ids, a.old[id])
	}
	return ids
}

// EntriesOf returns the key prefixes of a user's entries, of calls by requester and of
// conversations by user.
func (d *DB) EntriesOf(user string) (prefixes []string) {
	for _, id := range d.AllIDs(user) {
		prefixes = append(prefixes, "u"+id+"\x00")
	}
	return prefixes
}
