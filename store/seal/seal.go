// Package seal keeps secrets at rest.
//
// There are two layers, so that a new master key costs one small write and not
// a pass over the database:
//
//	master key   32 bytes, from a key file (0600) or NIZE_MASTER_KEY; never stored
//	             beside the data. It only wraps data keys.
//	data keys    random, numbered; kept wrapped in the database. The newest one
//	             seals, every one opens.
//	values       1 | key number (4) | nonce (12) | ciphertext | tag (16)
//
// The cipher is AES-256-GCM of the standard library with random nonces
// (NIST SP 800-38D; at most 2^32 values under one data key, which is why data
// keys are numbered). Associated data binds a value to its place: bucket,
// record key and key number. A value moved to another record does not open.
//
// A wrong or missing master key is an error and never a reason to make a new
// one: a key file is written only together with the first data key.
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
	version = 1 // first byte of all that is sealed or wrapped
)

// ErrWrongKey says that the master key is not the one that wrapped the data key.
var ErrWrongKey = errors.New("wrong master key")

// ErrDamaged says that a sealed value does not open: it was changed, or it was
// sealed for another place.
var ErrDamaged = errors.New("sealed value does not open")

// Master wraps data keys. It prints as its id only. Wrap is not for concurrent
// use, since the first one may write the key file; Unwrap is.
type Master struct {
	id   [idSize]byte
	aead cipher.AEAD
	// file and key are set while the key was made here and is not on disk yet.
	file string
	key  []byte
}

// Open takes the master key from env (base64 or hex of 32 bytes; a passphrase
// is refused) or, if env is empty, from keyFile, which must be readable by its
// owner only. If there is no such file a new key is made; it is written, with
// O_EXCL and mode 0600, by the first [Master.Wrap], that is, with a new
// database. [Master.Unwrap] never writes it, so that a lost key is noticed.
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

// ID is a short name for the key that gives nothing of it away: 16 hex digits.
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

// Unwrap opens what Wrap made for the data key of that number. ErrWrongKey if
// another master key wrapped it.
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

// NewDataKey makes a random key with that number.
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

// NewSealer takes all data keys there are; the one with the highest number seals.
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

// Newest is the number of the data key that seals.
func (s *Sealer) Newest() uint32 { return s.newest }

// headSize is what stands before the nonce of a sealed value.
const headSize = 1 + 4

// Seal encrypts plain for the place that aad names; see [Place].
func (s *Sealer) Seal(aad, plain []byte) []byte {
	aead := s.aeads[s.newest]
	out := make([]byte, 0, headSize+aead.Overhead()+len(plain))
	out = append(out, version)
	out = binary.BigEndian.AppendUint32(out, s.newest)
	return aead.Seal(out, nil, plain, withNumber(aad, s.newest))
}

// Open decrypts what Seal made for the same place. ErrDamaged if it does not open.
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

// KeyNumber says under which data key a value was sealed.
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

// Place is the associated data of a record: its bucket and its key, the length
// of the first written out so that no two places read alike.
func Place(bucket string, key []byte) []byte {
	b := make([]byte, 0, 2+len(bucket)+len(key))
	b = binary.BigEndian.AppendUint16(b, uint16(len(bucket)))
	return append(append(b, bucket...), key...)
}

// decode reads a key written as base64 (standard or URL alphabet, padded or
// not) or hex.
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

// writeKeyFile makes the file and its name durable: data sealed under a key
// that a power cut takes away is lost.
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
		os.Remove(path) // nothing was sealed under it yet
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

// WrappedBy is the id of the master key under which a data key was wrapped.
func WrappedBy(wrapped []byte) (string, error) {
	if len(wrapped) < 1+idSize || wrapped[0] != version {
		return "", fmt.Errorf("%w: a data key has an unknown form", ErrDamaged)
	}
	return hex.EncodeToString(wrapped[1 : 1+idSize]), nil
}

// Export reads the master key from where [Open] finds it and returns it as
// text that a key file or NIZE_MASTER_KEY takes, with its id. It never makes
// one.
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
