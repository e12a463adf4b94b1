// Package discordtest is a Discord of our own: guilds in memory with the REST
// API and the gateway that a bot talks to, and a Go API by which a test, or the
// page of `nizectl dev discord`, acts as the people in them.
//
// # What it is for
//
// Tests and developers meet Discord's limits here and not in front of a
// community. So it refuses what Discord refuses, in the form {code, message,
// errors} and with Discord's codes: messages, components, modals and commands
// are checked field by field (check.go), requests run through rate-limit
// buckets and the global limit (limit.go), interactions end after three seconds
// and their tokens after fifteen minutes (interact.go), and the gateway keeps
// its order of hello, identify, heartbeats, resumes and close codes
// (gateway.go). It knows nothing of nize and nothing of the library that the
// adapter uses, so that a mistake of either shows.
//
// # How it is built
//
//	people.go   what persons do ──► gateway.go  events, to each session its own
//	rest.go     the bot's calls ──► message.go thread.go interact.go … ──► world.go
//
// The mutex of [chattest.Base] guards the world. Everything that changes wakes
// Wait, so tests wait for what they expect and never sleep. Ids count up, so
// that two runs look the same.
//
// Faults are asked for with Fail, [Server.Drop], [Server.CloseGateway],
// [Server.ExpireSessions] and [Server.SendRaw]; what the bot did wrong without an
// error, such as a call while it was told to wait, is counted in [Stats].
package discordtest

import (
	"net"
	"net/http"
	"slices"
	"time"

	"nize/bots/chattest"
)

// Options of a [Server]. The zero value is a bot with everything that nize uses.
type Options struct {
	Token       string        // default [Token]
	NoContent   bool          // the Message Content intent is switched off in the portal
	NoMembers   bool          // the Server Members intent is switched off in the portal
	Public      bool          // anybody may add the bot
	Unlimited   bool          // no rate limits
	Identifies  int           // left for today; default 1000
	Heartbeat   time.Duration // default 41.25 s, as Discord has
	Patience    time.Duration // with the answer to an interaction; default 3 s
	TokenLife   time.Duration // of an interaction; default 15 min
	Resumable   time.Duration // how long a session outlives its connection; default 2 min
	PingEvery   time.Duration // of websockets; default a minute
	Now         func() time.Time
	GlobalBurst int // requests a second; default 50
}

// Token is the bot's where nothing else is said.
const Token = "MTAwMA.fake.discord-bot-token"

// Server is the fake. Its methods may be called concurrently.
type Server struct {
	chattest.Base
	opt     Options
	handler http.Handler

	// Guarded by Mu, as all that follows.
	world        world
	sessions     map[string]*session
	interactions map[string]*interaction // by id
	tokens       map[string]*interaction // by token
	dialogs      map[string]*Dialog      // by user
	commands     map[string][]Command    // by guild; "" are the global ones
	buckets      map[string]*bucket
	dead         bool // the token was reset
	stats        Stats
}

// New builds the guilds with their people and channels: see [world.seed].
func New(opt Options) *Server {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&opt.Heartbeat, 41250*time.Millisecond)
	def(&opt.Patience, 3*time.Second)
	def(&opt.TokenLife, 15*time.Minute)
	def(&opt.Resumable, 2*time.Minute)
	def(&opt.PingEvery, time.Minute)
	if opt.Token == "" {
		opt.Token = Token
	}
	if opt.Identifies == 0 {
		opt.Identifies = 1000
	}
	if opt.GlobalBurst == 0 {
		opt.GlobalBurst = 50
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	s := &Server{
		opt: opt, sessions: map[string]*session{}, interactions: map[string]*interaction{}, tokens: map[string]*interaction{},
		dialogs: map[string]*Dialog{}, commands: map[string][]Command{}, buckets: map[string]*bucket{},
		stats: Stats{Calls: map[string]int{}},
	}
	s.Init()
	s.world.seed()
	s.handler = s.routes()
	return s
}

// Running returns a Discord that serves on loopback until the test ends.
func Running(t chattest.Tester, o Options) *Server {
	t.Helper()
	s := New(o)
	if err := s.Start(nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start serves on l, which belongs to the Server from then on. A nil l is a
// free port of the loopback.
func (s *Server) Start(l net.Listener) error { return s.Serve(l, s.handler) }

// Handler is what the platform serves: the API, the gateway and files.
func (s *Server) Handler() http.Handler { return s.handler }

// APIURL is what `discord.api_url` must be: what stands before /v9/.
func (s *Server) APIURL() string { return s.URL() + "/api/" }

// BotToken is what the operator would copy from the portal.
func (s *Server) BotToken() string { return s.opt.Token }

// Connected says whether a bot is identified and listens.
func (s *Server) Connected() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.openLocked() > 0
}

// openLocked counts the sessions with a connection; s.Mu must be held.
func (s *Server) openLocked() int {
	n := 0
	for _, se := range s.sessions {
		if se.link != nil {
			n++
		}
	}
	return n
}

// Close ends all connections and timers, and waits for them.
func (s *Server) Close() {
	var links []*gatewayLink
	s.End(func() {
		for _, in := range s.interactions {
			in.settleLocked(chattest.ErrClosed)
		}
		links = slices.Collect(s.world.links.all())
	}, func() {
		for _, l := range links {
			l.Cut()
		}
	})
}
