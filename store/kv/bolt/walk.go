package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"syscall"

	"nize/store"
	"nize/store/kv"
)

// A database that was not closed is checked before it is opened. bbolt's own check can
// crash, or run forever, on a damaged file, so it needs a process of its own, and it takes
// seconds for a gigabyte. This check verifies the same properties, but follows no offset
// without checking its bounds, visits each page once, and uses two bits of memory for each
// page:
//
//   - Structure: each page is used exactly once, by a tree or as a free page; it is of the
//     kind that it is used as; the keys of branches are in order. A file whose structure is
//     damaged is dangerous to write, since a page that is both used and free would be
//     overwritten.
//   - Contents of leaves: entries are inside of their page, and keys are in order and
//     between those of the branch above. If not, entries are unreadable or can't be found,
//     but the damage doesn't spread.
//
// Branches are about one page in a hundred, and most of the rest are records of the past.
// So [CheckStart] checks at a start: the metas, the list of free pages, all branches, that
// no page is referred to twice or both referred to and free, and the contents of the
// smallest buckets, which are those of people, tokens, rules and settings.
// [File.CheckRest] checks the other leaves while the database is in use: first their
// headers, with the pages that each occupies, in one read transaction, and then their
// contents in short ones. Pages that change between those were written by this process.
//
// Until CheckRest ends, a few seconds after the start, reads of large buckets (calls, events,
// messages, rows of usage) use leaves that were not checked. A kill alone damages none: a
// commit flushes its pages before the meta page that refers to them. If the disk damaged a
// leaf, a read in these seconds can miss an entry whose key is out of order, return
// kv.ErrDamaged, or return bytes of another entry. The last can hardly pass for a record:
// arguments, results and secrets are sealed for their key, and the audit trail is a chain.
// People, tokens, rules and settings are checked before they are read. bbolt calls nothing
// when it reads a page, so a leaf can't be checked at its first use. Neither check finds a
// changed value within an intact leaf, since pages have no checksum.

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

	startPages = 32 << 20 / 4096 // of leaves whose contents are checked at a start
	// mostUnfinished is how many processes in a row may end before CheckRest does.
	mostUnfinished = 2
	mostMisses     = 1000 // attempts of CheckRest to read the head that belongs to a transaction
	restPages      = 512  // leaves checked in one transaction of CheckRest
)

// pageCheck is one check of a file.
type pageCheck struct {
	data     []byte // the mapped file; if it is nil, pages are read from file
	file     io.ReaderAt
	most     int             // pages of leaves to read from file
	ctx      context.Context // of the check
	pageSize int
	pages    uint64
	// branchesOnly leaves out the headers of leaves, so the pages that follow the first of a
	// leaf are not noted as used.
	branchesOnly bool
	seen         []uint64 // bits
	visited      uint64
}

// tree is a bucket: its names from the outermost one on, its root page, and the number of
// its leaves.
type tree struct {
	path   []string
	root   uint64
	leaves int
}

// CheckPages checks the whole file and returns the first problem that it finds, as
// kv.ErrDamaged. No process may write the file meanwhile. A missing or empty file passes.
func CheckPages(ctx context.Context, path string) error {
	_, err := checkPages(ctx, path, -1)
	return err
}

// Unchecked is the result of CheckStart: nil if the whole file is checked.
type Unchecked struct {
	most      int   // leaves whose contents are checked together with the structure
	processes int   // that ended in a row without closing the unchecked file, with the next one
	damaged   error // set if CheckRest has found damage
}

// damage returns the damage that CheckRest has found.
func (u *Unchecked) damage() error {
	if u == nil {
		return nil
	}
	return u.damaged
}

// CheckStart checks the part of the file that must be intact before the database is used.
// The rest is checked by [File.CheckRest]. If that has found damage in the file, or was not
// finished by the last mostUnfinished processes, CheckStart checks the whole file: reading a
// damaged leaf can crash the process each time, before CheckRest finds it.
func CheckStart(ctx context.Context, path string) (*Unchecked, error) {
	return checkStart(ctx, path, startPages)
}

func checkStart(ctx context.Context, path string, most int) (*Unchecked, error) {
	before := unfinishedChecks(path)
	if damagedBefore(path) || before >= mostUnfinished {
		return nil, CheckPages(ctx, path)
	}
	u, err := checkPages(ctx, path, most)
	if u != nil {
		u.processes = before + 1
	}
	return u, err
}

// checkPages checks the whole file if most is negative. Otherwise it leaves out the headers
// of leaves, and their contents but for most pages.
func checkPages(ctx context.Context, path string, most int) (u *Unchecked, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file may be cut off meanwhile, or unreadable
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", kv.ErrDamaged, r)
		}
		if err != nil {
			u, err = nil, fmt.Errorf("checking database %s: %w", path, err)
		}
	}()
	if err := precheck(path); err != nil {
		return nil, err
	}
	s, size, err := readState(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && size == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &pageCheck{ctx: ctx, pageSize: int(s.pageSize), pages: s.pages, branchesOnly: most >= 0}
	if most < 0 {
		if err := c.mapFile(path, s.pages); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, c.unmap()) }()
		_, err := c.all(s, -1)
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c.file = f // a few pages are faster to read than to map
	if rest, err := c.all(s, most); err != nil || len(rest) == 0 && c.visited == c.pages {
		return nil, err
	}
	return &Unchecked{most: most}, nil
}

// mapFile maps the first pages of the file at path for reading.
func (c *pageCheck) mapFile(path string, pages uint64) error {
	if err := c.unmap(); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	length := pages * uint64(c.pageSize)
	if length != uint64(int(length)) {
		return errors.New("the file is too large for the addresses of this machine")
	}
	if c.data, err = syscall.Mmap(int(f.Fd()), 0, int(length), syscall.PROT_READ, syscall.MAP_SHARED); err != nil {
		c.data = nil
		return fmt.Errorf("mapping the file: %w", err)
	}
	c.pages = pages
	return nil
}

func (c *pageCheck) unmap() error {
	data := c.data
	if c.data = nil; data == nil {
		return nil
	}
	return syscall.Munmap(data)
}

// all checks the structure of the file and the contents of at most most leaves, of the
// smallest buckets; a negative number is no limit. It returns the other buckets.
func (c *pageCheck) all(s fileState, most int) (rest []tree, err error) {
	c.seen, c.visited = make([]uint64, s.pages/64+1), 2
	c.seen[0] = 3 // the metas
	if err := c.freelist(s.freelist); err != nil {
		return nil, err
	}
	todo := []tree{{root: s.root}}
	for len(todo) > 0 {
		t := todo[0]
		todo = todo[1:]
		if t.leaves == 0 {
			bottom, err := c.bottom(t.root)
			if err == nil {
				t.leaves, err = c.structure(t.root, nil, nil, 0, bottom)
			}
			if err != nil {
				return nil, err
			}
			if len(t.path) > 0 { // it waits until the smaller ones are checked
				i, _ := slices.BinarySearchFunc(todo, t.leaves, func(t tree, n int) int { return cmp.Compare(t.leaves, n) })
				todo = slices.Insert(todo, i, t)
				continue
			}
		}
		if most >= 0 && t.leaves > most && len(t.path) > 0 {
			rest = append(rest, t)
			continue
		}
		c.most = most
		w := walk{c: c, left: -1, limited: c.data == nil && len(t.path) > 0, inner: func(name []byte, root uint64) {
			inner := append(slices.Clone(t.path), string(name))
			todo = slices.Insert(todo, 0, tree{path: inner, root: root})
		}}
		switch err := w.visit(t.root, nil, nil, 0); {
		case errors.Is(err, errLarge):
			rest = append(rest, t)
		case err != nil:
			return nil, err
		}
		if most >= 0 {
			most = max(0, c.most-t.leaves)
		}
	}
	switch {
	case c.visited == c.pages || c.branchesOnly:
		return rest, nil
	case len(rest) > 0: // pages of buckets inside of those
		return c.all(s, -1)
	}
	return nil, c.damaged("%d of %d pages are in no tree and not free", c.pages-c.visited, c.pages)
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

// errLarge is returned for a leaf that has more pages than may be read.
var errLarge = errors.New("the leaf is large")

// bytes returns n pages from id on.
func (c *pageCheck) bytes(id, n uint64) ([]byte, error) {
	at, size := int64(id)*int64(c.pageSize), int64(n)*int64(c.pageSize)
	if c.data != nil {
		return c.data[at:][:size:size], nil
	}
	page := make([]byte, size)
	if _, err := c.file.ReadAt(page, at); err != nil {
		return nil, fmt.Errorf("%w: reading at %d: %w", kv.ErrDamaged, at, err)
	}
	return page, nil
}

// head returns the header of a page, and the number of pages that it has with those that
// overflow it.
func (c *pageCheck) head(id uint64) (page []byte, flags uint16, count int, n uint64, err error) {
	if id%1024 == 0 {
		if err := c.ctx.Err(); err != nil {
			return nil, 0, 0, 0, err
		}
	}
	if id < 2 || id >= c.pages {
		return nil, 0, 0, 0, c.damaged("page %d is out of bounds", id)
	}
	if page, err = c.bytes(id, 1); err != nil {
		return nil, 0, 0, 0, err
	}
	order := binary.NativeEndian
	if got := order.Uint64(page); got != id {
		return nil, 0, 0, 0, c.damaged("page %d says that it is page %d", id, got)
	}
	flags, count, n = order.Uint16(page[8:]), int(order.Uint16(page[10:])), 1+uint64(order.Uint32(page[12:]))
	if n > c.pages-id {
		return nil, 0, 0, 0, c.damaged("page %d is out of bounds", id)
	}
	if flags != pageFreelist && pageHead+uint64(count)*elementSize > n*uint64(c.pageSize) {
		return nil, 0, 0, 0, c.damaged("page %d has %d elements", id, count)
	}
	return page, flags, count, n, nil
}

// page returns a page with its overflow pages.
func (c *pageCheck) page(id uint64) (page []byte, flags uint16, count int, err error) {
	page, flags, count, n, err := c.head(id)
	if err == nil && n > 1 {
		page, err = c.bytes(id, n)
	}
	return page, flags, count, err
}

// freelist notes the free pages.
func (c *pageCheck) freelist(id uint64) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	page, flags, count, err := c.page(id)
	if err != nil {
		return err
	}
	if flags != pageFreelist {
		return c.damaged("page %d is no list of free pages", id)
	}
	if err := c.use(id, uint64(len(page)/c.pageSize)); err != nil {
		return err
	}
	ids, n := page[pageHead:], uint64(count)
	if count == 0xffff && len(ids) >= 8 { // too many for the field
		n = binary.NativeEndian.Uint64(ids)
		ids = ids[8:]
	}
	if n > uint64(len(ids)/8) {
		return c.damaged("the list of free pages has %d entries, and room for %d", n, len(ids)/8)
	}
	for ids = ids[:n*8]; len(ids) > 0; ids = ids[8:] {
		if err := c.use(binary.NativeEndian.Uint64(ids), 1); err != nil {
			return fmt.Errorf("free: %w", err)
		}
	}
	return nil
}

// structure checks the pages of a tree from the page id on, whose keys are not before from
// and are before until. It returns the number of leaves. All leaves are at the same depth;
// if only branches are checked, the pages at the depth bottom are taken for leaves.
func (c *pageCheck) structure(id uint64, from, until []byte, depth, bottom int) (leaves int, err error) {
	if depth > mostDepth {
		return 0, c.damaged("page %d is too deep", id)
	}
	if c.branchesOnly && depth == bottom {
		return 1, c.use(id, 1)
	}
	page, flags, count, err := c.page(id)
	if err == nil {
		err = c.use(id, uint64(len(page)/c.pageSize))
	}
	switch {
	case err != nil:
		return 0, err
	case flags == pageLeaf && !c.branchesOnly:
		return 1, nil
	case flags != pageBranch:
		return 0, c.damaged("page %d has the unknown form %d", id, flags)
	}
	err = c.branch(id, page, count, from, until, func(ch child) error {
		n, err := c.structure(ch.id, ch.from, ch.until, depth+1, bottom)
		leaves += n
		return err
	})
	return leaves, err
}

// bottom returns the depth of the first leaf of a tree.
func (c *pageCheck) bottom(root uint64) (depth int, err error) {
	for id := root; depth <= mostDepth; depth++ {
		page, flags, count, _, err := c.head(id)
		if err != nil || flags != pageBranch || count == 0 {
			return depth, err
		}
		id = binary.NativeEndian.Uint64(page[pageHead+8:])
	}
	return 0, c.damaged("page %d is too deep", root)
}

// walk checks the contents of the leaves of a tree in order, beginning with the one that has
// the key from.
type walk struct {
	c     *pageCheck
	from  []byte
	left  int    // leaves to check; negative: all
	next  []byte // first key of the next leaf; nil after the last
	pages uint64 // visited; a leaf may be replaced by a branch that leads back
	inner func(name []byte, root uint64)
	// limited ends the walk with errLarge at a leaf that has more than c.most pages.
	limited bool
}

func (w *walk) visit(id uint64, from, until []byte, depth int) error {
	if w.pages++; depth > mostDepth || w.pages > w.c.pages {
		return w.c.damaged("page %d is too deep", id)
	}
	page, flags, count, n, err := w.c.head(id)
	if w.limited && flags == pageLeaf && n > 1 {
		if w.c.most < int(n) {
			return errLarge
		}
		w.c.most -= int(n)
	}
	if err == nil && n > 1 {
		page, err = w.c.bytes(id, n)
	}
	switch {
	case err != nil:
		return err
	case flags == pageLeaf:
		w.left--
		w.next = until
		return w.c.leaf(id, page, count, from, until, w.inner)
	case flags != pageBranch:
		return w.c.damaged("page %d has the unknown form %d", id, flags)
	}
	return w.c.branch(id, page, count, from, until, func(ch child) error {
		if w.left == 0 || ch.until != nil && bytes.Compare(ch.until, w.from) <= 0 {
			return nil
		}
		return w.visit(ch.id, ch.from, ch.until, depth+1)
	})
}

// child is a page of a branch, with the bounds of its keys. They are in the mapped file.
type child struct {
	id          uint64
	from, until []byte // nil: no bound
}

// branch calls do for the children of a branch, after it checked that their keys are in
// order.
func (c *pageCheck) branch(id uint64, page []byte, count int, from, until []byte, do func(child) error) error {
	if count == 0 {
		return c.damaged("branch page %d has no elements", id)
	}
	for _, check := range []bool{true, false} {
		last := child{from: from}
		for i := range count {
			at := pageHead + i*elementSize
			pos, ksize := binary.NativeEndian.Uint32(page[at:]), binary.NativeEndian.Uint32(page[at+4:])
			key, err := c.slice(id, page, at, pos, ksize)
			if err != nil {
				return err
			}
			if check {
				if err := c.inOrder(id, i, key, last.from, until); err != nil {
					return err
				}
			} else if i > 0 {
				last.until = key
				if err := do(last); err != nil {
					return err
				}
			}
			last = child{id: binary.NativeEndian.Uint64(page[at+8:]), from: key, until: until}
		}
		if !check {
			return do(last)
		}
	}
	return nil
}

// leaf checks the elements of a leaf, and calls inner for the buckets in it.
func (c *pageCheck) leaf(id uint64, page []byte, count int, from, until []byte, inner func(name []byte, root uint64)) error {
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
			return err
		}
		key, value := both[:ksize], both[ksize:]
		if err := c.inOrder(id, i, key, last, until); err != nil {
			return err
		}
		last = key
		if flags != leafBucket {
			continue
		}
		if len(value) < bucketSize {
			return c.damaged("bucket %q in page %d is too short", key, id)
		}
		if root := order.Uint64(value); root != 0 {
			inner(key, root)
			continue
		}
		inline := value[bucketSize:] // a page inside this one
		if len(inline) < pageHead || order.Uint16(inline[8:]) != pageLeaf {
			return c.damaged("bucket %q in page %d is damaged", key, id)
		}
		n := int(order.Uint16(inline[10:]))
		if pageHead+n*elementSize > len(inline) {
			return c.damaged("bucket %q in page %d has %d elements", key, id, n)
		}
		more := false
		err = c.leaf(id, inline, n, nil, nil, func([]byte, uint64) { more = true })
		if err == nil && more {
			err = c.damaged("bucket %q in page %d has buckets", key, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
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

// Unchecked reports whether a part of the file is still to be checked by CheckRest, or
// failed that check.
func (f *File) Unchecked() bool { return f.unchecked.Load() != nil }

// CheckRest checks what [CheckStart] left unchecked, beside other transactions. Until it has
// returned nil, the file is not closed as a clean one, so that the next start checks it
// again; CopyTo waits, and Compact returns ErrRunning. CheckRest returns kv.ErrDamaged for
// damage, after which the next start checks the whole file, and store.ErrNotOpen if the file
// is closed meanwhile.
func (f *File) CheckRest(ctx context.Context) (err error) {
	f.compacting.Lock() // the same file stays in use
	defer f.compacting.Unlock()
	unchecked := f.unchecked.Load()
	switch {
	case f.closing.Load():
		return store.ErrNotOpen
	case unchecked == nil:
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	c := &pageCheck{ctx: ctx, pageSize: f.current().db.Info().PageSize}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", kv.ErrDamaged, r)
		}
		err = errors.Join(err, c.unmap())
		switch {
		case err == nil:
			f.unchecked.Store(nil)
			err = Unmark(f.path)
		case errors.Is(err, kv.ErrDamaged):
			err = errors.Join(fmt.Errorf("checking database %s: %w", f.path, err), markDamaged(f.path))
			f.unchecked.Store(&Unchecked{most: unchecked.most, damaged: err})
		}
	}()
	var rest []tree
	for misses, again := 0, true; again; misses++ {
		err := f.view(ctx, func(t *transaction) (err error) {
			s, _, err := readState(f.path)
			if err == nil && s.txid != uint64(t.tx.ID()) {
				err = errors.New("the file at its path is not the open one")
			}
			// Two commits after the transaction has begun, its meta page is overwritten. A
			// file that was removed or replaced doesn't match, either.
			if again = err != nil; again {
				if errors.Is(err, os.ErrNotExist) || misses == mostMisses {
					return fmt.Errorf("checking database %s: %w", f.path, err)
				}
				return ctx.Err()
			}
			if err := c.mapFile(f.path, s.pages); err != nil {
				return err
			}
			rest, err = c.all(s, unchecked.most)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, bucket := range rest {
		w := walk{c: c, inner: func([]byte, uint64) {}}
		for more := true; more; {
			if f.closing.Load() {
				return store.ErrNotOpen
			}
			err := f.view(ctx, func(t *transaction) error {
				if pages := uint64(t.tx.Size()) / uint64(c.pageSize); pages > c.pages { // the file has grown
					if err := c.mapFile(f.path, pages); err != nil {
						return err
					}
				}
				root := t.root(bucket.path)
				if root == 0 {
					more = false
					return nil
				}
				w.left, w.pages = restPages, 0
				if err := w.visit(root, nil, nil, 0); err != nil {
					return err
				}
				w.from, more = bytes.Clone(w.next), w.next != nil
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// root returns the root page of a bucket; 0 if it is inside another page or doesn't exist.
func (t *transaction) root(path []string) uint64 {
	b := t.tx.Bucket([]byte(path[0]))
	for _, name := range path[1:] {
		if b != nil {
			b = b.Bucket([]byte(name))
		}
	}
	if b == nil {
		return 0
	}
	return uint64(b.Root())
}
