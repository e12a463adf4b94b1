package chattest

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Link is one open websocket. [Link.Write] runs in a separate goroutine, so that the holder
// of a platform's mutex never waits for a client.
type Link struct {
	*websocket.Conn
	mu     sync.Mutex // may be locked while a Base's Mu is held, never the other way round
	queue  []frame
	wake   chan struct{}
	ending chan struct{}
	once   sync.Once
}

// frame is a queued frame.
type frame struct {
	value any  // encoded as JSON; a []byte is written unchanged
	last  bool // the link ends after it
	code  int  // a close frame with text as its reason
	text  string
}

const writeTime = 10 * time.Second

// Served has a platform's handlers for a link, called with Mu held.
type Served struct {
	Frame func([]byte)
	Part  func(goodbye bool) // called once; goodbye reports that the client closed it
}

// Accept upgrades a request to a websocket, calls join, and reads until the link ends. It
// sends pings at the given interval.
func (b *Base) Accept(w http.ResponseWriter, r *http.Request, every time.Duration, join func(*Link) Served) {
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }} // a token authorizes it
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has responded
	}
	ws.SetReadLimit(maxFrame)
	l := &Link{Conn: ws, wake: make(chan struct{}, 1), ending: make(chan struct{})}
	defer l.Cut()
	b.Mu.Lock()
	if b.closed {
		b.Mu.Unlock()
		return
	}
	b.running.Add(1)
	defer b.running.Done()
	b.links[l] = true
	served := join(l)
	b.TouchLocked()
	b.Mu.Unlock()
	part := sync.OnceFunc(func() {
		b.Mu.Lock()
		defer b.Mu.Unlock()
		delete(b.links, l)
		served.Part(websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway))
		b.TouchLocked()
	})
	defer part()
	confirm := ws.CloseHandler()
	ws.SetCloseHandler(func(code int, text string) error {
		err = &websocket.CloseError{Code: code}
		part() // before the client can see that the link has ended
		return confirm(code, text)
	})
	b.Go(func() { l.Write(every) })
	for {
		var body []byte
		if _, body, err = l.ReadMessage(); err != nil {
			return
		}
		b.Mu.Lock()
		served.Frame(body)
		b.TouchLocked()
		b.Mu.Unlock()
	}
}

const maxFrame = 1 << 20

// allLinks returns the open links.
func (b *Base) allLinks() []*Link {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return slices.Collect(maps.Keys(b.links))
}

// Drop cuts all links without a close frame.
func (b *Base) Drop() {
	for _, l := range b.allLinks() {
		l.Cut()
	}
}

// SendRaw writes a raw frame on every link, for input that no decoder expects.
func (b *Base) SendRaw(raw []byte) {
	for _, l := range b.allLinks() {
		l.Send(slices.Clone(raw))
	}
}

// Send queues a value as JSON, or bytes unchanged.
func (l *Link) Send(v any) { l.push(frame{value: v}) }

// SendLast sends a value and then ends the link.
func (l *Link) SendLast(v any) { l.push(frame{value: v, last: true}) }

// CloseWith ends the link with a close code.
func (l *Link) CloseWith(code int, text string) { l.push(frame{code: code, text: text, last: true}) }

func (l *Link) push(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, f)
	select {
	case l.wake <- struct{}{}: // one pending wake-up is enough
	default:
	}
}

func (l *Link) takeAll() []frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queue
	l.queue = nil
	return queue
}

// Cut ends the link without a close frame, like a network failure.
func (l *Link) Cut() {
	l.once.Do(func() {
		close(l.ending)
		_ = l.NetConn().Close() // an error doesn't matter for an abrupt end
	})
}

// Write sends queued frames until the link ends, and pings at the given interval.
func (l *Link) Write(every time.Duration) {
	defer l.Cut()
	ping := time.NewTicker(every)
	defer ping.Stop()
	for {
		select {
		case <-l.ending:
			return
		case <-ping.C:
			if l.WriteControl(websocket.PingMessage, []byte("Ping"), time.Now().Add(writeTime)) != nil {
				return
			}
		case <-l.wake:
			for _, f := range l.takeAll() {
				if l.write(f) != nil || f.last {
					return
				}
			}
		}
	}
}

func (l *Link) write(f frame) error {
	_ = l.SetWriteDeadline(time.Now().Add(writeTime)) // if this fails, the write fails too
	if f.code != 0 {
		return l.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(f.code, f.text), time.Now().Add(writeTime))
	}
	if raw, ok := f.value.([]byte); ok {
		return l.WriteMessage(websocket.TextMessage, raw)
	}
	return l.WriteJSON(f.value)
}
