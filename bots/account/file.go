package account

import (
	"context"
	"errors"

	"nize/bots"
	"nize/store"
)

// Files puts what comes with messages into conversations.
type Files struct {
	Store interface {
		PutFile(ctx context.Context, by store.Caller, thread string, f store.File, q store.Quota) error
	}
	Config store.Config // limits.user.files, limits.images.stored
}

// FetchFunc downloads a file, or says why it can't be had, with what is known of it
// then.
type FetchFunc func(ctx context.Context, n int) (f store.File, data []byte, why string)

// Read fetches files for a conversation; each comes back, read or with the reason
// why not. An error means that it must be tried again.
func (fs Files) Read(ctx context.Context, by store.Caller, thread string, list []store.File, fetch FetchFunc) ([]store.File, error) {
	capacity, count := store.MaxTexts, 0
	for n, f := range list {
		if count == store.MaxFiles {
			list[n] = bots.Unread(f, store.FileTooMany)
			continue
		}
		f, data, why := fetch(ctx, n)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if why != "" {
			list[n] = bots.Unread(f, why)
			continue
		}
		f = bots.ReadFile(f, data, capacity)
		if f.Data != nil { // its bytes go where the conversation finds them
			err := fs.Store.PutFile(ctx, by, thread, f, store.FileQuota(fs.Config))
			switch {
			case errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrDiskFull):
				if f.Kind != store.TextFile { // of which the beginning is there
					f = bots.Unread(f, store.FileNoCapacity)
				}
			case err != nil:
				return nil, err
			}
			f.Data = nil
		}
		if f.Kind != store.UnreadFile {
			count++
		}
		capacity -= len(f.Text)
		list[n] = f
	}
	return list, nil
}
