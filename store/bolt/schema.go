package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	bbolt "go.etcd.io/bbolt"

	"nize/store"
	"nize/store/record"
	"nize/store/seal"
)

// initialMmap is how much is mapped from the start, so that a growing writer
// need not wait for readers: 1 GiB of addresses, not of memory.
const initialMmap = 1 << (30 - 32/bits.UintSize*3) // 128 MiB where addresses are 32 bits wide

// migration brings a database from the version before to its own.
type migration struct {
	version uint64
	what    string
	apply   func(*bbolt.Tx) error
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
	"providers", "models", "budgets", "budget_marks", "reserved", "vectors", "checkpoints", "erasures", "forgotten", "incidents", "bots", "channels", "claims", "threads_at", "places", "wishes", "event_blocks", "files", "files_by", "behind",
}, record.Buckets...)

func makeBuckets(b *bbolt.Tx) error {
	for _, name := range buckets {
		if _, err := b.CreateBucketIfNotExists([]byte(name)); err != nil {
			return fmt.Errorf("making bucket %s: %w", name, err)
		}
	}
	return nil
}

// addBuckets makes those that the database lacks, and writes only then. The
// counters of persons are made of the rows that are there.
func (d *DB) addBuckets() error {
	lacks, uncounted := false, false
	err := d.bolt.View(func(b *bbolt.Tx) error {
		uncounted = b.Bucket([]byte("usage_user")) == nil
		lacks = slices.ContainsFunc(buckets, func(name string) bool { return b.Bucket([]byte(name)) == nil })
		return nil
	})
	if err != nil || !lacks {
		return err
	}
	return d.bolt.Update(func(b *bbolt.Tx) error {
		if err := makeBuckets(b); err != nil || !uncounted {
			return err
		}
		return recount(b)
	})
}

// schemaOf returns the version of the database, 0 for an empty one.
func schemaOf(b *bbolt.Tx) (uint64, error) {
	meta := b.Bucket([]byte("meta"))
	if meta == nil {
		if k, _ := b.Cursor().First(); k != nil {
			return 0, fmt.Errorf("%w file: it is another program's database", store.ErrInvalid)
		}
		return 0, nil
	}
	v := meta.Get([]byte("schema"))
	if len(v) != 8 {
		return 0, fmt.Errorf("%w: no schema version", errRecord)
	}
	return binary.BigEndian.Uint64(v), nil
}

// migrate applies what the database lacks, in one transaction, after a copy.
func (d *DB) migrate(list []migration) error {
	var have uint64
	err := d.bolt.View(func(b *bbolt.Tx) (err error) {
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
		return fmt.Errorf("%w: its schema is %d, this nized knows %d; use the newer nized, or restore the backup made before the upgrade", store.ErrOldSchema, have, want)
	}
	copied := ""
	if have > 0 {
		if copied, err = d.copyBefore(want); err != nil {
			return &MigrationError{want, fmt.Errorf("copying the database before: %w", err)}
		}
	}
	err = d.bolt.Update(func(b *bbolt.Tx) error {
		meta, err := b.CreateBucketIfNotExists([]byte("meta"))
		if err != nil {
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
		return meta.Put([]byte("schema"), seqKey(want))
	})
	if err != nil && have > 0 {
		return &MigrationError{want, err}
	}
	if err == nil && have == 0 { // a new file: its name must survive a power cut too
		err = syncFile(filepath.Dir(d.path))
	}
	if err == nil && copied != "" {
		// A warning, so that it is read: the way back loses what is written from here on.
		d.log.Warn("database migrated", "from", have, "to", want, "copy", copied,
			"way_back", fmt.Sprintf("stop nized; mv '%s' '%s'; start the older nized", copied, d.path))
	}
	return err
}

// copyBefore copies the database beside itself, after a look at the space that
// the copy needs and the migration may need.
func (d *DB) copyBefore(version uint64) (string, error) {
	to := fmt.Sprintf("%s.before-schema-%d", d.path, version)
	err := d.bolt.View(func(b *bbolt.Tx) error {
		var fs syscall.Statfs_t
		if err := syscall.Statfs(filepath.Dir(d.path), &fs); err == nil {
			if free, need := fs.Bavail*uint64(fs.Bsize), 2*uint64(b.Size()); free < need {
				return fmt.Errorf("%w: a migration needs %d MiB free, there are %d", store.ErrDiskFull, need>>20+1, free>>20)
			}
		}
		return b.CopyFile(to+".part", 0o600)
	})
	if err == nil {
		err = syncFile(to + ".part")
	}
	if err == nil {
		err = os.Rename(to+".part", to)
	}
	if err != nil {
		return "", errors.Join(err, removeIfThere(to+".part"))
	}
	return to, nil
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

// loadKeys opens the data keys and the audit key, and makes them for a new
// database. With another master key it is seal.ErrWrongKey.
func (d *DB) loadKeys(master *seal.Master) error {
	var keys []seal.DataKey
	err := d.bolt.View(func(b *bbolt.Tx) (err error) {
		keys, err = unwrapKeys(b, master)
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
	return d.bolt.View(func(b *bbolt.Tx) error {
		sealed := cloneBytes(b.Bucket([]byte("meta")).Get([]byte("audit_key")))
		if d.auditKey, err = d.unseal("meta", "audit_key", sealed); err != nil {
			return fmt.Errorf("opening the audit key: %w", err)
		}
		return nil
	})
}

func (d *DB) makeKeys(master *seal.Master) error {
	return d.bolt.Update(func(b *bbolt.Tx) (err error) {
		if k, _ := b.Bucket([]byte("calls")).Cursor().First(); k != nil {
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
		if err := b.Bucket([]byte("keys")).Put(keyNumber(dk.Number), wrapped); err != nil {
			return err
		}
		d.auditKey = newAuditKey()
		t := &tx{db: d, b: b}
		if err := t.put("meta", []byte("audit_head"), auditHead{}.encode(d.auditKey)); err != nil {
			return err
		}
		return t.put("meta", []byte("audit_key"), t.seal("meta", "audit_key", d.auditKey))
	})
}
