package posting

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Pictures are nize's own files outside channels: a block shows them to its readers, who
// are one person.

// pictureTries is how often a block with a picture is tried: Slack processes a new file for
// a moment before blocks may show it.
const pictureTries = 9

// UploadPicture draws a picture and returns its file id.
func (ms *messages) UploadPicture(ctx context.Context, pic bots.Picture) (id string, err error) {
	content, err := pic.Draw()
	if err != nil {
		return "", fmt.Errorf("drawing a picture: %w", err)
	}
	err = ms.wire.Call(ctx, func(ctx context.Context) error {
		f, err := ms.wire.API.UploadFileContext(ctx, slackgo.UploadFileParameters{
			Filename: pic.Name, Title: pic.Name, AltTxt: view.Clip(pic.Alt, view.MaxFileAlt), FileSize: len(content), Reader: bytes.NewReader(content),
		})
		if err == nil {
			id = f.ID
		}
		return err
	})
	return id, err
}

// WithPicture calls show, and retries until Slack has processed the new file.
func (ms *messages) WithPicture(ctx context.Context, show func() error) error {
	for try := 1; ; try++ {
		err := show()
		if c := wire.Code(err); c != "invalid_blocks" && c != "invalid_arguments" || try == pictureTries {
			return err
		}
		if err := ms.wire.Wait(ctx, time.Duration(try)*200*time.Millisecond); err != nil {
			return err
		}
	}
}

// DropFile deletes a file that is no longer shown.
func (ms *messages) DropFile(ctx context.Context, id string) {
	err := ms.wire.Call(ctx, func(ctx context.Context) error { return ms.wire.API.DeleteFileContext(ctx, id) })
	if err != nil && ctx.Err() == nil {
		ms.log.Info("a picture stays behind in Slack", "file", id, "err", err)
	}
}

// SendPicture shows a picture to one person in their direct conversation. Its content was
// already sent as text, so an error is only logged.
func (ms *messages) SendPicture(ctx context.Context, p people.Person, at store.Address, pic bots.Picture) {
	if err := ms.postPicture(ctx, p, at, pic); err != nil && ctx.Err() == nil {
		ms.log.Warn("a picture is left out", "user", p.ID, "err", err)
	}
}

func (ms *messages) postPicture(ctx context.Context, p people.Person, at store.Address, pic bots.Picture) error {
	options := []slackgo.MsgOption{slackgo.MsgOptionDisableLinkUnfurl()}
	if at.Channel == "" || at.Channel[0] != 'D' {
		channel, err := ms.people.OpenDM(ctx, p.ID)
		if err != nil {
			return err
		}
		at.Channel, at.Thread = channel, ""
	}
	if at.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(at.Thread))
	}
	file, err := ms.UploadPicture(ctx, pic)
	if err != nil {
		return err
	}
	options = append(options, slackgo.MsgOptionText(view.Fallback(pic.Alt, view.MaxFallback), false), slackgo.MsgOptionBlocks(view.ImageBlock("", file, pic.Alt)))
	err = ms.WithPicture(ctx, func() error {
		_, err := ms.wire.Post(ctx, at.Channel, options...)
		return err
	})
	if err != nil {
		ms.DropFile(ctx, file)
		return errors.Join(errors.New("posting a picture"), err)
	}
	return nil
}
