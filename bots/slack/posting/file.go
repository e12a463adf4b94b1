package posting

import (
	"bytes"
	"cmp"
	"context"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/outbox"
	"nize/bots/slack/people"
	"nize/bots/slack/wire"
	"nize/store"
)

// upload is a file to be shared.
type upload struct {
	Name, Title string
	Data        []byte
}

// uploadOnce shares a file in a thread or channel once per event, whose time its id
// contains, and returns the file's id or its message's ts.
func (ms *messages) uploadOnce(ctx context.Context, at store.Address, about string, f upload) (string, error) {
	return ms.sent.PostOnce(ctx, at, outbox.FileID(about, f.Name), store.IDTime(about), func(ctx context.Context) (string, error) {
		return ms.upload(ctx, at, f)
	}, wire.Unsure)
}

func (ms *messages) upload(ctx context.Context, at store.Address, f upload) (id string, err error) {
	err = ms.wire.Call(ctx, func(ctx context.Context) error {
		f, err := ms.wire.API.UploadFileContext(ctx, slackgo.UploadFileParameters{
			Filename: f.Name, Title: cmp.Or(f.Title, f.Name), FileSize: len(f.Data), Reader: bytes.NewReader(f.Data), Channel: at.Channel, ThreadTimestamp: at.Thread,
		})
		if err == nil {
			id = f.ID
		}
		return err
	})
	return id, err
}

// SendFiles shares files in a person's direct conversation, each once per action of theirs.
func (ms *messages) SendFiles(ctx context.Context, p people.Person, files []bots.File) error {
	channel, err := ms.people.OpenDM(ctx, p.ID)
	if err != nil {
		return err
	}
	act := ms.act(p)
	for _, f := range files {
		if _, err := ms.uploadOnce(ctx, store.Address{Channel: channel}, act, upload{Name: f.Name, Data: f.Data}); err != nil {
			return err
		}
	}
	return nil
}
