package database

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nize/store"
	"nize/store/kv/bolt"
)

// A chain proves that nothing in the middle was changed; it does not prove that
// its end is still there. So the number and chain of an event near the end are
// noted in a file beside the database, under the same HMAC as a checkpoint:
// after each checkpoint, and when the database is closed. A trail that ends
// before it was shortened, or is that of an older copy that was put in place by
// hand. A file that lags behind, after a kill, does no harm; a missing one says
// nothing.

func besidePath(path string) string { return path + ".audit" }

// Traces are the files beside a database that there are once it was opened.
func Traces(path string) []string {
	return []string{bolt.MarkPath(path), path + reserveName, besidePath(path)}
}

// noteBeside writes the note. What it names is durable by then. It can fail on
// a full disk, and the next one makes up for it.
func (d *DB) noteBeside(ctx context.Context) {
	if d.file == nil {
		return
	}
	var head auditHead
	err := d.view(ctx, "noting the end of the audit trail", func(t *tx) (err error) {
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
	path := besidePath(d.path)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(hex.EncodeToString(head.encode(d.auditKey)) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(path+".new"))
	}
	return syncFile(filepath.Dir(path))
}

// readBeside returns the zero head where there is no note.
func (d *DB) readBeside() (auditHead, error) {
	if d.file == nil {
		return auditHead{}, nil
	}
	text, err := os.ReadFile(besidePath(d.path))
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

// checkBeside compares the end of the trail with the note.
func (t *tx) checkBeside(base, head auditHead) error {
	noted, err := t.db.readBeside()
	if err != nil {
		return err
	}
	if noted.seq > head.seq {
		return tampered(head.seq+1, "the trail ends at event %d, and it had reached %d: it was shortened, or an older copy of the database was put in its place", head.seq, noted.seq)
	}
	if noted.seq <= base.seq {
		return nil // none, or pruned since
	}
	b := t.get("events", seqKey(noted.seq))
	if b == nil {
		return tampered(noted.seq, "event %d is missing", noted.seq)
	}
	p, err := eventParts(b)
	if err != nil || [chainSize]byte(p[evChain]) != noted.chain {
		return tampered(noted.seq, "event %d is not the one that was noted beside the database", noted.seq)
	}
	return nil
}

// CheckTrailEnd says, as a [store.TamperedError], that the audit trail was
// shortened or exchanged since its end was last noted beside the database. It
// reads two events; VerifyFrom does the same and reads the rest.
func (d *DB) CheckTrailEnd(ctx context.Context) error {
	return d.view(ctx, "checking the end of the audit trail", func(t *tx) error {
		_, _, err := t.verifyEnds(0)
		return err
	})
}
