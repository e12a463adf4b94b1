package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/kv/transfer"
	"nize/store/record"
	"nize/store/record/access"
	"nize/store/record/calls"
	"nize/store/record/catalog"
	"nize/store/record/incidents"
	"nize/store/record/people"
	"nize/store/record/spending"
	"nize/store/record/threads"
	"nize/store/seal"
)

// migration upgrades a database from the previous version to its own.
type migration struct {
	version uint64
	what    string
	apply   func(kv.Transaction) error // nil: nothing has to change
	// asked is set if a database that is there is not migrated when it is opened, since
	// the version before could not open it then: [DB.Compact] does.
	asked bool
}

// migrations is the complete history of the schema, oldest first. A new version is appended
// here, with a test that starts from the previous one; released migrations never change.
var migrations = []migration{
	{version: 1, what: "all buckets", apply: func(b kv.Transaction) error { return makeBuckets(b, Buckets) }},
	{version: commit.CompactSchema, what: "compact records", asked: true},
}

// Schema returns the version that this program migrates a database to.
func Schema() uint64 { return migrations[len(migrations)-1].version }

// MigrationError is the error of a failed migration. The file is unchanged.
type MigrationError struct {
	To  uint64
	Err error
}

func (e *MigrationError) Error() string {
	return fmt.Sprintf("migrating to schema %d: %v", e.To, e.Err)
}
func (e *MigrationError) Unwrap() error { return e.Err }

// Buckets are all buckets of commit and the record packages. Adding one needs no migration:
// Open creates missing buckets, and an older nized ignores it.
var Buckets = slices.Concat(commit.Buckets, record.Buckets, access.Buckets, calls.Buckets, catalog.Buckets, incidents.Buckets, people.Buckets, spending.Buckets, threads.Buckets)

// fillOf is how full pages of the buckets are left whose keys are put in their order: of
// records that never change completely, of calls with room for the end of some. The
// index of calls consists of a few such runs of keys.
var fillOf = map[string]float64{"events": 1, "feed": 1, "spends": 1, "calls": 0.9, "calls_by": 0.9}

func makeBuckets(b kv.Transaction, list []kv.Bucket) error {
	for _, one := range list {
		if err := b.Make(one.Name); err != nil {
			return fmt.Errorf("making bucket %s: %w", one.Name, err)
		}
	}
	return nil
}

// addBuckets creates missing buckets; if none is missing it writes nothing. It computes the
// counters of persons from the existing rows.
func addBuckets(e kv.Engine, wanted []kv.Bucket) error {
	var have []string
	err := commit.Transact(e, false, func(b kv.Transaction) (err error) {
		have, err = b.Buckets()
		return err
	})
	if err != nil || !slices.ContainsFunc(wanted, func(b kv.Bucket) bool { return !slices.Contains(have, b.Name) }) {
		return err
	}
	return commit.Transact(e, true, func(b kv.Transaction) error {
		if err := makeBuckets(b, wanted); err != nil || slices.Contains(have, "usage_user") {
			return err
		}
		return spending.Recount(b)
	})
}

// schemaOf returns the version of the database, 0 for an empty one.
func schemaOf(b kv.Transaction) (uint64, error) {
	have, err := b.Buckets()
	if err != nil || len(have) == 0 {
		return 0, err
	}
	if !slices.Contains(have, "meta") {
		return 0, fmt.Errorf("%w file: it is another program's database", store.ErrInvalid)
	}
	if half, err := transfer.Unfinished(b, "meta"); err != nil {
		return 0, err
	} else if half {
		return 0, store.Mark(errors.New("it is half a copy, which was cut off; empty it (remove its file, or drop and create it on its server) and copy again, with: nizectl database copy"), store.ErrRefused)
	}
	v, err := b.Get("meta", []byte("schema"))
	if err == nil && len(v) != 8 {
		err = fmt.Errorf("%w: no schema version", commit.ErrDamaged)
	}
	if err != nil {
		return 0, err
	}
	return commit.DecodeSeq(v), nil
}

// migrate applies the missing migrations in one transaction, after making a copy.
func migrate(c *commit.Options, list []migration) error {
	var have uint64
	err := commit.Transact(c.Engine, false, func(b kv.Transaction) (err error) {
		have, err = schemaOf(b)
		return err
	})
	if err != nil {
		return err
	}
	want, newest := list[len(list)-1].version, list[len(list)-1].version
	for i := len(list) - 1; have > 0 && list[i].asked && want > have; i-- {
		want = list[i].version - 1
	}
	c.Schema = want
	switch {
	case have == want:
		return nil
	case have > newest:
		return newerSchema(have, newest)
	}
	copied := ""
	if have > 0 && c.File != nil { // other engines are backed up by their operators
		copied = fmt.Sprintf("%s.before-schema-%d", c.Path, want)
		if err = c.File.CopyBefore(copied); err != nil {
			return &MigrationError{want, fmt.Errorf("copying the database before: %w", err)}
		}
	}
	err = commit.Transact(c.Engine, true, func(b kv.Transaction) error {
		if err := b.Make("meta"); err != nil {
			return err
		}
		for _, m := range list {
			if m.version <= have || m.apply == nil {
				continue
			}
			if err := m.apply(b); err != nil {
				return fmt.Errorf("migrating to schema %d (%s): %w", m.version, m.what, err)
			}
		}
		return b.Put("meta", []byte("schema"), commit.SeqKey(want))
	})
	if err != nil && have > 0 {
		return &MigrationError{want, err}
	}
	if err == nil && have == 0 && c.File != nil { // a new file: its directory entry must also survive a power failure
		err = commit.SyncFile(filepath.Dir(c.Path))
	}
	if err == nil && copied != "" {
		// A warning, so that it is read: returning to the copy loses later writes.
		c.Log.Warn("database migrated", "from", have, "to", want, "copy", copied,
			"way_back", fmt.Sprintf("stop nized; mv '%s' '%s'; start the older nized", copied, c.Path))
	}
	return err
}

// Check returns an error if this program, with that key, could not open the database of an
// engine that another process uses.
func Check(ctx context.Context, e kv.Engine, master *seal.Master) error {
	b, err := e.Begin(ctx, false)
	if err != nil {
		return err
	}
	defer b.Rollback()
	if have, err := schemaOf(b); err != nil || have > Schema() {
		return cmp.Or(err, newerSchema(have, Schema()))
	}
	_, err = unwrapKeys(b, master)
	return err
}

func newerSchema(have, want uint64) error {
	return fmt.Errorf("%w: its schema is %d, this nized knows %d; use the newer nized, or restore the backup made before the upgrade", store.ErrOldSchema, have, want)
}

// loadKeys opens the data keys and the audit key, and creates them in a new database. It
// returns seal.ErrWrongKey for another master key.
func loadKeys(c *commit.Options, master *seal.Master) error {
	var keys []seal.DataKey
	err := commit.Transact(c.Engine, false, func(b kv.Transaction) (err error) {
		keys, err = unwrapKeys(b, master)
		return err
	})
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return makeKeys(c, master)
	}
	if c.Sealer, err = seal.NewSealer(keys...); err != nil {
		return err
	}
	return commit.Transact(c.Engine, false, func(b kv.Transaction) error {
		sealed, err := b.Get("meta", []byte("audit_key"))
		if err != nil {
			return err
		}
		if c.AuditKey, err = c.Sealer.Open(seal.Place("meta", []byte("audit_key")), commit.CloneBytes(sealed)); err != nil {
			return fmt.Errorf("opening the audit key: %w", err)
		}
		return nil
	})
}

func makeKeys(c *commit.Options, master *seal.Master) error {
	return commit.Transact(c.Engine, true, func(b kv.Transaction) (err error) {
		if t := (&commit.Tx{Raw: b}); t.First("calls", nil) != nil {
			return fmt.Errorf("%w: it has records but no data key", commit.ErrDamaged)
		}
		dk := seal.NewDataKey(1)
		wrapped, err := master.Wrap(dk)
		if err != nil {
			return err
		}
		if c.Sealer, err = seal.NewSealer(dk); err != nil {
			return err
		}
		var head []byte
		c.AuditKey, head = commit.NewTrail()
		return errors.Join(
			b.Put("keys", keyNumber(dk.Number), wrapped),
			b.Put("meta", []byte("audit_head"), head),
			b.Put("meta", []byte("audit_key"), c.Sealer.Seal(seal.Place("meta", []byte("audit_key")), c.AuditKey)),
		)
	})
}
