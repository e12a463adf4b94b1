package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"time"
)

// tokenPrefix lets secret scanners and nize itself recognize a token.
const tokenPrefix = "nize_"

var tokenText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ErrMistyped is returned by ReadToken for a text with a wrong checksum.
var ErrMistyped = errors.New("token is mistyped or cut: its checksum does not hold")

// NewToken returns the secret of a new token: nize_, 32 random bytes and a CRC-32 of them
// in lower-case base32. Only the hash in TokenSecret is ever stored.
func NewToken(now time.Time) (Secret, TokenSecret) {
	b := make([]byte, 32, 36)
	rand.Read(b) // never fails since Go 1.24
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	text := tokenPrefix + tokenText.EncodeToString(b)
	return NewSecret(text), TokenSecret{ID: NewID(now), Prefix: text[:len(tokenPrefix)+6], Hash: sha256.Sum256([]byte(text))}
}

// ReadToken returns the hash for looking up a token. It returns ErrMistyped for a token
// with a typing error, without a lookup.
func ReadToken(text string) ([32]byte, error) {
	body, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok {
		return [32]byte{}, ErrMistyped
	}
	b, err := tokenText.DecodeString(body)
	if err != nil || len(b) != 36 || binary.BigEndian.Uint32(b[32:]) != crc32.ChecksumIEEE(b[:32]) ||
		body != tokenText.EncodeToString(b) { // the decoder ignores line ends and spare bits
		return [32]byte{}, ErrMistyped
	}
	return sha256.Sum256([]byte(text)), nil
}
