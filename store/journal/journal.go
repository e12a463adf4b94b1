// Package journal keeps small records beside a database from when they must not
// be lost until the database has them: an append is one write, and one flush
// where it must outlive the machine too. It is a file of a fixed size, so an
// append never needs room on the disk.
//
// The file has two halves. Records fill one of them; when the database takes
// over what is there ([File.Turn]), the next ones go into the other, and when it
// has it ([File.Done]), that half is free. A record has a number, one more than
// the one before it, and the database notes the highest that it has with what
// it takes over. [Read] returns those behind that number: as far as they follow
// it without a gap, so that what an earlier life left in the file, or what
// belongs to another copy of the database, is never taken for them.
//
// Each record is sealed with the key that its number and place are bound to.
package journal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

const (
	// halfSize bounds what waits for the database.
	halfSize = 512 << 10
	// MaxRecord is the size of the largest record, sealed.
	MaxRecord = 64 << 10
	headSize  = 4 + 8 // size, number
)

// ErrFull says that a record finds no room; the database has to take over first,
// or to store this one itself.
var ErrFull = errors.New("the journal is full")

// File is an open journal. The caller serialises all methods but Flush.
type File struct {
	f    *os.File
	aead cipher.AEAD
	seq  uint64 // of the newest record
	half int64  // that is filled now: 0 or 1
	off  int64  // where the next record stands in it
	held [2]bool

	mu      sync.Mutex // held while it is flushed; guards flushed
	flushed uint64     // the newest record that is

	wrote sync.Mutex // guards last
	last  uint64     // the newest record that is written
}

// Open opens the journal at path, or makes one, whose records up to seq the
// database has. What else is there is gone. The key is any secret.
func Open(path string, key []byte, seq uint64) (*File, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// Real bytes, not a hole: an append must find room on a full disk.
	_, err = f.WriteAt(make([]byte, 2*halfSize), 0)
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, errors.Join(fmt.Errorf("making room for a journal: %w", err), f.Close())
	}
	return &File{f: f, aead: aead, seq: seq, last: seq, flushed: seq}, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	sum := sha256.Sum256(append([]byte("journal\x00"), key...))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Append writes a record, so that it outlives this process, and returns its
// number.
func (j *File) Append(record []byte) (uint64, error) {
	size := int64(headSize + len(record) + j.aead.Overhead())
	if size > MaxRecord || j.off+size > halfSize {
		return 0, ErrFull
	}
	seq := j.seq + 1
	b := make([]byte, headSize, size)
	binary.BigEndian.PutUint32(b, uint32(size))
	binary.BigEndian.PutUint64(b[4:], seq)
	b = j.aead.Seal(b, nil, record, b[:headSize])
	if _, err := j.f.WriteAt(b, j.half*halfSize+j.off); err != nil {
		return 0, fmt.Errorf("writing to the journal: %w", err)
	}
	j.seq, j.off, j.held[j.half] = seq, j.off+size, true
	j.wrote.Lock()
	j.last = seq
	j.wrote.Unlock()
	return seq, nil
}

// Flush returns when the record of that number is on the disk. Several at once
// share a flush. After an error no record may be relied on.
func (j *File) Flush(seq uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.flushed >= seq {
		return nil
	}
	j.wrote.Lock()
	last := j.last
	j.wrote.Unlock()
	if err := flush(j.f); err != nil {
		return fmt.Errorf("flushing the journal: %w", err)
	}
	j.flushed = last
	return nil
}

// Turn has further records go into the other half, if that is free. The database
// takes over all that there are up to now.
func (j *File) Turn() {
	if other := 1 - j.half; j.held[j.half] && !j.held[other] {
		j.half, j.off = other, 0
	}
}

// Done says that the database has all that it took over.
func (j *File) Done() { j.held[1-j.half] = false }

// Wipe overwrites what is no longer needed.
func (j *File) Wipe() error {
	zeros := make([]byte, halfSize)
	var err error
	for half, held := range j.held {
		if !held {
			_, werr := j.f.WriteAt(zeros, int64(half)*halfSize)
			err = errors.Join(err, werr)
		}
	}
	return errors.Join(err, flush(j.f))
}

// Close closes the file.
func (j *File) Close() error { return j.f.Close() }

// Read returns the records at path that follow the one of that number, in order.
// A file that is missing, damaged, or another's has none.
func Read(path string, key []byte, after uint64) ([][]byte, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, 2*halfSize))
	if err != nil {
		return nil, err
	}
	found := map[uint64][]byte{}
	for half := range 2 {
		readHalf(aead, content[min(half*halfSize, len(content)):min((half+1)*halfSize, len(content))], found)
	}
	var records [][]byte
	for {
		after++
		record, ok := found[after]
		if !ok {
			return records, nil
		}
		records = append(records, record)
	}
}

// readHalf finds the records of a half: each stands behind the one before it and
// has its next number.
func readHalf(aead cipher.AEAD, b []byte, found map[uint64][]byte) {
	for before := uint64(0); len(b) >= headSize; {
		size, seq := binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:])
		if size < headSize || int64(size) > int64(len(b)) || before != 0 && seq != before+1 {
			return
		}
		record, err := aead.Open(nil, nil, b[headSize:size], b[:headSize])
		if err != nil {
			return
		}
		found[seq], before, b = record, seq, b[size:]
	}
}
