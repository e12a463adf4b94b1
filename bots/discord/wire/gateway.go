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

	"github.com/gorilla/websocket"

	"nize/store"
	"nize/store/printable"
)

// The gateway. An event counts as received once it is stored, and not before: a
// link that breaks is resumed behind the last event up to which all are, and
// Discord sends the others again.

// Intents of an identify. The last two are privileged: the app's page in
// Discord's portal switches them on.
const (
	IntentGuilds   = 1 << 0
	IntentMembers  = 1 << 1
	IntentMessages = 1 << 9
	IntentDirect   = 1 << 12
	IntentContent  = 1 << 15
)

const (
	writeTime = 10 * time.Second
	maxFrame  = 16 << 20 // a guild with all its channels is one frame
	// maxUnstored is how many events may wait for the store at the same time; the
	// next is not read before one of them is stored.
	maxUnstored = 512
	maxDials    = 3 // in a row that may fail before a session is given up
)

// Session is what a link can be resumed with. The zero one begins anew.
type Session struct {
	id, url string
	failed  int // dials in a row
	events  received
}

// Resumable says whether the next link resumes.
func (s *Session) Resumable() bool { return s.id != "" }

// forget makes it the zero one. What goes on on a link still may note its events.
func (s *Session) forget() {
	s.id, s.url, s.failed = "", "", 0
	s.events.forget()
}

// received are the events of a session that are not stored yet, in order.
type received struct {
	mu     sync.Mutex // guards what follows
	seq    int64      // up to here all are stored
	queued []*event
}

type event struct {
	seq  int64
	done bool
}

// begin notes an event; end says that it is stored.
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

// stored is the last event up to which all are stored.
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

// dropUnstored forgets the events that a link that ended left: they come again.
func (r *received) dropUnstored() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queued = nil
}

// Closed is how Discord ended a link.
type Closed struct {
	Code int // of the websocket; 0 where it asked for another link
	Text string
}

func (c *Closed) Error() string {
	if c.Code == 0 {
		return "Discord asked for another link"
	}
	return fmt.Sprintf("Discord closed the link: %d %s", c.Code, printable.Escape(store.Clip(c.Text, 100)))
}

// ClosedAs is the code with which Discord ended a link, 0 for none.
func ClosedAs(err error) int {
	var c *Closed
	if errors.As(err, &c) {
		return c.Code
	}
	return 0
}

// Close codes.
const (
	CloseToken   = 4004 // the token is wrong
	CloseIntents = 4014 // an intent is not switched on for the app
)

// Fatal says whether only the operator can mend why a link ended.
func Fatal(code int) bool { return code == CloseToken || code >= 4010 && code <= 4014 }

// stale are the codes after which a session can't be resumed.
var stale = map[int]bool{4003: true, 4004: true, 4007: true, 4009: true, 4010: true, 4011: true, 4012: true, 4013: true, 4014: true}

// Dispatch is one event. done is called once: with true when it may count as
// received.
type Dispatch func(ctx context.Context, kind string, data json.RawMessage, done func(stored bool))

// frame is one of the gateway.
type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d,omitempty"`
	Seq  int64           `json:"s,omitempty"`
	Type string          `json:"t,omitempty"`
}

// Ops of frames.
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

// link is one connection to the gateway. Its reader alone uses what no mutex guards.
type link struct {
	c        *Client
	conn     *websocket.Conn
	session  *Session
	intents  int
	handle   Dispatch
	greeted  bool           // Discord let the bot in
	interval time.Duration  // between heartbeats
	slots    chan struct{}  // one for each event that is not stored
	storing  sync.WaitGroup // one for each of them
	beats    sync.WaitGroup // the goroutine of the heartbeats

	mu    sync.Mutex // one writer at a time; guards acked
	acked bool       // since the last heartbeat
}

// ServeLink opens a link and serves it until it ends, which is always an error;
// greeted says that Discord let the bot in. Every done was called, or ctx has
// ended, when it returns.
func (c *Client) ServeLink(ctx context.Context, s *Session, intents int, handle Dispatch) (greeted bool, err error) {
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

// dial opens the connection of a link: to where the session is resumed, or to where
// Discord says.
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
			s.forget() // that address may be gone
		}
		return nil, fmt.Errorf("opening the link: %w", err)
	}
	s.failed = 0
	conn.SetReadLimit(maxFrame)
	return conn, nil
}

// read waits for a frame. What is none of Discord's is skipped.
func (l *link) read() (f frame, err error) {
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
		if f = (frame{}); json.Unmarshal(raw, &f) == nil {
			return f, nil
		}
	}
}

// take does what a frame asks for; an error ends the link. Heartbeats end with
// beating.
func (l *link) take(ctx context.Context, f frame, beating context.Context) error {
	switch f.Op {
	case opHello:
		var hello struct {
			Interval int64 `json:"heartbeat_interval"`
		}
		if json.Unmarshal(f.Data, &hello) != nil || hello.Interval <= 0 || hello.Interval > 10*60*1000 {
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
		return l.invalid(ctx, string(f.Data) == "true")
	case opDispatch:
		return l.dispatch(ctx, f)
	}
	return nil
}

// invalid ends a link whose session Discord does not take; resumable says that it
// may be tried once more.
func (l *link) invalid(ctx context.Context, resumable bool) error {
	if resumable && l.session.Resumable() {
		return &Closed{}
	}
	l.session.forget()
	if err := l.c.wait(ctx, time.Second+rand.N(time.Second)); err != nil { // as Discord asks
		return err
	}
	l.greeted = true // it answered: that is no failure to come through
	return &Closed{}
}

// dispatch hands an event on. One that could not be stored ends the link, which is
// resumed, and Discord sends it again.
func (l *link) dispatch(ctx context.Context, f frame) error {
	l.greeted = l.ready(f) || l.greeted
	e := l.session.events.begin(f.Seq)
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.storing.Add(1)
	var once sync.Once
	l.handle(ctx, f.Type, f.Data, func(stored bool) {
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

// gateway asks for the gateway's address, and waits where the bot was let in as
// often as it may be today.
func (c *Client) gateway(ctx context.Context) (string, error) {
	var g struct {
		URL    string `json:"url"`
		Starts struct {
			Remaining *int  `json:"remaining"`
			After     int64 `json:"reset_after"`
		} `json:"session_start_limit"`
	}
	if err := c.Do(ctx, Request{Method: "GET", Path: "gateway/bot", Into: &g}); err != nil {
		return "", fmt.Errorf("asking for the gateway: %w", err)
	}
	if left := g.Starts.Remaining; left != nil && *left <= 0 {
		after := time.Duration(g.Starts.After) * time.Millisecond
		return "", &limited{after: max(after, time.Second)}
	}
	return g.URL, nil
}

// greet resumes, or identifies.
func (l *link) greet() error {
	if l.session.Resumable() {
		return l.write(opResume, map[string]any{"token": l.c.token, "session_id": l.session.id, "seq": l.session.events.stored()})
	}
	return l.write(opIdentify, map[string]any{
		"token": l.c.token, "intents": l.intents, "compress": false, "large_threshold": 50,
		"properties": map[string]string{"os": "linux", "browser": "nize", "device": "nize"},
	})
}

// ready keeps what a resume needs, and says whether the bot was let in.
func (l *link) ready(f frame) bool {
	switch f.Type {
	case "READY":
		var r struct {
			ID  string `json:"session_id"`
			URL string `json:"resume_gateway_url"`
		}
		if json.Unmarshal(f.Data, &r) == nil && r.URL != "" {
			l.session.id, l.session.url = r.ID, r.URL
		}
		return true
	case "RESUMED":
		return true
	}
	return false
}

// keepBeating sends heartbeats. A link on which one is not answered is closed.
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
