package database

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nize/store"
	"nize/store/commit"
)

func smallDisk(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "mode=0700,size=16m"); err != nil {
		t.Skipf("this system lets nobody, or only root, mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }) // it goes with the test at the latest
	return dir
}

// fillDisk takes all the room that is left, with a file of that path.
func fillDisk(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "filler")
	f, err := os.Create(path)
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
	return path
}

// TestFullDiskKeepsRoomForDenials: on a full disk the ends of calls that ran are
// taken, in the room that is kept or as late ones, and leave a denial its room.
func TestFullDiskKeepsRoomForDenials(t *testing.T) {
	dir := smallDisk(t)
	ctx := t.Context()
	d := openTest(t, dir, Options{})
	waits := testCall(store.Pending)
	waits.Args = json.RawMessage(`{"x":"` + noise(600<<10) + `"}`)
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
	fillDisk(t, dir)
	late := 0
	for i, c := range list[1:] {
		raw := json.RawMessage(`{"content":[{"type":"text","text":"` + noise(200<<10) + `"}]}`)
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

// After a kill on a full disk the ends of calls may wait in the journal. Then an exact
// list is refused, so that no call is taken for lost whose end is known, and all are
// there once there is room.
func TestFullDiskKeepsEndsAfterAKill(t *testing.T) {
	dir := smallDisk(t)
	ctx := t.Context()
	d := openTest(t, dir, Options{ReadOnlyLag: time.Hour})
	var began []store.Call
	for i := range 40 {
		c := testCall(store.Running)
		c.ID = fmt.Sprint(c.ID, i)
		if err := d.Begin(ctx, tester, c); err != nil {
			t.Fatal(err)
		}
		began = append(began, c)
	}
	if err := d.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for _, c := range began {
		var text strings.Builder // that can't be compressed
		for text.Len() < 18<<10 {
			text.WriteString(rand.Text())
		}
		raw := json.RawMessage(`{"content":[{"type":"text","text":"` + text.String() + `"}]}`)
		if ended, err := d.Finish(ctx, tester, c.ID, store.Outcome{State: store.Done, Result: &store.Result{Raw: raw}}); err != nil || ended.Result.Late {
			t.Fatalf("%+v, %v", ended, err)
		}
	}
	if err := d.engine.Close(false); err != nil { // as a kill does
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "nize.db"+commit.ReserveName)); err != nil { // or the ends find room there
		t.Fatal(err)
	}
	filler := fillDisk(t, dir)
	d = openTest(t, dir, Options{ReadOnlyLag: time.Hour})
	running := store.CallQuery{States: []store.State{store.Running}, Exact: true, Limit: 100}
	if _, err := d.ListCalls(ctx, running); !errors.Is(err, store.ErrDiskFull) {
		t.Fatalf("an exact list: %v, want %v", err, store.ErrDiskFull)
	}
	if _, err := d.ListCalls(ctx, store.CallQuery{}); err != nil {
		t.Errorf("a list of what there is: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if list, err := d.ListCalls(ctx, running); err != nil || len(list) != 0 {
		t.Errorf("%d calls run, %v", len(list), err)
	}
	if list, err := d.ListCalls(ctx, store.CallQuery{States: []store.State{store.Done}, Limit: 100}); err != nil || len(list) != len(began) {
		t.Errorf("%d calls are done, %v; want %d", len(list), err, len(began))
	}
}
