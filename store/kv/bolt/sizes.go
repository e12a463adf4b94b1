package bolt

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	bbolt "go.etcd.io/bbolt"
)

// BucketSize is the size of one bucket in a file, in bytes, with its inner buckets.
type BucketSize struct {
	Name  string
	Keys  int
	Data  int64 // keys and values
	Pages int64 // their pages, with headers and free space
}

// Sizes is the composition of a file, in bytes.
type Sizes struct {
	File    int64 // on disk
	Used    int64 // up to the last page that was ever used
	Free    int64 // free pages before that, which are reused
	Buckets []BucketSize
}

// ReadSizes reads the sizes of the file at path. No process may have it open. It reads
// every page.
func ReadSizes(path string) (s Sizes, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	s.File = info.Size()
	db, err := openFile(path, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout, PreLoadFreelist: true})
	if err != nil {
		return s, fmt.Errorf("opening database %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	size := int64(db.Info().PageSize)
	err = db.View(func(tx *bbolt.Tx) error {
		s.Used = tx.Size()
		for id := int64(0); id*size < s.Used; id++ {
			switch p, err := tx.Page(int(id)); {
			case err != nil:
				return err
			case p.Type == "free":
				s.Free += size
			default:
				id += int64(p.OverflowCount)
			}
		}
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			one := BucketSize{Name: string(name)}
			st := b.Stats()
			one.Pages = int64(st.LeafAlloc + st.BranchAlloc)
			count(b, &one)
			s.Buckets = append(s.Buckets, one)
			return nil
		})
	})
	slices.SortFunc(s.Buckets, func(a, b BucketSize) int { return cmp.Compare(b.Pages, a.Pages) })
	return s, err
}

// count adds the keys and values of b to one.
func count(b *bbolt.Bucket, one *BucketSize) {
	_ = b.ForEach(func(k, v []byte) error { // its error is the function's
		if v == nil {
			count(b.Bucket(k), one)
			return nil
		}
		one.Keys++
		one.Data += int64(len(k) + len(v))
		return nil
	})
}

// Room returns how many bytes of the file were ever used, and how many of them are free. It
// never waits for the disk.
func (f *File) Room() (used, free int64) {
	db := f.current().db
	_ = db.View(func(b *bbolt.Tx) error { used = b.Size(); return nil }) // 0 for a closed file
	stats := db.Stats()
	return used, int64(stats.FreePageN+stats.PendingPageN) * int64(db.Info().PageSize)
}
