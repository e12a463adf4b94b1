package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"

	"nize/store"
	"nize/store/printable"
)

// The gateway. An event counts as received only after it is stored: a broken link resumes
// after the last event up to which all are stored, and Discord sends the later ones again.

const (
	writeTime = 10 * time.Second
	maxFrame  = 16 << 20 // a guild with all its channels is a single frame
	// maxUnstored is how many events may wait for the store at once; no more are read until
	// one is stored.
	maxUnstored = 512
	maxDials    = 3 // consecutive failures before the session is abandoned
)

// Session is what is needed to resume a link. The zero value starts a new session.
type Session struct {
	id, url string
	failed  int // consecutive failed dials
	events  received
}

// Resumable reports whether the next link resumes.
func (s *Session) Resumable() bool { return s.id != "" }

// forget resets it to the zero value. Work that still runs for a link may record its
// events.
func (s *Session) forget() {
	s.id, s.url, s.failed = "", "", 0
	s.events.forget()
}

// received tracks a session's events that are not stored yet, in order.
type received struct {
	mu     sync.Mutex // guards the fields below
	seq    int64      // all events up to this one are stored
	queued []*event
}

type event struct {
	seq  int64
	done bool
}

// begin records an event; end records that it is stored.
func (r *received) begin(seq int64) *event {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &event{seq: seq}
	r.queued = append(r.queued, e)
	return e
}

func (r *received) end(e *event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.done = true
	for len(r.queued) > 0 && r.queued[0].done {
		r.seq = max(r.seq, r.queued[0].seq)
		r.queued = r.queued[1:]
	}
}

// stored returns the last event up to which all are stored.
func (r *received) stored() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seq
}

func (r *received) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq, r.queued = 0, nil
}

// dropUnstored drops the pending events of a link that ended: Discord sends them again.
func (r *received) dropUnstored() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queued = nil
}

// Closed is returned if Discord ended a link.
type Closed struct {
	Code int // close code of the websocket; 0 if Discord asked for a new link
	Text string
}

func (c *Closed) Error() string {
	if c.Code == 0 {
		return "Discord asked for another link"
	}
	return fmt.Sprintf("Discord closed the link: %d %s", c.Code, printable.Escape(store.Clip(c.Text, 100)))
}

// ClosedAs returns the code with which Discord ended a link, 0 for none.
func ClosedAs(err error) int {
	var c *Closed
	if errors.As(err, &c) {
		return c.Code
	}
	return 0
}

// Close codes.
const (
	CloseToken   = 4004 // the token is invalid
	CloseIntents = 4014 // an intent is not enabled for the app
)

// Fatal reports whether only the operator can fix the cause of a close code.
func Fatal(code int) bool { return code == CloseToken || code >= 4010 && code <= 4014 }

// stale are the close codes after which a session can't be resumed.
var stale = map[int]bool{4003: true, 4004: true, 4007: true, 4009: true, 4010: true, 4011: true, 4012: true, 4013: true, 4014: true}

// Dispatch handles one event. It calls done once, with true when the event may count as
// received.
type Dispatch func(ctx context.Context, kind string, data json.RawMessage, done func(stored bool))

// Opcodes of discordgo.Events.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

// link is one connection to the gateway. Fields not guarded by a mutex are used by its
// reader only.
type link struct {
	c        *Client
	conn     *websocket.Conn
	session  *Session
	intents  discordgo.Intent
	handle   Dispatch
	greeted  bool           // Discord accepted the session
	interval time.Duration  // between heartbeats
	slots    chan struct{}  // has one element per event that is not stored
	storing  sync.WaitGroup // counts those events
	beats    sync.WaitGroup // the heartbeat goroutine

	mu    sync.Mutex // serializes writes; guards acked
	acked bool       // the last heartbeat was acknowledged
}

// ServeLink opens a link and serves it until it ends, which is always an error; greeted
// reports that Discord accepted the session. When it returns, every done was called, or ctx
// has ended.
func (c *Client) ServeLink(ctx context.Context, s *Session, intents discordgo.Intent, handle Dispatch) (greeted bool, err error) {
	conn, err := c.dial(ctx, s)
	if err != nil {
		return false, err
	}
	s.events.dropUnstored()
	l := &link{c: c, conn: conn, session: s, intents: intents, handle: handle, interval: callTime, slots: make(chan struct{}, maxUnstored), acked: true}
	defer l.storing.Wait()
	defer l.beats.Wait()
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends the read
	beating, stop := context.WithCancel(ctx)
	defer stop()
	for {
		f, err := l.read()
		if err == nil {
			err = l.take(ctx, f, beating)
		}
		if err != nil {
			return l.greeted, err
		}
	}
}

// dial opens the connection of a link, to the session's resume URL or to the gateway URL
// that Discord returns.
func (c *Client) dial(ctx context.Context, s *Session) (conn *websocket.Conn, err error) {
	address := s.url
	if !s.Resumable() {
		if address, err = c.gateway(ctx); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "wss" && u.Scheme != "ws" {
		return nil, fmt.Errorf("%w address of the gateway", store.ErrInvalid)
	}
	u.RawQuery = "v=9&encoding=json"
	u.Path = cmp.Or(u.Path, "/")
	dialer := websocket.Dialer{HandshakeTimeout: callTime, Proxy: http.ProxyFromEnvironment}
	conn, _, err = dialer.DialContext(ctx, u.String(), nil)
	if err != nil {
		if s.failed++; s.failed >= maxDials {
			s.forget() // the resume URL may not exist any more
		}
		return nil, fmt.Errorf("opening the link: %w", err)
	}
	s.failed = 0
	conn.SetReadLimit(maxFrame)
	return conn, nil
}

// read returns the next frame and skips anything that is not one of Discord's.
func (l *link) read() (f discordgo.Event, err error) {
	for {
		_ = l.conn.SetReadDeadline(time.Now().Add(2*l.interval + callTime)) // fails on a closed connection, as the read does
		_, raw, err := l.conn.ReadMessage()
		var ended *websocket.CloseError
		if errors.As(err, &ended) {
			err = &Closed{ended.Code, ended.Text}
			if stale[ended.Code] {
				l.session.forget()
			}
		}
		if err != nil {
			return f, fmt.Errorf("reading: %w", err)
		}
		if f = (discordgo.Event{}); json.Unmarshal(raw, &f) == nil {
			return f, nil
		}
	}
}

// take handles a frame; an error ends the link. The heartbeats end with beating.
func (l *link) take(ctx context.Context, f discordgo.Event, beating context.Context) error {
	switch f.Operation {
	case opHello:
		var hello struct {
			Interval int64 `json:"heartbeat_interval"`
		}
		if json.Unmarshal(f.RawData, &hello) != nil || hello.Interval <= 0 || hello.Interval > 10*60*1000 {
			return fmt.Errorf("%w greeting of the gateway", store.ErrInvalid)
		}
		l.interval = time.Duration(hello.Interval) * time.Millisecond
		every := l.interval
		l.beats.Go(func() { l.keepBeating(beating, every) })
		return l.greet()
	case opHeartbeat:
		return l.beat(false)
	case opAck:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.acked = true
	case opReconnect:
		return &Closed{}
	case opInvalid:
		return l.invalid(ctx, string(f.RawData) == "true")
	case opDispatch:
		return l.dispatch(ctx, f)
	}
	return nil
}

// invalid ends a link whose session Discord rejected; resumable says that it may be resumed
// once more.
func (l *link) invalid(ctx context.Context, resumable bool) error {
	if resumable && l.session.Resumable() {
		return &Closed{}
	}
	l.session.forget()
	if err := l.c.wait(ctx, time.Second+rand.N(time.Second)); err != nil { // as Discord requires
		return err
	}
	l.greeted = true // Discord responded, so this doesn't count as a failed connection
	return &Closed{}
}

// dispatch passes on an event. If it can't be stored, the link ends and is resumed, and
// Discord sends the event again.
func (l *link) dispatch(ctx context.Context, f discordgo.Event) error {
	l.greeted = l.ready(f) || l.greeted
	e := l.session.events.begin(f.Sequence)
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.storing.Add(1)
	var once sync.Once
	l.handle(ctx, f.Type, f.RawData, func(stored bool) {
		once.Do(func() {
			if stored {
				l.session.events.end(e)
			} else {
				_ = l.conn.Close()
			}
			<-l.slots
			l.storing.Done()
		})
	})
	return nil
}

// gateway requests the gateway URL, and waits if the bot has used up its session starts for
// today.
func (c *Client) gateway(ctx context.Context) (string, error) {
	var g discordgo.GatewayBotResponse
	if err := c.Do(ctx, Request{Method: "GET", Path: "gateway/bot", Into: &g}); err != nil {
		return "", fmt.Errorf("asking for the gateway: %w", err)
	}
	if starts := g.SessionStartLimit; starts.Total > 0 && starts.Remaining <= 0 {
		after := time.Duration(starts.ResetAfter) * time.Millisecond
		return "", &limited{after: max(after, time.Second)}
	}
	return g.URL, nil
}

// greet resumes or identifies.
func (l *link) greet() error {
	if l.session.Resumable() {
		return l.write(opResume, map[string]any{"token": l.c.token, "session_id": l.session.id, "seq": l.session.events.stored()})
	}
	return l.write(opIdentify, map[string]any{
		"token": l.c.token, "intents": l.intents, "compress": false, "large_threshold": 50,
		"properties": map[string]string{"os": "linux", "browser": "nize", "device": "nize"},
	})
}

// ready stores what a resume needs, and reports whether Discord accepted the session.
func (l *link) ready(f discordgo.Event) bool {
	switch f.Type {
	case "READY":
		var r struct {
			ID  string `json:"session_id"`
			URL string `json:"resume_gateway_url"`
		}
		if json.Unmarshal(f.RawData, &r) == nil && r.URL != "" {
			l.session.id, l.session.url = r.ID, r.URL
		}
		return true
	case "RESUMED":
		return true
	}
	return false
}

// keepBeating sends heartbeats, and closes the link if one is not acknowledged.
func (l *link) keepBeating(ctx context.Context, interval time.Duration) {
	for pause := rand.N(interval); ; pause = interval {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if l.beat(true) != nil {
			_ = l.conn.Close()
			return
		}
	}
}

var errDeaf = errors.New("no answer to heartbeats")

func (l *link) beat(counts bool) error {
	l.mu.Lock()
	if counts && !l.acked {
		l.mu.Unlock()
		return errDeaf
	}
	if counts {
		l.acked = false
	}
	l.mu.Unlock()
	if seq := l.session.events.stored(); seq > 0 {
		return l.write(opHeartbeat, seq)
	}
	return l.write(opHeartbeat, nil)
}

func (l *link) write(op int, data any) error {
	raw, err := json.Marshal(map[string]any{"op": op, "d": data})
	if err != nil {
		return fmt.Errorf("encoding a frame: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if err := l.conn.WriteMessage(websocket.TextMessage, raw); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}
