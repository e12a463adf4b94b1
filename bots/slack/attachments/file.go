// Package attachments fetches what comes with a message: its files, what was said
// in the thread before, forwarded messages, and the one that a shortcut is about.
package attachments

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"nize/bots"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/wire"
	"nize/store"
)

// fileTime bounds all that is done to fetch one file.
const fileTime = time.Minute

// Store is what of the store fetching attachments needs.
type Store interface {
	Turns(ctx context.Context, thread string) ([]store.Turn, error)
	PutFile(ctx context.Context, by store.Caller, thread string, f store.File, most int64) error
}

// Fetcher looks up what comes with a message.
type Fetcher struct {
	Wire   *wire.Client
	People *people.Directory
	Store  Store
	Config store.Config // limits.images.stored
	Log    *slog.Logger
	Self   string // nize's own id
}

// readFiles fetches files for a conversation; each comes back, read or with the
// reason why not. An error means that it must be tried again.
func (ft *Fetcher) readFiles(ctx context.Context, by store.Caller, thread string, list []incoming.File) ([]store.File, error) {
	var files []store.File
	capacity, count := store.MaxTexts, 0
	for _, s := range list[:min(len(list), incoming.MaxShared)] {
		if count == store.MaxFiles {
			f := store.File{ID: s.ID, Name: s.Label(), Size: max(s.Size, 0), From: s.From}
			files = append(files, bots.Unread(f, store.FileTooMany))
			continue
		}
		f, err := ft.readFile(ctx, by, s, place{thread, capacity})
		if err != nil {
			return nil, err
		}
		if f.Kind != store.UnreadFile {
			count++
		}
		capacity -= len(f.Text)
		files = append(files, f)
	}
	return files, nil
}

// place is where a file goes, and how much text of it.
type place struct {
	thread   string
	capacity int
}

// readFile fetches one file in its turn.
func (ft *Fetcher) readFile(ctx context.Context, by store.Caller, s incoming.File, to place) (store.File, error) {
	select {
	case ft.Wire.Raw.Busy <- struct{}{}:
		defer func() { <-ft.Wire.Raw.Busy }()
	case <-ctx.Done():
		return store.File{}, ctx.Err()
	}
	inTime, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	data, why := ft.download(inTime, &s)
	if ctx.Err() != nil {
		return store.File{}, ctx.Err()
	}
	f := store.File{ID: s.ID, Name: s.Label(), Size: max(s.Size, 0), From: s.From}
	if why != "" {
		return bots.Unread(f, why), nil
	}
	return ft.keepFile(ctx, by, to.thread, bots.ReadFile(f, data, to.capacity))
}

// download downloads a file, or says why it can't be had. It completes what Slack
// says of it.
func (ft *Fetcher) download(ctx context.Context, f *incoming.File) (data []byte, why string) {
	if f.Access == "check_file_info" || f.Mode == "" && f.Private == "" && f.Download == "" {
		var answer struct {
			File incoming.File `json:"file"`
		}
		err := ft.Wire.Call(ctx, func(ctx context.Context) error {
			return ft.Wire.Raw.Ask(ctx, "files.info", url.Values{"file": {f.ID}}, &answer)
		})
		if err != nil || answer.File.ID != f.ID {
			ft.Log.Warn("asking for a file", "file", f.ID, "err", err)
			return nil, whyNot(wire.Code(err))
		}
		answer.File.From = f.From
		*f = answer.File
	}
	address := f.Download
	if address == "" {
		address = f.Private
	}
	switch {
	case f.Mode == "tombstone", f.Mode == "hidden_by_limit", f.Access == "file_not_found":
		return nil, store.FileGone
	case f.Mode == "external", f.External:
		return nil, store.FileForeign
	case f.Access == "access_denied":
		return nil, store.FileDenied
	case f.Size > store.MaxFile:
		return nil, store.FileTooLarge
	}
	data, err := ft.Wire.Download(ctx, address, f.Size, store.MaxFile)
	if err == nil {
		return data, ""
	}
	ft.Log.Warn("fetching a file", "file", f.ID, "err", err)
	for cause, why := range map[error]string{wire.ErrForeign: store.FileForeign, wire.ErrDenied: store.FileDenied, wire.ErrGone: store.FileGone, wire.ErrTooLarge: store.FileTooLarge} {
		if errors.Is(err, cause) {
			return nil, why
		}
	}
	return nil, store.FileFailed
}

// whyNot is why a file can't be had of which Slack says so.
func whyNot(code string) string {
	switch code {
	case "file_deleted":
		return store.FileGone
	case "file_not_found", "missing_scope", "access_denied", "not_visible":
		return store.FileDenied
	}
	return store.FileFailed
}

// keepFile puts a picture's bytes where the conversation finds them.
func (ft *Fetcher) keepFile(ctx context.Context, by store.Caller, thread string, f store.File) (store.File, error) {
	if f.Kind != store.ImageFile {
		return f, nil
	}
	err := ft.Store.PutFile(ctx, by, thread, f, int64(store.GetInt(ft.Config, "", "limits.images.stored")))
	if errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrDiskFull) {
		return bots.Unread(f, store.FileNoCapacity), nil
	}
	f.Data = nil
	return f, err
}
