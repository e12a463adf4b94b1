package posting

import (
	"context"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/store"
)

// Upload puts a file into a thread, or a channel, and returns its id.
func (ms *messages) Upload(ctx context.Context, at store.Address, name, content string) (id string, err error) {
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

// SendFiles puts files into somebody's conversation with nize.
func (ms *messages) SendFiles(ctx context.Context, user string, files []bots.Image) error {
	channel, err := ms.people.OpenDM(ctx, user)
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := ms.Upload(ctx, store.Address{Channel: channel}, f.Name, string(f.Data)); err != nil {
			return err
		}
	}
	return nil
}
