package record

import (
	"context"
	"errors"
	"slices"

	"nize/store"
	"nize/store/credential"
	"nize/store/kv"
)

// Declarations implements [credential.Store].
type Declarations struct{ db kv.DB }

var _ credential.Store = Declarations{}

var declarations = kv.Noun{Kind: "credential", Bucket: "credential_declarations"}

// PutDeclaration implements [credential.Store].
func (c Declarations) PutDeclaration(ctx context.Context, by store.Caller, d credential.Declaration) error {
	d, err := d.Normal()
	if err != nil {
		return err
	}
	return c.db.Update(ctx, "declaring the credential "+d.ID, func(tx kv.Tx) error {
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

// GetDeclaration implements [credential.Store].
func (c Declarations) GetDeclaration(ctx context.Context, id string) (credential.Declaration, error) {
	return kv.ReadJSON[credential.Declaration](ctx, c.db, "reading the declared credential "+id, declarations.Bucket, id)
}

// ListDeclarations implements [credential.Store].
func (c Declarations) ListDeclarations(ctx context.Context) ([]credential.Declaration, error) {
	all, err := c.db.Recall(ctx, "listing declared credentials", kv.WholeBucket(declarations.Bucket), func(r kv.Reader) (any, error) {
		return kv.ListJSON[credential.Declaration](r, declarations.Bucket, "")
	}, declarations.Bucket)
	if err != nil {
		return nil, err
	}
	return slices.Clone(all.([]credential.Declaration)), nil
}

// DeleteDeclaration implements [credential.Store].
func (c Declarations) DeleteDeclaration(ctx context.Context, by store.Caller, id string) error {
	return declarations.Remove(ctx, c.db, by, id)
}
