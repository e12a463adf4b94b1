package commit

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"nize/store"
	"nize/store/record"
)

// ErrDamaged is returned if a stored record cannot be read: the file is damaged.
var ErrDamaged = record.ErrDamaged

// Packing of length-prefixed parts.
var (
	Pack       = record.Pack
	appendPart = record.AppendPart
	unpack     = record.Unpack
	unpackTo   = record.UnpackTo
	UnpackN    = record.UnpackN
)

// CloneBytes returns a copy of b, nil if b is empty.
func CloneBytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}

// Key joins the parts of a key with zero bytes.
func Key(parts ...string) []byte { return []byte(strings.Join(parts, "\x00")) }

// SplitKey is the inverse of Key.
func SplitKey(k []byte) []string { return strings.Split(string(k), "\x00") }

// TimeKey returns a time as eight bytes that sort by time.
func TimeKey(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(0, t.UnixNano())))
}

// TimeOf is the inverse of TimeKey.
func TimeOf(b []byte) time.Time {
	return time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC()
}

// SeqKey returns a number as eight bytes that sort by number.
func SeqKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// MaxID limits the size of a key's parts; the embedded engine's limit is 32 KiB.
const MaxID = 1024

// CheckIDs returns an error if a text could not be a part of a key. The arguments are pairs
// of a description and the text.
func CheckIDs(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		what, id := pairs[i], pairs[i+1]
		switch {
		case id == "":
			return fmt.Errorf("%w %s: it is empty", store.ErrInvalid, what)
		case len(id) > MaxID:
			return fmt.Errorf("%w %s: longer than %d bytes", store.ErrInvalid, what, MaxID)
		case strings.IndexByte(id, 0) >= 0:
			return fmt.Errorf("%w %s: it holds a zero byte", store.ErrInvalid, what)
		}
	}
	return nil
}

// CheckOptional is CheckIDs for parts that may be empty.
func CheckOptional(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if err := CheckIDs(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// DecodeJSON decodes a record. It returns ErrDamaged if that fails.
func DecodeJSON[T any](b []byte) (T, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return v, nil
}

// Chunk limits the deletions of one transaction, so that other writers don't wait long.
const Chunk = 500
