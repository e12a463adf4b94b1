package store

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"time"
)

// crockford is the ULID alphabet (github.com/ulid/spec): no I, L, O, U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID returns a ULID for the given time: 26 characters, sortable by millisecond, 80
// random bits.
func NewID(now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	rand.Read(b[6:]) // never fails since Go 1.24
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	var out [26]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}

// IDTime returns when an id was created, to the millisecond; zero if it is not an id.
func IDTime(id string) time.Time {
	if !ValidID(id) {
		return time.Time{}
	}
	ms := int64(0)
	for _, c := range []byte(id[:10]) {
		ms = ms<<5 | int64(strings.IndexByte(crockford, c))
	}
	return time.UnixMilli(ms)
}

// ValidID reports whether s has the form of an id of NewID.
func ValidID(s string) bool {
	if len(s) != 26 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > 'Z' || (c > '9' && c < 'A') || c == 'I' || c == 'L' || c == 'O' || c == 'U' {
			return false
		}
	}
	return true
}

// TimeOfID returns when NewID created the ids with the prefix head, or a little earlier if
// head is short; ok is false if head isn't such a prefix.
func TimeOfID(head string) (t time.Time, ok bool) {
	const digits = 10 // the time; the rest is random
	if len(head) < 2 || len(head) > 26 || !ValidID(head+strings.Repeat("0", 26-len(head))) {
		return t, false
	}
	var ms int64
	for i := range digits {
		ms *= 32
		if i < len(head) {
			ms += int64(strings.IndexByte(crockford, head[i]))
		}
	}
	return time.UnixMilli(ms), ms < 1<<48
}
