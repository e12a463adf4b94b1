package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store/backoff"
)

const (
	// maxLine limits one message: a result of 8 MiB, escaped.
	maxLine = 32 << 20
	// lastAnswers is how long answers may take after the client has closed its side: a
	// script that pipes its requests in gets them, but a client that left doesn't delay the
	// end.
	lastAnswers = 2 * time.Second
	// restartTime is how long a daemon that went away may take to restart.
	restartTime = 30 * time.Second
)

// MCPCommand is `nizectl mcp`.
func MCPCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "mcp", Usage: "serve MCP on standard input and output", Run: runMCP,
		More: "MCP clients start it; nizectl connect CLIENT prints the entry for theirs. It needs no token and no\n" +
			"port, because it uses the control socket. Calls that need approval are decided as usual."})
}

func runMCP(ctx context.Context, c *command.Call) error {
	if c.InTTY {
		c.Note("this speaks MCP and is for MCP clients: nizectl connect CLIENT shows how theirs starts it")
	}
	b := &bridge{in: c.In, out: c.Raw, restartTime: restartTime, pending: map[string]bool{},
		dial: func(ctx context.Context) (io.ReadWriteCloser, error) { return api.ServeMCP.Call(ctx, c.API) }}
	return b.run(ctx)
}

// bridge forwards lines between a client and the daemon. It only inspects which requests
// are unanswered, so that it can repeat the client's handshake to a restarted daemon and
// answer the requests that got no response. One goroutine owns all of its state.
type bridge struct {
	in          io.Reader
	out         io.Writer
	dial        func(context.Context) (io.ReadWriteCloser, error)
	restartTime time.Duration

	initialize  []byte          // the client's request, if it sent one
	initialized []byte          // its notification after the response
	pending     map[string]bool // unanswered requests of the client, by their id as written
	again       int             // how many times the daemon was dialed again
}

// message is the part of a message that the bridge inspects.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// request reports whether the message expects a response.
func (m message) request() bool { return m.Method != "" && len(m.ID) > 0 }

// arrival is a line, or the error after the last line.
type arrival struct {
	line []byte
	err  error
}

func (b *bridge) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	closed, closeClosed := context.WithCancel(ctx) // ends with the client's side
	defer closeClosed()
	typed := make(chan arrival)
	go func() { // if no more input arrives, it ends with the process
		readLines(b.in, typed, ctx.Done())
	}()
	conn, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing more is sent
	told := b.follow(ctx, conn)
	var late <-chan time.Time // set once the client has closed its side
	for {
		if late != nil && len(b.pending) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil // stopped by a signal
		case <-late:
			return nil
		case a := <-typed:
			if errors.Is(a.err, io.EOF) {
				typed, late = nil, time.After(lastAnswers)
				closeClosed()
				continue
			}
			if a.err != nil {
				return fmt.Errorf("reading standard input: %w", a.err)
			}
			line, err := b.fromClient(a.line)
			if err != nil {
				return err
			}
			if len(line) > 0 {
				_, _ = conn.Write(line) // the reading side returns the error
			}
		case a := <-told:
			if a.err == nil {
				if err := b.fromDaemon(a.line); err != nil {
					return err
				}
				continue
			}
			_ = conn.Close() // it has ended
			if err := b.giveUp(); err != nil || late != nil {
				return err
			}
			next, err := b.redial(closed)
			if ctx.Err() != nil || closed.Err() != nil {
				if next != nil {
					_ = next.Close() // the client has left
				}
				return nil
			}
			if err != nil {
				return err
			}
			conn = next
			told = b.follow(ctx, conn)
		}
	}
}

// follow reads a connection.
func (b *bridge) follow(ctx context.Context, conn io.Reader) chan arrival {
	lines := make(chan arrival)
	go readLines(conn, lines, ctx.Done())
	return lines
}

// readLines sends the lines of r and finally its error.
func readLines(r io.Reader, to chan<- arrival, done <-chan struct{}) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(lines)
		if len(line) > 0 {
			select {
			case to <- arrival{line: line}:
			case <-done:
				return
			}
		}
		if err != nil {
			select {
			case to <- arrival{err: err}:
			case <-done:
			}
			return
		}
	}
}

// readLine reads a line without surrounding white space.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("a message is over %d MiB", maxLine>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), err
		}
	}
}

// fromClient records the requests in a line of the client and returns the line to send to
// the daemon, or nil if it must not be sent.
func (b *bridge) fromClient(line []byte) ([]byte, error) {
	all, ok := messagesIn(line)
	if !ok {
		return nil, b.write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"a line is no JSON message"}}`))
	}
	for _, m := range all {
		switch {
		case m.request():
			b.pending[string(m.ID)] = true
			if m.Method == "initialize" {
				b.initialize = line
			}
		case m.Method == "notifications/initialized":
			b.initialized = line
		case m.Method == "" && b.again > 0:
			// The daemon numbers its requests from 1 each time that it starts: an answer to
			// the previous daemon's must not be mistaken for one to this daemon's.
			id, ours := b.daemonsID(m.ID)
			if !ours {
				return nil, nil
			}
			line = withID(line, id)
		}
	}
	return append(line, '\n'), nil
}

// fromDaemon records which requests a line answers, and forwards it.
func (b *bridge) fromDaemon(line []byte) error {
	all, ok := messagesIn(line)
	if !ok {
		return nil // the daemon never sends one
	}
	for _, m := range all {
		switch {
		case m.Method == "" && string(m.ID) == replayID:
			return nil
		case m.Method == "":
			delete(b.pending, string(m.ID))
		case m.request() && b.again > 0:
			line = withID(line, b.clientsID(m.ID))
		case m.Method == "notifications/cancelled" && b.again > 0:
			line = b.withRequestID(line)
		}
	}
	return b.write(line)
}

func (b *bridge) write(line []byte) error {
	if _, err := b.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing to the client: %w", err)
	}
	return nil
}

// giveUp answers the requests that a vanished daemon left unanswered, except the handshake,
// which is repeated to the next daemon.
func (b *bridge) giveUp() error {
	handshake := ""
	if all, _ := messagesIn(b.initialize); len(all) == 1 && b.initialized == nil {
		handshake = string(all[0].ID)
	}
	for id := range b.pending {
		if id == handshake {
			continue
		}
		delete(b.pending, id)
		if err := b.write([]byte(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32000,"message":"nized stopped before it answered; nizectl audit shows what ran"}}`)); err != nil {
			return err
		}
	}
	return nil
}

// replayID is the id of a repeated handshake, which the client doesn't see.
const replayID = `"nize-again"`

// redial connects to a restarted daemon and repeats the handshake.
func (b *bridge) redial(ctx context.Context) (io.ReadWriteCloser, error) {
	limit, cancel := context.WithTimeout(ctx, b.restartTime)
	defer cancel()
	pause := backoff.Exponential{First: 50 * time.Millisecond, Most: time.Second}
	for try := 1; ; try++ {
		conn, err := b.dial(limit)
		if err == nil {
			b.again++
			return conn, b.greet(conn)
		}
		var refused *api.Error
		if errors.As(err, &refused) && refused.Code != "no_daemon" {
			return nil, err
		}
		timer := time.NewTimer(pause.After(try))
		select {
		case <-timer.C:
		case <-limit.Done():
			timer.Stop()
			return nil, fmt.Errorf("nized went away and did not come back within %s: %w", b.restartTime, err)
		}
	}
}

func (b *bridge) greet(conn io.Writer) error {
	if b.initialize == nil {
		return nil
	}
	line := b.initialize
	if all, _ := messagesIn(line); len(all) == 1 && !b.pending[string(all[0].ID)] {
		line = withID(line, json.RawMessage(replayID))
	}
	for _, l := range [][]byte{line, b.initialized} {
		if l != nil {
			_, _ = conn.Write(append(bytes.Clone(l), '\n')) // the reading side returns the error
		}
	}
	return nil
}

// clientsID returns the id under which the client sees a request of the current daemon.
func (b *bridge) clientsID(id json.RawMessage) json.RawMessage {
	text, _ := json.Marshal("nize-" + strconv.Itoa(b.again) + "-" + string(id)) // a string always encodes
	return text
}

// daemonsID returns that request's own id; ok is false if an earlier daemon sent it.
func (b *bridge) daemonsID(id json.RawMessage) (own json.RawMessage, ok bool) {
	var text string
	if json.Unmarshal(id, &text) != nil {
		return nil, false
	}
	rest, ok := bytes.CutPrefix([]byte(text), []byte("nize-"+strconv.Itoa(b.again)+"-"))
	return rest, ok && json.Valid(rest)
}

// withRequestID replaces the id of the request that the daemon cancels.
func (b *bridge) withRequestID(line []byte) []byte {
	var m, params map[string]json.RawMessage
	if json.Unmarshal(line, &m) != nil || json.Unmarshal(m["params"], &params) != nil {
		return line
	}
	params["requestId"] = b.clientsID(params["requestId"])
	m["params"], _ = json.Marshal(params) // can't fail: it was decoded
	out, _ := json.Marshal(m)             // can't fail either
	return out
}

// withID returns a message with another id.
func withID(line []byte, id json.RawMessage) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(line, &m) != nil {
		return line
	}
	m["id"] = id
	out, _ := json.Marshal(m) // can't fail: it was decoded
	return out
}

// messagesIn decodes a line: one message, or a batch, which revisions before 2025-06-18
// allow.
func messagesIn(line []byte) (all []message, ok bool) {
	if len(line) > 0 && line[0] == '[' {
		return all, json.Unmarshal(line, &all) == nil
	}
	var one message
	if json.Unmarshal(line, &one) != nil {
		return nil, false
	}
	if string(one.ID) == "null" {
		one.ID = nil
	}
	return []message{one}, true
}
