package database

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"nize/store/commit"
	"nize/store/kv"
	"nize/store/seal"
)

// VerifyEngine returns how many events of the audit trail are valid and how many secrets
// can be opened with the master key, or an error for the first that is not. The database
// must have passed InspectEngine or be a copy of one. modules are [Options.Buckets]. It changes
// nothing.
func VerifyEngine(ctx context.Context, e kv.Engine, master *seal.Master, modules []kv.Bucket) (events, secrets int, err error) {
	c := commit.Options{Engine: e, Log: slog.New(slog.DiscardHandler)}
	if err := loadKeys(&c, master); err != nil {
		return 0, 0, err
	}
	d := commit.New(c)
	if events, err = commit.TrailOf(d).VerifyEvents(ctx); err != nil {
		return events, 0, err
	}
	err = d.Read(ctx, "opening secrets", func(t *commit.Tx) error {
		keys, err := unwrapKeys(t.Raw, master)
		if err != nil {
			return err
		}
		// With a newer data key every sealed value would be resealed, so each is opened.
		last := slices.MaxFunc(keys, func(a, b seal.DataKey) int { return int(a.Number) - int(b.Number) })
		sealer, err := seal.NewSealer(append(keys, seal.NewDataKey(last.Number+1))...)
		if err != nil {
			return err
		}
		d.SetSealer(sealer)
		for _, s := range resealings(slices.Concat(Buckets, modules)) {
			err := t.Each(s.bucket, nil, func(k, v []byte) error {
				again, err := s.anew(t, k, v)
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					return fmt.Errorf("%s %q: %w", s.bucket, k, err)
				}
				if again != nil {
					secrets++
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return events, secrets, err
}
