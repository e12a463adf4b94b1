package database

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"nize/store"
	"nize/store/record"
)

// errRecord says that a stored record cannot be read: the file was damaged.
var errRecord = record.ErrDamaged

// The packing of parts, each with its length before it.
var (
	pack       = record.Pack
	appendPart = record.AppendPart
	unpack     = record.Unpack
	unpackTo   = record.UnpackTo
	unpackN    = record.UnpackN
)

// cloneBytes returns a copy of b, nil for an empty one.
func cloneBytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}

// key joins the parts of a key with zero bytes.
func key(parts ...string) []byte { return []byte(strings.Join(parts, "\x00")) }

func splitKey(k []byte) []string { return strings.Split(string(k), "\x00") }

// timeKey is a time as eight bytes that sort.
func timeKey(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(0, t.UnixNano())))
}

func timeOf(b []byte) time.Time {
	return time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC()
}

func seqKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// maxID bounds what may become part of a key; the embedded engine's limit is 32 KiB.
const maxID = 1024

// checkIDs refuses names that could not be a part of a key. It takes pairs of
// what it is and the text.
func checkIDs(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		what, id := pairs[i], pairs[i+1]
		switch {
		case id == "":
			return fmt.Errorf("%w %s: it is empty", store.ErrInvalid, what)
		case len(id) > maxID:
			return fmt.Errorf("%w %s: longer than %d bytes", store.ErrInvalid, what, maxID)
		case strings.IndexByte(id, 0) >= 0:
			return fmt.Errorf("%w %s: it holds a zero byte", store.ErrInvalid, what)
		}
	}
	return nil
}

// checkOptional is checkIDs for parts that may be empty.
func checkOptional(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if err := checkIDs(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func decodeJSON[T any](b []byte) (T, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("%w: %w", errRecord, err)
	}
	return v, nil
}
