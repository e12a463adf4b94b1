// Package journal keeps small records beside a database until the database has them.
//
// An append is one write, and one flush if the record must also survive a crash of the
// machine. The file has a fixed size, so an append never needs free disk space.
//
// The file has two halves. Records fill one of them. When the database takes over its
// records ([File.Turn]), the next ones go into the other half; when they are committed
// ([File.Done]), the first half is free. Record numbers are consecutive, and the database
// stores the highest number that it has together with the records. [Read] returns the
// records after that number, as long as they follow it without a gap, so that records of an
// earlier run, or of another copy of the database, are never included.
//
// Each record is sealed, bound to its number and position.
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
	// halfSize limits the records that wait for the database.
	halfSize = 512 << 10
	// MaxRecord is the maximum size of a sealed record.
	MaxRecord = 64 << 10
	headSize  = 4 + 8 // size, number
)

// ErrFull is returned if there is no space for a record; the database has to take over the
// records first, or store this one itself.
var ErrFull = errors.New("the journal is full")

// File is an open journal. The caller serializes all methods except Flush.
type File struct {
	f    *os.File
	aead cipher.AEAD
	seq  uint64 // of the newest record
	half int64  // being filled: 0 or 1
	off  int64  // offset of the next record in it
	held [2]bool

	mu      sync.Mutex // held during a flush; guards flushed
	flushed uint64     // the newest flushed record

	wrote sync.Mutex // guards last
	last  uint64     // the newest written record
}

// Open opens or creates the journal at path. The database has the records up to seq; all
// other records are discarded. The key is any secret.
func Open(path string, key []byte, seq uint64) (*File, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// Write real bytes, not a hole: an append must succeed on a full disk.
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

// Append writes a record, which then survives a crash of this process, and returns its
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

// Flush returns when the record of that number is on disk. Concurrent calls share a flush.
// After an error no record can be relied on.
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

// Turn directs further records to the other half, if it is free. The database takes over
// all records up to now.
func (j *File) Turn() {
	if other := 1 - j.half; j.held[j.half] && !j.held[other] {
		j.half, j.off = other, 0
	}
}

// Done records that the database has committed the records that it took over.
func (j *File) Done() { j.held[1-j.half] = false }

// Wipe overwrites records that are no longer needed.
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

// Read returns the records at path after the one of that number, in order. It returns none
// if the file is missing, damaged, or another database's.
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

// readHalf adds the records of a half: each directly follows the previous one and has the
// next number.
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
