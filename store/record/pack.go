package record

import (
	"encoding/binary"
	"time"

	"nize/store"
)

// Pack joins parts, each preceded by its length.
func Pack(parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p) + binary.MaxVarintLen32
	}
	out := make([]byte, 0, n)
	for _, p := range parts {
		out = AppendPart(out, p)
	}
	return out
}

// AppendPart appends one part as [Pack] does.
func AppendPart(b, part []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// Unpack splits what Pack joined. The parts point into b.
func Unpack(b []byte) ([][]byte, error) { return UnpackTo(nil, b) }

// UnpackTo is Unpack that appends to parts.
func UnpackTo(parts [][]byte, b []byte) ([][]byte, error) {
	for len(b) > 0 {
		n, w := binary.Uvarint(b)
		if w <= 0 || n > uint64(len(b)-w) {
			return nil, ErrDamaged
		}
		parts = append(parts, b[w:w+int(n):w+int(n)])
		b = b[w+int(n):]
	}
	return parts, nil
}

// CutPart returns the first part of b, as [AppendPart] wrote it, and the rest.
func CutPart(b []byte) (part, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, ErrDamaged
	}
	return b[w : w+int(n) : w+int(n)], b[w+int(n):], nil
}

// UnpackN is Unpack for a record with n parts; it ignores further parts, which later
// versions may have appended.
func UnpackN(b []byte, n int) ([][]byte, error) {
	parts, err := Unpack(b)
	if err == nil && len(parts) < n {
		err = ErrDamaged
	}
	return parts, err
}

// The cost of a model call is stored as fixed columns (eight numbers of eight bytes, one
// byte of flags), followed by its packed strings.

const (
	spendEstimated = 1 << iota
	spendPriced
)

const spendColumns = 8*8 + 1

// EncodeSpend returns the stored form of a row.
func EncodeSpend(s store.Spend) []byte {
	b := make([]byte, 0, 192)
	for _, n := range []int64{s.At.UnixNano(), s.Prompt, s.Completion, s.Cached, s.Reasoning, int64(s.Took), s.MicroUSD, 0} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	var flags byte
	if s.Estimated {
		flags |= spendEstimated
	}
	if s.Priced {
		flags |= spendPriced
	}
	return append(append(b, flags), Pack([]byte(s.ID), []byte(s.User), []byte(s.Thread), []byte(s.Agent), []byte(s.Provider), []byte(s.Model), []byte(s.Team))...)
}

// DecodeSpend decodes a row; rows of the first version have no team.
func DecodeSpend(b []byte) (store.Spend, error) {
	if len(b) < spendColumns {
		return store.Spend{}, ErrDamaged
	}
	parts, err := Unpack(b[spendColumns:])
	if err != nil || len(parts) < 6 {
		return store.Spend{}, ErrDamaged
	}
	n := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[8*i:])) }
	flags := b[spendColumns-1]
	s := store.Spend{
		At: time.Unix(0, n(0)).UTC(), Prompt: n(1), Completion: n(2), Cached: n(3), Reasoning: n(4), Took: time.Duration(n(5)), MicroUSD: n(6),
		Estimated: flags&spendEstimated != 0, Priced: flags&spendPriced != 0,
		ID: string(parts[0]), User: string(parts[1]), Thread: string(parts[2]), Agent: string(parts[3]), Provider: string(parts[4]), Model: string(parts[5]),
	}
	if len(parts) > 6 {
		s.Team = string(parts[6])
	}
	return s, nil
}
