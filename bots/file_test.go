package bots_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"
	"unicode/utf8"

	"nize/bots"
	"nize/store"
)

// picture returns a PNG of that size.
func picture(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func bytesOf(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A file's type is determined by its content, whatever its name.
func TestReadFile(t *testing.T) {
	good := picture(t, 3, 2)
	long := strings.Repeat("é", store.MaxFileText)
	for _, c := range []struct {
		name string
		data []byte
		kind store.FileKind
		say  string // its type, its text or the reason
	}{
		{"a.txt", []byte("hello\r\nworld\t"), store.TextFile, "hello\r\nworld\t"},
		{"a.exe", []byte("#!/bin/sh\n"), store.TextFile, "#!/bin/sh\n"},
		{"empty.txt", nil, store.TextFile, ""},
		{"bom.txt", []byte("\xef\xbb\xbfhi"), store.TextFile, "hi"},
		{"wide.txt", []byte("\xff\xfeh\x00i\x00"), store.TextFile, "hi"},
		{"wide.txt", []byte("\xfe\xff\x00h\x00i"), store.TextFile, "hi"},
		{"wide.txt", []byte("\xff\xfeh\x00\x00\x00"), store.UnreadFile, store.FileOther},
		{"log.txt", []byte("\x1b[31mred\x1b[0m"), store.TextFile, "\x1b[31mred\x1b[0m"},
		{"a.svg", []byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), store.TextFile, "<svg xmlns='http://www.w3.org/2000/svg'/>"},
		{"a.txt", []byte("a\x00b"), store.UnreadFile, store.FileOther},
		{"latin.txt", []byte("caf\xe9"), store.UnreadFile, store.FileOther},
		{"a.pdf", []byte("%PDF-1.7\nonly text"), store.DocumentFile, "application/pdf"},
		{"a.docx", []byte("PK\x03\x04 word/document.xml"), store.DocumentFile, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"a.zip", []byte("PK\x03\x04\x00\x00"), store.UnreadFile, store.FileOther},
		{"a.txt", good, store.ImageFile, "image/png"},
		{"a.png", good[:20], store.UnreadFile, store.FileOther},
		{"bomb.png", func() []byte { b := bytes.Clone(good); copy(b[16:], "\x00\x01\x00\x00\x00\x01\x00\x00"); return b }(), store.UnreadFile, store.FileOther},
		{"a.gif", bytesOf(t, "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"), store.ImageFile, "image/gif"},
		{"a.webp", []byte("RIFF\x24\x00\x00\x00WEBPVP8 "), store.ImageFile, "image/webp"},
		{"huge", bytes.Repeat([]byte("a"), store.MaxFile+1), store.UnreadFile, store.FileTooLarge},
		{"long.txt", []byte(long), store.TextFile, long[:store.MaxFileText]},
	} {
		got := bots.ReadFile(store.File{ID: "F1", Name: c.name}, c.data, store.MaxTexts)
		say := map[store.FileKind]string{store.TextFile: got.Text, store.ImageFile: got.Type, store.DocumentFile: got.Type, store.UnreadFile: got.Why}[got.Kind]
		if got.Kind != c.kind || say != c.say {
			t.Errorf("%s %.20q: %s %.40q, want %s %.40q", c.name, c.data, got.Kind, say, c.kind, c.say)
		}
		if got.Kind == store.TextFile && int(got.Cut)+len(got.Text) > len(c.data)+3 || (got.Kind == store.ImageFile || got.Kind == store.DocumentFile || got.Cut > 0) != (got.Data != nil) {
			t.Errorf("%s: %d bytes and %d cut of %d", c.name, len(got.Text), got.Cut, len(c.data))
		}
	}
	if got := bots.ReadFile(store.File{}, []byte("aé"), 2); got.Text != "a" || got.Cut != 2 {
		t.Errorf("cut at two bytes: %q, %d left out", got.Text, got.Cut)
	}
}

func FuzzReadFile(f *testing.F) {
	f.Add([]byte("text"), 3)
	f.Add([]byte("\xff\xfea\x00"), 10)
	f.Add(picture(f, 2, 2), 0)
	f.Add([]byte("\xff\xd8\xff\xe0\x00\x10JFIF"), 9)
	f.Fuzz(func(t *testing.T, data []byte, room int) {
		got := bots.ReadFile(store.File{ID: "F"}, data, room)
		switch got.Kind {
		case store.TextFile:
			if !utf8.ValidString(got.Text) || strings.ContainsRune(got.Text, 0) || len(got.Text) > max(room, 0) || got.Cut < 0 {
				t.Errorf("%q with room for %d, %d cut", got.Text, room, got.Cut)
			}
		case store.ImageFile:
			if got.Type == "" || len(got.Data) == 0 {
				t.Errorf("%+v", got)
			}
		case store.UnreadFile:
			if got.Why == "" || got.Data != nil || got.Text != "" {
				t.Errorf("%+v", got)
			}
		}
	})
}
