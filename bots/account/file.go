package account

import (
	"context"
	"errors"

	"nize/bots"
	"nize/store"
)

// Files stores what accompanies messages in conversations.
type Files struct {
	Store interface {
		PutFile(ctx context.Context, by store.Caller, thread string, f store.File, q store.Quota) error
	}
	Config store.Config // limits.user.files, limits.images.stored
}

// FetchFunc downloads a file and returns its details, or why it can't be downloaded.
type FetchFunc func(ctx context.Context, n int) (f store.File, data []byte, why string)

// Read fetches files for a conversation and returns each one, read or with the reason why
// not. If it returns an error, the caller must retry.
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
		if f.Data != nil { // store the bytes for the conversation
			err := fs.Store.PutFile(ctx, by, thread, f, store.FileQuota(fs.Config))
			switch {
			case errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrDiskFull):
				if f.Kind != store.TextFile { // its beginning was read
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
