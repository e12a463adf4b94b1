package bots

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/store"
	"nize/store/display"
)

// Results are what tools return: texts, and files that they hold. Images of them
// stand in the chat, for those who read the answer. What their server says of them
// is a claim: an image is what its bytes are.

// Bounds on the images of one result that a chat shows; Discord takes ten files
// and 10 MiB with a message, Slack more.
const (
	maxImages     = 8
	maxImageBytes = 8 << 20 // of all of them
)

// ResultPart is one item of a result: text, or a file.
type ResultPart struct {
	Text string
	Kind string // the media type of Data, as its server calls it
	Data []byte
}

// ResultParts are a result's items; one that is none of the protocol is one text.
func ResultParts(r *store.Result) (parts []ResultPart) {
	if r == nil {
		return nil
	}
	var doc struct {
		Content []struct {
			Text, Data, MimeType string
			Resource             *struct{ Text, Blob, MimeType string }
		}
	}
	if r.Error != nil || json.Unmarshal(r.Raw, &doc) != nil || len(doc.Content) == 0 {
		if text := r.Whole(); text != "" {
			parts = append(parts, ResultPart{Text: text})
		}
		return parts
	}
	for _, c := range doc.Content {
		text, data, kind := c.Text, c.Data, c.MimeType
		if c.Resource != nil {
			text, data, kind = c.Resource.Text, c.Resource.Blob, c.Resource.MimeType
		}
		if data == "" {
			if text != "" {
				parts = append(parts, ResultPart{Text: text})
			}
			continue
		}
		if raw, err := base64.StdEncoding.DecodeString(data); err == nil {
			parts = append(parts, ResultPart{Kind: cmp.Or(kind, "application/octet-stream"), Data: raw})
		} else {
			parts = append(parts, ResultPart{Text: data})
		}
	}
	return parts
}

// Images are those that a call returned.
type Images struct {
	Call string
	From string // the tool
	List []Image
	Left int           // that are not in List: too many, too large, or of another kind
	View *display.View // how a renderer shows the result; nil is none
}

// Image is one that a chat can show.
type Image struct {
	Name string // of its file, which names the call
	Type string // by its bytes: image/png, image/jpeg, image/gif or image/webp
	Data []byte
}

// ImagesOf reads the images of a call's result.
func ImagesOf(c store.Call) Images {
	found, size := Images{Call: c.ID, From: c.ToolID()}, 0
	if c.Result == nil {
		return found
	}
	only := -1
	if v, ok := display.Decode(c.Result.View); ok {
		if found.View = &v; v.Image != nil {
			only = *v.Image
		}
	}
	if only == 0 || !holdsImage(c.Result.Raw) {
		return found
	}
	n := 0
	for _, p := range ResultParts(c.Result) {
		if !strings.HasPrefix(p.Kind, "image/") {
			continue
		}
		if n++; only > 0 && n != only {
			continue
		}
		kind, ok := imageType(p.Data)
		if !ok || len(found.List) == maxImages || size+len(p.Data) > maxImageBytes {
			found.Left++
			continue
		}
		size += len(p.Data)
		name := ImageName(c.ID) + strconv.Itoa(len(found.List)+1) + "." + strings.TrimPrefix(kind, "image/")
		found.List = append(found.List, Image{name, kind, p.Data})
	}
	return found
}

// holdsImage says whether a result can hold an image: most hold none, and nothing
// is decoded of those.
func holdsImage(raw json.RawMessage) bool { return strings.Contains(string(raw), "image/") }

// ImageName begins the names of the files with the images of a call: by them a
// message is known whose post got no answer.
func ImageName(call string) string { return "result-" + call + "-" }

// Empty says whether there is nothing to tell of.
func (im Images) Empty() bool { return len(im.List)+im.Left == 0 && im.View == nil }

// OnlyLeft are those that are left out.
func (im Images) OnlyLeft() Images {
	im.List, im.View = nil, nil
	return im
}

// Text says whose images they are, and what is left out.
func (im Images) Text(w phrases.Catalogue) string {
	var lines []string
	if im.View != nil {
		lines = append(lines, ViewText(*im.View, w))
	}
	if len(im.List) > 0 {
		lines = append(lines, w.Say(phrases.ImageFrom, Escape(im.From)))
	}
	if im.Left > 0 {
		lines = append(lines, w.Say(phrases.ImagesLeft, im.Left, Escape(im.From)))
	}
	return strings.Join(lines, "\n")
}

// ReadImages reads those that a message is to show.
func ReadImages(ctx context.Context, calls interface {
	GetCall(ctx context.Context, id string) (store.Call, error)
}, m store.Message) (Images, error) {
	id, ok := outbox.CallOfImages(m.ID)
	if !ok {
		return Images{}, fmt.Errorf("%w message: images of no call", store.ErrInvalid)
	}
	call, err := calls.GetCall(ctx, id)
	if err != nil {
		return Images{}, fmt.Errorf("reading the images of call %s: %w", id, err)
	}
	return ImagesOf(call), nil
}
