package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/store"
)

// escapes start processes, each in another way, that leave the group and session of
// who started them and live on: %s is what they run.
const escapes = `
setsid %[1]s &
setsid sh -c 'setsid %[1]s & exit'
setsid sh -c 'cd /; umask 0; (trap "" HUP TERM INT; setsid %[1]s <&- & exit) & exit'
env -i /bin/sh -c 'PATH=/usr/bin:/bin; setsid %[1]s & exit'
prlimit --locks=7:7 sh -c 'setsid %[1]s & exit'
unshare --fork --pid setsid %[1]s &
perl -MPOSIX -e 'syscall(157, 36, 1, 0, 0, 0); if (!fork) { POSIX::setsid(); exec "%[1]s" } POSIX::setsid(); sleep 1 while 1' &
`

// processesOf lists the processes whose command line has a word.
func processesOf(t *testing.T, word string) (list []string) {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), word) { // else it has ended
			list = append(list, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return list
}

// TestCyclesLeaveNoProcess adds, calls and removes an MCP server and an extension with
// a real nized, eight times each. Both start processes that daemonise. None is left
// after the call of an extension, nor after the removal of a server, and nized has as
// many processes as in the beginning.
func TestCyclesLeaveNoProcess(t *testing.T) {
	t.Parallel()
	const cycles = 8
	k, ctx := newKillable(t), t.Context()
	status := func() api.Status {
		t.Helper()
		st, err := api.GetStatus.Call(ctx, k.Client, api.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	word := fmt.Sprintf("86399.%d", os.Getpid())
	script := fmt.Sprintf(escapes, "sleep "+word)
	quiet := "(" + script + ") >/dev/null 2>&1 </dev/null"
	none := func(when string) {
		t.Helper()
		if left := processesOf(t, word); len(left) > 0 {
			t.Errorf("%s, %d processes are left: %s", when, len(left), strings.Join(left, "\n"))
		}
	}
	tools := func() (ids []string) {
		t.Helper()
		list, err := api.ListTools.Call(ctx, k.Client, api.ListToolsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Items {
			ids = append(ids, tool.ID)
		}
		return ids
	}
	before := status().Process.Children
	t.Run("server", func(t *testing.T) {
		for n := range cycles {
			server := store.Server{Name: "box", Command: "/bin/sh", Args: []string{"-c", quiet + "\nexec " + toolbox(t) + " --notes " + filepath.Join(t.TempDir(), "n.json")}}
			if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: server}); err != nil {
				t.Fatal(err)
			}
			k.until("what it starts runs", func() bool { return len(processesOf(t, word)) >= 5 }) // unshare and perl may not be there
			if _, err := api.CallTool.Call(ctx, k.Client, api.CallToolRequest{ID: "box:convert_time", Args: []byte(`{"time":"14:30","from":"Lisbon","to":"Tokyo"}`)}); err != nil {
				t.Error(err)
			}
			if _, err := api.RemoveServer.Call(ctx, k.Client, api.ServerRequest{Name: "box"}); err != nil {
				t.Fatal(err)
			}
			k.until("its end", func() bool { return len(processesOf(t, word)) == 0 })
			none(fmt.Sprintf("after cycle %d of a server", n))
		}
	})
	t.Run("extension", func(t *testing.T) {
		dir, ran := filepath.Join(k.dir, "extensions", "away"), filepath.Join(t.TempDir(), "ran")
		for n := range cycles {
			_ = os.Remove(ran) // of the cycle before
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{
				"run":            "#!/bin/sh\n" + quiet + "\npgrep -c -f '^sleep " + word + "' >" + ran + "\nprintf '{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}'\n",
				"extension.json": `{"name": "away", "description": "Goes away.", "inputSchema": {"type": "object"}, "command": "./run"}`,
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			k.until("the extension is there", func() bool { return slices.Contains(tools(), "native:away") })
			if _, err := api.CallTool.Call(ctx, k.Client, api.CallToolRequest{ID: "native:away", Args: []byte(`{}`)}); err != nil {
				t.Error(err)
			}
			none(fmt.Sprintf("after cycle %d of an extension", n))
			if count, err := os.ReadFile(ran); err != nil || strings.TrimSpace(string(count)) == "0" {
				t.Errorf("cycle %d started %q processes, %v", n, count, err)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			k.until("the extension is gone", func() bool { return !slices.Contains(tools(), "native:away") })
		}
	})
	if after := status().Process.Children; after != before {
		t.Errorf("nized has %d children, and had %d", after, before)
	}
}
