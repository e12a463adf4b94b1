// Package attachments fetches what accompanies a message: files, earlier messages,
// forwarded ones, a shortcut's message.
package attachments

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"nize/bots/account"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/wire"
	"nize/store"
)

// fileTime limits everything done to fetch one file.
const fileTime = time.Minute

// Store is the part of the store that fetching attachments needs.
type Store interface {
	Turns(ctx context.Context, thread string) ([]store.Turn, error)
	PutFile(ctx context.Context, by store.Caller, thread string, f store.File, q store.Quota) error
}

// Fetcher fetches what accompanies a message.
type Fetcher struct {
	Wire   *wire.Client
	People *people.Directory
	Store  Store
	Config store.Config // limits.user.files, limits.images.stored
	Log    *slog.Logger
	Self   string // nize's own user id
}

// readFiles fetches files for a conversation.
func (ft *Fetcher) readFiles(ctx context.Context, by store.Caller, thread string, list []incoming.File) ([]store.File, error) {
	describe := func(s incoming.File) store.File {
		return store.File{ID: s.ID, Name: s.Label(), Size: int64(max(s.Size, 0)), From: s.From}
	}
	var files []store.File
	for _, s := range list[:min(len(list), incoming.MaxShared)] {
		files = append(files, describe(s))
	}
	return account.Files{Store: ft.Store, Config: ft.Config}.Read(ctx, by, thread, files, func(ctx context.Context, n int) (f store.File, data []byte, why string) {
		select {
		case ft.Wire.Raw.Busy <- struct{}{}:
			defer func() { <-ft.Wire.Raw.Busy }()
		case <-ctx.Done():
			return f, nil, store.FileFailed
		}
		ctx, cancel := context.WithTimeout(ctx, fileTime)
		defer cancel()
		data, why = ft.download(ctx, &list[n])
		return describe(list[n]), data, why
	})
}

// download downloads a file, or returns why it can't. It fills in missing details of f.
func (ft *Fetcher) download(ctx context.Context, f *incoming.File) (data []byte, why string) {
	if f.FileAccess == "check_file_info" || f.Mode == "" && f.URLPrivate == "" && f.URLPrivateDownload == "" {
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
	address := f.URLPrivateDownload
	if address == "" {
		address = f.URLPrivate
	}
	switch {
	case f.Mode == "tombstone", f.Mode == "hidden_by_limit", f.FileAccess == "file_not_found":
		return nil, store.FileGone
	case f.Mode == "external", f.IsExternal:
		return nil, store.FileForeign
	case f.FileAccess == "access_denied":
		return nil, store.FileDenied
	case f.Size > store.MaxFile:
		return nil, store.FileTooLarge
	}
	data, err := ft.Wire.Download(ctx, address, int64(f.Size), store.MaxFile)
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

// whyNot returns the reason for a Slack error code about a file.
func whyNot(code string) string {
	switch code {
	case "file_deleted":
		return store.FileGone
	case "file_not_found", "missing_scope", "access_denied", "not_visible":
		return store.FileDenied
	}
	return store.FileFailed
}
