package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"nize/store"
	"nize/store/kv"
	"nize/store/kv/transfer"
	"nize/store/record"
	"nize/store/seal"
)

// migration brings a database from the version before to its own.
type migration struct {
	version uint64
	what    string
	apply   func(kv.Transaction) error
}

// migrations is the whole history of the schema, oldest first. A new version
// is appended here, with a test that starts from the one before; nothing that
// was released is changed.
var migrations = []migration{
	{1, "all buckets", makeBuckets},
}

// Schema is the version that this program brings a database to.
func Schema() uint64 { return migrations[len(migrations)-1].version }

// MigrationError is why a database could not be brought to a newer schema. The
// file is as it was.
type MigrationError struct {
	To  uint64
	Err error
}

func (e *MigrationError) Error() string {
	return fmt.Sprintf("migrating to schema %d: %v", e.To, e.Err)
}
func (e *MigrationError) Unwrap() error { return e.Err }

// buckets are those of the trees in the comments of this package and of record.
// One that is added here
// needs no migration: it is made on open where it lacks, and an older nized
// doesn't look at it.
var buckets = append([]string{
	"keys", "servers", "tools", "users", "identities", "tokens", "tokens_hash", "tokens_name",
	"credentials", "calls", "calls_by", "grants", "grants_user", "groups", "groups_user", "groups_live", "groups_in", "members", "members_user", "links", "link_tries", "removed", "threads", "threads_by", "turns",
	"inbox", "inbox_keys", "inbox_seen", "feed", "events", "spends", "usage", "usage_user",
	"providers", "models", "budgets", "budget_marks", "reserved", "vectors", "checkpoints", "erasures", "forgotten", "incidents", "bots", "channels", "claims", "threads_at", "places", "wishes", "event_blocks", "files", "files_by", "uploads", "behind",
}, record.Buckets...)

// appended are those that are only ever appended to.
var appended = []string{"events", "feed", "spends"}

func makeBuckets(b kv.Transaction) error {
	for _, name := range buckets {
		if err := b.Make(name); err != nil {
			return fmt.Errorf("making bucket %s: %w", name, err)
		}
	}
	return nil
}

// addBuckets makes those that the database lacks, and writes only then. The
// counters of persons are made of the rows that are there.
func (d *DB) addBuckets() error {
	var have []string
	err := d.begin(false, func(b kv.Transaction) (err error) {
		have, err = b.Buckets()
		return err
	})
	if err != nil || !slices.ContainsFunc(buckets, func(name string) bool { return !slices.Contains(have, name) }) {
		return err
	}
	return d.begin(true, func(b kv.Transaction) error {
		if err := makeBuckets(b); err != nil || slices.Contains(have, "usage_user") {
			return err
		}
		return recount(b)
	})
}

// begin runs fn in a transaction before the writer runs.
func (d *DB) begin(write bool, fn func(kv.Transaction) error) error {
	b, err := d.engine.Begin(context.Background(), write)
	if err != nil {
		return err
	}
	defer b.Rollback()
	if err := fn(b); err != nil || !write {
		return err
	}
	return b.Commit()
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
		err = fmt.Errorf("%w: no schema version", errRecord)
	}
	if err != nil {
		return 0, err
	}
	return decodeSeq(v), nil
}

// migrate applies what the database lacks, in one transaction, after a copy.
func (d *DB) migrate(list []migration) error {
	var have uint64
	err := d.begin(false, func(b kv.Transaction) (err error) {
		have, err = schemaOf(b)
		return err
	})
	if err != nil {
		return err
	}
	want := list[len(list)-1].version
	switch {
	case have == want:
		return nil
	case have > want:
		return newerSchema(have, want)
	}
	copied := ""
	if have > 0 && d.file != nil { // others copy what is no file
		copied = fmt.Sprintf("%s.before-schema-%d", d.path, want)
		if err = d.file.CopyBefore(copied); err != nil {
			return &MigrationError{want, fmt.Errorf("copying the database before: %w", err)}
		}
	}
	err = d.begin(true, func(b kv.Transaction) error {
		if err := b.Make("meta"); err != nil {
			return err
		}
		for _, m := range list {
			if m.version <= have {
				continue
			}
			if err := m.apply(b); err != nil {
				return fmt.Errorf("migrating to schema %d (%s): %w", m.version, m.what, err)
			}
		}
		return b.Put("meta", []byte("schema"), seqKey(want))
	})
	if err != nil && have > 0 {
		return &MigrationError{want, err}
	}
	if err == nil && have == 0 && d.file != nil { // a new file: its name must survive a power cut too
		err = syncFile(filepath.Dir(d.path))
	}
	if err == nil && copied != "" {
		// A warning, so that it is read: the way back loses what is written from here on.
		d.log.Warn("database migrated", "from", have, "to", want, "copy", copied,
			"way_back", fmt.Sprintf("stop nized; mv '%s' '%s'; start the older nized", copied, d.path))
	}
	return err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Check says why this program, with that key, could not open the database of an
// engine that another one works on.
func Check(ctx context.Context, e kv.Engine, master *seal.Master) error {
	b, err := e.Begin(ctx, false)
	if err != nil {
		return err
	}
	defer b.Rollback()
	if have, err := schemaOf(b); err != nil || have > Schema() {
		return cmp.Or(err, newerSchema(have, Schema()))
	}
	_, err = unwrapKeys(&tx{b: b}, master)
	return err
}

func newerSchema(have, want uint64) error {
	return fmt.Errorf("%w: its schema is %d, this nized knows %d; use the newer nized, or restore the backup made before the upgrade", store.ErrOldSchema, have, want)
}

// loadKeys opens the data keys and the audit key, and makes them for a new
// database. With another master key it is seal.ErrWrongKey.
func (d *DB) loadKeys(master *seal.Master) error {
	var keys []seal.DataKey
	err := d.begin(false, func(b kv.Transaction) (err error) {
		keys, err = unwrapKeys(&tx{b: b}, master)
		return err
	})
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return d.makeKeys(master)
	}
	sealer, err := seal.NewSealer(keys...)
	if err != nil {
		return err
	}
	d.keys.Store(&keyring{master, sealer})
	return d.begin(false, func(b kv.Transaction) error {
		sealed, err := b.Get("meta", []byte("audit_key"))
		if err != nil {
			return err
		}
		if d.auditKey, err = d.unseal("meta", "audit_key", cloneBytes(sealed)); err != nil {
			return fmt.Errorf("opening the audit key: %w", err)
		}
		return nil
	})
}

func (d *DB) makeKeys(master *seal.Master) error {
	return d.begin(true, func(b kv.Transaction) (err error) {
		t := &tx{db: d, b: b}
		if t.first("calls", nil) != nil {
			return fmt.Errorf("%w: it has records but no data key", errRecord)
		}
		dk := seal.NewDataKey(1)
		wrapped, err := master.Wrap(dk)
		if err != nil {
			return err
		}
		sealer, err := seal.NewSealer(dk)
		if err != nil {
			return err
		}
		d.keys.Store(&keyring{master, sealer})
		if err := t.put("keys", keyNumber(dk.Number), wrapped); err != nil {
			return err
		}
		d.auditKey = newAuditKey()
		if err := t.put("meta", []byte("audit_head"), auditHead{}.encode(d.auditKey)); err != nil {
			return err
		}
		return t.put("meta", []byte("audit_key"), t.seal("meta", "audit_key", d.auditKey))
	})
}
