package commit

import (
	"context"
	"errors"
)

// Reindex completes an index that an earlier version did not maintain. compare returns the
// missing and the stale keys of the bucket. Reindex writes only if there are any.
func (d *DB) Reindex(ctx context.Context, what, bucket string, compare func(*Tx) (missing, stale [][]byte, err error)) error {
	differs := false
	err := d.Read(ctx, what, func(t *Tx) error {
		missing, stale, err := compare(t)
		differs = len(missing)+len(stale) > 0
		return err
	})
	if err != nil || !differs {
		return err
	}
	return d.Write(ctx, what, func(t *Tx) error {
		missing, stale, err := compare(t)
		for _, k := range missing {
			err = errors.Join(err, t.Put(bucket, k, nil))
		}
		for _, k := range stale {
			err = errors.Join(err, t.Delete(bucket, k))
		}
		return err
	})
}
