package database

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"nize/store"
)

// TestFullDiskKeepsRoomForDenials: on a full disk the ends of calls that ran are
// taken, in the room that is kept or as late ones, and leave a denial its room.
func TestFullDiskKeepsRoomForDenials(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "mode=0700,size=16m"); err != nil {
		t.Skipf("this system lets nobody, or only root, mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }) // it goes with the test at the latest
	ctx := t.Context()
	d := openTest(t, dir, Options{})
	waits := testCall(store.Pending)
	waits.Args = json.RawMessage(`{"x":"` + strings.Repeat("x", 600<<10) + `"}`)
	list := []store.Call{waits}
	for range 12 {
		list = append(list, testCall(store.Running))
	}
	for i, c := range list {
		c.ID = fmt.Sprint(c.ID, i)
		list[i] = c
		if err := d.Begin(ctx, tester, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); len(block) > 0; block = block[:len(block)/2] {
		for err = nil; err == nil; _, err = f.Write(block) {
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	late := 0
	for i, c := range list[1:] {
		raw := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("y", 200<<10) + `"}]}`)
		ended, err := d.Finish(ctx, tester, c.ID, store.Outcome{State: store.Done, Result: &store.Result{Raw: raw}})
		if err != nil || ended.State != store.Done {
			t.Fatalf("the end of call %d: %s, %v", i, ended.State, err)
		}
		if ended.Result.Late {
			late++
		}
	}
	if late == 0 || late == len(list)-1 {
		t.Errorf("%d of %d ends are late; some use the room that is kept, and not all of it", late, len(list)-1)
	}
	if _, err := d.Decide(ctx, tester, list[0].ID, store.Decision{Verb: store.Deny, By: tester.User}); err != nil {
		t.Errorf("a denial: %v", err)
	}
}
