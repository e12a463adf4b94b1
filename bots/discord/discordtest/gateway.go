package discordtest

import (
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"nize/bots/chattest"
)

// Intents of a session.
const (
	Guilds           = 1 << 0
	GuildMembers     = 1 << 1 // privileged
	GuildPresences   = 1 << 8 // privileged
	GuildMessages    = 1 << 9
	DirectMessages   = 1 << 12
	MessageContent   = 1 << 15 // privileged
	allIntents       = 1<<26 - 1
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

	maxFrame  = 4096 // bytes that a client may send at once
	maxSends  = 120  // frames of a client in a minute
	keptUntil = 5000 // events of a session that a resume may ask for
)

// gatewayFrame is a frame of the gateway, in both directions.
type gatewayFrame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  *int64          `json:"s"`
	Type *string         `json:"t"`
}

// session outlives its connections.
type session struct {
	id      string
	intents int
	seq     int64
	events  [][]byte // of the last sequence numbers
	link    *gatewayLink
	expiry  *time.Timer // while no connection has it
}

// gatewayLink is one connection; what stands here is guarded by Server.Mu.
type gatewayLink struct {
	*chattest.Link
	session *session
	beat    *time.Timer // ends the link where no heartbeat comes
	sends   []time.Time
	over    bool
	frozen  bool // acknowledges no heartbeat
}

// linkSet are the open connections.
type linkSet map[*gatewayLink]bool

func (s linkSet) all() iter.Seq[*gatewayLink] { return maps.Keys(s) }

// Event is one that was sent to some session.
type Event struct {
	Name    string
	Payload json.RawMessage
}

// Events are all that were sent, in order, each once.
func (s *Server) Events() []Event {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return slices.Clone(s.world.events)
}

// Repeat sends an event once more, as Discord does now and then.
func (s *Server) Repeat(e Event) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, se := range s.sessions {
		s.pushLocked(se, e.Name, e.Payload)
	}
	s.TouchLocked()
}

// eventLocked sends an event to each session with any of these intents, 0 being
// none; build makes it with or without what others wrote. s.Mu must be held.
func (s *Server) eventLocked(intent int, name string, build func(content bool) any) {
	s.world.events = append(s.world.events, Event{Name: name, Payload: mustJSON(build(true))})
	for _, se := range s.sessions {
		if intent == 0 || se.intents&intent != 0 {
			s.pushLocked(se, name, mustJSON(build(se.intents&MessageContent != 0)))
		}
	}
}

func same(v any) func(bool) any { return func(bool) any { return v } }

// messageEventLocked is for what happens in a channel that the bot sees.
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

func (s *Server) pushLocked(se *session, name string, payload json.RawMessage) {
	se.seq++
	raw := mustJSON(gatewayFrame{Op: opDispatch, Data: payload, Seq: &se.seq, Type: &name})
	se.events = append(se.events, raw)
	if len(se.events) > keptUntil {
		se.events = se.events[1:]
	}
	if se.link != nil {
		s.stats.Sent++
		se.link.Send([]byte(raw))
	}
}

func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }} // a token follows
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	l := &gatewayLink{Link: chattest.NewLink(ws)}
	s.Mu.Lock()
	if s.ClosedLocked() {
		s.Mu.Unlock()
		l.Cut()
		return
	}
	done := s.Hold()
	defer done()
	s.world.links[l] = true
	s.stats.Opened++
	v := r.URL.Query().Get("v")
	if encoding := r.URL.Query().Get("encoding"); v != "9" && v != "10" || encoding != "" && encoding != "json" {
		s.endLinkLocked(l, 4012, "Invalid API version(s).")
	} else {
		s.beatLocked(l)
		l.Send(gatewayFrame{Op: opHello, Data: mustJSON(hello{Interval: s.opt.Heartbeat.Milliseconds()})})
	}
	s.TouchLocked()
	s.Mu.Unlock()
	s.Go(func() { l.Write(s.opt.PingEvery) })
	for {
		_, body, err := l.ReadMessage()
		s.Mu.Lock()
		if err != nil {
			s.partLocked(l, websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway))
			s.Mu.Unlock()
			l.Cut()
			return
		}
		s.frameLocked(l, body)
		s.TouchLocked()
		s.Mu.Unlock()
	}
}

type hello struct {
	Interval int64 `json:"heartbeat_interval"`
}

// beatLocked gives a link time for its next heartbeat.
func (s *Server) beatLocked(l *gatewayLink) {
	s.StopLocked(l.beat)
	l.beat = s.AfterLocked(s.opt.Heartbeat+s.opt.Heartbeat/2, func() {
		s.stats.Silent++
		s.endLinkLocked(l, 4009, "Session timed out.")
	})
}

// partLocked takes a link out; one that said goodbye takes its session along.
func (s *Server) partLocked(l *gatewayLink, goodbye bool) {
	l.over = true
	delete(s.world.links, l)
	s.StopLocked(l.beat)
	if se := l.session; se != nil {
		l.session = nil
		se.link = nil
		if goodbye {
			delete(s.sessions, se.id)
		} else {
			se.expiry = s.AfterLocked(s.opt.Resumable, func() { delete(s.sessions, se.id) })
		}
	}
	s.TouchLocked()
}

// sessionless are the codes after which a session can't be resumed.
var sessionless = []int{4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014}

// endLinkLocked closes a link with a code.
func (s *Server) endLinkLocked(l *gatewayLink, code int, text string) {
	if l.over {
		return
	}
	s.stats.Closed = append(s.stats.Closed, code)
	l.CloseWith(code, text)
	s.partLocked(l, slices.Contains(sessionless, code))
}

func (s *Server) frameLocked(l *gatewayLink, body []byte) {
	if l.over {
		return
	}
	now := s.opt.Now()
	l.sends = append(slices.DeleteFunc(l.sends, func(t time.Time) bool { return now.Sub(t) > time.Minute }), now)
	var f gatewayFrame
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

type identify struct {
	Token      string `json:"token"`
	Intents    *int   `json:"intents"`
	Shard      []int  `json:"shard"`
	Properties *struct {
		OS string `json:"os"`
	} `json:"properties"`
}

func (s *Server) identifyLocked(l *gatewayLink, data json.RawMessage) {
	var in identify
	switch err := json.Unmarshal(data, &in); {
	case l.session != nil:
		s.endLinkLocked(l, 4005, "Already authenticated.")
		return
	case err != nil || in.Properties == nil:
		s.endLinkLocked(l, 4002, "Error while decoding payload.")
		return
	case s.dead || in.Token != s.opt.Token:
		s.endLinkLocked(l, 4004, "Authentication failed.")
		return
	case in.Shard != nil && (len(in.Shard) != 2 || in.Shard[0] >= in.Shard[1]):
		s.endLinkLocked(l, 4010, "Invalid shard.")
		return
	case in.Intents == nil || *in.Intents < 0 || *in.Intents > allIntents:
		s.endLinkLocked(l, 4013, "Invalid intent(s).")
		return
	case s.opt.NoContent && *in.Intents&MessageContent != 0, s.opt.NoMembers && *in.Intents&GuildMembers != 0, *in.Intents&GuildPresences != 0:
		s.endLinkLocked(l, 4014, "Disallowed intent(s).")
		return
	}
	s.stats.Identified++
	if s.opt.Identifies--; s.opt.Identifies < 0 {
		// Discord resets the token of a bot that identifies too often.
		s.dead = true
		s.endLinkLocked(l, 4004, "Authentication failed.")
		return
	}
	se := &session{id: "session-" + s.idLocked(), intents: *in.Intents, link: l}
	s.sessions[se.id] = se
	l.session = se
	var guilds []away
	for _, g := range s.world.guilds {
		if g.member(Bot) != nil {
			guilds = append(guilds, away{ID: g.id, Unavailable: true})
		}
	}
	s.pushLocked(se, "READY", mustJSON(ready{
		V: 9, User: s.world.user(Bot).wire(), Guilds: guilds, SessionID: se.id, ResumeURL: s.gatewayURL(), Application: readyApp{ID: App, Flags: s.appFlags()},
		PrivateChannels: []struct{}{}, Shard: []int{0, 1},
	}))
	if se.intents&Guilds != 0 {
		for _, g := range guilds {
			s.pushLocked(se, "GUILD_CREATE", mustJSON(s.guildCreateLocked(s.world.guild(g.ID))))
		}
	}
}

type ready struct {
	V               int        `json:"v"`
	User            wireUser   `json:"user"`
	Guilds          []away     `json:"guilds"`
	SessionID       string     `json:"session_id"`
	ResumeURL       string     `json:"resume_gateway_url"`
	Shard           []int      `json:"shard"`
	Application     readyApp   `json:"application"`
	PrivateChannels []struct{} `json:"private_channels"`
}

type readyApp struct {
	ID    string `json:"id"`
	Flags int    `json:"flags"`
}

func (s *Server) guildCreateLocked(g *guild) wireGuild {
	out := g.wire()
	out.MemberCount, out.JoinedAt = len(g.members), stamp(g.members[0].Joined)
	out.Members = append(out.Members, s.world.wireMember(g.member(Bot), true))
	for _, c := range s.world.channels {
		if c.Guild != g.id || c.deleted || !s.world.sees(c, Bot) {
			continue
		}
		if c.thread() {
			if !c.Archived {
				out.Threads = append(out.Threads, s.wireChannelLocked(c))
			}
			continue
		}
		out.Channels = append(out.Channels, s.wireChannelLocked(c))
	}
	return out
}

type resume struct {
	Token     string `json:"token"`
	SessionID string `json:"session_id"`
	Seq       *int64 `json:"seq"`
}

func (s *Server) resumeLocked(l *gatewayLink, data json.RawMessage) {
	var in resume
	if json.Unmarshal(data, &in) != nil || in.Seq == nil {
		s.endLinkLocked(l, 4002, "Error while decoding payload.")
		return
	}
	se := s.sessions[in.SessionID]
	switch {
	case l.session != nil:
		s.endLinkLocked(l, 4005, "Already authenticated.")
		return
	case s.dead || in.Token != s.opt.Token:
		s.endLinkLocked(l, 4004, "Authentication failed.")
		return
	case se == nil || se.seq-*in.Seq > int64(len(se.events)):
		l.Send(gatewayFrame{Op: opInvalidSession, Data: json.RawMessage("false")})
		s.stats.Refused = append(s.stats.Refused, Refusal{Method: "resume", Code: opInvalidSession})
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
		s.stats.Sent++
		l.Send(raw)
	}
	s.pushLocked(se, "RESUMED", json.RawMessage(`{}`))
}

// Drop cuts all connections without a word; sessions can be resumed.
func (s *Server) Drop() {
	for _, l := range s.links() {
		l.Cut()
	}
}

func (s *Server) links() []*gatewayLink {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return slices.Collect(s.world.links.all())
}

// CloseGateway ends all connections with a code.
func (s *Server) CloseGateway(code int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for l := range s.world.links {
		s.endLinkLocked(l, code, http.StatusText(code))
	}
}

// Reconnect asks every connection to come again (opcode 7).
func (s *Server) Reconnect() { s.sendAll(mustJSON(gatewayFrame{Op: opReconnect})) }

// AskHeartbeat asks every connection for a heartbeat at once (opcode 1).
func (s *Server) AskHeartbeat() { s.sendAll(mustJSON(gatewayFrame{Op: opHeartbeat})) }

// InvalidSession says that a session is invalid, and whether it may be resumed.
// One that may not is forgotten.
func (s *Server) InvalidSession(resumable bool) {
	if !resumable {
		s.Mu.Lock()
		for l := range s.world.links {
			if l.session != nil {
				delete(s.sessions, l.session.id)
				l.session = nil
			}
		}
		s.Mu.Unlock()
	}
	s.sendAll(mustJSON(gatewayFrame{Op: opInvalidSession, Data: mustJSON(resumable)}))
}

// ExpireSessions forgets every session, so that no connection can resume; those
// that are open go on.
func (s *Server) ExpireSessions() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for id, se := range s.sessions {
		if se.link == nil {
			s.StopLocked(se.expiry)
			delete(s.sessions, id)
			continue
		}
		delete(s.sessions, id)
		se.id = "session-" + s.idLocked() // the one that its bot knows is no more
		s.sessions[se.id] = se
	}
}

// Freeze makes connections deaf: they acknowledge no heartbeat, and don't end where
// none comes.
func (s *Server) Freeze() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for l := range s.world.links {
		l.frozen = true
		s.StopLocked(l.beat)
	}
}

// SendRaw writes a frame as it is on every connection: what no decoder expects.
func (s *Server) SendRaw(raw []byte) { s.sendAll(raw) }

// SendEvent sends an event as it is, with a sequence number, to every session.
func (s *Server) SendEvent(name string, payload json.RawMessage) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, se := range s.sessions {
		s.pushLocked(se, name, payload)
	}
	s.TouchLocked()
}

func (s *Server) sendAll(raw []byte) {
	for _, l := range s.links() {
		l.Send(slices.Clone(raw))
	}
}

// ResetToken makes the bot's token another, as the portal does: every session
// ends, and the old token is refused.
func (s *Server) ResetToken(token string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.opt.Token = token
	for l := range s.world.links {
		s.endLinkLocked(l, 4004, "Authentication failed.")
	}
	clear(s.sessions)
}

// gatewayURL is where the gateway is.
func (s *Server) gatewayURL() string { return "ws" + s.URL()[len("http"):] + "/gateway" }

// appFlags say which privileged intents are on, as for an app that few use.
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
