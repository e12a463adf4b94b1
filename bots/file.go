package bots

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/gif"  // for DecodeConfig
	_ "image/jpeg" // for DecodeConfig
	_ "image/png"  // for DecodeConfig
	"net/http"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"nize/bots/phrases"
	"nize/store"
)

// What a file is, is told by its content alone: its name and the type
// that came with it are somebody's claim.

// maxPixels bounds a picture: services refuse larger ones, and a small file
// may unfold to many.
const maxPixels = 100e6

// ReadFile makes of a file's content what a conversation keeps: its text, at
// most capacity bytes of it, or a picture's bytes, or why it is not read. data is
// the whole file.
func ReadFile(f store.File, data []byte, capacity int) store.File {
	f.Size = int64(len(data))
	if f.Size > store.MaxFile {
		return Unread(f, store.FileTooLarge)
	}
	kind, ok := imageType(data)
	switch {
	case ok:
		f.Kind, f.Type, f.Data = store.ImageFile, kind, data
		return f
	case kind != "":
		return Unread(f, store.FileOther)
	}
	if kind, ok := documentType(data); ok {
		f.Kind, f.Type, f.Data = store.DocumentFile, kind, data
		return f
	}
	text, ok := plainText(data)
	if !ok {
		return Unread(f, store.FileOther)
	}
	f.Kind, f.Type = store.TextFile, "text/plain"
	f.Text = store.Head(text, min(capacity, store.MaxFileText))
	if f.Cut = int64(len(text) - len(f.Text)); f.Cut > 0 {
		f.Data = data
	}
	return f
}

// documentType tells PDF and DOCX, by how they begin and what they must hold.
func documentType(data []byte) (kind string, ok bool) {
	switch {
	case bytes.HasPrefix(data, []byte("%PDF-")):
		return "application/pdf", true
	case bytes.HasPrefix(data, []byte("PK\x03\x04")) && bytes.Contains(data, []byte("word/document.xml")):
		return "application/vnd.openxmlformats-officedocument.wordprocessingml.document", true
	}
	return "", false
}

// Unread is a file of which nothing is kept but its name.
func Unread(f store.File, why string) store.File {
	f.Kind, f.Type, f.Why, f.Text, f.Cut, f.Data = store.UnreadFile, "", why, "", 0, nil
	return f
}

// UnreadLine tells people which of the files were not read, and why; "" if all
// were.
func UnreadLine(words phrases.Catalogue, files []store.File) string {
	var parts []string
	for _, f := range files {
		if f.Kind == store.UnreadFile {
			parts = append(parts, words.Say(phrases.FileUnread, f.Name, whyUnread(words, f.Why)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return words.Say(phrases.FilesUnread, strings.Join(parts, words.Say(phrases.Comma)))
}

// whyUnread says why a file was not read.
func whyUnread(words phrases.Catalogue, why string) string {
	switch why {
	case store.FileTooLarge:
		return words.Say(phrases.FileTooLarge, store.MaxFile>>20)
	case store.FileTooMany:
		return words.Say(phrases.FileTooMany, store.MaxFiles)
	case store.FileOther:
		return words.Say(phrases.FileOther)
	case store.FileGone:
		return words.Say(phrases.FileGone)
	case store.FileForeign:
		return words.Say(phrases.FileForeign)
	case store.FileDenied:
		return words.Say(phrases.FileDenied)
	case store.FileNoCapacity:
		return words.Say(phrases.FileNoRoom)
	}
	return words.Say(phrases.FileFailed)
}

// imageType is the media type of an image, "" of what is none that is taken; ok
// says that it is a sound one.
func imageType(data []byte) (kind string, ok bool) {
	switch kind = http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind, sound(kind, data)
	}
	return "", false
}

// sound says whether a picture begins as its format must and has a size that
// can be looked at. Of WebP, which the standard library can't read, only its
// mark is known.
func sound(kind string, data []byte) bool {
	if kind == "image/webp" {
		return true
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	return err == nil && "image/"+format == kind && c.Width > 0 && c.Height > 0 && float64(c.Width)*float64(c.Height) <= maxPixels
}

// plainText is the text in UTF-8 that a file holds, or false: a program, an
// archive or a document is none.
func plainText(data []byte) (string, bool) {
	if bytes.HasPrefix(data, []byte("%PDF-")) {
		return "", false // it begins like a text
	}
	if text, ok := wide(data); ok {
		return text, isText(text)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return "", false
	}
	text := string(data)
	return text, isText(text)
}

// wide reads UTF-16 that says so, as Windows writes it.
func wide(data []byte) (string, bool) {
	var order binary.ByteOrder
	switch {
	case len(data)%2 != 0:
		return "", false
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return "", false
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 2; i < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	return string(utf16.Decode(units)), true
}

// isText says whether a text holds no control characters but those of lines
// and of terminals.
func isText(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && !strings.ContainsRune("\t\n\v\f\r\b\x1b\u0085", r)
	})
}
