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

// Backup says what a copy of the database is. The master key is not in it.
type Backup struct {
	File   string `json:"file,omitempty"`
	Key    string `json:"key"` // id of the master key that it needs
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
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

// Rotated says what a rotation of the keys did.
type Rotated struct {
	Key      string `json:"key"`            // id of the master key now
	Was      string `json:"was"`            // and before; the same where it comes from NIZE_MASTER_KEY
	Kept     string `json:"kept,omitempty"` // file of the master key before
	DataKey  uint32 `json:"data_key"`       // number of the new data key
	Resealed int    `json:"resealed"`       // records that were sealed anew
}

// ExportedKey is the master key.
type ExportedKey struct {
	ID  string `json:"id"`
	Key Secret `json:"key"`
}

// Backup writes a consistent copy of the database to w. It is an error if what
// came is not what the daemon sent.
func (c *Client) Backup(ctx context.Context, w io.Writer) (Backup, error) {
	r := request{method: "GET", path: "/v1/backup"}
	resp, err := c.send(ctx, r)
	if err != nil {
		return Backup{}, err
	}
	defer resp.Body.Close()
	b := Backup{Key: resp.Header.Get(BackupKeyHeader), SHA256: resp.Header.Get(BackupSumHeader)}
	sum := sha256.New()
	body := &reader{from: resp.Body}
	if b.Size, err = io.Copy(io.MultiWriter(sum, w), body); err != nil {
		if body.err != nil {
			return b, c.readError(ctx, r, body.err)
		}
		return b, fmt.Errorf("writing the backup: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != b.SHA256 || b.Size != resp.ContentLength {
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

// Restore uploads a copy of size bytes. When it answers, the copy has passed
// all checks, and the daemon stops and starts again with it; see
// [Client.RestoredAs].
func (c *Client) Restore(ctx context.Context, copied io.Reader, size int64, keepAccess bool) (Restored, error) {
	return do[Restored](ctx, c, request{method: "POST", path: "/v1/restore", query: query("keep_access", flag(keepAccess)), raw: copied, size: size})
}

// RestoredAs says whether the daemon's newest restore was of the copy with that
// SHA-256.
func (c *Client) RestoredAs(ctx context.Context, sum string) (bool, error) {
	for e, err := range c.Audit(ctx, AuditQuery{Kind: RestoreEvent, Limit: 1}) {
		if err != nil {
			return false, err
		}
		return e.Subject == sum, nil
	}
	return false, nil
}

// RestoreEvent is the kind of the event that a restored database begins with;
// its subject is the SHA-256 of the copy.
const RestoreEvent = "database.restore"

// RotateKeys replaces the master key and the data key and seals anew what older
// ones sealed. It answers when that is done; a client that leaves stops nothing.
func (c *Client) RotateKeys(ctx context.Context) (Rotated, error) {
	return do[Rotated](ctx, c, request{method: "POST", path: "/v1/keys/rotate"})
}

// ExportKey returns the master key.
func (c *Client) ExportKey(ctx context.Context) (ExportedKey, error) {
	return do[ExportedKey](ctx, c, request{method: "POST", path: "/v1/keys/export"})
}

// String says in one line what was restored and what became of the rest.
func (r Restored) String() string {
	return fmt.Sprintf("restored a copy of %d bytes, sha256 %s; expired: %d waiting calls; outcome unknown: %d running calls; revoked: %d tokens, %d standing answers",
		r.Size, r.SHA256, r.Expired, r.Lost, r.Tokens, r.Grants)
}
