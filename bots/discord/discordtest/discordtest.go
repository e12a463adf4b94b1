// Package discordtest is a fake Discord: guilds in memory with the REST API and the gateway.
// Through its Go API a test, or the page of `nizectl dev discord`, acts as the people in them.
//
// # What it is for
//
// Tests and developers meet Discord's limits here and not in front of a
// community. So it refuses what Discord refuses, in the form {code, message,
// errors} and with Discord's codes: messages, components, modals and commands
// are checked by tables that read like Discord's reference (shape.go), requests
// run through rate-limit buckets and the global limit (limit.go), interactions
// end after three seconds and their tokens after fifteen minutes (interact.go),
// and the gateway keeps its order of hello, identify, heartbeats, resumes and
// close codes (gateway.go). It knows nothing of nize and nothing of the library
// that the adapter uses, so that a mistake of either shows.
//
// # How it is built
//
//	people.go   what persons do ──► gateway.go  events, to each session its own
//	rest.go     the bot's calls ──► message.go channel.go interact.go … ──► world.go
//
// What Discord has in common with other platforms is in [chattest]. The mutex of
// [chattest.Base] guards the world. Everything that changes wakes Wait, so tests
// wait for what they expect and never sleep. Ids count up, so that two runs look
// the same.
//
// Faults are asked for with Fail, Drop, [Server.CloseGateway],
// [Server.ExpireSessions] and SendRaw; what the bot did wrong without an error,
// such as a call while it was told to wait, is counted in [Stats].
package discordtest

import (
	"cmp"
	"net"
	"net/http"
	"time"

	"nize/bots/chattest"
)

// Options of a [Server]. The zero value is a bot with everything that nize uses.
type Options struct {
	Token     string        // default [Token]
	NoContent bool          // the Message Content intent is switched off in the portal
	NoMembers bool          // the Server Members intent is switched off in the portal
	Public    bool          // anybody may add the bot
	Unlimited bool          // no rate limits
	Heartbeat time.Duration // default 41.25 s, as Discord has
	Patience  time.Duration // with the answer to an interaction; default 3 s
	Now       func() time.Time
}

// What Discord has besides.
const (
	tokenLife   = 15 * time.Minute // of an interaction
	resumable   = 2 * time.Minute  // how long a session outlives its connection
	pingEvery   = time.Minute
	globalBurst = 50   // requests a second
	identifies  = 1000 // a day
)

// Token is the bot's where nothing else is said.
const Token = "MTAwMA.fake.discord-bot-token"

// Server is the fake. Its methods may be called concurrently.
type Server struct {
	chattest.Base
	opt     Options
	handler http.Handler

	// Guarded by Mu, as all that follows.
	world        world
	links        map[*gatewayLink]bool
	sessions     map[string]*session
	interactions map[string]*interaction // by id, and by token
	dialogs      map[string]*Dialog      // by user
	commands     map[string][]Command    // by guild; "" are the global ones
	buckets      map[string]*bucket
	identifies   int // left for today
	stats        Stats
}

// New builds the guilds with their people and channels: see [world.seed].
func New(opt Options) *Server {
	opt.Token = cmp.Or(opt.Token, Token)
	opt.Heartbeat, opt.Patience = cmp.Or(opt.Heartbeat, 41250*time.Millisecond), cmp.Or(opt.Patience, 3*time.Second)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	s := &Server{
		opt: opt, links: map[*gatewayLink]bool{}, sessions: map[string]*session{}, interactions: map[string]*interaction{},
		dialogs: map[string]*Dialog{}, commands: map[string][]Command{}, buckets: map[string]*bucket{}, identifies: identifies,
	}
	s.Init()
	s.world.seed()
	s.handler = s.routes()
	return s
}

// Running returns a Discord that serves on loopback until the test ends.
func Running(t chattest.Tester, o Options) *Server {
	t.Helper()
	return chattest.Run(t, New(o))
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
func (s *Server) Connected() bool { return s.Stats().Links > 0 }

// Close ends all connections and timers, and waits for them.
func (s *Server) Close() {
	s.End(func() {
		for _, in := range s.interactions {
			in.SettleLocked(chattest.ErrClosed)
		}
	})
}

// Stats count what the bot did, above all what it did wrong without noticing.
type Stats struct {
	chattest.Counts
	Identified int
	Resumed    int
	Silent     int // connections without heartbeats
}

// Stats are the counts up to now.
func (s *Server) Stats() Stats {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	out := s.stats
	out.Counts = s.CountsLocked()
	for _, se := range s.sessions {
		if se.link != nil {
			out.Links++
		}
	}
	return out
}
