package slacktest

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// envelope is a frame of Socket Mode, in both directions.
type envelope struct {
	ID              string          `json:"envelope_id,omitempty"`
	Type            string          `json:"type,omitempty"`
	AcceptsResponse bool            `json:"accepts_response_payload"`
	Payload         json.RawMessage `json:"payload,omitempty"`
	RetryAttempt    int             `json:"retry_attempt,omitempty"`
	RetryReason     string          `json:"retry_reason,omitempty"`
}

type hello struct {
	Type           string         `json:"type"`
	NumConnections int            `json:"num_connections"`
	ConnectionInfo connectionInfo `json:"connection_info"`
	DebugInfo      debugInfo      `json:"debug_info"`
}

type connectionInfo struct {
	AppID string `json:"app_id"`
}

type debugInfo struct {
	Host              string `json:"host"`
	BuildNumber       int    `json:"build_number"`
	ApproximateSecond int    `json:"approximate_connection_time,omitempty"`
}

// goodbye is a disconnect frame.
type goodbye struct {
	Type      string    `json:"type"`
	Reason    string    `json:"reason"`
	DebugInfo debugInfo `json:"debug_info"`
}

// link is one open websocket. A goroutine of its own writes, so that whoever
// holds the Server's mutex never waits for a client.
type link struct {
	ws      *websocket.Conn
	leaving bool // told to go: gets nothing new; guarded by Server.mu

	mu     sync.Mutex // may be taken while Server.mu is held, never the other way round
	queue  []any      // json to write; a []byte is written as it is
	wake   chan struct{}
	ending chan struct{}
	once   sync.Once
}

const (
	maxLinks = 10 // per app
	// ticketLife is how long the address of a link is good; Slack says briefly.
	ticketLife = 30 * time.Second
	maxFrame   = 1 << 20
	writeTime  = 10 * time.Second
)

func (l *link) send(v any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, v)
	select {
	case l.wake <- struct{}{}: // one waiting token says all
	default:
	}
}

func (l *link) take() []any {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queue
	l.queue = nil
	return queue
}

// close ends the link without a word, as a network does.
func (l *link) close() {
	l.once.Do(func() {
		close(l.ending)
		_ = l.ws.NetConn().Close() // abruptly, so there is nothing to say about it
	})
}

// write sends what is queued, and pings: clients reconnect without them.
func (l *link) write(every time.Duration) {
	defer l.close()
	ping := time.NewTicker(every)
	defer ping.Stop()
	for {
		select {
		case <-l.ending:
			return
		case <-ping.C:
			if l.ws.WriteControl(websocket.PingMessage, []byte("Ping from slacktest"), time.Now().Add(writeTime)) != nil {
				return
			}
		case <-l.wake:
			for _, v := range l.take() {
				_ = l.ws.SetWriteDeadline(time.Now().Add(writeTime)) // the write fails if that failed
				var err error
				if raw, ok := v.([]byte); ok {
					err = l.ws.WriteMessage(websocket.TextMessage, raw)
				} else {
					err = l.ws.WriteJSON(v)
				}
				if err != nil {
					return
				}
				if g, ok := v.(goodbye); ok && g.Reason != "warning" {
					return
				}
			}
		}
	}
}

type opened struct {
	URL string `json:"url"`
}

// openConnection gives a URL that is good for one link.
func (s *Server) openConnection(args) (any, error) {
	if s.opt.Endpoint != "" {
		return nil, fail("socket_mode_disabled")
	}
	ticket := s.idLocked("ticket")
	s.tickets[ticket] = s.opt.Now()
	return opened{URL: "ws" + s.url[len("http"):] + "/link?ticket=" + ticket + "&app_id=" + App}, nil
}

func (s *Server) serveLink(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	ticket := r.URL.Query().Get("ticket")
	given, known := s.tickets[ticket]
	good := known && s.opt.Now().Sub(given) < ticketLife && !s.closed
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if !good {
		http.Error(w, "this URL was used or never given", http.StatusNotFound)
		return
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }} // the ticket is the key
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	ws.SetReadLimit(maxFrame)
	l := &link{ws: ws, wake: make(chan struct{}, 1), ending: make(chan struct{})}
	if !s.join(l) {
		l.close()
		return
	}
	confirm := ws.CloseHandler()
	ws.SetCloseHandler(func(code int, text string) error {
		s.part(l) // before the app reads that its leaving is known
		return confirm(code, text)
	})
	s.running.Go(func() { l.write(s.opt.PingEvery) })
	s.readLink(l)
}

// join makes l one of the links, with what waited for one.
func (s *Server) join(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	refused := ""
	switch {
	case s.socketOff:
		refused = "link_disabled"
	case len(s.links) >= maxLinks:
		refused = "too_many_websockets"
	}
	if refused != "" {
		l.leaving = true
		l.send(goodbye{Type: "disconnect", Reason: refused, DebugInfo: debugInfo{Host: "slacktest"}})
		return true
	}
	s.links = append(s.links, l)
	s.stats.Opened++
	l.send(hello{Type: "hello", NumConnections: len(s.links), ConnectionInfo: connectionInfo{AppID: s.linkApp()}, DebugInfo: debugInfo{Host: "slacktest", BuildNumber: 1, ApproximateSecond: 18060}})
	waiting := s.waiting
	s.waiting = nil
	for _, d := range waiting {
		s.sendLocked(d)
	}
	s.touchLocked()
	return true
}

// readLink takes acknowledgements until the link ends.
func (s *Server) readLink(l *link) {
	defer s.running.Done()
	defer s.leave(l)
	for {
		_, body, err := l.ws.ReadMessage()
		if err != nil {
			return
		}
		var in envelope
		s.mu.Lock()
		if json.Unmarshal(body, &in) != nil || in.ID == "" {
			s.stats.Strange++
		} else {
			s.ackLocked(in.ID, in.Payload, len(in.Payload))
		}
		s.touchLocked()
		s.mu.Unlock()
	}
}

func (s *Server) leave(l *link) {
	l.close()
	s.part(l)
}

// part removes a link. What it had not acknowledged goes to another.
func (s *Server) part(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = slices.DeleteFunc(s.links, func(other *link) bool { return other == l })
	var lost []*delivery
	for env, d := range s.pending {
		if d.link == l {
			delete(s.pending, env)
			s.stopLocked(d.timer)
			lost = append(lost, d)
		}
	}
	slices.SortFunc(lost, func(a, b *delivery) int { return a.sent.Compare(b.sent) })
	for _, d := range lost {
		s.againLocked(d, s.lostReason())
	}
	s.touchLocked()
}

// Drop cuts all links without a word.
func (s *Server) Drop() {
	s.mu.Lock()
	links := slices.Clone(s.links)
	s.mu.Unlock()
	for _, l := range links {
		l.close()
	}
}

// Disconnect sends a disconnect frame on every link: warning (the link stays
// for some seconds, which here is until the client or [Server.Drop] ends it),
// refresh_requested or link_disabled (the link ends). None gets anything new.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		l.leaving = true
		l.send(goodbye{Type: "disconnect", Reason: reason, DebugInfo: debugInfo{Host: "slacktest"}})
	}
}

// linkApp is the app that the app-level token is of.
func (s *Server) linkApp() string {
	if s.opt.ForeignApp {
		return "A0FOREIGN"
	}
	return App
}

// SetSocketMode switches Socket Mode in the app's settings. Addresses of links
// are given all the same; a link says that it is off, and ends.
func (s *Server) SetSocketMode(on bool) {
	s.mu.Lock()
	s.socketOff = !on
	s.mu.Unlock()
	if !on {
		s.Disconnect("link_disabled")
	}
}

// SendRaw writes a frame as it is on every link: what no decoder expects.
func (s *Server) SendRaw(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		l.send(slices.Clone(frame))
	}
}
