package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"nize/store/kv"
)

// A database that was not closed is checked before it is opened. bbolt's own check maps
// the file, which a damaged one can turn into a crash or a loop, so it needs a process of
// its own, and it takes seconds for a gigabyte. CheckPages reads the file instead and
// looks at the same: that each page is used once, by a tree or as a free one, that pages
// are what they are used as, that their elements are inside them, and that keys are in
// order. Whatever the file has, it ends, and takes two bits of memory for each page.

// The forms of pages in bbolt's file format version 2 (internal/common: page.go,
// bucket.go): header of id (8), flags (2), count (2), overflow (4); elements of a branch
// are pos, key size (4 each) and page (8), of a leaf flags, pos, key size and value size
// (4 each). pos counts from the element.
const (
	pageBranch   = 1
	pageLeaf     = 2
	pageFreelist = 16
	elementSize  = 16
	leafBucket   = 1 // flag of an element whose value is a bucket: root page (8), sequence (8)
	bucketSize   = 16
	mostDepth    = 64
	readAhead    = 64 << 10
)

// pageCheck is one check of a file.
type pageCheck struct {
	file     io.ReaderAt
	ctx      context.Context // of the check
	pageSize int
	pages    uint64
	seen     []uint64 // bits
	visited  uint64
	// ahead are the pages that were read along, which mostly come next.
	ahead   []byte
	aheadAt int64
}

// CheckPages looks through the whole file and returns the first problem that it finds, as
// kv.ErrDamaged. No process may write the file meanwhile. A missing or empty file is fine.
func CheckPages(ctx context.Context, path string) (err error) {
	defer func() {
		if r := recover(); r != nil { // it reads nothing that is mapped, but fail closed
			err = fmt.Errorf("%w: %v", kv.ErrDamaged, r)
		}
		if err != nil {
			err = fmt.Errorf("checking database %s: %w", path, err)
		}
	}()
	if err := precheck(path); err != nil {
		return err
	}
	s, size, err := readState(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && size == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	c := &pageCheck{file: f, ctx: ctx, pageSize: int(s.pageSize), pages: s.pages, seen: make([]uint64, s.pages/64+1)}
	c.seen[0] = 3 // the metas
	c.visited = 2
	if err := c.freelist(s.freelist); err != nil {
		return err
	}
	if err := c.tree(s.root, nil, nil, 0); err != nil {
		return err
	}
	if c.visited != c.pages {
		return c.damaged("%d of %d pages are in no tree and not free", c.pages-c.visited, c.pages)
	}
	return nil
}

func (c *pageCheck) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", kv.ErrDamaged, fmt.Sprintf(format, args...))
}

// use notes that n pages from id on are used, once.
func (c *pageCheck) use(id, n uint64) error {
	if id < 2 || n == 0 || id >= c.pages || n > c.pages-id {
		return c.damaged("page %d is out of bounds", id)
	}
	for p := id; p < id+n; p++ {
		if c.seen[p/64]&(1<<(p%64)) != 0 {
			return c.damaged("page %d is used twice", p)
		}
		c.seen[p/64] |= 1 << (p % 64)
	}
	c.visited += n
	return nil
}

// read returns a page with what overflows it, and notes that they are used. The bytes are
// valid until the next read.
func (c *pageCheck) read(id uint64) (page []byte, flags uint16, count int, err error) {
	if err := c.ctx.Err(); err != nil {
		return nil, 0, 0, err
	}
	if id < 2 || id >= c.pages {
		return nil, 0, 0, c.damaged("page %d is out of bounds", id)
	}
	at := int64(id) * int64(c.pageSize)
	page, err = c.bytes(at, c.pageSize)
	if err != nil {
		return nil, 0, 0, err
	}
	order := binary.NativeEndian
	if got := order.Uint64(page); got != id {
		return nil, 0, 0, c.damaged("page %d says that it is page %d", id, got)
	}
	overflow := uint64(order.Uint32(page[12:]))
	if err := c.use(id, 1+overflow); err != nil {
		return nil, 0, 0, err
	}
	if overflow > 0 {
		if page, err = c.bytes(at, int(1+overflow)*c.pageSize); err != nil {
			return nil, 0, 0, err
		}
	}
	return page, order.Uint16(page[8:]), int(order.Uint16(page[10:])), nil
}

// bytes reads n bytes, and some of what follows for the next time.
func (c *pageCheck) bytes(at int64, n int) ([]byte, error) {
	if at >= c.aheadAt && at+int64(n) <= c.aheadAt+int64(len(c.ahead)) {
		return c.ahead[at-c.aheadAt:][:n:n], nil
	}
	size := min(max(int64(n), readAhead), int64(c.pages)*int64(c.pageSize)-at)
	if size < int64(n) {
		return nil, c.damaged("the file ends early")
	}
	if int64(cap(c.ahead)) < size {
		c.ahead = make([]byte, size)
	}
	c.ahead, c.aheadAt = c.ahead[:size], at
	if _, err := c.file.ReadAt(c.ahead, at); err != nil {
		c.ahead = nil
		return nil, fmt.Errorf("%w: reading at %d: %w", kv.ErrDamaged, at, err)
	}
	return c.ahead[:n:n], nil
}

// freelist notes the free pages.
func (c *pageCheck) freelist(id uint64) error {
	page, flags, count, err := c.read(id)
	if err != nil {
		return err
	}
	if flags != pageFreelist {
		return c.damaged("page %d is no list of free pages", id)
	}
	ids, n := page[pageHead:], uint64(count)
	if count == 0xffff && len(ids) >= 8 { // too many for the field
		n = binary.NativeEndian.Uint64(ids)
		ids = ids[8:]
	}
	if n > uint64(len(ids)/8) {
		return c.damaged("the list of free pages has %d entries, and room for %d", n, len(ids)/8)
	}
	ids = bytes.Clone(ids[:n*8])
	for ; len(ids) > 0; ids = ids[8:] {
		if err := c.use(binary.NativeEndian.Uint64(ids), 1); err != nil {
			return fmt.Errorf("free: %w", err)
		}
	}
	return nil
}

// child is a page of a branch, with the keys between which its keys are.
type child struct {
	id          uint64
	from, until []byte // nil: no bound
}

// tree checks the pages from id on, whose keys are not before from, and before until.
func (c *pageCheck) tree(id uint64, from, until []byte, depth int) error {
	if depth > mostDepth {
		return c.damaged("page %d is too deep", id)
	}
	page, flags, count, err := c.read(id)
	if err != nil {
		return err
	}
	switch flags {
	case pageLeaf:
		inner, err := c.leaf(id, page, count, from, until)
		for _, root := range inner {
			if err == nil {
				err = c.tree(root, nil, nil, depth+1)
			}
		}
		return err
	case pageBranch:
		children, err := c.branch(id, page, count, from, until)
		for _, ch := range children {
			if err == nil {
				err = c.tree(ch.id, ch.from, ch.until, depth+1)
			}
		}
		return err
	}
	return c.damaged("page %d has the unknown form %d", id, flags)
}

// branch returns the pages under a branch. They are copies.
func (c *pageCheck) branch(id uint64, page []byte, count int, from, until []byte) ([]child, error) {
	if count == 0 || pageHead+count*elementSize > len(page) {
		return nil, c.damaged("branch page %d has %d elements", id, count)
	}
	children := make([]child, count)
	last := from
	for i := range count {
		at := pageHead + i*elementSize
		pos, ksize := binary.NativeEndian.Uint32(page[at:]), binary.NativeEndian.Uint32(page[at+4:])
		key, err := c.slice(id, page, at, pos, ksize)
		if err != nil {
			return nil, err
		}
		key = bytes.Clone(key)
		if err := c.inOrder(id, i, key, last, until); err != nil {
			return nil, err
		}
		if last = key; i > 0 {
			children[i-1].until = key
		}
		children[i] = child{id: binary.NativeEndian.Uint64(page[at+8:]), from: key, until: until}
	}
	return children, nil
}

// leaf checks the elements of a leaf, and returns the root pages of the buckets in it.
func (c *pageCheck) leaf(id uint64, page []byte, count int, from, until []byte) (inner []uint64, err error) {
	if pageHead+count*elementSize > len(page) {
		return nil, c.damaged("leaf page %d has %d elements", id, count)
	}
	last := from
	for i := range count {
		at := pageHead + i*elementSize
		order := binary.NativeEndian
		flags, pos, ksize, vsize := order.Uint32(page[at:]), order.Uint32(page[at+4:]), order.Uint32(page[at+8:]), order.Uint32(page[at+12:])
		both, err := c.slice(id, page, at, pos, ksize+vsize)
		if err == nil && (ksize+vsize < ksize || flags > leafBucket) {
			err = c.damaged("element %d of leaf page %d is none", i, id)
		}
		if err != nil {
			return nil, err
		}
		key, value := both[:ksize], both[ksize:]
		if err := c.inOrder(id, i, key, last, until); err != nil {
			return nil, err
		}
		last = key
		if flags != leafBucket {
			continue
		}
		if len(value) < bucketSize {
			return nil, c.damaged("bucket %q in page %d is too short", key, id)
		}
		if root := order.Uint64(value); root != 0 {
			inner = append(inner, root)
			continue
		}
		inline := value[bucketSize:] // a page inside this one
		if len(inline) < pageHead || order.Uint16(inline[8:]) != pageLeaf {
			return nil, c.damaged("bucket %q in page %d is damaged", key, id)
		}
		more, err := c.leaf(id, inline, int(order.Uint16(inline[10:])), nil, nil)
		if err == nil && len(more) > 0 {
			err = c.damaged("bucket %q in page %d has buckets", key, id)
		}
		if err != nil {
			return nil, err
		}
	}
	return inner, nil
}

// slice returns n bytes at pos from an element.
func (c *pageCheck) slice(id uint64, page []byte, element int, pos, n uint32) ([]byte, error) {
	begin := uint64(element) + uint64(pos)
	if end := begin + uint64(n); end > uint64(len(page)) {
		return nil, c.damaged("an element of page %d ends outside of it", id)
	}
	return page[begin:][:n:n], nil
}

// inOrder checks the key of element i: the first may be the bound, the others are after
// the one before.
func (c *pageCheck) inOrder(id uint64, i int, key, last, until []byte) error {
	if order := bytes.Compare(key, last); last != nil && (order < 0 || order == 0 && i > 0) || until != nil && bytes.Compare(key, until) >= 0 {
		return c.damaged("keys of page %d are not in order", id)
	}
	return nil
}
