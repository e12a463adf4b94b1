package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	bbolt "go.etcd.io/bbolt"

	"nize/store"
	"nize/store/kv"
)

// The two meta pages of a bbolt file (bbolt internal/common: page.go, meta.go,
// file format version 2), in the byte order of the machine: a header of 16
// bytes, then magic, version, page size, flags (4 each), root page, root
// sequence, freelist page, first unused page, transaction, FNV-1a of all that.
const (
	pageHead  = 16
	metaSize  = 64
	metaSum   = 56
	metaMagic = 0xED0CDAED
)

// fileState is the content of the newest valid meta page.
type fileState struct {
	pages, pageSize, txid uint64
	root, freelist        uint64 // pages
}

// readState reads the meta pages without mapping the file.
func readState(path string) (fileState, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return fileState{}, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileState{}, 0, err
	}
	if !info.Mode().IsRegular() {
		return fileState{}, 0, fmt.Errorf("%w: not a regular file", store.ErrInvalid)
	}
	if info.Size() == 0 {
		return fileState{}, 0, nil
	}
	best, ok := readMeta(f, 0)
	// The second page follows the first, whose size may be unknown if it is the
	// damaged one; bbolt tries the same sizes.
	for size := int64(1024); size <= 1<<24; size *= 2 {
		if ok && size != int64(best.pageSize) {
			continue
		}
		if second, good := readMeta(f, size); good && second.pageSize == uint64(size) {
			if !ok || second.txid > best.txid {
				best = second
			}
			ok = true
			break
		}
	}
	if !ok {
		return fileState{}, info.Size(), fmt.Errorf("%w: no valid head; it is damaged or no nize database", kv.ErrDamaged)
	}
	return best, info.Size(), nil
}

func readMeta(f io.ReaderAt, at int64) (fileState, bool) {
	var page [pageHead + metaSize]byte
	if _, err := f.ReadAt(page[:], at); err != nil {
		return fileState{}, false
	}
	m, order := page[pageHead:], binary.NativeEndian
	sum := fnv.New64a()
	sum.Write(m[:metaSum])
	if order.Uint32(m) != metaMagic || order.Uint64(m[metaSum:]) != sum.Sum64() {
		return fileState{}, false
	}
	return fileState{
		pageSize: uint64(order.Uint32(m[8:])),
		pages:    order.Uint64(m[40:]),
		txid:     order.Uint64(m[48:]),
		root:     order.Uint64(m[16:]),
		freelist: order.Uint64(m[32:]),
	}, true
}

// precheck refuses a file that is shorter than its meta page says: mapping it would crash
// the process. A missing or empty file passes.
func precheck(path string) error {
	s, size, err := readState(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if size > 0 && (s.pageSize == 0 || s.pages > uint64(size)/s.pageSize) {
		return fmt.Errorf("%w: the file is cut off, %d bytes of at least %d are there", kv.ErrDamaged, size, s.pages*s.pageSize)
	}
	return nil
}

// Check checks every page of the database and returns the first problems. Run it in a child
// process: some damage crashes the process that reads it, which the parent takes for an
// answer. It returns an error while a nized has the database open; a missing file passes.
func Check(path string) error { return check(path, func(error) {}) }

// check is Check. It calls enough once when there are maxProblems, since the number of
// further ones is unbounded. It may crash the process.
func check(path string, enough func(error)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("checking database %s: %w", path, err)
		}
	}()
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := precheck(path); err != nil {
		return err
	}
	db, err := openFile(path, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout, PreLoadFreelist: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", kv.ErrDamaged, r)
		}
	}()
	return db.View(func(b *bbolt.Tx) error {
		var found []error
		for problem := range b.Check() { // must be read to its end
			if len(found) == maxProblems {
				continue
			}
			if found = append(found, problem); len(found) == maxProblems {
				enough(fmt.Errorf("%w: %w", kv.ErrDamaged, errors.Join(found...)))
			}
		}
		if len(found) > 0 {
			return fmt.Errorf("%w: %w", kv.ErrDamaged, errors.Join(found...))
		}
		return nil
	})
}

// Clean reports whether the database at path was closed and not changed since: if so, a
// small file beside it has the number of the last transaction. It doesn't open the
// database, so it is safe on a damaged one. A missing database is clean.
func Clean(path string) bool {
	s, size, err := readState(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && size == 0 {
		return true
	}
	if err != nil {
		return false
	}
	text, err := os.ReadFile(MarkPath(path))
	return err == nil && strings.TrimSpace(string(text)) == strconv.FormatUint(s.txid, 10)
}

// MarkPath returns the path of the file that marks the database at path as closed.
func MarkPath(path string) string { return path + ".clean" }

// mark records a clean end. The mark has the number of the last transaction, so the next
// write makes it void.
func mark(path string) error {
	s, _, err := readState(path)
	if err != nil {
		return err
	}
	return os.WriteFile(MarkPath(path), []byte(strconv.FormatUint(s.txid, 10)+"\n"), 0o600)
}

// damagedMark is the content of the mark of a file in which [File.CheckRest] found damage.
const damagedMark = "damaged"

func markDamaged(path string) error {
	return os.WriteFile(MarkPath(path), []byte(damagedMark+"\n"), 0o600)
}

func damagedBefore(path string) bool {
	text, err := os.ReadFile(MarkPath(path))
	return err == nil && strings.TrimSpace(string(text)) == damagedMark
}

// checkingMark begins the mark of a file that [File.CheckRest] has not checked yet. The
// number of processes follows that ended without closing it in that state, including the
// one that has it open.
const checkingMark = "checking "

func markChecking(path string, processes int) error {
	return os.WriteFile(MarkPath(path), []byte(checkingMark+strconv.Itoa(processes)+"\n"), 0o600)
}

// unfinishedChecks returns how many processes in a row ended before their check.
func unfinishedChecks(path string) int {
	text, _ := os.ReadFile(MarkPath(path)) // without a mark, none is known
	n, ok := strings.CutPrefix(strings.TrimSpace(string(text)), checkingMark)
	if !ok {
		return 0
	}
	processes, err := strconv.Atoi(n)
	if err != nil {
		return mostUnfinished
	}
	return processes
}

// Unmark removes the mark.
func Unmark(path string) error {
	if err := os.Remove(MarkPath(path)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
