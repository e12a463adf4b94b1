package clients

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nize/daemon/api"
)

// ends are a bridge with its client's side, and the daemons that it dials.
type ends struct {
	t      *testing.T
	in     *io.PipeWriter
	out    *bufio.Reader
	dialed chan net.Conn             // a daemon's side each
	refuse atomic.Pointer[api.Error] // of the next dial, if set
	done   chan error
}

func newEnds(t *testing.T) *ends {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	e := &ends{t: t, in: inW, out: bufio.NewReader(outR), dialed: make(chan net.Conn, 10), done: make(chan error, 1)} // more daemons than a test has; one end
	b := &bridge{in: inR, out: outW, restartTime: time.Minute, pending: map[string]bool{}, dial: func(context.Context) (io.ReadWriteCloser, error) {
		if err := e.refuse.Load(); err != nil {
			return nil, err
		}
		ours, theirs := net.Pipe()
		e.dialed <- theirs
		return ours, nil
	}}
	go func() {
		e.done <- b.run(t.Context())
		outW.Close()
	}()
	return e
}

func (e *ends) types(lines ...string) {
	for _, l := range lines {
		if _, err := io.WriteString(e.in, l+"\n"); err != nil {
			e.t.Errorf("the bridge does not read: %v", err)
		}
	}
}

func (e *ends) reads(r *bufio.Reader, want string) {
	e.t.Helper()
	got, err := r.ReadString('\n')
	if err != nil || strings.TrimSpace(got) != want {
		e.t.Errorf("read %q (%v), want %s", got, err, want)
	}
}

// TestBridgeOutlivesTheDaemon: a client keeps its session over a restart. What
// was under way is answered, and what it says to the old daemon's question
// never reaches the new one, whose questions have the same numbers.
func TestBridgeOutlivesTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t)
		first := <-e.dialed
		heard := bufio.NewReader(first)
		const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`
		const ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		go e.types(hello)
		e.reads(heard, hello)
		go io.WriteString(first, `{"jsonrpc":"2.0","id":0,"result":{}}`+"\n")
		e.reads(e.out, `{"jsonrpc":"2.0","id":0,"result":{}}`)
		go e.types(ready, `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{}}`)
		e.reads(heard, ready)
		e.reads(heard, `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{}}`)
		go io.WriteString(first, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}`+"\n")
		e.reads(e.out, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}`)

		e.refuse.Store(&api.Error{Code: "no_daemon", Message: "not running"})
		first.Close()
		e.reads(e.out, `{"jsonrpc":"2.0","id":"a","error":{"code":-32000,"message":"nized stopped before it answered; nizectl audit shows what ran"}}`)
		time.Sleep(3 * time.Second)
		e.refuse.Store(nil)
		second := <-e.dialed
		heard = bufio.NewReader(second)
		e.reads(heard, `{"id":"nize-again","jsonrpc":"2.0","method":"initialize","params":{}}`)
		e.reads(heard, ready)
		go io.WriteString(second, `{"jsonrpc":"2.0","id":"nize-again","result":{}}`+"\n"+
			`{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}`+"\n"+
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n")
		e.reads(e.out, `{"id":"nize-1-1","jsonrpc":"2.0","method":"elicitation/create"}`)
		e.reads(e.out, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nize-1-1"}}`)
		go e.types(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`, `{"jsonrpc":"2.0","id":"nize-1-1","result":{"action":"decline"}}`)
		e.reads(heard, `{"id":1,"jsonrpc":"2.0","result":{"action":"decline"}}`)

		e.in.Close()
		if err := <-e.done; err != nil {
			t.Errorf("a client that leaves ends it with %v", err)
		}
	})
}

// TestBridgeEnds: it ends with one error where the daemon stays away or refuses,
// and gives a script that closes its side what it asked for.
func TestBridgeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			refusal *api.Error
			want    string
		}{
			{&api.Error{Code: "no_daemon", Message: "nized is not running"}, "did not come back within 1m0s"},
			{&api.Error{Code: "refused", Message: "user mia is disabled"}, "mia is disabled"},
		} {
			e := newEnds(t)
			daemon := <-e.dialed
			e.refuse.Store(c.refusal)
			daemon.Close()
			if err := <-e.done; err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.refusal) {
				t.Errorf("%s: %v", c.refusal.Code, err)
			}
			e.in.Close()
		}
		e := newEnds(t)
		daemon := <-e.dialed
		heard := bufio.NewReader(daemon)
		go func() {
			e.types(`no JSON`, `[{"jsonrpc":"2.0","id":7,"method":"ping"}]`)
			e.in.Close()
		}()
		e.reads(e.out, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"a line is no JSON message"}}`)
		e.reads(heard, `[{"jsonrpc":"2.0","id":7,"method":"ping"}]`)
		time.Sleep(lastAnswers / 2)
		go io.WriteString(daemon, `[{"jsonrpc":"2.0","id":7,"result":{}}]`+"\n")
		e.reads(e.out, `[{"jsonrpc":"2.0","id":7,"result":{}}]`)
		if err := <-e.done; err != nil {
			t.Error(err)
		}
	})
}

// FuzzBridgeLines: no line ends the bridge or leaves it as more than one.
func FuzzBridgeLines(f *testing.F) {
	f.Add([]byte(`{"id":1,"method":"x"}`))
	f.Add([]byte(`{"id":"nize-1-2","result":{}}`))
	f.Add([]byte(`{"method":"notifications/cancelled","params":{"requestId":[1]}}`))
	f.Add([]byte(`[{"id":null}]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		line = []byte(strings.NewReplacer("\n", "", "\r", "").Replace(string(line)))
		b := &bridge{out: io.Discard, pending: map[string]bool{}, again: 1}
		out, err := b.fromClient(line)
		if err != nil || strings.Count(string(out), "\n") > 1 {
			t.Errorf("%q became %q, %v", line, out, err)
		}
		if err := b.fromDaemon(line); err != nil {
			t.Error(err)
		}
	})
}
