package discordtest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"nize/bots/chattest"
)

// Intents of a session.
const (
	Guilds         = 1 << 0
	GuildMembers   = 1 << 1 // privileged
	GuildPresences = 1 << 8 // privileged
	GuildMessages  = 1 << 9
	DirectMessages = 1 << 12
	MessageContent = 1 << 15 // privileged
	allIntents     = 1<<26 - 1
)

const (
	opDispatch       = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opPresence       = 3
	opVoice          = 4
	opResume         = 6
	opReconnect      = 7
	opMembers        = 8
	opInvalidSession = 9
	opHello          = 10
	opAck            = 11

	maxFrame  = 4096 // maximum size of a client's frame, in bytes
	maxSends  = 120  // a client's frames per minute
	keptUntil = 5000 // events of a session that a resume may request
)

// gatewayFrame is a frame of the gateway, in both directions.
type gatewayFrame struct {
	Op   int     `json:"op"`
	Data any     `json:"d"`
	Seq  *int64  `json:"s"`
	Type *string `json:"t"`
}

// session is a session, which outlives its connections.
type session struct {
	id      string
	intents int
	seq     int64
	events  [][]byte // those with the last sequence numbers
	link    *gatewayLink
	expiry  *time.Timer // running while it has no connection
}

// gatewayLink is one connection; Server.Mu guards its fields.
type gatewayLink struct {
	*chattest.Link
	session *session
	beat    *time.Timer // ends the link if no heartbeat comes
	sends   []time.Time
	over    bool
	frozen  bool // doesn't acknowledge heartbeats
}

// Event is an event that was sent to a session.
type Event struct {
	Name    string
	Payload json.RawMessage
}

// Events returns all events that were sent, in order, without repetitions.
func (s *Server) Events() []Event {
	return chattest.Get(&s.Base, func() []Event { return slices.Clone(s.world.events) })
}

// Repeat sends an event again, as Discord does occasionally.
func (s *Server) Repeat(e Event) { s.SendEvent(e.Name, e.Payload) }

// SendEvent sends a raw event, with a sequence number, to every session.
func (s *Server) SendEvent(name string, payload json.RawMessage) {
	s.Change(func() {
		for _, se := range s.sessions {
			s.pushLocked(se, name, payload)
		}
	})
}

// eventLocked sends an event to each session with any of these intents, 0 meaning none
// required; build returns it with or without other users' content. s.Mu must be held.
func (s *Server) eventLocked(intent int, name string, build func(content bool) any) {
	s.world.events = append(s.world.events, Event{Name: name, Payload: chattest.JSON(build(true))})
	for _, se := range s.sessions {
		if intent == 0 || se.intents&intent != 0 {
			s.pushLocked(se, name, build(se.intents&MessageContent != 0))
		}
	}
}

func same(v any) func(bool) any { return func(bool) any { return v } }

// messageEventLocked sends an event about a channel that the bot sees.
func (s *Server) messageEventLocked(c *Channel, name string, build func(content bool) any) {
	if !s.world.sees(c, Bot) {
		return
	}
	intent := GuildMessages
	if c.Type == DirectChannel {
		intent = DirectMessages
	}
	s.eventLocked(intent, name, build)
}

func (s *Server) pushLocked(se *session, name string, payload any) {
	se.seq++
	raw := chattest.JSON(gatewayFrame{Op: opDispatch, Data: payload, Seq: &se.seq, Type: &name})
	se.events = append(se.events, raw)
	if len(se.events) > keptUntil {
		se.events = se.events[1:]
	}
	if se.link != nil {
		s.Counts.Sent++
		se.link.Send([]byte(raw))
	}
}

func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.Accept(w, r, pingEvery, func(c *chattest.Link) chattest.Served {
		l := &gatewayLink{Link: c}
		s.links[l] = true
		s.Counts.Opened++
		if v, encoding := q.Get("v"), q.Get("encoding"); v != "9" && v != "10" || encoding != "" && encoding != "json" {
			s.endLinkLocked(l, 4012, "Invalid API version(s).")
		} else {
			s.beatLocked(l)
			l.Send(gatewayFrame{Op: opHello, Data: hello{Interval: s.opt.Heartbeat.Milliseconds()}})
		}
		return chattest.Served{Frame: func(body []byte) { s.frameLocked(l, body) }, Part: func(goodbye bool) { s.partLocked(l, goodbye) }}
	})
}

type hello struct {
	Interval int64 `json:"heartbeat_interval"`
}

// beatLocked restarts the time for a link's next heartbeat.
func (s *Server) beatLocked(l *gatewayLink) {
	s.StopLocked(l.beat)
	l.beat = s.AfterLocked(s.opt.Heartbeat+s.opt.Heartbeat/2, func() {
		s.stats.Silent++
		s.endLinkLocked(l, 4009, "Session timed out.")
	})
}

// partLocked removes a link; if it was closed properly, its session ends too.
func (s *Server) partLocked(l *gatewayLink, goodbye bool) {
	if l.over {
		return
	}
	l.over = true
	delete(s.links, l)
	s.StopLocked(l.beat)
	if se := l.session; se != nil {
		l.session = nil
		se.link = nil
		if goodbye {
			delete(s.sessions, se.id)
		} else {
			se.expiry = s.AfterLocked(resumable, func() { delete(s.sessions, se.id) })
		}
	}
}

// sessionless are the close codes after which a session can't be resumed.
var sessionless = []int{4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014}

// endLinkLocked closes a link with a code.
func (s *Server) endLinkLocked(l *gatewayLink, code int, text string) {
	if l.over {
		return
	}
	l.CloseWith(code, text)
	s.partLocked(l, slices.Contains(sessionless, code))
}

func (s *Server) frameLocked(l *gatewayLink, body []byte) {
	if l.over {
		return
	}
	now := s.opt.Now()
	l.sends = append(slices.DeleteFunc(l.sends, func(t time.Time) bool { return now.Sub(t) > time.Minute }), now)
	var f struct {
		Op   int             `json:"op"`
		Data json.RawMessage `json:"d"`
	}
	switch {
	case len(l.sends) > maxSends:
		s.endLinkLocked(l, 4008, "Rate limited.")
		return
	case len(body) > maxFrame || json.Unmarshal(body, &f) != nil:
		s.endLinkLocked(l, 4002, "Error while decoding payload.")
		return
	}
	switch f.Op {
	case opHeartbeat:
		if l.frozen {
			return
		}
		s.beatLocked(l)
		l.Send(gatewayFrame{Op: opAck})
	case opIdentify:
		s.identifyLocked(l, f.Data)
	case opResume:
		s.resumeLocked(l, f.Data)
	case opPresence, opVoice, opMembers:
		if l.session == nil {
			s.endLinkLocked(l, 4003, "Not authenticated.")
		}
	default:
		s.endLinkLocked(l, 4001, "Unknown opcode.")
	}
}

// handshake is a client's payload to identify or to resume.
type handshake struct {
	Token      string    `json:"token"`
	Intents    *int      `json:"intents"`
	Shard      []int     `json:"shard"`
	Properties *struct{} `json:"properties"`
	SessionID  string    `json:"session_id"`
	Seq        *int64    `json:"seq"`
}

// refusedLocked ends a link for the first reason that applies.
func (s *Server) refusedLocked(l *gatewayLink, in handshake, undecoded bool) bool {
	intents := 0
	if in.Intents != nil {
		intents = *in.Intents
	}
	for _, no := range []struct {
		holds bool
		code  int
		text  string
	}{
		{l.session != nil, 4005, "Already authenticated."},
		{undecoded, 4002, "Error while decoding payload."},
		{s.identifies < 0 || in.Token != s.opt.Token, 4004, "Authentication failed."},
		{in.Shard != nil && (len(in.Shard) != 2 || in.Shard[0] >= in.Shard[1]), 4010, "Invalid shard."},
		{intents < 0 || intents > allIntents, 4013, "Invalid intent(s)."},
		{s.opt.NoContent && intents&MessageContent != 0 || s.opt.NoMembers && intents&GuildMembers != 0 || intents&GuildPresences != 0, 4014, "Disallowed intent(s)."},
	} {
		if no.holds {
			s.endLinkLocked(l, no.code, no.text)
			return true
		}
	}
	return false
}

func (s *Server) identifyLocked(l *gatewayLink, data json.RawMessage) {
	none := -1
	in := handshake{Intents: &none}
	if err := json.Unmarshal(data, &in); s.refusedLocked(l, in, err != nil || in.Properties == nil) {
		return
	}
	s.stats.Identified++
	if s.identifies--; s.identifies < 0 { // Discord resets the token of a bot that identifies too often
		s.endLinkLocked(l, 4004, "Authentication failed.")
		return
	}
	se := &session{id: "session-" + s.idLocked(), intents: *in.Intents, link: l}
	s.sessions[se.id] = se
	l.session = se
	mine := slices.DeleteFunc(slices.Clone(s.world.guilds), func(g *guild) bool { return g.member(Bot) == nil })
	out := ready{V: 9, User: s.world.user(Bot), SessionID: se.id, ResumeURL: s.gatewayURL(), Application: readyApp{ID: App, Flags: s.appFlags()}, Shard: []int{0, 1}}
	for _, g := range mine {
		out.Guilds = append(out.Guilds, away{ID: g.ID, Unavailable: true})
	}
	s.pushLocked(se, "READY", out)
	if se.intents&Guilds != 0 {
		for _, g := range mine {
			s.pushLocked(se, "GUILD_CREATE", s.guildCreateLocked(g))
		}
	}
}

type ready struct {
	V           int      `json:"v"`
	User        *User    `json:"user"`
	Guilds      []away   `json:"guilds"`
	SessionID   string   `json:"session_id"`
	ResumeURL   string   `json:"resume_gateway_url"`
	Shard       []int    `json:"shard"`
	Application readyApp `json:"application"`
}

type readyApp struct {
	ID    string `json:"id"`
	Flags int    `json:"flags"`
}

func (s *Server) guildCreateLocked(g *guild) wireGuild {
	out := wireGuild{guild: g, Members: []*wireMember{s.world.wireMember(g.member(Bot))}}
	for _, c := range s.world.channels {
		switch {
		case c.Guild != g.ID || !s.world.sees(c, Bot):
		case !c.thread():
			out.Channels = append(out.Channels, s.wireChannelLocked(c))
		case !c.Archived:
			out.Threads = append(out.Threads, s.wireChannelLocked(c))
		}
	}
	return out
}

func (s *Server) resumeLocked(l *gatewayLink, data json.RawMessage) {
	var in handshake
	if err := json.Unmarshal(data, &in); s.refusedLocked(l, in, err != nil || in.Seq == nil) {
		return
	}
	se := s.sessions[in.SessionID]
	switch {
	case se == nil || se.seq-*in.Seq > int64(len(se.events)):
		l.Send(gatewayFrame{Op: opInvalidSession, Data: false})
		s.Counts.Refused = append(s.Counts.Refused, chattest.Refusal{Method: "resume", Error: "invalid session"})
		return
	case *in.Seq > se.seq:
		s.endLinkLocked(l, 4007, "Invalid seq.")
		delete(s.sessions, se.id)
		return
	}
	if old := se.link; old != nil {
		old.session = nil
		s.endLinkLocked(old, 4000, "Taken over.")
	}
	s.stats.Resumed++
	s.StopLocked(se.expiry)
	se.link, l.session = l, se
	for _, raw := range se.events[int64(len(se.events))-(se.seq-*in.Seq):] {
		s.Counts.Sent++
		l.Send(raw)
	}
	s.pushLocked(se, "RESUMED", struct{}{})
}

// CloseGateway ends all connections with a code.
func (s *Server) CloseGateway(code int) {
	s.eachLink(func(l *gatewayLink) { s.endLinkLocked(l, code, http.StatusText(code)) })
}

func (s *Server) eachLink(f func(*gatewayLink)) {
	s.Change(func() {
		for l := range s.links {
			f(l)
		}
	})
}

// Reconnect asks every connection to reconnect (opcode 7).
func (s *Server) Reconnect() { s.SendRaw(chattest.JSON(gatewayFrame{Op: opReconnect})) }

// AskHeartbeat asks every connection for an immediate heartbeat (opcode 1).
func (s *Server) AskHeartbeat() { s.SendRaw(chattest.JSON(gatewayFrame{Op: opHeartbeat})) }

// InvalidSession reports that sessions are invalid, and whether they may be resumed. One
// that may not is dropped.
func (s *Server) InvalidSession(resumable bool) {
	s.eachLink(func(l *gatewayLink) {
		if l.session != nil && !resumable {
			delete(s.sessions, l.session.id)
			l.session = nil
		}
		l.Send(gatewayFrame{Op: opInvalidSession, Data: resumable})
	})
}

// ExpireSessions drops every session, so that no connection can resume; open ones continue.
func (s *Server) ExpireSessions() {
	s.Change(func() {
		for id, se := range maps.Clone(s.sessions) {
			delete(s.sessions, id)
			if se.link == nil {
				s.StopLocked(se.expiry)
				continue
			}
			se.id = "session-" + s.idLocked() // the id that the bot knows is no longer valid
			s.sessions[se.id] = se
		}
	})
}

// Freeze makes connections unresponsive: they acknowledge no heartbeats, and don't end
// without them.
func (s *Server) Freeze() {
	s.eachLink(func(l *gatewayLink) {
		l.frozen = true
		s.StopLocked(l.beat)
	})
}

// ResetToken changes the bot's token, as the portal does: every session ends, and the old
// token is refused.
func (s *Server) ResetToken(token string) {
	s.Change(func() {
		s.opt.Token = token
		for l := range s.links {
			s.endLinkLocked(l, 4004, "Authentication failed.")
		}
		clear(s.sessions)
	})
}

// gatewayURL returns the gateway's URL.
func (s *Server) gatewayURL() string { return "ws" + s.URL()[len("http"):] + "/gateway" }

// appFlags returns which privileged intents are enabled, as for an app with few users.
func (s *Server) appFlags() int {
	flags := 0
	if !s.opt.NoMembers {
		flags |= 1 << 15 // GATEWAY_GUILD_MEMBERS_LIMITED
	}
	if !s.opt.NoContent {
		flags |= 1 << 19 // GATEWAY_MESSAGE_CONTENT_LIMITED
	}
	return flags
}
