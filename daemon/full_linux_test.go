package daemon_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/daemon/api"
	"nize/mcp/mcptest"
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
	switch said, err := ask(ctx, &testDaemon{Client: k.Client}, "what time is it in Tokyo?"); {
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

// leave takes all the room but so much, and returns how to give it back.
func leave(t *testing.T, dir string, room int) (free func()) {
	t.Helper()
	slack := filepath.Join(dir, "slack")
	if err := os.WriteFile(slack, make([]byte, room), 0o600); err != nil {
		t.Fatal(err)
	}
	free = fill(t, dir)
	if err := os.Remove(slack); err != nil {
		t.Fatal(err)
	}
	return free
}

var brinks = flag.Int("brinks", 4, "how often nized is killed as its disk gets full")

// At the brink of a full disk, with calls under way, nized is killed: each call that
// ran has its record, whether it may change something or not, and each that was
// answered has its end there. nized starts on the full disk again.
func TestBrinkOfAFullDisk(t *testing.T) {
	dir := smallDisk(t, "16m")
	k := newKillable(t)
	k.kill()
	k.dir = dir
	k.start()
	ctx := t.Context()
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "look", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, {Name: "change"}}})
	cfg := store.Server{Name: "box", Transport: store.HTTP, URL: m.HTTP(), TrustAnnotations: true}
	if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: cfg}); err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for round := range *brinks {
		free := leave(t, dir, []int{0, 4 << 10, 64 << 10, 300 << 10, 700 << 10}[round%5])
		var answered [2]atomic.Int64
		var clients sync.WaitGroup
		enough, stop := context.WithCancel(ctx)
		defer stop()
		var sent atomic.Int64
		for i := range 8 {
			name := []string{"look", "change"}[i%2]
			clients.Go(func() {
				for n := 0; ; n++ {
					args := fmt.Sprintf(`{"round":%d,"client":%d,"n":%d,"x":%q}`, round, i, n, strings.Repeat("x", 100*(n%20)))
					c, err := api.CallTool.Call(enough, k.Client, api.CallToolRequest{ID: cfg.Name + ":" + name, Args: []byte(args)})
					if err == nil && (c.Result == nil || !c.Result.Late) { // else the answer says that its record is pending
						answered[i%2].Add(1)
					}
					if sent.Add(1) >= 24 {
						stop()
						return
					}
				}
			})
		}
		<-enough.Done()
		k.kill()
		clients.Wait()
		k.start() // with the disk as it was
		if _, err := api.ListServers.Call(ctx, k.Client, api.Empty{}); err != nil {
			t.Errorf("round %d: reading on the full disk: %v", round, err)
		}
		for _, err := range api.ReadAudit.Call(ctx, k.Client, api.AuditRequest{Limit: 1_000_000}) {
			if err != nil {
				t.Errorf("round %d: exporting on the full disk: %v", round, err)
			}
		}
		free()
		k.until("records are written", func() bool {
			v, err := api.CheckAudit(ctx, k.Client, api.VerifyAuditRequest{}, nil)
			return err == nil && v.OK && v.Late == ""
		})
		begun, ended := map[string]map[string]bool{"look": {}, "change": {}}, map[string]int{}
		for e, err := range api.ReadAudit.Call(ctx, k.Client, api.AuditRequest{Limit: 1_000_000}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, name, ok := store.SplitToolID(e.Tool); ok && begun[name] != nil && strings.HasPrefix(e.Kind, "call.") && e.Kind != "call.refused" {
				begun[name][e.Subject] = true
				switch e.Kind {
				case "call.done", "call.failed", "call.cancelled": // stop cuts calls off, of which some are answered so
					ended[name]++
				}
			}
		}
		for i, name := range []string{"look", "change"} {
			calls := m.Calls(name)
			if len(begun[name]) < calls {
				t.Errorf("round %d: %s ran %d times, and %d records tell of it", round, name, calls, len(begun[name]))
			}
			ran[name] += int(answered[i].Load())
			if ended[name] < ran[name] {
				t.Errorf("round %d: %d calls of %s were answered, and %d ended by their records", round, ran[name], name, ended[name])
			}
			t.Logf("round %d: %s: ran %d, recorded %d, ended %d, answered %d", round, name, calls, len(begun[name]), ended[name], ran[name])
		}
	}
}

// A nized that was killed starts on a disk that is full to the last byte. There waiting
// calls can be read and denied, the denial survives the next kill, a yes is refused
// unless its record still finds a free page, and the audit trail can be exported.
func TestDenialAfterRestartOnAFullDisk(t *testing.T) {
	dir := smallDisk(t, "16m")
	k := newKillable(t)
	k.kill()
	k.dir = dir
	k.start()
	ctx := t.Context()
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "change"}}})
	if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: store.Server{Name: "box", Transport: store.HTTP, URL: m.HTTP(), Approval: store.ApproveAlways}}); err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(ctx, k.Client, api.CreateTokenRequest{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	const waiting = 4
	var clients sync.WaitGroup
	defer clients.Wait()
	defer k.kill() // or a client of a failed test waits for its yes
	for n := range waiting {
		clients.Go(func() { k.execute(made.Secret.Reveal(), "box:change", fmt.Sprintf(`{"n":%d}`, n)) })
	}
	list := func() []store.Card {
		t.Helper()
		cards, err := api.ListApprovals.Call(ctx, k.Client, api.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		return cards.Items
	}
	k.until("the calls wait", func() bool { return len(list()) == waiting })

	free := fill(t, dir)
	denials, approvals := 0, 0
	for round := 1; len(list()) > 1; round++ {
		k.kill()
		clients.Wait()
		k.start()
		cards := list()
		if len(cards) != waiting-denials-approvals {
			t.Fatalf("round %d: %d calls wait after %d denials and %d approvals", round, len(cards), denials, approvals)
		}
		card := cards[0]
		if got, err := api.GetApproval.Call(ctx, k.Client, api.CallRequest{ID: card.Call}); err != nil || got.Digest != card.Digest {
			t.Errorf("round %d: reading a card: %v", round, err)
		}
		last := cards[len(cards)-1]
		if _, err := api.DecideCall.Call(ctx, k.Client, api.DecideCallRequest{ID: last.Call, Verb: store.Approve, Digest: last.Digest}); err == nil {
			approvals++
		} else if !errors.Is(err, store.ErrDiskFull) {
			t.Errorf("round %d: a yes: %v, want %v", round, err, store.ErrDiskFull)
		}
		denied, err := api.DecideCall.Call(ctx, k.Client, api.DecideCallRequest{ID: card.Call, Verb: store.Deny, Digest: card.Digest})
		if err != nil || denied.State != store.Refused {
			t.Fatalf("round %d: a no: %s, %v", round, denied.State, err)
		}
		denials++
		for _, err := range api.ReadAudit.Call(ctx, k.Client, api.AuditRequest{Limit: 1_000_000}) {
			if err != nil {
				t.Errorf("round %d: exporting: %v", round, err)
			}
		}
	}
	free()
	k.until("records are written", func() bool {
		v, err := api.CheckAudit(ctx, k.Client, api.VerifyAuditRequest{}, nil)
		return err == nil && v.OK && v.Late == ""
	})
	recorded := map[string]int{}
	for e, err := range api.ReadAudit.Call(ctx, k.Client, api.AuditRequest{Limit: 1_000_000}) {
		if err != nil {
			t.Fatal(err)
		}
		recorded[e.Kind]++
	}
	if recorded["call.deny"] != denials || recorded["call.running"] < m.Calls("change") || recorded["call.running"] > approvals { // one may be killed before it is sent
		t.Errorf("%d denials and %d approvals, %d calls ran; recorded: %v", denials, approvals, m.Calls("change"), recorded)
	}
	t.Logf("%d denials and %d approvals on the full disk, %d calls ran", denials, approvals, m.Calls("change"))
}
