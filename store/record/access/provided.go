package access

import (
	"slices"
	"strings"

	"nize/store"
	"nize/store/commit"
)

// The members of the identity provider's groups are stored by identity, like those of live
// groups. They are valid until the provider names others, so there is no check and no age.

// ProvidedOf returns the sorted names of an identity's groups at its provider.
func ProvidedOf(t *commit.Tx, identity string) (names []string) {
	prefix := commit.Key(identity, "")
	for _, k := range t.Keys("provided_of", prefix, 0) {
		names = append(names, string(k[len(prefix):]))
	}
	return names
}

// InProvided returns the identities in a group of the provider.
func InProvided(t *commit.Tx, name string) (identities []string) {
	prefix := commit.Key(name, "")
	for _, k := range t.Keys("provided", prefix, 0) {
		identities = append(identities, string(k[len(prefix):]))
	}
	return identities
}

// Provided is a change of an identity's groups.
type Provided struct {
	In  []string `json:"in,omitempty"`
	Out []string `json:"out,omitempty"`
}

// SetProvided makes names the groups of an identity at its provider. The caller appends the
// event.
func SetProvided(t *commit.Tx, identity string, names []string) (p Provided, err error) {
	old := ProvidedOf(t, identity)
	for _, name := range names {
		if !slices.Contains(old, name) && !slices.Contains(p.In, name) {
			p.In = append(p.In, name)
		}
	}
	for _, name := range old {
		if !slices.Contains(names, name) {
			p.Out = append(p.Out, name)
		}
	}
	return p, MoveProvided(t, identity, p)
}

// MoveProvided adds an identity to groups of its provider and removes it from others.
func MoveProvided(t *commit.Tx, identity string, p Provided) error {
	for _, name := range p.In {
		if err := commit.CheckIDs("group", name, "identity", identity); err != nil {
			return err
		}
		if err := t.Put("provided", commit.Key(name, identity), []byte{1}); err != nil {
			return err
		}
		if err := t.Put("provided_of", commit.Key(identity, name), []byte{1}); err != nil {
			return err
		}
	}
	for _, name := range p.Out {
		if err := t.Delete("provided", commit.Key(name, identity)); err != nil {
			return err
		}
		if err := t.Delete("provided_of", commit.Key(identity, name)); err != nil {
			return err
		}
	}
	for _, name := range slices.Concat(p.In, p.Out) {
		for _, group := range groupsFilledBy(t, name) {
			t.Change(store.Change{Kind: "group", ID: group})
		}
	}
	return nil
}

// groupsFilledBy returns the names of the groups here that have the members of a group of
// the provider.
func groupsFilledBy(t *commit.Tx, name string) (groups []string) {
	prefix := commit.Key(name, "")
	for _, k := range t.Keys("provided_to", prefix, 0) {
		groups = append(groups, string(k[len(prefix):]))
	}
	return groups
}

// providedTo returns the names of the groups here that contain the identities by their
// provider.
func providedTo(t *commit.Tx, identities []string) (groups []string) {
	for _, identity := range identities {
		if strings.HasPrefix(identity, store.OIDCSource) || strings.HasPrefix(identity, store.SCIMIdentity) {
			for _, name := range ProvidedOf(t, identity) {
				groups = append(groups, groupsFilledBy(t, name)...)
			}
		}
	}
	return groups
}

// loadProvided sets the members of a group that the provider fills.
func loadProvided(t *commit.Tx, g *store.Group) {
	g.Members = []string{}
	for _, identity := range InProvided(t, strings.TrimPrefix(g.Source, store.OIDCSource)) {
		if user := t.Get("identities", []byte(identity)); user != nil {
			g.Members = append(g.Members, string(user))
		}
	}
	slices.Sort(g.Members)
	g.Members = slices.Compact(g.Members)
}

// RenameSource changes the source of the groups here from one group of the provider to
// another.
func RenameSource(t *commit.Tx, by store.Caller, old, name string) error {
	for _, group := range groupsFilledBy(t, old) {
		g, err := commit.GetJSON[store.Group](t, "groups", []byte(group))
		if err != nil {
			return err
		}
		g.Source, g.Handle = store.OIDCSource+name, name
		if err := t.Delete("provided_to", commit.Key(old, group)); err != nil {
			return err
		}
		if err := t.Put("provided_to", commit.Key(name, group), []byte{1}); err != nil {
			return err
		}
		if err := t.PutRecord(by, commit.Record{Kind: "group", Bucket: "groups", ID: g.Name}, g); err != nil {
			return err
		}
	}
	return nil
}
