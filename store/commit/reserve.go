package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"nize/store"
)

// A denial must be stored even on a full disk, because it prevents a call. So must the end
// of a running call, which can't be refused any more. For that a file beside the database
// reserves some space. When a denial or an outcome meets a full disk, the file is
// truncated, the record is written, and the space is reserved again at once, so that
// nothing else uses it up. The records of outcomes stay and can be large: they may use only
// the part above reserveForNo, so that space remains for denials.
const (
	reserveForNo = 1 << 20 // several decisions about the largest arguments
	reserveSize  = 2 << 20
	reserveStep  = 64 << 10 // not worth reserving less
	ReserveName  = ".reserve"
)

func (d *writer) reservePath() string { return d.db.path + ReserveName }

// reserve reserves the space, or as much as there is.
func (d *writer) reserve() {
	f, err := os.OpenFile(d.reservePath(), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return // the disk has no space even for a directory entry
	}
	block := bytes.Repeat([]byte("reserved"), reserveStep/8) // not zeros, which a file system may not allocate
	var size int64
	if info, err := f.Stat(); err == nil {
		size = info.Size() / reserveStep * reserveStep
	}
	for ; size < reserveSize; size += reserveStep {
		if _, err = f.WriteAt(block, size); err != nil {
			_ = f.Truncate(size) // a step may be written partially
			break
		}
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil && !errors.Is(NoRoom(err), store.ErrDiskFull) {
		d.db.log.Warn("keeping room for a full disk", "err", err)
	}
}

// urgency determines what happens to an operation on a full disk.
type urgency int

const (
	canWait   urgency = iota // it is refused, or waits for space
	isOutcome                // it may use the space above reserveForNo
	isUrgent                 // it may use all reserved space
)

// squeeze writes those operations that must not wait for space on a full disk into the
// reserved space, and returns the others.
func (d *writer) squeeze(waiting []*op, full error) (rest []*op) {
	if d.db.file == nil {
		return waiting
	}
	of := map[urgency][]*op{}
	for _, o := range waiting {
		of[o.urgency] = append(of[o.urgency], o)
	}
	rest = of[canWait]
	for _, kind := range []urgency{isUrgent, isOutcome} {
		keep := int64(0)
		if kind == isOutcome {
			keep = reserveForNo
		}
		if len(of[kind]) == 0 || !d.giveRoom(keep) {
			rest = append(rest, of[kind]...)
			continue
		}
		err := d.run(of[kind])
		d.reserve()
		d.setFull(full) // still full for everything else
		d.notify(of[kind], err)
	}
	return rest
}

// giveRoom releases the reserved space except keep bytes, and reports whether there was
// more.
func (d *writer) giveRoom(keep int64) bool {
	info, err := os.Stat(d.reservePath())
	return err == nil && (keep == 0 || info.Size() > keep) && os.Truncate(d.reservePath(), keep) == nil
}

// WriteUrgent is Write for records that must be written even on a full disk.
func (d *writer) WriteUrgent(ctx context.Context, what string, fn func(*Tx) error) error {
	return d.submit(ctx, what, &op{fn: fn, done: make(chan struct{}), urgency: isUrgent})
}

// WriteOutcome is [writer.WriteUrgent] for the end of a call that ran. On a full disk it
// may fail with ErrDiskFull, so that space remains for others.
func (d *writer) WriteOutcome(ctx context.Context, what string, fn func(*Tx) error) error {
	return d.submit(ctx, what, &op{fn: fn, done: make(chan struct{}), urgency: isOutcome})
}

// tightRoom is the free space below which records are no longer delayed: more than the
// database allocates at once.
const tightRoom = 64 << 20

// Tight reports that the disk is full or nearly full. A delayed record may then never be
// written, so a gateway delays none.
func (d *writer) Tight() bool {
	d.mu.Lock()
	full := d.full != nil || waits(d.lazyErr)
	d.mu.Unlock()
	var fs syscall.Statfs_t
	if full || d.db.file == nil {
		return full
	}
	err := syscall.Statfs(filepath.Dir(d.db.path), &fs)
	return err == nil && uint64(fs.Bavail)*uint64(fs.Bsize) < tightRoom
}

// NoRoom wraps the errors of a full disk in store.ErrDiskFull.
func NoRoom(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: free some space (%w)", store.ErrDiskFull, err)
	}
	return err
}
