package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// Headers of a backup's response. The body is the copy itself and Content-Length is its
// length.
const (
	BackupKeyHeader = "Nize-Backup-Key"
	BackupSumHeader = "Nize-Backup-Sha256"
)

// DownloadBackup returns a consistent copy of the database; [SaveBackup] checks it.
var DownloadBackup = Download[Empty]{"GET", "/v1/backup", true, "copy the database"}

// Backup describes a copy of the database. The copy doesn't contain the master key.
type Backup struct {
	File   string `json:"file,omitempty"`
	Key    string `json:"key"` // id of the master key that it needs
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// id of the master key that opens it
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
		return b, errors.New("the received backup is incomplete or was changed: see the daemon's log, then try again")
	}
	return b, nil
}

// reader separates read errors from write errors.
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

// SaveBackup writes a consistent copy of the database to w. It returns an error if the
// received bytes differ from what the daemon sent.
var Restore = Upload[RestoreRequest, Restored]{"POST", "/v1/restore", true, "replace the database with a copy"}

// Restore uploads a copy. When it returns, the copy has passed all checks, and the daemon
// restarts with it; see [RestoredAs].
type RestoreRequest struct {
	KeepAccess bool `query:"keep_access" json:"-"`
}

// Restored describes a restored copy of the database.
type Restored struct {
	Backup
	Kept    string `json:"kept,omitempty"` // path of the previous database
	Expired int    `json:"expired"`        // calls that were pending in the copy
	Lost    int    `json:"lost"`           // calls that were running in the copy: their outcome is unknown
	Tokens  int    `json:"tokens"`         // revoked
	Grants  int    `json:"grants"`         // revoked
}

// String returns one line: the copy that was restored, and how many calls, tokens and
// standing answers were expired or revoked.
func (r Restored) String() string {
	return fmt.Sprintf("restored a copy of %d bytes, sha256 %s; expired: %d waiting calls; outcome unknown: %d running calls; revoked: %d tokens, %d standing answers",
		r.Size, r.SHA256, r.Expired, r.Lost, r.Tokens, r.Grants)
}

// RestoreEvent is the kind of the first event after a restore; its subject is the SHA-256
// of the copy.
const RestoreEvent = "database.restore"

// RestoredAs reports whether the daemon's newest restore used the copy with that SHA-256.
func RestoredAs(ctx context.Context, c *Client, sum string) (bool, error) {
	for e, err := range ReadAudit.Call(ctx, c, AuditRequest{Kind: RestoreEvent, Limit: 1}) {
		if err != nil {
			return false, err
		}
		return e.Subject == sum, nil
	}
	return false, nil
}

// Copied describes a copy of a database in another engine.
type Copied struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Key     string `json:"key"` // id of the master key that opens both
	Buckets int    `json:"buckets"`
	Keys    int    `json:"keys"`
	Bytes   int64  `json:"bytes"`
	Events  int    `json:"events"`          // of the audit trail, verified in the copy
	Secrets int    `json:"secrets"`         // decrypted from the copy
	Lacks   string `json:"lacks,omitempty"` // path at which nized will look for the key file, if it is missing there
}

// RotateKeys replaces the master key and the data key and reseals the records sealed with
// older ones. It returns when that is done; a client that disconnects doesn't stop it.
var RotateKeys = Op[Empty, Rotated]{"POST", "/v1/keys/rotate", true, "replace the keys and reseal everything"}

// Rotated reports the result of a key rotation.
type Rotated struct {
	Key      string `json:"key"`            // id of the new master key
	Was      string `json:"was"`            // id of the previous one; the same if it comes from NIZE_MASTER_KEY
	Kept     string `json:"kept,omitempty"` // file of the previous master key
	DataKey  uint32 `json:"data_key"`       // number of the new data key
	Resealed int    `json:"resealed"`       // records that were resealed
}

// ExportKey returns the master key.
var ExportKey = Op[Empty, ExportedKey]{"POST", "/v1/keys/export", true, "copy the master key"}

// ExportedKey is the master key.
type ExportedKey struct {
	ID  string `json:"id"`
	Key Secret `json:"key"`
}
