package postgrestest

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"sync"
)

// Trips are the round trips that clients began on a [Wire]: the statements that the server
// gets and answers together. It omits the heartbeats of the connection that owns the
// database, and messages without a waiting caller: those that end a transaction without
// changes.
type Trips struct {
	mu    sync.Mutex // guards the fields below
	trips []string
}

// Take returns the statements of each trip since the previous call.
func (t *Trips) Take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.trips
	t.trips = nil
	return taken
}

func (t *Trips) add(trip string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trips = append(t.trips, trip)
}

// listen forwards a client's messages and records its trips. begins is called with each of
// them before the server gets it.
func (t *Trips) listen(to io.Writer, from io.Reader, begins func(trip string)) {
	var (
		said     []byte // bytes of an incomplete message
		known    = map[string]string{}
		asked    []string
		started  bool
		watchman bool // the connection owns the database
	)
	text := func(b []byte) (s string, rest []byte) {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			return string(b), nil
		}
		return string(b[:i]), b[i+1:]
	}
	message := func(kind byte, b []byte) {
		switch kind {
		case 'P': // a statement and its name
			name, rest := text(b)
			known[name], _ = text(rest)
		case 'B': // a portal and the statement that it runs
			_, rest := text(b)
			name, _ := text(rest)
			asked = append(asked, known[name])
		case 'D':
			if len(asked) == 0 {
				asked = append(asked, "describe")
			}
		case 'Q':
			s, _ := text(b)
			if s == "rollback" {
				return
			}
			asked = append(asked, s)
		}
		if (kind == 'S' || kind == 'Q') && !watchman {
			trip := strings.Join(asked, "; ")
			begins(trip)
			t.add(trip)
		}
		if kind == 'S' || kind == 'Q' {
			asked = nil
		}
	}
	for buf := make([]byte, 32<<10); ; {
		n, err := from.Read(buf)
		said = append(said, buf[:n]...)
		for {
			head := 1 // the kind, which the first message lacks
			if !started {
				head = 0
			}
			if len(said) < head+4 {
				break
			}
			end := head + int(binary.BigEndian.Uint32(said[head:]))
			if len(said) < end {
				break
			}
			if started {
				message(said[0], said[5:end])
			} else if started = true; bytes.Contains(said[:end], []byte("\x00nized/")) {
				watchman = true
			}
			said = said[end:]
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
