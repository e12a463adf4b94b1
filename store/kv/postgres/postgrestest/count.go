package postgrestest

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"sync"
)

// Trips are the round trips that clients began on a [Wire]: what the server was asked at
// once, and answers at once. What the connection that holds the database asks each second
// is left out, and so are the messages for whose answer nobody waits: those that end a
// transaction in which nothing was changed.
type Trips struct {
	mu    sync.Mutex // guards what follows
	trips []string
}

// Take returns what was asked since it was last called, the statements of each trip.
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

// listen passes on what a client says, and notes its trips. begins is called with each of
// them before the server has it.
func (t *Trips) listen(to io.Writer, from io.Reader, begins func(trip string)) {
	var (
		said     []byte // of which no message is complete yet
		known    = map[string]string{}
		asked    []string
		started  bool
		watchman bool // it holds the database
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
			head := 1 // the kind, which the first message has not
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
