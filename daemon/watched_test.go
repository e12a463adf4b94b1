package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/daemon/doctor"
	"nize/mcp/upstream"
	"nize/store"
)

// watched is a daemon that does not run: the test runs its checks, at times of
// its own.
type watched struct {
	*Daemon
	t   *testing.T
	off atomic.Int64 // how far its clock is ahead
}

func watch(t *testing.T, dir string, env map[string]string) *watched {
	t.Helper()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w := &watched{t: t}
	var err error
	w.Daemon, err = New(t.Context(), Options{
		DataDir: dir, Listen: "127.0.0.1:0", Socket: filepath.Join(dir, "s"), Log: slog.New(slog.DiscardHandler),
		Env: func(name string) string { return env[name] }, Now: func() time.Time { return time.Now().Add(time.Duration(w.off.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	w.monitor.Space = func(string) (doctor.Space, error) { return doctor.Space{Free: 50, Total: 100}, nil }
	return w
}

func (w *watched) end() {
	if w.Daemon != nil {
		w.closeAll()
		w.unlock()
		w.Daemon = nil
	}
}

// see takes a look after a while and returns every incident as "state kind
// subject".
func (w *watched) see(after time.Duration) []string {
	w.t.Helper()
	w.off.Add(int64(after))
	if err := w.alerts.Update(w.t.Context(), w.monitor.Check(w.t.Context())); err != nil {
		w.t.Fatal(err)
	}
	out := []string{}
	for _, i := range w.all() {
		out = append(out, fmt.Sprintf("%s %s %s", i.State, i.Kind, i.Subject))
		if i.Title.String() == "" || i.Text.String() == "" || i.Cure == "" {
			w.t.Errorf("%s lacks words: %+v", i.Kind, i)
		}
	}
	slices.Sort(out)
	return out
}

func (w *watched) all() []store.Incident {
	w.t.Helper()
	list, err := w.db.ListIncidents(w.t.Context(), store.IncidentQuery{All: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

func (w *watched) want(got []string, want ...string) {
	w.t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(got, want); diff != "" {
		w.t.Fatalf("incidents (-got +want):\n%s", diff)
	}
}

func (w *watched) until(what string, cond func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			w.t.Fatalf("%s did not come", what)
		case <-tick.C:
		}
	}
}

func (w *watched) state(name string) upstream.State { return w.ops.servers.States()[name].State }

// register stores a server and contacts it; by System nothing is accepted.
func (w *watched) register(by store.Caller, s store.Server) {
	w.t.Helper()
	if _, err := w.db.PutServer(w.t.Context(), by, s, 0); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.pool.Sync(w.t.Context(), by, s.Name); err != nil {
		w.t.Fatal(err)
	}
}

var boss = store.Caller{User: "boss", Role: store.Admin, Surface: store.OnCLI}
