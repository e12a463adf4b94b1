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

// tokenPrefix lets secret scanners and nize itself recognise a token.
const tokenPrefix = "nize_"

var tokenText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ErrMistyped is what ReadToken says of a text whose checksum does not hold.
var ErrMistyped = errors.New("token is mistyped or cut: its checksum does not hold")

// NewToken makes the secret of a token: nize_, 32 random bytes and a CRC-32 of
// them in lower-case base32. Only the hash in TokenSecret is ever stored.
func NewToken(now time.Time) (Secret, TokenSecret) {
	b := make([]byte, 32, 36)
	rand.Read(b) // never fails since Go 1.24
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	text := tokenPrefix + tokenText.EncodeToString(b)
	return NewSecret(text), TokenSecret{ID: NewID(now), Prefix: text[:len(tokenPrefix)+6], Hash: sha256.Sum256([]byte(text))}
}

// ReadToken returns the hash to look a token up by. ErrMistyped tells a token
// with a slip of the keyboard from one that is not known, without a look-up.
func ReadToken(text string) ([32]byte, error) {
	body, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok {
		return [32]byte{}, ErrMistyped
	}
	b, err := tokenText.DecodeString(body)
	if err != nil || len(b) != 36 || binary.BigEndian.Uint32(b[32:]) != crc32.ChecksumIEEE(b[:32]) ||
		body != tokenText.EncodeToString(b) { // the decoder passes over line ends and spare bits
		return [32]byte{}, ErrMistyped
	}
	return sha256.Sum256([]byte(text)), nil
}
