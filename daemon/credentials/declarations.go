package credentials

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/store"
	"nize/store/credential"
	"nize/store/kv"
)

// Declarations stores declared credentials.
type Declarations struct {
	DB kv.DB // opened with [Buckets]
}

var declarations = kv.Noun{Kind: "credential", Bucket: "credential_declarations"}

// Buckets are the buckets of credentials. Their values are in store/record/access, since they are
// deleted with people and servers.
var Buckets = []kv.Bucket{{Name: declarations.Bucket, Key: "id", Value: "JSON"}}

// put stores a new or changed declaration.
func (c Declarations) put(ctx context.Context, by store.Caller, d credential.Declaration) error {
	d, err := d.Normal()
	if err != nil {
		return err
	}
	return c.DB.Update(ctx, "declaring the credential "+d.ID, func(tx kv.Tx) error {
		d := d
		old, err := kv.GetJSON[credential.Declaration](tx, declarations.Bucket, d.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			d.Created = tx.Now()
		case err != nil:
			return err
		default:
			d.Created = old.Created
		}
		return declarations.Put(tx, by, d.ID, d)
	})
}

// get returns a declaration, or ErrNotFound.
func (c Declarations) get(ctx context.Context, id string) (credential.Declaration, error) {
	return kv.ReadJSON[credential.Declaration](ctx, c.DB, "reading the declared credential "+id, declarations.Bucket, id)
}

// list returns all declarations, by id.
func (c Declarations) list(ctx context.Context) ([]credential.Declaration, error) {
	all, err := c.DB.Recall(ctx, "listing declared credentials", kv.WholeBucket(declarations.Bucket), func(r kv.Reader) (any, error) {
		return kv.ListJSON[credential.Declaration](r, declarations.Bucket, "")
	}, declarations.Bucket)
	if err != nil {
		return nil, err
	}
	return slices.Clone(all.([]credential.Declaration)), nil
}

// delete removes a declaration; its values stay until they are removed.
func (c Declarations) delete(ctx context.Context, by store.Caller, id string) error {
	return declarations.Remove(ctx, c.DB, by, id)
}

// find returns a declaration. If there is none, its error suggests the nearest id.
func (c Declarations) find(ctx context.Context, id string) (credential.Declaration, error) {
	all, err := c.list(ctx)
	if err != nil {
		return credential.Declaration{}, err
	}
	ids := make([]string, len(all))
	for i, d := range all {
		if ids[i] = d.ID; d.ID == id {
			return d, nil
		}
	}
	return credential.Declaration{}, store.Unknown("declared credential", id, ids)
}

// CheckServer returns an error for a server whose values refer to an undeclared credential
// or to more than one, and for a server with the name of a declared credential.
func (c Declarations) CheckServer(ctx context.Context, s store.Server) error {
	if _, err := c.get(ctx, s.Name); err == nil { // both would refer to the same values
		return store.Mark(fmt.Errorf("there is a declared credential %s, which has values under that name; choose another name", s.Name), store.ErrConflict)
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	id, err := s.Declared()
	if err != nil || id == "" {
		return err
	}
	d, err := c.find(ctx, id)
	if err == nil && d.Mode.SignsIn() && s.Transport == store.Stdio {
		return store.Mark(fmt.Errorf("%s is connected by signing in: its tokens expire, and a running command can't get the next one; use it in a header of a URL, or in an extension", id), store.ErrRefused)
	}
	return err
}
