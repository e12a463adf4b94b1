package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"nize/store"
	"nize/store/commit"
	"nize/store/record/access"
)

// PutProvider implements [store.Models]. If p has no Key, the stored key is kept if HasKey
// is set and deleted otherwise.
func (d Catalog) PutProvider(ctx context.Context, by store.Caller, p store.Provider) error {
	return d.db.Write(ctx, "storing provider "+p.Name, func(t *commit.Tx) error {
		p := p
		if err := commit.CheckIDs("provider", p.Name); err != nil {
			return err
		}
		var sealed []byte
		if v := t.Get("providers", []byte(p.Name)); v != nil {
			old, was, err := decodeProvider(v)
			if err != nil {
				return err
			}
			p.Created = old.Created
			if p.HasKey {
				sealed = was
			}
		}
		if !p.Key.IsZero() {
			sealed = t.Seal("providers", p.Name, []byte(p.Key.Reveal()))
		}
		if p.Created.IsZero() {
			p.Created = t.Now
		}
		p.HasKey = len(sealed) > 0
		head, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if err := t.Put("providers", []byte(p.Name), commit.Pack(head, sealed)); err != nil {
			return err
		}
		t.Change(store.Change{Kind: "provider", ID: p.Name})
		return t.Event(commit.Note{By: by, Kind: "provider.put", Subject: p.Name, Data: p})
	})
}

func decodeProvider(v []byte) (p store.Provider, sealed []byte, err error) {
	parts, err := commit.UnpackN(v, 2)
	if err != nil {
		return p, nil, err
	}
	p, err = commit.DecodeJSON[store.Provider](parts[0])
	return p, commit.CloneBytes(parts[1]), err
}

// ListProviders implements [store.Models].
func (d Catalog) ListProviders(ctx context.Context) ([]store.Provider, error) {
	stored, err := commit.Recall(ctx, d.db, "listing providers", allProviders{}, func(t *commit.Tx) (some storedProviders, err error) { // every model call reads it
		err = t.Each("providers", nil, func(_, v []byte) error {
			p, sealed, err := decodeProvider(v)
			some.list, some.keys = append(some.list, p), append(some.keys, commit.CloneBytes(sealed))
			return err
		})
		return some, err
	}, "providers")
	if err != nil {
		return nil, err
	}
	list, keys := slices.Clone(stored.list), stored.keys
	for i := range list {
		if len(keys[i]) == 0 {
			continue
		}
		plain, err := d.db.Unseal("providers", list[i].Name, keys[i])
		if err != nil {
			return nil, fmt.Errorf("opening the key of provider %s: %w", list[i].Name, err)
		}
		list[i].Key = store.NewSecret(string(plain))
	}
	return list, nil
}

// DeleteProvider implements [store.Models].
func (d Catalog) DeleteProvider(ctx context.Context, by store.Caller, name string) error {
	return d.remove(ctx, by, commit.Record{Kind: "provider", Bucket: "providers", ID: name})
}

// PutModel implements [store.Models].
func (d Catalog) PutModel(ctx context.Context, by store.Caller, m store.ModelName) error {
	return d.db.Write(ctx, "storing model "+m.Name, func(t *commit.Tx) error {
		if err := commit.CheckIDs("model", m.Name); err != nil {
			return err
		}
		if err := access.CheckGroups(t, m.Who); err != nil {
			return err
		}
		if m.Default {
			others, err := commit.ListJSON[store.ModelName](t, "models", nil)
			if err != nil {
				return err
			}
			for _, o := range others {
				if !o.Default || o.Name == m.Name {
					continue
				}
				o.Default = false
				if err := t.PutRecord(by, commit.Record{Kind: "model", Bucket: "models", ID: o.Name}, o); err != nil {
					return err
				}
			}
		}
		return t.PutRecord(by, commit.Record{Kind: "model", Bucket: "models", ID: m.Name}, m)
	})
}

// ListModels implements [store.Models].
func (d Catalog) ListModels(ctx context.Context) (list []store.ModelName, err error) {
	list, err = commit.Recall(ctx, d.db, "listing models", allModels{}, func(t *commit.Tx) ([]store.ModelName, error) { // every model call reads it
		return commit.ListJSON[store.ModelName](t, "models", nil)
	}, "models")
	return slices.Clone(list), err
}

// DeleteModel implements [store.Models].
func (d Catalog) DeleteModel(ctx context.Context, by store.Caller, name string) error {
	return d.remove(ctx, by, commit.Record{Kind: "model", Bucket: "models", ID: name})
}

func (d Catalog) remove(ctx context.Context, by store.Caller, th commit.Record) error {
	return d.db.Write(ctx, "removing "+th.Kind+" "+th.ID, func(t *commit.Tx) error {
		if t.Get(th.Bucket, []byte(th.ID)) == nil {
			return store.ErrNotFound
		}
		return t.RemoveRecord(by, th)
	})
}

// allProviders and allModels are the cache keys of the lists.
type (
	allProviders struct{}
	allModels    struct{}
)

type storedProviders struct {
	list []store.Provider
	keys [][]byte // sealed
}
