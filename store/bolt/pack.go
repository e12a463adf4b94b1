package bolt

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"nize/store"
)

// errRecord says that a stored record cannot be read: the file was damaged.
var errRecord = errors.New("damaged record")

// pack joins parts, each with its length before it.
func pack(parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p) + binary.MaxVarintLen32
	}
	out := make([]byte, 0, n)
	for _, p := range parts {
		out = appendPart(out, p)
	}
	return out
}

func appendPart(b, part []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// unpack cuts what pack joined. The parts point into b.
func unpack(b []byte) ([][]byte, error) { return unpackTo(nil, b) }

// unpackTo is unpack that appends to parts.
func unpackTo(parts [][]byte, b []byte) ([][]byte, error) {
	for len(b) > 0 {
		n, w := binary.Uvarint(b)
		if w <= 0 || n > uint64(len(b)-w) {
			return nil, errRecord
		}
		parts = append(parts, b[w:w+int(n):w+int(n)])
		b = b[w+int(n):]
	}
	return parts, nil
}

// unpackN is unpack for a record with n parts; later versions may have appended more.
func unpackN(b []byte, n int) ([][]byte, error) {
	parts, err := unpack(b)
	if err == nil && len(parts) < n {
		err = errRecord
	}
	return parts, err
}

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

// maxID bounds what may become part of a key; bbolt's own limit is 32 KiB.
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
