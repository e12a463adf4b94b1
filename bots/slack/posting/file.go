package posting

import (
	"context"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/outbox"
	"nize/bots/slack/people"
	"nize/bots/slack/wire"
	"nize/store"
)

// uploadOnce puts a file into a thread, or a channel, once for what it is about, of
// which the id says when it began, and returns the file's id or its message's.
func (ms *messages) uploadOnce(ctx context.Context, at store.Address, about, name, content string) (string, error) {
	return ms.sent.PostOnce(ctx, at, outbox.FileID(about, name), store.IDTime(about), func(ctx context.Context) (string, error) {
		return ms.upload(ctx, at, name, content)
	}, wire.Unsure)
}

func (ms *messages) upload(ctx context.Context, at store.Address, name, content string) (id string, err error) {
	err = ms.wire.Call(ctx, func(ctx context.Context) error {
		f, err := ms.wire.API.UploadFileContext(ctx, slackgo.UploadFileParameters{
			Filename: name, Title: name, FileSize: len(content), Reader: strings.NewReader(content), Channel: at.Channel, ThreadTimestamp: at.Thread,
		})
		if err == nil {
			id = f.ID
		}
		return err
	})
	return id, err
}

// SendFiles puts files into somebody's conversation with nize, each once for what
// they did.
func (ms *messages) SendFiles(ctx context.Context, p people.Person, files []bots.Image) error {
	channel, err := ms.people.OpenDM(ctx, p.ID)
	if err != nil {
		return err
	}
	act := ms.act(p)
	for _, f := range files {
		if _, err := ms.uploadOnce(ctx, store.Address{Channel: channel}, act, f.Name, string(f.Data)); err != nil {
			return err
		}
	}
	return nil
}
