package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// The headers of a backup's answer, whose body is the copy itself; its length
// is the Content-Length.
const (
	BackupKeyHeader = "Nize-Backup-Key"
	BackupSumHeader = "Nize-Backup-Sha256"
)

// DownloadBackup is a consistent copy of the database; [SaveBackup] checks it.
var DownloadBackup = Download[Empty]{"GET", "/v1/backup", true, "copy the database"}

// Backup says what a copy of the database is. The master key is not in it.
type Backup struct {
	File   string `json:"file,omitempty"`
	Key    string `json:"key"` // id of the master key that it needs
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// SaveBackup writes a consistent copy of the database to w. It is an error if
// what came is not what the daemon sent.
func SaveBackup(ctx context.Context, c *Client, w io.Writer) (Backup, error) {
	f, err := DownloadBackup.Call(ctx, c, Empty{})
	if err != nil {
		return Backup{}, err
	}
	defer f.Close()
	b := Backup{Key: f.Key, SHA256: f.SHA256}
	sum := sha256.New()
	from := &reader{from: f}
	if b.Size, err = io.Copy(io.MultiWriter(sum, w), from); err != nil {
		if from.err != nil {
			return b, from.err
		}
		return b, fmt.Errorf("writing the backup: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != b.SHA256 || b.Size != f.Size {
		return b, errors.New("the backup came incomplete or changed: see the daemon's log, then try again")
	}
	return b, nil
}

// reader tells an error of reading from one of writing.
type reader struct {
	from io.Reader
	err  error
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// Restore uploads a copy. When it answers, the copy has passed all checks, and
// the daemon stops and starts again with it; see [RestoredAs].
var Restore = Upload[RestoreRequest, Restored]{"POST", "/v1/restore", true, "put a copy in the database's place"}

// RestoreRequest says whether the tokens and the standing answers of the copy
// stay valid.
type RestoreRequest struct {
	KeepAccess bool `query:"keep_access" json:"-"`
}

// Restored says what became of a copy that was put in the database's place.
type Restored struct {
	Backup
	Kept    string `json:"kept,omitempty"` // where the database from before is
	Expired int    `json:"expired"`        // calls that waited in the copy
	Lost    int    `json:"lost"`           // calls that ran in the copy: their outcome is unknown
	Tokens  int    `json:"tokens"`         // that were revoked
	Grants  int    `json:"grants"`         // that were revoked
}

// String says in one line what was restored and what became of the rest.
func (r Restored) String() string {
	return fmt.Sprintf("restored a copy of %d bytes, sha256 %s; expired: %d waiting calls; outcome unknown: %d running calls; revoked: %d tokens, %d standing answers",
		r.Size, r.SHA256, r.Expired, r.Lost, r.Tokens, r.Grants)
}

// RestoreEvent is the kind of the event that a restored database begins with;
// its subject is the SHA-256 of the copy.
const RestoreEvent = "database.restore"

// RestoredAs says whether the daemon's newest restore was of the copy with that
// SHA-256.
func RestoredAs(ctx context.Context, c *Client, sum string) (bool, error) {
	for e, err := range ReadAudit.Call(ctx, c, AuditRequest{Kind: RestoreEvent, Limit: 1}) {
		if err != nil {
			return false, err
		}
		return e.Subject == sum, nil
	}
	return false, nil
}

// Copied says what a copy of a database to another engine has.
type Copied struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Key     string `json:"key"` // id of the master key that opens both
	Buckets int    `json:"buckets"`
	Keys    int    `json:"keys"`
	Bytes   int64  `json:"bytes"`
	Events  int    `json:"events"`          // of the audit trail, which holds there
	Secrets int    `json:"secrets"`         // that were opened there
	Lacks   string `json:"lacks,omitempty"` // where nized will look for the key file, and it isn't
}

// RotateKeys replaces the master key and the data key and seals again what older
// ones sealed. It answers when that is done; a client that leaves stops nothing.
var RotateKeys = Op[Empty, Rotated]{"POST", "/v1/keys/rotate", true, "replace the keys and seal again"}

// Rotated says what a rotation of the keys did.
type Rotated struct {
	Key      string `json:"key"`            // id of the master key now
	Was      string `json:"was"`            // and before; the same where it comes from NIZE_MASTER_KEY
	Kept     string `json:"kept,omitempty"` // file of the master key before
	DataKey  uint32 `json:"data_key"`       // number of the new data key
	Resealed int    `json:"resealed"`       // records that were sealed again
}

// ExportKey returns the master key.
var ExportKey = Op[Empty, ExportedKey]{"POST", "/v1/keys/export", true, "copy the master key"}

// ExportedKey is the master key.
type ExportedKey struct {
	ID  string `json:"id"`
	Key Secret `json:"key"`
}
