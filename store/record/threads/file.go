package threads

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/store"
	"nize/store/commit"
)

// Files of conversations. They are stored beside the turns, which are read in every round,
// and append no events: they are part of the messages.

// KeepUploads is how long a file that no turn names is kept: its message may never have
// been sent. A sent message may wait that long for its turn.
const KeepUploads = 7 * 24 * time.Hour

// fileKey returns the key of a file in the index by age.
func fileKey(at time.Time, k []byte) []byte { return append(commit.TimeKey(at), k...) }

// PutFile implements [store.Files].
func (d Threads) PutFile(ctx context.Context, by store.Caller, thread string, f store.File, q store.Quota) error {
	return d.db.Write(ctx, "keeping a file of conversation "+thread, func(t *commit.Tx) error {
		if err := commit.CheckIDs("conversation id", thread, "file id", f.ID); err != nil {
			return err
		}
		size := int64(len(f.Data))
		switch {
		case size == 0 || size > store.MaxFile:
			return fmt.Errorf("%w file: %d bytes; 1 to %d are kept", store.ErrInvalid, size, store.MaxFile)
		case t.Get("threads", []byte(thread)) == nil:
			return store.ErrNotFound
		}
		k := commit.Key(thread, f.ID)
		if err := dropFile(t, k); err != nil {
			return err
		}
		owner := d.db.Alias(by.User)
		if err := d.makeRoom(t, owner, size, q); err != nil {
			return err
		}
		if err := t.Put("files_by", fileKey(t.Now, k), binary.BigEndian.AppendUint64(nil, uint64(size))); err != nil {
			return err
		}
		if err := t.Put("files_of", k, []byte(owner)); err != nil {
			return err
		}
		if err := t.Put("uploads", k, commit.TimeKey(t.Now)); err != nil {
			return err
		}
		return t.Put("files", k, commit.Pack(commit.TimeKey(t.Now), f.Data))
	})
}

// PruneUploads deletes files without a message.
func PruneUploads(t *commit.Tx, before time.Time) (int, bool, error) {
	var old [][]byte
	err := t.Each("uploads", nil, func(k, at []byte) error {
		if bytes.Compare(at, commit.TimeKey(before)) < 0 {
			old = append(old, commit.CloneBytes(k))
		}
		return nil
	})
	for i := 0; err == nil && i < len(old); i++ {
		err = dropFile(t, old[i])
	}
	return len(old), false, err
}

// makeRoom deletes the files that must go before owner stores another one. It reads the
// owners of files only if there may be too many.
func (d Threads) makeRoom(t *commit.Tx, owner string, size int64, q store.Quota) error {
	var (
		keys [][]byte
		list []store.Kept
	)
	total := q.Size(size)
	beginner := map[string]string{} // by conversation, for files stored before owners were recorded
	err := t.Each("files_by", nil, func(k, v []byte) error {
		if len(k) <= 8 || len(v) != 8 {
			return commit.ErrDamaged
		}
		k = commit.CloneBytes(k[8:])
		keys = append(keys, k)
		list = append(list, store.Kept{Size: int64(binary.BigEndian.Uint64(v))})
		total += q.Size(list[len(list)-1].Size)
		return nil
	})
	if err != nil || total <= min(q.Each, q.All) {
		return err
	}
	for i, k := range keys {
		who := string(t.Get("files_of", k))
		if who == "" {
			thread := commit.SplitKey(k)[0]
			if _, known := beginner[thread]; !known {
				th, err := commit.GetJSON[store.Thread](t, "threads", []byte(thread))
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return err
				}
				beginner[thread] = th.User
			}
			who = beginner[thread]
		}
		list[i].Owner, list[i].Spare = d.db.Alias(who), t.Get("uploads", k) != nil
	}
	drop, err := q.MakeRoom(list, owner, size)
	for n := 0; err == nil && n < len(drop); n++ {
		err = dropFile(t, keys[drop[n]])
	}
	return err
}

// dropFile deletes a file, if there is one.
func dropFile(t *commit.Tx, k []byte) error {
	if err := errors.Join(t.Delete("uploads", k), t.Delete("files_of", k)); err != nil {
		return err
	}
	v := t.Get("files", k)
	if v == nil {
		return nil
	}
	p, err := commit.UnpackN(v, 2)
	if err != nil {
		return err
	}
	if len(p[0]) != 8 {
		return commit.ErrDamaged
	}
	if err := t.Delete("files_by", append(commit.CloneBytes(p[0]), k...)); err != nil {
		return err
	}
	return t.Delete("files", k)
}

// DropFiles deletes the files of a conversation.
func DropFiles(t *commit.Tx, thread string) error {
	for _, k := range t.Keys("files", commit.Key(thread, ""), 0) {
		if err := dropFile(t, k); err != nil {
			return err
		}
	}
	return nil
}

// GetFile implements [store.Files].
func (d Threads) GetFile(ctx context.Context, thread, id string) (data []byte, err error) {
	err = d.db.Read(ctx, "reading a file of conversation "+thread, func(t *commit.Tx) error {
		v := t.Get("files", commit.Key(thread, id))
		if v == nil {
			return store.ErrNotFound
		}
		p, err := commit.UnpackN(v, 2)
		if err != nil {
			return err
		}
		data = commit.CloneBytes(p[1])
		return nil
	})
	return data, err
}

// ForgetBrought removes from a turn what a forgotten person contributed: all attachments if
// the turn is theirs, else quotes of them and files that they had shared.
func ForgetBrought(t *commit.Tx, turn *store.Turn, identities []string, theirs bool) (changed bool, err error) {
	by := func(s *store.Speaker) bool {
		return theirs || s != nil && s.Identity != "" && slices.Contains(identities, s.Identity)
	}
	var kept []store.File
	for _, f := range turn.Files {
		if !by(f.From) {
			kept = append(kept, f)
			continue
		}
		changed = true
		if err := dropFile(t, commit.Key(turn.Thread, f.ID)); err != nil {
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
