// Package slacktest is a fake Slack: a workspace in memory with the Web API, Socket Mode
// and the HTTP mode. Through its Go API a test, or the page of `nizectl dev slack`, acts as
// the people in it.
//
// # Purpose
//
// Tests and developers should meet Slack's limits here rather than in front of a team. So
// it refuses what Slack refuses, with Slack's error codes: Block Kit is checked field by
// field (block.go), methods require their scopes and have rate tiers (method.go), and
// trigger ids, response URLs and streams expire as Slack's do. It depends neither on nize
// nor on the library that the adapter uses, so that mistakes on either side show.
//
// # Structure
//
//	people.go   actions of people ──► deliver.go  events, interactions, commands
//	                                  │  socket.go: envelopes, one of the links
//	                                  └─ hook.go:   signed requests
//	method.go   the app's calls ──► chat.go stream.go view.go …  ──► world.go
//
// The mutex of [chattest.Base] guards the world; its holder neither waits nor writes to a
// connection. Every change wakes Wait, so tests wait for events and never sleep. Ids are
// counters and random choices are seeded, so that two runs are alike.
//
// Faults are injected with Fail, [Server.Drop], [Server.Disconnect] and [Server.Repeat].
// Mistakes of the app that cause no error code, such as an unacknowledged envelope, are
// counted in [Stats].
package slacktest

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"nize/bots/chattest"
	"slices"
	"strings"
	"time"
)

// Options configure a [Server]. The zero value is an app with everything that nize uses,
// over Socket Mode.
type Options struct {
	BotToken, AppToken string           // default "xoxb-fake-bot" and "xapp-1-A0NIZE-fake"
	ForeignApp         bool             // the app-level token belongs to another app
	Organization       bool             // the app is installed for a whole organization
	Scopes             []string         // of the bot token; default [Scopes]
	NoConnections      bool             // the app-level token lacks connections:write
	Events             []string         // subscribed events; default [Events]
	Assistant          bool             // the app has the older assistant_view instead of agent_view
	Endpoint           string           // base URL of an app in HTTP mode; empty for Socket Mode
	SigningSecret      string           // for HTTP mode; default [SigningSecret]
	Unlimited          bool             // no rate limits
	CountBytes         bool             // the total text of a message's blocks is limited in bytes of JSON
	FixedStreams       bool             // streamed messages can't be edited, as in some workspaces
	Burst              int              // posts in one channel before the limit of 1/s applies; default 5
	Patience           time.Duration    // time for an acknowledgement, and lifetime of a trigger id; default 3 s, as in Slack
	PingEvery          time.Duration    // from server to client; default 5 s
	RetryAfter         []time.Duration  // delays of redeliveries; default: at once, 1 min, 5 min
	Now                func() time.Time // default time.Now
	Seed               uint64           // for the choice among links
	FilesTake          time.Duration    // time until blocks may show a new file
}

// SigningSecret is the default signing secret.
const SigningSecret = "0123456789abcdef0123456789abcdef"

// Scopes are the bot scopes of nize's manifest.
var Scopes = []string{"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands",
	"files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write", "mpim:history",
	"mpim:read", "reactions:write", "usergroups:read", "users:read"}

// Events are the events of nize's manifest.
var Events = []string{"agent_session_stopped", "agent_session_title_changed", "app_context_changed", "app_home_opened",
	"app_mention", "app_uninstalled", "assistant_thread_context_changed", "assistant_thread_started", "message.channels", "message.groups",
	"message.im", "message.mpim", "tokens_revoked", "user_change"}

// Server is the fake. Its methods may be called concurrently.
type Server struct {
	chattest.Base
	opt     Options
	handler http.Handler

	// The fields below are guarded by Mu.
	rand       *rand.Rand
	serial     int   // of ids
	lastTS     int64 // microseconds, so that no two messages have the same ts
	world      world
	links      []*link
	tickets    map[string]time.Time // their creation times
	pending    map[string]*delivery // keyed by envelope id
	late       map[string]bool      // envelopes that were not acknowledged in time
	waiting    []*delivery          // deliveries without an open link
	triggers   map[string]trigger
	replies    map[string]*replyURL
	uploads    map[string]*File
	views      map[string]*View // keyed by id
	fileFaults map[string][]*FileFault
	rates      map[string][]time.Time
	stats      Stats
	dead       string // the error code for every token
	deadBot    string // the same for the bot token only
	socketOff  bool   // Socket Mode is disabled
}

// New returns a workspace with its people and channels: see [Server.Seed].
func New(opt Options) *Server {
	opt.BotToken, opt.AppToken = cmp.Or(opt.BotToken, "xoxb-fake-bot"), cmp.Or(opt.AppToken, "xapp-1-"+App+"-fake")
	opt.SigningSecret, opt.Endpoint = cmp.Or(opt.SigningSecret, SigningSecret), strings.TrimSuffix(opt.Endpoint, "/")
	opt.Burst, opt.Patience, opt.PingEvery = cmp.Or(opt.Burst, 5), cmp.Or(opt.Patience, 3*time.Second), cmp.Or(opt.PingEvery, 5*time.Second)
	if opt.Scopes == nil {
		opt.Scopes = Scopes
	}
	if opt.Events == nil {
		opt.Events = Events
	}
	if opt.RetryAfter == nil {
		opt.RetryAfter = []time.Duration{0, time.Minute, 5 * time.Minute}
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	s := &Server{
		opt: opt, rand: rand.New(rand.NewPCG(opt.Seed, 1)),
		tickets: map[string]time.Time{}, pending: map[string]*delivery{}, late: map[string]bool{},
		triggers: map[string]trigger{}, replies: map[string]*replyURL{}, uploads: map[string]*File{},
		views: map[string]*View{}, fileFaults: map[string][]*FileFault{}, rates: map[string][]time.Time{},
	}
	s.Init()
	s.world.seed()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.serveMethod)
	mux.HandleFunc("GET /link", s.serveLink)
	mux.HandleFunc("POST /upload/{id}", s.serveUpload)
	mux.HandleFunc("POST /reply/{id}", s.serveReply)
	mux.HandleFunc("GET /files/{id}", s.serveFile)
	s.handler = mux
	return s
}

// Start serves on l and takes ownership of it. A nil l means a free loopback port.
func (s *Server) Start(l net.Listener) error { return s.StartWith(l, s.handler) }

// StartWith serves with a handler that wraps the Server's own, see [Server.Handler].
func (s *Server) StartWith(l net.Listener, h http.Handler) error { return s.Serve(l, h) }

// Handler returns the platform's handler: /api/, the links, uploads, files and response
// URLs.
func (s *Server) Handler() http.Handler { return s.handler }

// APIURL returns the value for `slack.api_url`.
func (s *Server) APIURL() string { return s.URL() + "/api/" }

// BotToken and AppToken return what an operator would copy from Slack's pages.
func (s *Server) BotToken() string { return s.opt.BotToken }

// AppToken returns the app-level token for Socket Mode.
func (s *Server) AppToken() string { return s.opt.AppToken }

// SigningSecret returns the signing secret of HTTP mode.
func (s *Server) SigningSecret() string { return s.opt.SigningSecret }

// Connected reports whether an app is connected by a link, or uses HTTP, for which this
// can't be known before something is sent.
func (s *Server) Connected() bool {
	return chattest.Get(&s.Base, func() bool { return s.opt.Endpoint != "" || len(s.links) > 0 })
}

// Close ends all links, deliveries and timers, and waits for them.
func (s *Server) Close() {
	s.End(func() {
		for _, d := range slices.Concat(slices.Collect(maps.Values(s.pending)), s.waiting) {
			d.SettleLocked(chattest.ErrClosed)
		}
	})
}

// Running returns a Slack that serves on loopback until the test ends.
func Running(t chattest.Tester, o Options) *Server {
	t.Helper()
	return chattest.Run(t, New(o))
}
