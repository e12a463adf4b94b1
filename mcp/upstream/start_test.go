package upstream

import (
	"context"
	"testing"

	"nize/store"
)

// A start takes the stored tools from where they are in memory already.
func TestStartTakesWhatIsKnown(t *testing.T) {
	db := newMemory()
	far := remote("http://127.0.0.1:1")
	far.Disabled = true
	if _, err := db.PutServer(t.Context(), admin, far, 0); err != nil {
		t.Fatal(err)
	}
	p := New(Options{Servers: db, Tools: db, Credentials: db, Gate: strictGate{}, Known: func(context.Context) ([]store.Tool, error) {
		return []store.Tool{{Server: far.Name, Name: "echo", Accepted: "pin"}, {Server: "gone", Name: "echo"}}, nil
	}})
	defer p.Close(t.Context())
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, ok := p.findServer(far.Name)
	if _, gone := p.findServer("gone"); !ok || gone || len(s.tools) != 1 || s.tools["echo"].accepted != "pin" {
		t.Errorf("after the start %s is there: %v, its tools %v, one that is gone: %v", far.Name, ok, s.tools, gone)
	}
}
