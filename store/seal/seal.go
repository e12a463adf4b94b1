// Package seal encrypts secrets at rest.
//
// There are two layers, so that a new master key needs one small write instead of a pass
// over the database:
//
//	master key   32 bytes, from a key file (0600) or NIZE_MASTER_KEY; never stored
//	             beside the data. It only wraps data keys.
//	data keys    random, numbered; stored wrapped in the database. The newest one
//	             seals, every one opens.
//	values       1 | key number (4) | nonce (12) | ciphertext | tag (16)
//
// The cipher is AES-256-GCM of the standard library with random nonces (NIST SP 800-38D; at
// most 2^32 values under one data key, which is why data keys are numbered). Associated
// data binds a value to its place: bucket, record key and key number. A value moved to
// another record can't be opened.
//
// A wrong or missing master key is an error and never a reason to create a new one: a key
// file is written only together with the first data key.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"nize/store"
)

const (
	keySize = 32
	idSize  = 8 // bytes of a master key's id
	version = 1 // first byte of all sealed and wrapped values
)

// ErrWrongKey is returned if another master key wrapped the data key.
var ErrWrongKey = errors.New("wrong master key")

// ErrDamaged is returned if a sealed value can't be opened: it was changed, or sealed for
// another place.
var ErrDamaged = errors.New("sealed value does not open")

// Master wraps data keys. It prints as its id only. Wrap must not be called concurrently,
// since the first call may write the key file; Unwrap may.
type Master struct {
	id   [idSize]byte
	aead cipher.AEAD
	// file and key are set if the key was created here and is not on disk yet.
	file string
	key  []byte
}

// Open reads the master key from env (base64 or hex of 32 bytes; a passphrase is refused)
// or, if env is empty, from keyFile, which must be readable by its owner only. If there is
// no such file it creates a new key, which the first [Master.Wrap], that is, a new
// database, writes to the file with O_EXCL and mode 0600. [Master.Unwrap] never writes it,
// so that a lost key is noticed.
func Open(keyFile string, env store.Secret) (*Master, error) {
	if !env.IsZero() {
		key, err := decode(env.Reveal())
		if err != nil {
			return nil, fmt.Errorf("reading NIZE_MASTER_KEY: %w", err)
		}
		return newMaster(key)
	}
	key, err := readKeyFile(keyFile)
	if errors.Is(err, os.ErrNotExist) {
		key = make([]byte, keySize)
		rand.Read(key) // never fails since Go 1.24
		m, err := newMaster(key)
		if err != nil {
			return nil, err
		}
		m.file, m.key = keyFile, key
		return m, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading key file %s: %w", keyFile, err)
	}
	return newMaster(key)
}

func newMaster(key []byte) (*Master, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, fmt.Errorf("using master key: %w", err)
	}
	m := &Master{aead: aead}
	sum := sha256.Sum256(append([]byte("nize master key id\x00"), key...))
	copy(m.id[:], sum[:])
	return m, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// ID returns a short name for the key that reveals nothing of it: 16 hex digits.
func (m *Master) ID() string { return hex.EncodeToString(m.id[:]) }

func (m *Master) String() string             { return "master key " + m.ID() }
func (m *Master) GoString() string           { return m.String() }
func (m *Master) Format(f fmt.State, _ rune) { io.WriteString(f, m.String()) }

// Wrap seals the data key under the master key.
func (m *Master) Wrap(k DataKey) ([]byte, error) {
	if m.file != "" {
		if err := writeKeyFile(m.file, m.key); err != nil {
			return nil, fmt.Errorf("writing key file %s: %w", m.file, err)
		}
		m.file, m.key = "", nil
	}
	head := append([]byte{version}, m.id[:]...)
	return m.aead.Seal(head, nil, k.key[:], m.aad(k.Number)), nil
}

// Unwrap opens a wrapped data key of that number. It returns ErrWrongKey if another master
// key wrapped it.
func (m *Master) Unwrap(number uint32, wrapped []byte) (DataKey, error) {
	k := DataKey{Number: number}
	if len(wrapped) < 1+idSize || wrapped[0] != version {
		return k, fmt.Errorf("%w: data key %d has an unknown form", ErrDamaged, number)
	}
	if was := hex.EncodeToString(wrapped[1 : 1+idSize]); was != m.ID() {
		if m.file != "" {
			return k, fmt.Errorf("%w: the data was sealed under key %s, and key file %s is missing; put that file back", ErrWrongKey, was, m.file)
		}
		return k, fmt.Errorf("%w: the data was sealed under key %s, this one is %s; give the key that belongs to it", ErrWrongKey, was, m.ID())
	}
	plain, err := m.aead.Open(nil, nil, wrapped[1+idSize:], m.aad(number))
	if err != nil || len(plain) != keySize {
		return k, fmt.Errorf("%w: data key %d", ErrDamaged, number)
	}
	copy(k.key[:], plain)
	return k, nil
}

func (m *Master) aad(number uint32) []byte {
	b := append([]byte("nize data key\x00"), m.id[:]...)
	return binary.BigEndian.AppendUint32(b, number)
}

// DataKey is one key that seals values. It prints as its number only.
type DataKey struct {
	Number uint32
	key    [keySize]byte
}

// NewDataKey returns a new random key with that number.
func NewDataKey(number uint32) DataKey {
	k := DataKey{Number: number}
	rand.Read(k.key[:]) // never fails since Go 1.24
	return k
}

func (k DataKey) String() string             { return fmt.Sprintf("data key %d", k.Number) }
func (k DataKey) GoString() string           { return k.String() }
func (k DataKey) Format(f fmt.State, _ rune) { io.WriteString(f, k.String()) }

// Sealer seals under the newest of its data keys and opens under each of them.
// It is safe for concurrent use.
type Sealer struct {
	newest uint32
	aeads  map[uint32]cipher.AEAD
}

// NewSealer returns a sealer with all data keys; the one with the highest number seals.
func NewSealer(keys ...DataKey) (*Sealer, error) {
	if len(keys) == 0 {
		return nil, errors.New("making a sealer: no data key")
	}
	s := &Sealer{aeads: make(map[uint32]cipher.AEAD, len(keys))}
	for _, k := range keys {
		aead, err := newAEAD(k.key[:])
		if err != nil {
			return nil, fmt.Errorf("using %v: %w", k, err)
		}
		s.aeads[k.Number] = aead
		s.newest = max(s.newest, k.Number)
	}
	return s, nil
}

// Newest returns the number of the data key that seals.
func (s *Sealer) Newest() uint32 { return s.newest }

// headSize is the size of what precedes the nonce of a sealed value.
const headSize = 1 + 4

// Seal encrypts plain for the place given by aad; see [Place].
func (s *Sealer) Seal(aad, plain []byte) []byte {
	aead := s.aeads[s.newest]
	out := make([]byte, 0, headSize+aead.Overhead()+len(plain))
	out = append(out, version)
	out = binary.BigEndian.AppendUint32(out, s.newest)
	return aead.Seal(out, nil, plain, withNumber(aad, s.newest))
}

// Open decrypts a value sealed for the same place. It returns ErrDamaged if that fails.
func (s *Sealer) Open(aad, sealed []byte) ([]byte, error) {
	number, err := KeyNumber(sealed)
	if err != nil {
		return nil, err
	}
	aead, ok := s.aeads[number]
	if !ok {
		return nil, fmt.Errorf("%w: data key %d is not here", ErrDamaged, number)
	}
	plain, err := aead.Open(nil, nil, sealed[headSize:], withNumber(aad, number))
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed or belongs elsewhere", ErrDamaged)
	}
	return plain, nil
}

// KeyNumber returns the number of the data key that sealed a value.
func KeyNumber(sealed []byte) (uint32, error) {
	if len(sealed) < headSize || sealed[0] != version {
		return 0, fmt.Errorf("%w: unknown form", ErrDamaged)
	}
	return binary.BigEndian.Uint32(sealed[1:headSize]), nil
}

func withNumber(aad []byte, number uint32) []byte {
	b := make([]byte, 0, len(aad)+4)
	return binary.BigEndian.AppendUint32(append(b, aad...), number)
}

// Place returns the associated data of a record: its bucket and its key, with the length of
// the first written out so that all places differ.
func Place(bucket string, key []byte) []byte {
	b := make([]byte, 0, 2+len(bucket)+len(key))
	b = binary.BigEndian.AppendUint16(b, uint16(len(bucket)))
	return append(append(b, bucket...), key...)
}

// decode decodes a key written as base64 (standard or URL alphabet, padded or not) or hex.
func decode(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if key, err := hex.DecodeString(text); err == nil && len(key) == keySize {
		return key, nil
	}
	bare := strings.TrimRight(text, "=")
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := enc.Strict().DecodeString(bare); err == nil && len(key) == keySize {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%w key: want base64 or hex of exactly 32 random bytes, not a passphrase; make one with: openssl rand -base64 32", store.ErrInvalid)
}

func readKeyFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, store.Mark(fmt.Errorf("it is a link, and somebody else may change where it leads; put the file itself there"), store.ErrRefused)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, store.Mark(fmt.Errorf("it is not a regular file"), store.ErrRefused)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return nil, store.Mark(fmt.Errorf("its mode is %04o and others could read it; run: chmod 600 %s", perm, path), store.ErrRefused)
	}
	text, err := io.ReadAll(io.LimitReader(f, 1024))
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("%w: it is empty; put the key back, or remove the file if there is no database yet", store.ErrInvalid)
	}
	return decode(string(text))
}

// writeKeyFile makes the file and its directory entry durable: if a power failure removes a
// key, data sealed under it is lost.
func writeKeyFile(path string, key []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(key) + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		os.Remove(path) // nothing was sealed with it yet
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// WrappedBy returns the id of the master key that wrapped a data key.
func WrappedBy(wrapped []byte) (string, error) {
	if len(wrapped) < 1+idSize || wrapped[0] != version {
		return "", fmt.Errorf("%w: a data key has an unknown form", ErrDamaged)
	}
	return hex.EncodeToString(wrapped[1 : 1+idSize]), nil
}

// Export reads the master key from where [Open] would and returns it as text for a key file
// or NIZE_MASTER_KEY, with its id. It never creates a key.
func Export(keyFile string, env store.Secret) (text store.Secret, id string, err error) {
	var key []byte
	if env.IsZero() {
		if key, err = readKeyFile(keyFile); err != nil {
			return store.Secret{}, "", fmt.Errorf("reading key file %s: %w", keyFile, err)
		}
	} else if key, err = decode(env.Reveal()); err != nil {
		return store.Secret{}, "", fmt.Errorf("reading NIZE_MASTER_KEY: %w", err)
	}
	m, err := newMaster(key)
	if err != nil {
		return store.Secret{}, "", err
	}
	return store.NewSecret(base64.StdEncoding.EncodeToString(key)), m.ID(), nil
}
