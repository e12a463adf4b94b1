package bots

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/store"
	"nize/store/display"
)

// Results are what tools return: texts, and files within them. Images are shown in the chat
// to everyone who reads the answer, other files are attached. A server's description of a
// file is a claim: the bytes determine what an image is.

// Limits for the files of one result shown in a chat, images included; Discord accepts ten
// and 10 MiB per message, Slack more.
const (
	maxFiles     = 8
	maxFileBytes = 8 << 20 // in total
)

// ResultPart is one item of a result: text, or a file.
type ResultPart struct {
	Text string
	Kind string // media type of Data, as declared by the server
	Name string // name of the file, from its URI; "" for a bare image
	Data []byte
}

// ResultParts returns a result's items; a result that doesn't follow the protocol becomes
// one text.
func ResultParts(r *store.Result) (parts []ResultPart) {
	if r == nil {
		return nil
	}
	var doc struct {
		Content []struct {
			Type, Text, Data, MimeType string
			Resource                   *struct{ URI, Text, Blob, MimeType string }
		}
	}
	if r.Error != nil || json.Unmarshal(r.Raw, &doc) != nil || len(doc.Content) == 0 {
		if text := r.Whole(); text != "" {
			parts = append(parts, ResultPart{Text: text})
		}
		return parts
	}
	taken := map[string]bool{}
	for _, c := range doc.Content {
		text, data, kind, uri := c.Text, c.Data, c.MimeType, ""
		if c.Resource != nil {
			text, data, kind, uri = c.Resource.Text, c.Resource.Blob, c.Resource.MimeType, c.Resource.URI
		}
		if data == "" {
			if text != "" {
				parts = append(parts, ResultPart{Text: text})
			}
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			parts = append(parts, ResultPart{Text: data})
			continue
		}
		p := ResultPart{Kind: cmp.Or(kind, "application/octet-stream"), Data: raw}
		if c.Resource != nil || c.Type != "image" || !strings.HasPrefix(p.Kind, "image/") {
			p.Name = fileNameOf(uri, p.Kind, taken)
			taken[p.Name] = true
		}
		parts = append(parts, p)
	}
	return parts
}

// maxFileName is the maximum length of a file name, in characters.
const maxFileName = 80

// fileNameOf makes a file name from the last part of a server's URI. It keeps letters,
// digits and a few signs, adds an extension, and avoids names in taken.
func fileNameOf(uri, kind string, taken map[string]bool) string {
	name := uri
	if u, err := url.Parse(uri); err == nil {
		name = cmp.Or(u.Path, u.Opaque)
	}
	name = name[strings.LastIndexAny(name, `/\:`)+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-()+ ", r) {
			return r
		}
		return '_'
	}, strings.ToValidUTF8(name, "_"))
	name = strings.Trim(name, ". ")
	ext := path.Ext(name)
	if len(ext) > 11 {
		ext = ""
	}
	head := []rune(strings.TrimSuffix(name, ext))
	head = head[:min(len(head), maxFileName-len(ext))]
	stem := cmp.Or(strings.TrimRight(string(head), ". "), "file")
	ext = cmp.Or(ext, Extension(kind))
	name = stem + ext
	for n := 2; taken[name]; n++ {
		name = stem + "-" + strconv.Itoa(n) + ext
	}
	return name
}

// Extension returns the usual extension for a media type declared by a server.
func Extension(kind string) string {
	switch kind, _, _ = strings.Cut(kind, ";"); kind {
	case "text/plain":
		return ".txt"
	case "image/jpeg":
		return ".jpg"
	case "audio/mpeg":
		return ".mp3"
	case "audio/wav", "audio/ogg":
		return "." + strings.TrimPrefix(kind, "audio/")
	}
	if list, err := mime.ExtensionsByType(kind); err == nil && len(list) > 0 {
		return list[0]
	}
	return ".bin"
}

// Images are the images and files of a call's result that a chat shows beside the text.
type Images struct {
	Call      string
	From      string // the tool
	List      []File // the images
	Files     []File // other files
	Left      int    // number of images not in List: too many, too large, or of an unsupported type
	LeftFiles []string
	View      *display.View // a renderer's view of the result; nil for none
	Link      string        // URL of the tool's own view of the result; "" for none
}

// File is a file that a chat can show or offer for download.
type File struct {
	Name string // for an image, it contains the call's id
	Type string // for an image, determined by its bytes: image/png, image/jpeg, image/gif or image/webp
	Data []byte
}

// sized returns the file's name with its size.
func sized(name string, size int) string {
	switch {
	case size < 1000:
		return fmt.Sprintf("%s (%d B)", name, size)
	case size < 1000_000:
		return fmt.Sprintf("%s (%d kB)", name, size/1000)
	}
	return fmt.Sprintf("%s (%.1f MB)", name, float64(size)/1e6)
}

// ImagesOf returns the images and other files of a call's result.
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
	if !holdsFile(c.Result.Raw) {
		return found
	}
	n := 0
	for _, p := range ResultParts(c.Result) {
		if p.Data == nil {
			continue
		}
		kind, ok := "", false
		if strings.HasPrefix(p.Kind, "image/") {
			kind, ok = imageType(p.Data)
			if n++; only >= 0 && n != only && (ok || p.Name == "") {
				continue // the renderer omits it
			}
		}
		isImage := ok || strings.HasPrefix(p.Kind, "image/") && p.Name == ""
		fits := len(found.List)+len(found.Files) < maxFiles && size+len(p.Data) <= maxFileBytes
		switch {
		case isImage && !(ok && fits):
			found.Left++
			continue
		case isImage:
			name := ImageName(c.ID) + strconv.Itoa(len(found.List)+1) + "." + strings.TrimPrefix(kind, "image/")
			found.List = append(found.List, File{name, kind, p.Data})
		case !fits:
			found.LeftFiles = append(found.LeftFiles, sized(p.Name, len(p.Data)))
			continue
		default:
			found.Files = append(found.Files, File{p.Name, p.Kind, p.Data})
		}
		size += len(p.Data)
	}
	return found
}

// holdsFile reports whether a result may contain a file: most don't, and those are not
// decoded.
func holdsFile(raw json.RawMessage) bool {
	text := string(raw)
	return strings.Contains(text, `"blob"`) || strings.Contains(text, "image/") || strings.Contains(text, `"audio"`)
}

// ImageName returns the prefix of the file names of a call's images. It identifies a
// message whose post got no response.
func ImageName(call string) string { return "result-" + call + "-" }

// Empty reports whether there is nothing to show.
func (im Images) Empty() bool {
	return len(im.List)+len(im.Files)+im.Left+len(im.LeftFiles) == 0 && im.View == nil && im.Link == ""
}

// OnlyLeft returns only the note about omitted images.
func (im Images) OnlyLeft() Images {
	im.List, im.Files, im.View, im.Link = nil, nil, nil, ""
	return im
}

// maxNamed is how many omitted files are named.
const maxNamed = 10

// Text returns which tool the images and files are from, and what is omitted.
func (im Images) Text(w phrases.Catalogue) string {
	var lines []string
	from := Escape(im.From)
	if im.View != nil {
		lines = append(lines, ViewText(*im.View, w))
	}
	if len(im.List) > 0 {
		lines = append(lines, w.Say(phrases.ImageFrom, from))
	}
	if names := im.fileNames(); len(names) > 0 {
		lines = append(lines, w.Say(phrases.FilesFrom, from, strings.Join(names, w.Say(phrases.Comma)), im.Call))
	}
	if im.Left > 0 {
		lines = append(lines, w.Say(phrases.ImagesLeft, im.Left, from))
	}
	if left := im.LeftFiles; len(left) > 0 {
		if more := len(left) - maxNamed; more > 0 {
			left = append(slices.Clone(left[:maxNamed]), "+"+strconv.Itoa(more))
		}
		lines = append(lines, w.Say(phrases.FilesLeft, from, strings.Join(left, w.Say(phrases.Comma)), im.Call))
	}
	if im.Link != "" {
		lines = append(lines, w.Say(phrases.ViewOf, from))
	}
	return strings.Join(lines, "\n")
}

// fileNames returns the files with their sizes.
func (im Images) fileNames() (names []string) {
	for _, f := range im.Files {
		names = append(names, sized(f.Name, len(f.Data)))
	}
	return names
}

// InTerminal returns what there is, and how to get it, for chats that show only text.
func (im Images) InTerminal(w phrases.Catalogue) string {
	var lines []string
	if im.View != nil {
		lines = append(lines, ViewText(*im.View, w))
	}
	names := im.fileNames()
	for _, f := range im.List {
		names = append(names, sized(f.Type, len(f.Data)))
	}
	if names = append(names, im.LeftFiles...); len(names) > 0 {
		lines = append(lines, w.Say(phrases.FilesKeep, Escape(im.From), strings.Join(names[:min(len(names), maxNamed)], w.Say(phrases.Comma)), im.Call))
	}
	if im.Link != "" {
		lines = append(lines, w.Say(phrases.OpenViewAt, im.Link))
	}
	return strings.Join(lines, "\n")
}

// ReadImages reads the images and files of the call that a message refers to.
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
	found := ImagesOf(call)
	found.Link = m.Link
	return found, nil
}
