package database

import (
	"errors"
	"testing"
	"time"

	"nize/store"
	"nize/store/record/threads"
)

// TestUploads: a file that came with no message is kept for a week, one that did as long
// as its conversation.
func TestUploads(t *testing.T) {
	ctx := t.Context()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := openTest(t, t.TempDir(), Options{Now: func() time.Time { return now }})
	if err := d.PutThread(ctx, tester, store.Thread{ID: "T", User: "u"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"sent", "unsent"} {
		if err := d.PutFile(ctx, tester, "T", store.File{ID: id, Data: []byte(id)}, store.Quota{Each: 100, All: 100}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Append(ctx, tester, store.Turn{Thread: "T", Role: store.FromUser, By: tester, Text: "see", Files: []store.File{{ID: "sent"}}}, false); err != nil {
		t.Fatal(err)
	}
	left := func(wait time.Duration, want ...string) {
		t.Helper()
		now = now.Add(wait)
		if _, err := d.Prune(ctx, store.Retention{}); err != nil {
			t.Fatal(err)
		}
		var have []string
		for _, id := range []string{"sent", "unsent"} {
			data, err := d.GetFile(ctx, "T", id)
			if err == nil && string(data) == id {
				have = append(have, id)
			} else if !errors.Is(err, store.ErrNotFound) {
				t.Fatalf("%s: %q, %v", id, data, err)
			}
		}
		if len(have) != len(want) {
			t.Errorf("%v later there are %v, want %v", wait, have, want)
		}
	}
	left(threads.KeepUploads-time.Hour, "sent", "unsent")
	left(2*time.Hour, "sent")
	left(30*threads.KeepUploads, "sent")
}
