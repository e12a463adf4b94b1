package slack

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

func picture(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// last returns the last message heard.
func (h *heard) last() store.Inbound {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.list[len(h.list)-1]
}

// stranger is a server outside Slack that counts its visits.
func stranger(t *testing.T) (url string, visits *atomic.Int64) {
	t.Helper()
	visits = new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		visits.Add(1)
		_, _ = w.Write([]byte("hello")) // an error means that the client is gone
	}))
	t.Cleanup(srv.Close)
	return srv.URL, visits
}

// wasTold waits for a private message of nize that contains all of these parts.
func wasTold(t *testing.T, fake *slacktest.Server, channel, user string, parts ...string) {
	t.Helper()
	found := func() bool {
		return slices.ContainsFunc(append(fake.Ephemerals(channel, user), fake.Messages(channel)...), func(m slacktest.Message) bool {
			return m.User == slacktest.Bot && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(m.Text, p) })
		})
	}
	if err := fake.Wait(t.Context(), found); err != nil {
		t.Fatalf("%s was not told %q", user, parts)
	}
}

// Files of a message are read by their content, and the person is told which were not; only
// Slack gets the bot token.
func TestFiles(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	h := newHeard()
	db := databasetest.Open(t)
	runBot(t, fake, Options{Store: storeOf(db)}, h)
	elsewhere, visits := stranger(t)
	img := picture(t)
	files := []slacktest.File{
		{ID: "F1", Name: "log.txt", Content: []byte("boom\n")},
		{ID: "F2", Name: "photo.dat", Content: img},
		{ID: "F3", Name: "app.zip", Content: []byte("PK\x03\x04\x00")},
		{ID: "F4", Name: "huge.txt", Content: []byte("x"), Size: store.MaxFile + 1},
		{ID: "F5", Name: "drive.doc", Content: []byte("x"), Mode: "external", URL: elsewhere + "/doc"},
		{ID: "F6", Name: "gone.txt", Content: []byte("x"), Mode: "tombstone"},
		{ID: "F7", Name: "shared.txt", Content: []byte("from far"), Access: "check_file_info"},
		{ID: "F8", Name: "trap.txt", Content: []byte("hello"), URL: elsewhere + "/files/F8"},
		{ID: "F9", Name: "page.html", Content: []byte("<!DOCTYPE html><p>mine</p>"), Type: "text/html"},
	}
	if _, err := fake.Post(slacktest.Said{User: slacktest.Ann, Channel: slacktest.General, Text: "<@" + slacktest.Bot + "> what is this?", Files: files}); err != nil {
		t.Fatal(err)
	}
	h.wait(t, 1)
	in := h.last()
	want := map[string]string{
		"log.txt": "boom\n", "photo.dat": "image/png", "app.zip": store.FileOther, "huge.txt": store.FileTooLarge, "drive.doc": store.FileForeign,
		"F6": store.FileGone, "shared.txt": "from far", "trap.txt": store.FileForeign, "page.html": "<!DOCTYPE html><p>mine</p>",
	}
	if in.Text != "what is this?" || len(in.Files) != len(want) {
		t.Fatalf("heard %q with %+v", in.Text, in.Files)
	}
	for _, f := range in.Files {
		got := map[store.FileKind]string{store.TextFile: f.Text, store.ImageFile: f.Type, store.UnreadFile: f.Why}[f.Kind]
		if got != want[f.Name] || f.From != nil {
			t.Errorf("%s is %s %q, want %q", f.Name, f.Kind, got, want[f.Name])
		}
	}
	if data, err := db.GetFile(t.Context(), in.Thread, "F2"); err != nil || !bytes.Equal(data, img) {
		t.Errorf("%d bytes of the picture are kept: %v", len(data), err)
	}
	if n := visits.Load(); n != 0 {
		t.Errorf("%d requests went to a stranger", n)
	}
	wasTold(t, fake, slacktest.General, slacktest.Ann, "Not read: ", "app.zip (neither text nor a picture)", "huge.txt (over 20 MiB)", "drive.doc (Slack has only a link to it)")
	th, err := db.GetThread(t.Context(), in.Thread)
	if err != nil || th.Tainted {
		t.Errorf("one's own files taint: %v, %v", th.Tainted, err)
	}
}

// A message with only a file is a message; files over the limit are not read.
func TestFilesAlone(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	h := newHeard()
	db := databasetest.Open(t)
	runBot(t, fake, Options{Store: storeOf(db)}, h)
	var files []slacktest.File
	for i := range store.MaxFiles + 2 {
		files = append(files, slacktest.File{Name: string(rune('a'+i)) + ".txt", Content: bytes.Repeat([]byte("é"), store.MaxFileText/4)})
	}
	if _, err := fake.Post(slacktest.Said{User: slacktest.Ann, Channel: fake.DMChannel(slacktest.Ann), Files: files}); err != nil {
		t.Fatal(err)
	}
	h.wait(t, 1)
	in := h.last()
	if in.Text != "(file)" || len(in.Files) != store.MaxFiles+2 || !in.WithinLimits() {
		t.Fatalf("heard %q with %d files, fits %v", in.Text, len(in.Files), in.WithinLimits())
	}
	for i, f := range in.Files {
		if (f.Why == store.FileTooMany) != (i >= store.MaxFiles) || (f.Cut > 0) != (i >= 4 && i < store.MaxFiles) {
			t.Errorf("file %d: %s, %d bytes and %d left out", i, f.Why, len(f.Text), f.Cut)
		}
	}
	th, err := db.GetThread(t.Context(), in.Thread)
	if err != nil || th.Title != "a.txt" {
		t.Errorf("the conversation is called %q: %v", th.Title, err)
	}
}

// Temporary failures are retried; a sign-in page and a broken or endless body are not
// accepted as files.
func TestFileFaults(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	h := newHeard()
	runBot(t, fake, Options{}, h)
	elsewhere, visits := stranger(t)
	times := func(n int, f slacktest.FileFault) slacktest.FileFault { f.Times = n; return f }
	for i, c := range []struct {
		name  string
		fault slacktest.FileFault
		want  string
	}{
		{"too many", slacktest.FileFault{Fault: slacktest.Fault{RetryAfter: 30 * time.Second}}, "hello"},
		{"down twice", times(2, slacktest.FileFault{Fault: slacktest.Fault{Status: 503}}), "hello"},
		{"down for good", times(9, slacktest.FileFault{Fault: slacktest.Fault{Status: 503}}), store.FileFailed},
		{"not there", slacktest.FileFault{Fault: slacktest.Fault{Status: 404}}, store.FileGone},
		{"sign in", slacktest.FileFault{Page: true}, store.FileDenied},
		{"redirect", slacktest.FileFault{To: elsewhere}, store.FileDenied},
		{"endless", times(9, slacktest.FileFault{Endless: true}), store.FileFailed},
		{"cut once", slacktest.FileFault{Cut: true}, "hello"},
		{"cut", times(9, slacktest.FileFault{Cut: true}), store.FileFailed},
		{"other content", times(9, slacktest.FileFault{Lie: []byte("hell")}), store.FileFailed},
		{"slow", slacktest.FileFault{Fault: slacktest.Fault{Delay: 50 * time.Millisecond}}, "hello"},
	} {
		id := "FX" + string(rune('A'+i))
		fake.FailFile(id, c.fault)
		_, err := fake.Post(slacktest.Said{User: slacktest.Ann, Channel: fake.DMChannel(slacktest.Ann), Text: c.name, Files: []slacktest.File{{ID: id, Name: "a.txt", Content: []byte("hello")}}})
		if err != nil {
			t.Fatal(err)
		}
		h.wait(t, 1)
		in := h.last()
		if f := in.Files[0]; in.Text != c.name || f.Text+f.Why != c.want {
			t.Errorf("%s: heard %q with %+v, want %q", c.name, in.Text, f, c.want)
		}
	}
	if n := visits.Load(); n != 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
}
