package database

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"nize/store"
)

// Pictures of conversations. They lie beside the turns, which are read in every
// round, and leave no event: they are part of what was said.

// keepUploads is how long a file is kept that no turn names: it was given for a
// message that was never sent. One that is sent may wait that long for its turn.
const keepUploads = 7 * 24 * time.Hour

// fileKey is the place of a file among the oldest.
func fileKey(at time.Time, k []byte) []byte { return append(timeKey(at), k...) }

// PutFile implements [store.Files].
func (d *DB) PutFile(ctx context.Context, _ store.Caller, thread string, f store.File, capacity int64) error {
	return d.update(ctx, "keeping a file of conversation "+thread, func(t *tx) error {
		if err := checkIDs("conversation id", thread, "file id", f.ID); err != nil {
			return err
		}
		size := int64(len(f.Data))
		switch {
		case size == 0 || size > store.MaxFile:
			return fmt.Errorf("%w file: %d bytes; 1 to %d are kept", store.ErrInvalid, size, store.MaxFile)
		case size > capacity:
			return store.Mark(fmt.Errorf("keeping a file: it has %d bytes and there is room for %d", size, capacity), store.ErrRefused)
		case t.get("threads", []byte(thread)) == nil:
			return store.ErrNotFound
		}
		k := key(thread, f.ID)
		if err := t.dropFile(k); err != nil {
			return err
		}
		if err := t.freeSpace(capacity - size); err != nil {
			return err
		}
		if err := t.put("files_by", fileKey(t.now, k), binary.BigEndian.AppendUint64(nil, uint64(size))); err != nil {
			return err
		}
		if err := t.put("uploads", k, timeKey(t.now)); err != nil {
			return err
		}
		return t.put("files", k, pack(timeKey(t.now), f.Data))
	})
}

// pruneUploads deletes files that came with no message.
func pruneUploads(t *tx, before time.Time) (int, bool, error) {
	var old [][]byte
	err := t.each("uploads", nil, func(k, at []byte) error {
		if bytes.Compare(at, timeKey(before)) < 0 {
			old = append(old, cloneBytes(k))
		}
		return nil
	})
	for i := 0; err == nil && i < len(old); i++ {
		err = t.dropFile(old[i])
	}
	return len(old), false, err
}

// freeSpace drops the oldest files until those that stay have at most that many
// bytes. There are as many as pictures were sent within the retention of
// conversations, and few bytes are read of each.
func (t *tx) freeSpace(most int64) error {
	var (
		total int64
		keys  [][]byte
		sizes []int64
	)
	err := t.each("files_by", nil, func(k, v []byte) error {
		if len(k) <= 8 || len(v) != 8 {
			return errRecord
		}
		n := int64(binary.BigEndian.Uint64(v))
		total += n
		keys, sizes = append(keys, cloneBytes(k[8:])), append(sizes, n)
		return nil
	})
	for i := 0; err == nil && i < len(keys) && total > most; i++ {
		total -= sizes[i]
		err = t.dropFile(keys[i])
	}
	return err
}

// dropFile deletes a file, if there is one.
func (t *tx) dropFile(k []byte) error {
	if err := t.del("uploads", k); err != nil {
		return err
	}
	v := t.get("files", k)
	if v == nil {
		return nil
	}
	p, err := unpackN(v, 2)
	if err != nil {
		return err
	}
	if len(p[0]) != 8 {
		return errRecord
	}
	if err := t.del("files_by", append(cloneBytes(p[0]), k...)); err != nil {
		return err
	}
	return t.del("files", k)
}

// dropFiles deletes the files of a conversation.
func (t *tx) dropFiles(thread string) error {
	for _, k := range t.keys("files", key(thread, ""), 0) {
		if err := t.dropFile(k); err != nil {
			return err
		}
	}
	return nil
}

// GetFile implements [store.Files].
func (d *DB) GetFile(ctx context.Context, thread, id string) (data []byte, err error) {
	err = d.view(ctx, "reading a file of conversation "+thread, func(t *tx) error {
		v := t.get("files", key(thread, id))
		if v == nil {
			return store.ErrNotFound
		}
		p, err := unpackN(v, 2)
		if err != nil {
			return err
		}
		data = cloneBytes(p[1])
		return nil
	})
	return data, err
}

// forgetBrought takes out of a turn what somebody who is forgotten brought:
// all that came with it where the turn is theirs, else what it quotes of them
// and the files that they had shared.
func (t *tx) forgetBrought(turn *store.Turn, g gone, theirs bool) (changed bool, err error) {
	by := func(s *store.Speaker) bool {
		return theirs || s != nil && s.Identity != "" && slices.Contains(g.Identities, s.Identity)
	}
	var kept []store.File
	for _, f := range turn.Files {
		if !by(f.From) {
			kept = append(kept, f)
			continue
		}
		changed = true
		if err := t.dropFile(key(turn.Thread, f.ID)); err != nil {
			return false, err
		}
	}
	turn.Files = kept
	if turn.Earlier == nil {
		return changed, nil
	}
	if theirs {
		turn.Earlier.Views = nil
	}
	n := len(turn.Earlier.Quotes)
	turn.Earlier.Quotes = slices.DeleteFunc(turn.Earlier.Quotes, func(q store.Quote) bool { return by(&q.Speaker) })
	return changed || len(turn.Earlier.Quotes) < n, nil
}
