package slack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack/socketmode"

	"nize/bots"
	"nize/bots/slack/wire"
	"nize/store/backoff"
)

// Socket Mode. The frames are slack-go's types; the loop is nize's own, because that of
// socketmode.Client drops the reason for which Slack ends a link, reconnects at once when no
// retry can help, and provides no envelope to acknowledge if it can't decode one block of an
// event (TestSocketModeClient in wire).

const (
	// deaf is how long a link may be without a frame or a ping; Slack pings every few
	// seconds.
	deaf       = 45 * time.Second
	writeTime  = 10 * time.Second
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
	// hopeless is the pause after an error that only the operator can fix.
	hopeless = 5 * time.Minute
	// maxUnacked is how many frames may wait for the store at once; no more are read until
	// one is acknowledged.
	maxUnacked = 512
)

// fatal maps Slack's errors that no retry can fix to what to do.
var fatal = map[string]string{
	"invalid_auth":           "a token is not valid any more: nizectl bots slack connect",
	"not_authed":             "a token is missing: nizectl bots slack connect",
	"account_inactive":       "the app or its workspace was switched off",
	"token_revoked":          "a token was revoked: install the app again, then nizectl bots slack connect",
	"token_expired":          "a token has expired: nizectl bots slack connect",
	"not_allowed_token_type": "the app-level token is of another kind: nizectl bots slack connect",
	"missing_scope":          "the app-level token lacks connections:write: make another, then nizectl bots slack connect",
	"link_disabled":          socketModeOff,
	"socket_mode_disabled":   socketModeOff,
	"forbidden":              socketModeOff,
}

const socketModeOff = "Socket Mode is switched off: switch it on in the app's settings, then nizectl bots slack start"

// cures maps link errors that may be temporary to what to do.
var cures = map[string]string{
	"too_many_websockets": "the app has as many links as Slack allows: stop what else uses its tokens",
}

// keepLink keeps a link to Slack until ctx ends.
func (l *live) keepLink(ctx context.Context) {
	var tries attempts
	for ctx.Err() == nil {
		began := l.b.o.Now()
		connected, err := l.serveLink(ctx)
		if ctx.Err() != nil {
			return
		}
		var pause time.Duration
		var ended *wire.LinkEnd
		switch cure := fatal[wire.ReasonOf(err)]; {
		case cure != "":
			l.log.Error("Slack refuses the link", "err", err, "cure", cure)
			l.setHealth(func(h *bots.Health) { h.State, h.Error = bots.Refused, wire.ReasonOf(err)+": "+cure })
			pause = hopeless
		case errors.As(err, &ended) && cures[ended.Reason] == "" && l.b.o.Now().Sub(began) > firstPause:
			tries = 0 // Slack occasionally asks for a new link
		default:
			l.log.Warn("the link with Slack broke", "err", err)
			l.setHealth(func(h *bots.Health) { h.State, h.Error = bots.Connecting, linkError(err) })
			pause = tries.after(connected && cures[wire.ReasonOf(err)] == "", l.b.o.Now().Sub(began))
		}
		if pause > 0 && l.wire.Wait(ctx, pause+rand.N(pause/2+1)) != nil {
			return
		}
	}
}

// attempts counts consecutive failed connection attempts.
type attempts int

// after returns how long to wait before the next attempt. A link that lasted counts as a
// success, however it ended, and is replaced at once. So are the first two failed attempts.
func (b *attempts) after(connected bool, lived time.Duration) time.Duration {
	if connected && lived > firstPause {
		*b = 0
		return 0
	}
	*b++
	return backoff.Exponential{First: firstPause, Most: lastPause}.After(int(*b) - 2)
}

// linkError returns an error for the operator: the failure and, if known, what to do.
func linkError(err error) string {
	if cure := cures[wire.ReasonOf(err)]; cure != "" {
		return wire.ReasonOf(err) + ": " + cure
	}
	return "no link with Slack, trying again: " + err.Error()
}

// serveLink serves one connection: it dials, waits for the hello, and reads until the
// connection ends. connected reports that Slack sent the hello.
func (l *live) serveLink(ctx context.Context) (connected bool, err error) {
	conn, err := l.wire.Dial(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends the read below
	s := &socket{conn: conn}
	defer s.stopRecheck()
	defer s.acking.Wait()                                              // frames that are being stored are still acknowledged
	alive := func() { _ = conn.SetReadDeadline(time.Now().Add(deaf)) } // on a closed connection this fails, as does the next read
	ping := conn.PingHandler()
	conn.SetPingHandler(func(data string) error { alive(); return ping(data) })
	for {
		alive()
		_, frame, err := conn.ReadMessage()
		if err != nil {
			return s.greeted, fmt.Errorf("reading: %w", err)
		}
		if err := l.handleFrame(ctx, s, frame); err != nil {
			return s.greeted, err
		}
	}
}

// socket is the writing half of a link.
type socket struct {
	conn    *websocket.Conn
	acking  sync.WaitGroup
	greeted bool        // only used by the reader's goroutine
	mu      sync.Mutex  // one writer at a time
	again   *time.Timer // closes the link, so that Slack counts links again
}

func (s *socket) stopRecheck() {
	if s.again != nil {
		s.again.Stop()
	}
}

// ack acknowledges an envelope, with the content that Slack should show.
func (s *socket) ack(id string, payload any) error {
	frame, err := wire.EncodeAck(id, payload)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return fmt.Errorf("acknowledging: %w", err)
	}
	if err := s.conn.WriteMessage(websocket.TextMessage, frame); err != nil {
		return fmt.Errorf("acknowledging: %w", err)
	}
	return nil
}

// handleFrame handles one frame. An error ends the link.
func (l *live) handleFrame(ctx context.Context, s *socket, frame []byte) error {
	r, err := wire.DecodeRequest(frame)
	if err != nil {
		l.log.Warn("a frame of Slack's is left out", "err", err)
		return nil
	}
	switch r.Type {
	case socketmode.RequestTypeHello:
		s.greeted = true
		l.handleHello(s, r.NumConnections)
		return nil
	case socketmode.RequestTypeDisconnect:
		return &wire.LinkEnd{Reason: r.Reason}
	}
	if r.EnvelopeID == "" {
		return nil // it requires no response
	}
	ack := func(payload any) {
		if err := s.ack(r.EnvelopeID, payload); err != nil && ctx.Err() == nil {
			l.log.Warn("Slack will send again what could not be acknowledged", "err", err)
		}
	}
	select {
	case l.unacked <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.acking.Add(1)
	l.acceptPayload(ctx, r.Type, r.Payload, func(payload any, ok bool) {
		defer func() { <-l.unacked; s.acking.Done() }()
		if ok {
			ack(payload)
		}
	})
	return nil
}

// recheck is the time after which the link is replaced if Slack counted more than one link:
// one that had just ended may have been counted.
const recheck = 2 * time.Minute

func (l *live) handleHello(s *socket, links int) {
	l.log.Info("linked with Slack", "links", links)
	several := ""
	if links > 1 {
		several = fmt.Sprintf("the app has %d links: if another nized uses the same tokens, each gets a part of the messages; stop one of them", links)
		if !l.rechecked {
			l.rechecked, s.again = true, time.AfterFunc(recheck, func() { _ = s.conn.Close() })
		}
	}
	l.setHealth(func(h *bots.Health) { h.State, h.Error, h.Links = bots.Connected, several, links })
}
