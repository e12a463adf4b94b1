// Package discordtest is a fake Discord: guilds in memory with the REST API and the
// gateway. Through its Go API a test, or the page of `nizectl dev discord`, acts as the
// people in them.
//
// # Purpose
//
// Tests and developers should meet Discord's limits here rather than in front of a
// community. So it refuses what Discord refuses, in the form {code, message, errors} and
// with Discord's codes: messages, components, modals and commands are checked by tables
// that read like Discord's reference (shape.go), requests pass rate-limit buckets and the
// global limit (limit.go), interactions must be answered within three seconds and their
// tokens expire after fifteen minutes (interact.go), and the gateway follows the protocol
// of hello, identify, heartbeats, resumes and close codes (gateway.go). It depends neither
// on nize nor on the library that the adapter uses, so that mistakes on either side show.
//
// # Structure
//
//	people.go   actions of people ──► gateway.go  events, to each session its own
//	rest.go     the bot's calls ──► message.go channel.go interact.go … ──► world.go
//
// [chattest] has what Discord has in common with other platforms. The mutex of
// [chattest.Base] guards the world. Every change wakes Wait, so tests wait for events and
// never sleep. Ids are counters, so that two runs are alike.
//
// Faults are injected with Fail, Drop, [Server.CloseGateway], [Server.ExpireSessions] and
// SendRaw. Mistakes of the bot that cause no error, such as a call during a rate limit, are
// counted in [Stats].
package discordtest

import (
	"cmp"
	"net"
	"net/http"
	"time"

	"nize/bots/chattest"
)

// Options configure a [Server]. The zero value is a bot with everything that nize uses.
type Options struct {
	Token     string        // default [Token]
	NoContent bool          // the Message Content intent is disabled in the portal
	NoMembers bool          // the Server Members intent is disabled in the portal
	Public    bool          // anyone may add the bot
	Unlimited bool          // no rate limits
	Heartbeat time.Duration // default 41.25 s, as in Discord
	Patience  time.Duration // time for the answer to an interaction; default 3 s
	Now       func() time.Time
}

// Further limits of Discord.
const (
	tokenLife   = 15 * time.Minute // of an interaction
	resumable   = 2 * time.Minute  // how long a session outlives its connection
	pingEvery   = time.Minute
	globalBurst = 50   // requests per second
	identifies  = 1000 // per day
)

// Token is the default bot token.
const Token = "MTAwMA.fake.discord-bot-token"

// Server is the fake. Its methods may be called concurrently.
type Server struct {
	chattest.Base
	opt     Options
	handler http.Handler

	// The fields below are guarded by Mu.
	world        world
	links        map[*gatewayLink]bool
	sessions     map[string]*session
	interactions map[string]*interaction // keyed by id, and by token
	dialogs      map[string]*Dialog      // keyed by user
	commands     map[string][]Command    // keyed by guild; "" has the global ones
	buckets      map[string]*bucket
	identifies   int // left for today
	stats        Stats
}

// New returns the guilds with their people and channels: see [world.seed].
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

// Start serves on l and takes ownership of it. A nil l means a free loopback port.
func (s *Server) Start(l net.Listener) error { return s.Serve(l, s.handler) }

// Handler returns the platform's handler: the API, the gateway and files.
func (s *Server) Handler() http.Handler { return s.handler }

// APIURL returns the value for `discord.api_url`: the part before /v9/.
func (s *Server) APIURL() string { return s.URL() + "/api/" }

// BotToken returns what an operator would copy from the portal.
func (s *Server) BotToken() string { return s.opt.Token }

// Connected reports whether a bot is identified and connected.
func (s *Server) Connected() bool { return s.Stats().Links > 0 }

// Close ends all connections and timers, and waits for them.
func (s *Server) Close() {
	s.End(func() {
		for _, in := range s.interactions {
			in.SettleLocked(chattest.ErrClosed)
		}
	})
}

// Stats count the bot's actions, mainly mistakes that it doesn't notice.
type Stats struct {
	chattest.Counts
	Identified int
	Resumed    int
	Silent     int // connections without heartbeats
}

// Stats returns the current counts.
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
