package database

import (
	"context"
	"encoding/json"
	"fmt"

	"nize/store"
)

// PutProvider implements [store.Models]. Without a Key, one that is kept stays
// if HasKey is set and goes if it is not.
func (d *DB) PutProvider(ctx context.Context, by store.Caller, p store.Provider) error {
	return d.update(ctx, "storing provider "+p.Name, func(t *tx) error {
		p := p
		if err := checkIDs("provider", p.Name); err != nil {
			return err
		}
		var sealed []byte
		if v := t.get("providers", []byte(p.Name)); v != nil {
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
			sealed = t.seal("providers", p.Name, []byte(p.Key.Reveal()))
		}
		if p.Created.IsZero() {
			p.Created = t.now
		}
		p.HasKey = len(sealed) > 0
		head, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if err := t.put("providers", []byte(p.Name), pack(head, sealed)); err != nil {
			return err
		}
		t.change(store.Change{Kind: "provider", ID: p.Name})
		return t.event(auditNote{by: by, kind: "provider.put", subject: p.Name, data: p})
	})
}

func decodeProvider(v []byte) (p store.Provider, sealed []byte, err error) {
	parts, err := unpackN(v, 2)
	if err != nil {
		return p, nil, err
	}
	p, err = decodeJSON[store.Provider](parts[0])
	return p, cloneBytes(parts[1]), err
}

// ListProviders implements [store.Models].
func (d *DB) ListProviders(ctx context.Context) ([]store.Provider, error) {
	var (
		list []store.Provider
		keys [][]byte
	)
	err := d.view(ctx, "listing providers", func(t *tx) error {
		return t.each("providers", nil, func(_, v []byte) error {
			p, sealed, err := decodeProvider(v)
			list, keys = append(list, p), append(keys, sealed)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		if len(keys[i]) == 0 {
			continue
		}
		plain, err := d.unseal("providers", list[i].Name, keys[i])
		if err != nil {
			return nil, fmt.Errorf("opening the key of provider %s: %w", list[i].Name, err)
		}
		list[i].Key = store.NewSecret(string(plain))
	}
	return list, nil
}

// DeleteProvider implements [store.Models].
func (d *DB) DeleteProvider(ctx context.Context, by store.Caller, name string) error {
	return d.remove(ctx, by, thing{"provider", "providers", name})
}

// PutModel implements [store.Models].
func (d *DB) PutModel(ctx context.Context, by store.Caller, m store.ModelName) error {
	return d.update(ctx, "storing model "+m.Name, func(t *tx) error {
		if err := checkIDs("model", m.Name); err != nil {
			return err
		}
		if err := t.checkGroups(m.Who); err != nil {
			return err
		}
		if m.Default {
			others, err := listJSON[store.ModelName](t, "models", nil)
			if err != nil {
				return err
			}
			for _, o := range others {
				if !o.Default || o.Name == m.Name {
					continue
				}
				o.Default = false
				if err := t.putThing(by, thing{"model", "models", o.Name}, o); err != nil {
					return err
				}
			}
		}
		return t.putThing(by, thing{"model", "models", m.Name}, m)
	})
}

// ListModels implements [store.Models].
func (d *DB) ListModels(ctx context.Context) (list []store.ModelName, err error) {
	err = d.view(ctx, "listing models", func(t *tx) (err error) {
		list, err = listJSON[store.ModelName](t, "models", nil)
		return err
	})
	return list, err
}

// DeleteModel implements [store.Models].
func (d *DB) DeleteModel(ctx context.Context, by store.Caller, name string) error {
	return d.remove(ctx, by, thing{"model", "models", name})
}

// thing is a plain record: its kind in feed and trail, its bucket, its key.
type thing struct{ kind, bucket, id string }

func (t *tx) putThing(by store.Caller, th thing, v any) error {
	if err := t.putJSON(th.bucket, []byte(th.id), v); err != nil {
		return err
	}
	t.change(store.Change{Kind: th.kind, ID: th.id})
	return t.event(auditNote{by: by, kind: th.kind + ".put", subject: th.id, data: v})
}

func (d *DB) remove(ctx context.Context, by store.Caller, th thing) error {
	return d.update(ctx, "removing "+th.kind+" "+th.id, func(t *tx) error {
		if t.get(th.bucket, []byte(th.id)) == nil {
			return store.ErrNotFound
		}
		return t.removeThing(by, th)
	})
}

func (t *tx) removeThing(by store.Caller, th thing) error {
	if err := t.del(th.bucket, []byte(th.id)); err != nil {
		return err
	}
	t.change(store.Change{Kind: th.kind, ID: th.id})
	return t.event(auditNote{by: by, kind: th.kind + ".delete", subject: th.id})
}
