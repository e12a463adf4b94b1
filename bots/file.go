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

// The content alone determines a file's type: its name and declared type are claims of the
// sender.

// maxPixels limits a picture's size: services refuse larger ones, and a small file may
// decode to a huge picture.
const maxPixels = 100e6

// ReadFile returns the part of a file that a conversation keeps: up to capacity bytes of
// its text, a picture's bytes, or the reason why it is not read. data is the complete file.
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

// documentType recognizes PDF and DOCX by their magic bytes and required parts.
func documentType(data []byte) (kind string, ok bool) {
	switch {
	case bytes.HasPrefix(data, []byte("%PDF-")):
		return "application/pdf", true
	case bytes.HasPrefix(data, []byte("PK\x03\x04")) && bytes.Contains(data, []byte("word/document.xml")):
		return "application/vnd.openxmlformats-officedocument.wordprocessingml.document", true
	}
	return "", false
}

// Unread returns a file of which only the name is kept.
func Unread(f store.File, why string) store.File {
	f.Kind, f.Type, f.Why, f.Text, f.Cut, f.Data = store.UnreadFile, "", why, "", 0, nil
	return f
}

// UnreadLine lists the files that were not read, with the reasons; "" if all were.
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

// whyUnread returns the reason why a file was not read, in words.
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

// imageType returns the media type of an accepted image, otherwise ""; ok reports whether
// the image is sound.
func imageType(data []byte) (kind string, ok bool) {
	switch kind = http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind, sound(kind, data)
	}
	return "", false
}

// sound reports whether a picture has its format's header and an acceptable size. For WebP,
// which the standard library can't decode, it checks only the signature.
func sound(kind string, data []byte) bool {
	if kind == "image/webp" {
		return true
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	return err == nil && "image/"+format == kind && c.Width > 0 && c.Height > 0 && float64(c.Width)*float64(c.Height) <= maxPixels
}

// plainText returns a file's text as UTF-8, or false if it isn't text, such as a program,
// an archive or a document.
func plainText(data []byte) (string, bool) {
	if bytes.HasPrefix(data, []byte("%PDF-")) {
		return "", false // its beginning looks like text
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

// wide decodes UTF-16 with a byte order mark, as Windows writes it.
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

// isText reports whether a text has no control characters except line breaks and terminal
// codes.
func isText(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && !strings.ContainsRune("\t\n\v\f\r\b\x1b\u0085", r)
	})
}
