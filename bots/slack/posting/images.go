package posting

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"path"
	"strconv"
	"strings"

	slackgo "github.com/slack-go/slack"
	"golang.org/x/image/webp"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Images of results are shown in blocks, like nize's own pictures. A shared file would be a
// message whose place Slack doesn't return and that carries no mark by which it could be
// found. Each image is uploaded once per call, for all readers and places; the file's id is
// stored with the call.

// maxWebP limits the WebP images that are converted to PNG, because blocks can't show WebP.
const maxWebP = 16e6 // pixels

// Other files of a result are shared where the result is read, because no block can show
// them. Such a file is found by its name, which contains the end of the call's id.

// images shows the files of call results.
type images struct {
	*messages
	calls bots.Calls
}

// showImages posts the images of a call. If they are posted already, it leaves them.
func (im *images) showImages(ctx context.Context, at store.Address, m store.Message) (string, error) {
	if at.Message != "" {
		return at.Message, nil
	}
	found, err := bots.ReadImages(ctx, im.calls, m)
	if err != nil {
		return "", err
	}
	w := phrases.For(im.Reader(ctx, at).Locale)
	blocks, err := []slackgo.Block(nil), im.shareFiles(ctx, at, found)
	if err == nil {
		blocks, err = im.Blocks(ctx, found, w, view.BlockOf(m.ID))
	}
	if err == nil {
		var ts string
		text := view.Fallback(found.Text(w), view.MaxFallback)
		err = im.WithPicture(ctx, func() (err error) {
			ts, err = im.Put(ctx, at, m.ID, view.Same(slackgo.MsgOptionText(text, false), slackgo.MsgOptionBlocks(blocks...)))
			return err
		})
		if err == nil {
			return ts, nil
		}
	}
	if wire.Code(err) == "" || wire.Passes(err) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrRefused) {
		return "", fmt.Errorf("showing the images of a call: %w", err)
	}
	im.log.Warn("Slack does not take the images of a call", "message", m.ID, "err", err)
	m.Text = found.Text(w)
	if len(found.List)+len(found.Files) > 0 {
		m.Text += "\n" + w.Say(phrases.CardNoFile)
	}
	return im.Put(ctx, at, m.ID, view.Notice(m))
}

// shareFiles shares a call's files that are not images, each once per call and place.
func (im *images) shareFiles(ctx context.Context, at store.Address, found bots.Images) error {
	for n, f := range found.Files {
		note := "result/" + at.Channel + "/" + strconv.Itoa(n)
		_, err := im.store.GetPlace(ctx, found.Call, note)
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("finding the file of a result: %w", err)
		}
		place := at
		if place.Message, err = im.uploadOnce(ctx, at, found.Call, sharedFile(found.Call, f)); err != nil {
			return fmt.Errorf("sharing the file of a result: %w", err)
		}
		if err := im.store.PutPlace(ctx, found.Call, note, place); err != nil {
			return fmt.Errorf("noting the file of a result: %w", err)
		}
	}
	return nil
}

// sharedFile returns a file of a result with a name that is unique to the call.
func sharedFile(call string, f bots.File) upload {
	ext := path.Ext(f.Name)
	return upload{Name: strings.TrimSuffix(f.Name, ext) + "-" + call[max(0, len(call)-6):] + ext, Title: f.Name, Data: f.Data}
}

// Blocks uploads images and returns their blocks; the first block has the given id.
func (im *images) Blocks(ctx context.Context, found bots.Images, w phrases.Catalogue, id string) (blocks []slackgo.Block, err error) {
	alt := w.Say(phrases.ImageFrom, bots.Escape(found.From))
	if found.View != nil {
		blocks, id = view.ResultBlocks(id, *found.View, w), ""
	}
	for n, image := range found.List {
		image, ok := shownBySlack(image)
		if !ok {
			found.Left++
			continue
		}
		file, err := im.file(ctx, found.Call, n, bots.Picture{Name: image.Name, Alt: alt, Draw: func() ([]byte, error) { return image.Data, nil }})
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, view.ImageBlock(id, file, alt))
		id = ""
	}
	link := found
	found.List, found.View, found.Link = nil, nil, ""
	if text := found.Text(w); text != "" {
		blocks = append(blocks, view.WordsBlock(id, text))
		id = ""
	}
	if link.Link != "" {
		blocks = append(blocks, view.LinkBlock(id, link, w))
	}
	return blocks, nil
}

// file returns the Slack file of the nth image of a call.
func (im *images) file(ctx context.Context, call string, n int, pic bots.Picture) (string, error) {
	name := "image/" + im.team + "/" + strconv.Itoa(n)
	at, err := im.store.GetPlace(ctx, call, name)
	if err == nil {
		return at.Message, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("finding the file of an image: %w", err)
	}
	file, err := im.UploadPicture(ctx, pic)
	if err != nil {
		return "", err
	}
	// No channel: this address is not the place of a card.
	if err := im.store.PutPlace(ctx, call, name, store.Address{Surface: store.OnSlack, Team: im.team, Message: file}); err != nil {
		return "", fmt.Errorf("noting the file of an image: %w", err)
	}
	return file, nil
}

// shownBySlack converts an image to a form that blocks can show; ok is false if there is
// none.
func shownBySlack(image bots.File) (as bots.File, ok bool) {
	if image.Type != "image/webp" {
		return image, true
	}
	c, err := webp.DecodeConfig(bytes.NewReader(image.Data))
	if err != nil || float64(c.Width)*float64(c.Height) > maxWebP {
		return image, false
	}
	decoded, err := webp.Decode(bytes.NewReader(image.Data))
	if err != nil {
		return image, false
	}
	var out bytes.Buffer
	if err := png.Encode(&out, decoded); err != nil {
		return image, false
	}
	return bots.File{Name: strings.TrimSuffix(image.Name, "webp") + "png", Type: "image/png", Data: out.Bytes()}, true
}
