package commit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nize/store"
)

// A chain proves that nothing in the middle was changed, but not that its end is still
// there. So the number and chain of an event near the end are recorded in a file beside the
// database, under the same HMAC as a checkpoint, after each checkpoint and when the
// database is closed. If the trail ends before that event, it was truncated, or the
// database was replaced by an older copy. After a crash the file may be out of date, which
// does no harm; if it is missing, nothing is checked.

// BesidePath returns the path of the file beside a database that records the end of its
// trail.
func BesidePath(path string) string { return path + ".audit" }

// NoteBeside records the end of the trail, which is durable by then. It can fail on a full
// disk; the next call then succeeds.
func (d *DB) NoteBeside(ctx context.Context) {
	if d.file == nil {
		return
	}
	var head auditHead
	err := d.Read(ctx, "noting the end of the audit trail", func(t *Tx) (err error) {
		head, err = loadHead(t, d.auditKey)
		return err
	})
	if err == nil {
		err = d.writeBeside(head)
	}
	if err != nil && !errors.Is(err, store.ErrNotOpen) {
		d.log.Warn("noting the end of the audit trail beside the database", "err", err)
	}
}

func (d *DB) writeBeside(head auditHead) error {
	path := BesidePath(d.path)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(hex.EncodeToString(head.encode(d.auditKey)) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return errors.Join(err, RemoveIfThere(path+".new"))
	}
	return SyncFile(filepath.Dir(path))
}

// readBeside returns the zero head if there is no record.
func (d *DB) readBeside() (auditHead, error) {
	if d.file == nil {
		return auditHead{}, nil
	}
	text, err := os.ReadFile(BesidePath(d.path))
	if errors.Is(err, os.ErrNotExist) {
		return auditHead{}, nil
	}
	if err != nil {
		return auditHead{}, fmt.Errorf("reading the note beside the database: %w", err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return auditHead{}, tampered(0, "the note beside the database was changed")
	}
	head, err := decodeHead(d.auditKey, b)
	if err != nil {
		return head, tampered(0, "the note beside the database was changed, or is another database's")
	}
	return head, nil
}

// checkBeside compares the end of the trail with the record.
func (t *Tx) checkBeside(base, head auditHead) error {
	noted, err := t.DB.readBeside()
	if err != nil {
		return err
	}
	if noted.seq > head.seq {
		return tampered(head.seq+1, "the trail ends at event %d, and it had reached %d: it was shortened, or an older copy of the database was put in its place", head.seq, noted.seq)
	}
	if noted.seq <= base.seq {
		return nil // no record, or the event was pruned since
	}
	b := t.Get("events", SeqKey(noted.seq))
	if b == nil {
		return tampered(noted.seq, "event %d is missing", noted.seq)
	}
	p, err := t.eventParts(b)
	if err != nil || [chainSize]byte(p[evChain]) != noted.chain {
		return tampered(noted.seq, "event %d is not the one that was noted beside the database", noted.seq)
	}
	return nil
}

// RemoveIfThere removes a file; a missing file is not an error.
func RemoveIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// SyncFile flushes a file or a directory to disk.
func SyncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
