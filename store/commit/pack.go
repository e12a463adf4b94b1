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

// ErrDamaged says that a stored record cannot be read: the file was damaged.
var ErrDamaged = record.ErrDamaged

// The packing of parts, each with its length before it.
var (
	Pack       = record.Pack
	appendPart = record.AppendPart
	unpack     = record.Unpack
	unpackTo   = record.UnpackTo
	UnpackN    = record.UnpackN
)

// CloneBytes returns a copy of b, nil for an empty one.
func CloneBytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}

// Key joins the parts of a key with zero bytes.
func Key(parts ...string) []byte { return []byte(strings.Join(parts, "\x00")) }

// SplitKey is the way back from Key.
func SplitKey(k []byte) []string { return strings.Split(string(k), "\x00") }

// TimeKey is a time as eight bytes that sort.
func TimeKey(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(0, t.UnixNano())))
}

// TimeOf is the way back from TimeKey.
func TimeOf(b []byte) time.Time {
	return time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC()
}

// SeqKey is a number as eight bytes that sort.
func SeqKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// MaxID bounds what may become part of a key; the embedded engine's limit is 32 KiB.
const MaxID = 1024

// CheckIDs refuses names that could not be a part of a key. It takes pairs of
// what it is and the text.
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

// CheckOptional is checkIDs for parts that may be empty.
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

// DecodeJSON reads a record; ErrDamaged if it is none.
func DecodeJSON[T any](b []byte) (T, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return v, nil
}

// Chunk bounds the deletions of one transaction, so that nobody waits
// long behind it.
const Chunk = 500
