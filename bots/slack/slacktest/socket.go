package slacktest

import (
	"encoding/json"
	"net/http"
	"nize/bots/chattest"
	"slices"
	"time"
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

// link is one open websocket.
type link struct {
	*chattest.Link
	leaving bool // asked to disconnect: gets nothing new; guarded by Server.Mu
}

const (
	maxLinks = 10 // per app
	// ticketLife is how long a link's URL is valid; Slack only says briefly.
	ticketLife = 30 * time.Second
)

// disconnect asks a link to disconnect; every reason but a warning ends it.
func (l *link) disconnect(reason string) {
	l.leaving = true
	bye := goodbye{Type: "disconnect", Reason: reason, DebugInfo: debugInfo{Host: "slacktest"}}
	if reason == "warning" {
		l.Send(bye)
	} else {
		l.SendLast(bye)
	}
}

type opened struct {
	URL string `json:"url"`
}

// openConnection returns a URL that is valid for one link.
func (s *Server) openConnection(args) (any, error) {
	if s.opt.Endpoint != "" {
		return nil, fail("socket_mode_disabled")
	}
	ticket := s.idLocked("ticket")
	s.tickets[ticket] = s.opt.Now()
	return opened{URL: "ws" + s.URL()[len("http"):] + "/link?ticket=" + ticket + "&app_id=" + App}, nil
}

func (s *Server) serveLink(w http.ResponseWriter, r *http.Request) {
	s.Mu.Lock()
	ticket := r.URL.Query().Get("ticket")
	given, known := s.tickets[ticket]
	good := known && s.opt.Now().Sub(given) < ticketLife && !s.ClosedLocked()
	delete(s.tickets, ticket)
	s.Mu.Unlock()
	if !good {
		http.Error(w, "this URL was used or never given", http.StatusNotFound)
		return
	}
	s.Accept(w, r, s.opt.PingEvery, func(c *chattest.Link) chattest.Served {
		l := &link{Link: c}
		s.joinLocked(l)
		return chattest.Served{Frame: s.ackFrameLocked, Part: func(bool) { s.partLocked(l) }}
	})
}

// joinLocked adds l to the links and sends it what waited for one; s.Mu must be held.
func (s *Server) joinLocked(l *link) {
	switch {
	case s.socketOff:
		l.disconnect("link_disabled")
		return
	case len(s.links) >= maxLinks:
		l.disconnect("too_many_websockets")
		return
	}
	s.links = append(s.links, l)
	s.Counts.Opened++
	l.Send(hello{Type: "hello", NumConnections: len(s.links), ConnectionInfo: connectionInfo{AppID: s.linkApp()}, DebugInfo: debugInfo{Host: "slacktest", BuildNumber: 1, ApproximateSecond: 18060}})
	waiting := s.waiting
	s.waiting = nil
	for _, d := range waiting {
		s.sendLocked(d)
	}
}

// ackFrameLocked handles an acknowledgement frame; s.Mu must be held.
func (s *Server) ackFrameLocked(body []byte) {
	var in envelope
	if json.Unmarshal(body, &in) != nil || in.ID == "" {
		s.stats.Strange++
	} else {
		s.ackLocked(in.ID, in.Payload, len(in.Payload))
	}
}

// partLocked removes a link. Its unacknowledged deliveries go to another; s.Mu must be
// held.
func (s *Server) partLocked(l *link) {
	s.links = slices.DeleteFunc(s.links, func(other *link) bool { return other == l })
	var lost []*delivery
	for env, d := range s.pending {
		if d.link == l {
			delete(s.pending, env)
			s.StopLocked(d.timer)
			lost = append(lost, d)
		}
	}
	slices.SortFunc(lost, func(a, b *delivery) int { return a.sent.Compare(b.sent) })
	for _, d := range lost {
		s.againLocked(d, s.lostReason())
	}
}

// Disconnect sends a disconnect frame on every link: warning (the link stays for some
// seconds, here until the client or [Server.Drop] ends it), refresh_requested or
// link_disabled (the link ends). None of them gets anything new.
func (s *Server) Disconnect(reason string) {
	s.Change(func() {
		for _, l := range s.links {
			l.disconnect(reason)
		}
	})
}

// linkApp returns the app of the app-level token.
func (s *Server) linkApp() string {
	if s.opt.ForeignApp {
		return "A0FOREIGN"
	}
	return App
}

// SetSocketMode enables or disables Socket Mode in the app's settings. Links' URLs are
// handed out even if it is off; a link then reports that and ends.
func (s *Server) SetSocketMode(on bool) {
	s.Mu.Lock()
	s.socketOff = !on
	s.Mu.Unlock()
	if !on {
		s.Disconnect("link_disabled")
	}
}
