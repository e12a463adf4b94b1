package daemon_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"nize/daemon/api"
	"nize/store"
)

// smallDisk mounts a file system of that size, and gives its directory.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir, err := mountSmall(t, size)
	if err != nil {
		t.Skipf("this system lets nobody, or only root, mount a small file system: %v", err)
	}
	return dir
}

// mountSmall gives the directory also where nothing could be mounted there.
func mountSmall(t *testing.T, size string) (dir string, err error) {
	dir = t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		return dir, err
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }) // it goes with the test at the latest
	return dir, nil
}

// fill takes all the room that is left and returns how to give it back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
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
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// On a full disk nothing runs unrecorded, what needs no record works, a no is
// taken, and all goes on by itself when there is room.
func TestFullDisk(t *testing.T) {
	dir := smallDisk(t, "8m")
	k := newKillable(t)
	k.kill()
	k.dir = dir
	k.start()
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: store.Server{Name: "toolbox", Command: toolbox(t), Args: []string{"--notes", filepath.Join(t.TempDir(), "n.json")}}}); err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(ctx, k.Client, api.CreateTokenRequest{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	defer clients.Wait()
	defer k.kill() // or a client of a failed test waits for its yes
	clients.Go(func() {
		k.execute(made.Secret.Reveal(), "toolbox:convert_time", `{"time":"14:30","from":"Lisbon","to":"Tokyo"}`)
	})
	var card store.Card
	k.until("a call waits", func() bool {
		cards, err := api.ListApprovals.Call(ctx, k.Client, api.Empty{})
		if err != nil || len(cards.Items) == 0 {
			return false
		}
		card = cards.Items[0]
		return true
	})

	free := fill(t, dir)
	big := `{"title":"x","text":"` + strings.Repeat("all work and no play ", 2000) + `"}`
	call := func() error {
		_, err := api.CallTool.Call(ctx, k.Client, api.CallToolRequest{ID: "toolbox:note_add", Args: []byte(big)})
		return err
	}
	k.until("calls are refused", func() bool { return errors.Is(call(), store.ErrDiskFull) })
	if err := call(); !errors.Is(err, store.ErrDiskFull) || err.Error() != "the disk is full, so nothing can be stored; free some space and try again" {
		t.Errorf("a call on a full disk: %v", err)
	}
	// A message may still find a free page of the database; its turn doesn't.
	switch said, err := ask(ctx, &roof{Client: k.Client}, "what time is it in Tokyo?"); {
	case errors.Is(err, store.ErrDiskFull) && strings.HasPrefix(err.Error(), "the disk is full, so nothing can be stored"):
	case err != nil || !strings.Contains(said, "disk of the machine that nize runs on is full"):
		t.Errorf("the chat on a full disk: %q, %v", said, err)
	}
	if got := k.execute(made.Secret.Reveal(), "toolbox:current_time", `{"place":"Tokyo"}`); !strings.Contains(got, "the disk is full, so nothing can be recorded and nothing runs") {
		t.Errorf("an MCP client's call: %s", got)
	}
	if found, err := api.SearchTools.Call(ctx, k.Client, api.SearchToolsRequest{Query: "convert a time"}); err != nil || len(found.Tools) == 0 {
		t.Errorf("search: %+v, %v", found, err)
	}
	if list, err := api.ListServers.Call(ctx, k.Client, api.Empty{}); err != nil || len(list.Items) != 1 {
		t.Errorf("list: %v, %v", list.Items, err)
	}
	if _, err := api.GetStatus.Call(ctx, k.Client, api.Empty{}); err != nil {
		t.Errorf("status: %v", err)
	}
	events := 0
	for e, err := range api.ReadAudit.Call(ctx, k.Client, api.AuditRequest{}) {
		if err != nil {
			t.Errorf("reading the audit trail: %v", err)
		}
		if e.Seq > 0 {
			events++
		}
	}
	if v, err := api.CheckAudit(ctx, k.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK || events == 0 {
		t.Errorf("audit %+v, %v, %d events", v, err, events)
	}
	if st, err := api.GetStatus.Call(ctx, k.Client, api.Empty{}); err != nil || !strings.Contains(strings.Join(st.Warnings, "\n"), "the disk is full") {
		t.Errorf("status: %q, %v", st.Warnings, err)
	}
	if d, err := api.Doctor.Call(ctx, k.Client, api.DoctorRequest{}); err != nil || !slices.ContainsFunc(d.Findings, func(f api.Finding) bool {
		return f.Check == "disk" && strings.Contains(f.Text.String(), "the disk is full")
	}) {
		t.Errorf("doctor: %+v, %v", d.Findings, err)
	}
	if _, err := api.SaveBackup(ctx, k.Client, new(strings.Builder)); !errors.Is(err, store.ErrDiskFull) {
		t.Errorf("backup: %v", err)
	}
	if _, err := api.DecideCall.Call(ctx, k.Client, api.DecideCallRequest{ID: card.Call, Verb: store.Deny, Digest: card.Digest}); err != nil {
		t.Errorf("a no: %v", err)
	}
	clients.Wait()

	free()
	k.until("calls run again", func() bool { return call() == nil })
	if v, err := api.CheckAudit(context.WithoutCancel(ctx), k.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		t.Errorf("audit %+v, %v", v, err)
	}
}
