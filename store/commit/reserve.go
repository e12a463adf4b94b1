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

// A no must be taken on a full disk too: it keeps something from running. So must
// the end of a call that runs: it can't be refused any more. For that a file beside
// the database holds a little room. When a refusing decision or an outcome meets a
// full disk, the file is given up, the record is written, and the room is taken back
// at once, so that nothing else uses it up. What outcomes write stays, and can be
// large: they get no more than the part above reserveForNo, so that they leave a no
// its room.
const (
	reserveForNo = 1 << 20 // several decisions about the largest arguments
	reserveSize  = 2 << 20
	reserveStep  = 64 << 10 // less is not worth keeping
	ReserveName  = ".reserve"
)

func (d *writer) reservePath() string { return d.db.path + ReserveName }

// reserve takes the room, or what there is of it.
func (d *writer) reserve() {
	f, err := os.OpenFile(d.reservePath(), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return // the disk has not even room for a name
	}
	block := bytes.Repeat([]byte("reserved"), reserveStep/8) // no zeros: they may take no room
	var size int64
	if info, err := f.Stat(); err == nil {
		size = info.Size() / reserveStep * reserveStep
	}
	for ; size < reserveSize; size += reserveStep {
		if _, err = f.WriteAt(block, size); err != nil {
			_ = f.Truncate(size) // a part of a step may be there
			break
		}
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil && !errors.Is(NoRoom(err), store.ErrDiskFull) {
		d.db.log.Warn("keeping room for a full disk", "err", err)
	}
}

// urgency is what a full disk does to an operation.
type urgency int

const (
	canWait   urgency = iota // it is refused, or waits for room
	isOutcome                // it has the room above reserveForNo
	isUrgent                 // it has all the room that is kept
)

// squeeze writes those operations of a full disk that must not wait, in the
// room that was kept, and returns the others.
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
		d.setFull(full) // for all others it still is
		d.tell(of[kind], err)
	}
	return rest
}

// giveRoom gives up all but so much of the room that is kept, and reports whether
// there was more.
func (d *writer) giveRoom(keep int64) bool {
	info, err := os.Stat(d.reservePath())
	return err == nil && (keep == 0 || info.Size() > keep) && os.Truncate(d.reservePath(), keep) == nil
}

// WriteUrgent is do for what must be written on a full disk too.
func (d *writer) WriteUrgent(ctx context.Context, what string, fn func(*Tx) error) error {
	return d.submit(ctx, what, &op{fn: fn, done: make(chan struct{}), urgency: isUrgent})
}

// WriteOutcome is [writer.WriteUrgent] for the end of a call that ran. On a full disk
// it may fail with ErrDiskFull, so that its room is left to others.
func (d *writer) WriteOutcome(ctx context.Context, what string, fn func(*Tx) error) error {
	return d.submit(ctx, what, &op{fn: fn, done: make(chan struct{}), urgency: isOutcome})
}

// tightRoom is what is left of a disk on which records no longer wait: more than the
// database takes at once.
const tightRoom = 64 << 20

// Tight says that the disk is full or nearly so: what is put off may never be
// written, and so a gateway puts nothing off.
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

// NoRoom gives a full disk its name.
func NoRoom(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: free some space (%w)", store.ErrDiskFull, err)
	}
	return err
}
