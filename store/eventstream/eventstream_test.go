package eventstream

import (
	"net/http"
	"testing"
	"time"
)

func TestAppend(t *testing.T) {
	for _, c := range []struct {
		name string
		e    Event
		want string
	}{
		{"data alone", Event{Data: []byte(`{"a":1}`)}, "data: {\"a\":1}\n\n"},
		{"no data", Event{Name: "ping"}, "event: ping\ndata: \n\n"},
		{"all fields", Event{ID: "7", Retry: 1500 * time.Millisecond, Name: "message", Data: []byte("{}")}, "id: 7\nretry: 1500\nevent: message\ndata: {}\n\n"},
		{"several lines", Event{Data: []byte("one\ntwo\n")}, "data: one\ndata: two\ndata: \n\n"},
		{"a line that looks like a field", Event{Name: "n", Data: []byte("x\nevent: other")}, "event: n\ndata: x\ndata: event: other\n\n"},
	} {
		if got := string(c.e.Append([]byte("before"))); got != "before"+c.want {
			t.Errorf("%s: %q, want %q", c.name, got, "before"+c.want)
		}
	}
}

func TestSetHeader(t *testing.T) {
	h := http.Header{}
	SetHeader(h)
	if h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%v", h)
	}
}
