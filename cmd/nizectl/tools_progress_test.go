package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
)

// TestProgress: what a call tells of itself is on standard error: in a line that is wiped
// on a terminal, and in lines elsewhere, of which the first is written at once. Controls of
// a server's text do nothing.
func TestProgress(t *testing.T) {
	for name, test := range map[string]struct {
		tty  bool
		want string
	}{
		"a terminal": {true, "\r\x1b[Kbox:slow: 50 % half\\u001b[2J\r\x1b[K"},
		"a pipe":     {false, "box:slow: 50 % half\\u001b[2J\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble(t)
			answerLines(d, api.FollowProgress, api.Progress{}, api.Progress{Done: 1, Total: 2, Message: "half\x1b[2J"}, api.Progress{Done: 2, Total: 2})
			client := api.New(d.socket)
			defer client.Close()
			var errs bytes.Buffer
			a := &command.App{Out: bufio.NewWriter(io.Discard), Err: &errs, ErrTTY: test.tty, Env: func(string) string { return "" }, Now: func() time.Time { return now }}
			showProgress(t.Context(), &command.Call{App: a, API: client}, "box:slow", "x")
			if errs.String() != test.want {
				t.Errorf("got %q, want %q", errs.String(), test.want)
			}
		})
	}
}

// TestProgressOfOlder: a nized that knows nothing of progress runs the call all the same.
func TestProgressOfOlder(t *testing.T) {
	d := newDouble(t)
	answer(d, api.CallTool, store.Call{ID: "01C", Server: "box", Tool: "slow", State: store.Done, Result: &store.Result{Raw: []byte(`{"content":[{"type":"text","text":"there"}]}`)}})
	d.mount(api.Spec(api.FollowProgress), func(m *mux.Mux) {
		mux.HandleStream(m, api.FollowProgress, func(context.Context, store.Caller, api.FollowProgressRequest, func(api.Progress) error) error {
			return store.Errorf("such a path %w", store.ErrNotFound)
		})
	})
	if got := d.nizectl(surroundings{}, "tools", "call", "box:slow"); got != (result{0, "there\n", ""}) {
		t.Errorf("%+v", got)
	}
}

// TestProgressText says how far a call is.
func TestProgressText(t *testing.T) {
	for want, p := range map[string]api.Progress{
		"50 % reading": {Done: 1, Total: 2, Message: "reading"},
		"100 %":        {Done: 2, Total: 2},
		"7":            {Done: 7},
		"12":           {Done: 12, Total: 10},
		"reading":      {Done: 3, Message: "reading"},
	} {
		if got := progressText(p); got != want {
			t.Errorf("%+v is %q, want %q", p, got, want)
		}
	}
}
