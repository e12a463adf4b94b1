// Package daemon is nized's composition root: it wires all other packages together.
//
// [New] creates the components from top to bottom and opens databases and listeners;
// [Daemon.Run] starts every goroutine and ends them all. In between are the control socket
// (modules.go lists the packages below that serve operations), the HTTP listener (http.go),
// the schedule, and the chat platforms (platforms.go).
//
// Start: key file → check of the database, if the last daemon did not close it → database
// (its lock proves that no other daemon runs) → guard of the child processes → index from
// the stored tools → listeners → ready → servers connect, and the rest of the database is
// checked, in the background.
//
// Stop: no new work is accepted → streams end → running work finishes within the grace time
// → children end → the database is closed and marked clean.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"nize/bots"
	"nize/bots/terminal"
	chatpage "nize/bots/web"
	"nize/daemon/alert"
	"nize/daemon/api"
	"nize/daemon/backup"
	"nize/daemon/commands"
	"nize/daemon/connect"
	"nize/daemon/control"
	"nize/daemon/credentials"
	"nize/daemon/documents"
	"nize/daemon/hooks"
	"nize/daemon/imports"
	"nize/daemon/indexer"
	"nize/daemon/metrics"
	"nize/daemon/monitor"
	"nize/daemon/people"
	"nize/daemon/settings"
	"nize/daemon/spending"
	"nize/daemon/standby"
	"nize/daemon/trace"
	"nize/llm"
	"nize/mcp"
	"nize/mcp/egress"
	"nize/mcp/index"
	"nize/mcp/native"
	"nize/mcp/native/chart"
	"nize/mcp/native/filetext"
	"nize/mcp/native/web"
	"nize/mcp/policy"
	"nize/mcp/scan"
	"nize/mcp/upstream"
	"nize/mcp/upstream/login"
	"nize/mcp/upstream/process"
	"nize/mcp/view"
	"nize/store"
	"nize/store/database"
	"nize/store/kv/bolt"
)

const (
	maxItems   = 1000             // content items of a result that are kept
	idleConn   = 90 * time.Second // for connections to providers
	headerTime = 5 * time.Second
	maxReserve = 2 * time.Second // part of a stop's grace time, for answering callers and ending children
)

// Options configure where a daemon keeps its state and listens. [Configure] builds them
// from flags, environment and nized.toml.
type Options struct {
	DataDir string
	Listen  string
	Socket  string
	Servers string // a file that defines servers, or ""
	Log     *slog.Logger
	Level   *slog.LevelVar // of Log, if a reload may change it
	Env     func(string) string
	Now     func() time.Time
	Layers  *settings.Layers // if nil, the fields above and Env are the whole configuration
	Hangup  <-chan os.Signal // each value requests a reload
	Ready   func()           // called once nized has reported that it is ready; may be nil
	New     bool             // start with an empty database although there was one
	// Database is the URL of the PostgreSQL database. If it is zero, the database is a file
	// in the data directory.
	Database store.Secret

	testOnlyPlatforms []platform // in addition to the built-in ones
}

func (o Options) platforms() []platform { return slices.Concat(platforms, o.testOnlyPlatforms) }

// Daemon is one nized process.
type Daemon struct {
	opt Options
	log *slog.Logger
	now func() time.Time

	// Start and end.
	lock     *os.File // on the data directory
	started  time.Time
	ready    atomic.Bool
	deadline time.Time // of a stop; set when it begins

	// closing ends when a drain begins. Streams use it, and work that has no caller
	// waiting.
	closing context.Context
	close   context.CancelFunc

	// Listeners and their access rules.
	control, public net.Listener
	host, port      string       // of public
	cert            *certificate // of public; if nil, it serves plain HTTP
	hosts           atomic.Pointer[hostCheck]
	peers           *peers
	edge            edge
	standing        *sync.WaitGroup // requests forwarded to another node; nil if none were
	holder          *standby.Holder

	// People and groups, and the streams that end when a person loses access.
	directory *people.Directory
	groups    *people.LiveGroups
	streams   *people.Streams

	// Settings: their layers, and their effective values.
	layers *settings.Layers
	config *settings.Config

	// Monitoring, metrics, traces and alerts.
	memory  *monitor.Memory
	monitor *monitor.Monitor
	metrics *metrics.Metrics
	tracer  *trace.Tracer
	alerts  *alert.Manager

	// MCP servers and the logins to them.
	pool     *upstream.Pool
	logins   *login.Logins
	declared *credentials.Resolver

	db           *database.DB
	dir          *backup.Directory
	scheduler    *scheduler
	guard        *process.Guard
	indexer      *indexer.Indexer
	gateway      *mcp.Gateway
	hooks        *hooks.Set
	mcp          *mcp.Server
	router       *llm.Router
	providers    *control.Providers
	transport    *http.Transport
	conversation *bots.Conversation
	bots         *bots.Registry
	ops          *operations
	servers      *imports.File // nil without Options.Servers
	programs     programsParts
	native       nativeTools
}

// New opens a daemon: its state, components and listeners. Run starts it. If New returns an
// error, nothing is left open.
func New(ctx context.Context, opt Options) (_ *Daemon, err error) {
	d := &Daemon{opt: opt, log: opt.Log, now: opt.Now, bots: &bots.Registry{}}
	d.started = opt.Now()
	d.transport, d.memory = newTransport(), monitor.NewMemory()
	d.dir = &backup.Directory{Path: opt.DataDir, New: opt.New, Database: opt.Database, Buckets: Buckets(), Env: opt.Env, Now: opt.Now, Log: opt.Log, Says: func() string { return api.Version + " " + where(d) },
		Standby: func(owner func(context.Context) (standby.Owner, error), all func(context.Context) ([]api.Replica, error)) (func(), error) {
			return standBy(d, owner, all)
		}}
	d.closing, d.close = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			d.closeAll()
			d.unlock()
		}
	}()
	if d.layers, err = layersOf(opt); err != nil {
		return nil, err
	}
	d.edge = d.newEdge()
	if d.lock, err = d.dir.Lock(); err != nil {
		return nil, err
	}
	handed, err := takeListeners()
	if err != nil {
		return nil, err
	}
	d.control, d.public = handed.control, handed.public // closeAll closes them
	if d.db, err = d.dir.Open(ctx); err != nil {
		return nil, err
	}
	d.holder = d.newHolder()
	d.now = notBehind(opt.Now, d.db.Now)
	if d.config, err = settings.NewConfig(ctx, d.db, d.layers); err != nil {
		return nil, err
	}
	d.scheduler = &scheduler{db: d.db, config: d.config, backups: &backup.Backups{Directory: d.dir, DB: d.db}, refresh: func(ctx context.Context) { d.indexer.Refresh(ctx) }, log: d.log, now: d.now}
	if err := d.db.CheckTrailEnd(ctx); err != nil {
		d.log.Error("the audit trail failed verification", "err", err)
		d.scheduler.note(&d.scheduler.lastAudit, d.now(), err) // reported by an alert
	}
	if n, err := d.db.SettleAbandoned(ctx); err != nil {
		return nil, err
	} else if n > 0 {
		d.log.Warn("model calls were cut off when nized died; their prompts are booked as estimates", "calls", n)
	}
	d.peers = newPeers(d.db)
	d.streams = people.NewStreams(d.db, d.config)
	if d.guard, err = process.StartGuard(ctx, d.log.With("component", "guard")); err != nil {
		return nil, fmt.Errorf("starting the guard of child processes: %w", err)
	}
	d.wire()
	if err := d.ops.entries.Apply(ctx, d.layers.Entries()); err != nil {
		return nil, err
	}
	if opt.Servers != "" {
		path, err := filepath.Abs(opt.Servers)
		if err != nil {
			return nil, fmt.Errorf("finding --mcp-config %s: %w", opt.Servers, err)
		}
		d.servers = &imports.File{Importer: d.ops.imports, Path: path}
	}
	if err := d.hooks.Reload(ctx); err != nil {
		return nil, err
	}
	if err := d.indexer.Rebuild(ctx); err != nil {
		return nil, err
	}
	if err := d.ops.views.Load(ctx); err != nil {
		return nil, err
	}
	d.ops.extensions.Load(ctx)
	if err := d.indexer.UseEmbedder(ctx); err != nil {
		d.log.Error("falling back to the embedded vectors", "err", err)
	}
	if err := d.listen(); err != nil {
		return nil, err
	}
	return d, nil
}

// wire creates the components and connects them.
func (d *Daemon) wire() {
	d.metrics = metrics.New(metrics.Options{State: d.state, Now: d.now, Log: d.log.With("component", "metrics")})
	d.tracer = trace.New(trace.Options{Transport: d.transport, Version: api.Version, Now: d.now, Log: d.log.With("component", "trace")})
	d.sendTraces(d.config, d.opt.Env, d.log)
	owner := store.NewID(d.started)
	ix := index.New(index.Options{Log: d.log.With("component", "index"), Vectors: d.db, Fusion: func() float64 { return store.GetFloat(d.config, "", "index.fusion") },
		Learned: func() bool { return store.GetBool(d.config, "", "index.learn") }})
	gate := &indexer.Gate{ToolIDs: func(ctx context.Context) ([]string, error) { return d.gateway.Catalog.ToolIDs(ctx) }, NewDefinition: d.memory.Changed, Log: d.log.With("component", "scan")}
	d.indexer = &indexer.Indexer{Store: d.db, Index: ix, Gate: gate, Config: d.config, Changed: d.memory.Changed, Now: d.now, Log: d.log}
	d.logins = login.New(login.Options{Credentials: d.db, Company: assertions{d}, Now: d.now, Log: d.log.With("component", "login"),
		HTTP: connect.Client(func() string { return d.config.Get("", "egress.allow") })})
	d.declared = &credentials.Resolver{Declarations: credentials.Declarations{DB: d.db}, Values: d.db, Members: d.db, SignIns: d.logins}
	d.pool = upstream.New(upstream.Options{
		Attendant: attendant{d},
		Declared:  d.declared, Log: d.log.With("component", "upstream"), Now: d.now, Servers: d.db, Tools: d.db, Credentials: d.db, Members: d.db, Logins: d.logins,
		Gate: gate, OnTools: d.indexer.ToolsChanged, Guard: d.guard,
		Known: func(ctx context.Context) (map[string][]store.Tool, error) {
			return d.gateway.Catalog.AllDefinitions(ctx)
		}, Traceparent: d.tracer.Traceparent, Egress: func() string { return d.config.Get("", "egress.allow") },
	})
	d.programs = programsParts{db: d.db, config: d.config, now: d.now, log: d.log}
	d.programs.servers = d.programs.newServers(gate, d.tracer.Traceparent)
	d.native.documents = documents.New(documents.Options{
		DB: d.db, People: d.db, Projects: d.db, Chats: d.db, Config: d.config, Now: d.now, Log: d.log.With("component", "documents"),
		Names: func(ctx context.Context) (map[string]string, error) { return d.directory.Names(ctx) },
	})
	ownTools := append(d.native.documents.Module().Tools,
		web.Tool(outsideOf(d.config, 0, 0).Client(egress.Limits{}), api.Version),
		spending.PlanUsageTool(func(ctx context.Context, c native.Context) (spending.PlanUsage, error) {
			return d.ops.plans.PlanUsage(ctx, c)
		}),
		chart.Tool(),
	)
	d.native.Registry = nativeParts{
		threads: d.db, credential: d.declared.Find, tools: ownTools,
		show: func(server *store.Server, tools []*policy.Tool) {
			d.gateway.SetOwn(server, tools)
			gate.ForgetNames()
		},
		index: func(server store.Server, usable []store.Tool) {
			if err := ix.Replace(d.closing, server, usable); err != nil && d.closing.Err() == nil {
				d.log.Error("indexing native tools", "err", err)
			}
		},
	}.newRegistry()
	d.native.renderers = &view.Renderers{Log: d.log.With("component", "renderers"), Now: d.now}
	d.native.showResults(ownTools)
	d.groups = people.NewLiveGroups(d.db, d.bots, d.log.With("component", "groups"), d.now)
	d.directory = &people.Directory{Store: d.db, Memberships: d.groups, Log: d.log}
	members := &control.ChannelMembers{Store: d.db, Bots: d.bots, Groups: d.groups, Log: d.log}
	d.hooks = &hooks.Set{Store: d.db, Events: d.db, Now: d.db.Now, Spawn: d.guard.Spawn}
	d.gateway = mcp.New(mcp.Options{
		Groups: d.groups, Channels: members, Credentials: d.declared,
		Calls: d.tracer.Calls(d.metrics.Calls(d.db)), Tools: d.db, Policy: principals{d.db}, Learned: d.db, Feed: d.db, Index: ix, Runner: decorated(runners{d.pool, d.programs.servers, d.native}, d.tracer.Runner, d.downTime, d.callProgress),
		Config: d.config, Log: d.log.With("component", "mcp"), Now: d.db.Now, Owner: owner, Warn: scan.Mixed, Rejected: d.metrics.Rejected,
		Hooks: []mcp.Hook{
			d.metrics.MetaTools(hooks.Audit{Events: d.db, Log: d.log.With("component", "audit"), Now: d.now}),
			hooks.Access{},
			hooks.Truncate{Bytes: func() int { return store.GetInt(d.config, "", "results.max_bytes") }, Items: maxItems},
		},
		Configured: d.hooks, Budgets: d.db, View: d.native.renderers.View,
	})
	d.gateway.Catalog.Temporary = d.programs.servers
	d.native.Publish()
	d.mcp = mcp.NewServer(mcp.ServerOptions{
		Gateway: d.gateway, Tokens: signedIn{d.db}, Feed: d.db, Config: d.config, Version: api.Version, Log: d.log.With("component", "mcp"), Now: d.now,
		Trace: d.tracer.MetaTool, Views: mcp.Views{Template: d.native.Template, Resource: d.pool.ReadView},
		Enter: d.streams.Count,
	})
	d.providers = &control.Providers{Store: guarded(d.db), Extra: control.EnvironmentProviders(d.opt.Env), Open: d.openProvider, Now: d.now}
	d.router = &llm.Router{
		Store: d.db, Open: d.openModel, Extra: d.providers.Extra, Now: d.now, Log: d.log.With("component", "llm"),
		Pictures: d.db, Results: d.db.GetCall, TakesImages: llm.ImageModels(d.config),
		Meter: &llm.Meter{Ledger: d.metrics.Ledger(d.db), Prices: d.db, Config: d.config, Now: d.now, Log: d.log.With("component", "llm")},
	}
	agent := llm.New(llm.Deps{
		Threads: d.db, Calls: d.db, Agents: d.db, Config: d.config, Tools: d.tracer.Tools(d.gateway), Models: d.router, Groups: d.groups, Channels: d.db, MayAsk: d.router.MayAsk, Window: d.router.Window, Direct: directTools{d.gateway}.list, Domains: directTools{d.gateway}.domains, AddEvent: d.db.AddEvent, RecordUnmetRequest: d.db.RecordUnmetRequest,
		Titles: llm.NewTitles(d.db, d.router, d.log.With("component", "titles")),
		Log:    d.log.With("component", "llm"), Now: d.now,
	})
	d.programs.gateway, d.programs.router, d.programs.agent = d.gateway, d.router, agent
	d.programs.rounds = d.programs.newEngine()
	at, page := terminal.New(), chatpage.New(d.db)
	d.ops = d.newOperations(at, page, members)
	// The pool notifies the indexer of tools, and the indexer reads them from the pool.
	d.indexer.Pool, d.indexer.Gateway, d.indexer.Servers, d.indexer.Providers, d.indexer.Router = d.pool, d.gateway, d.ops.servers, d.providers, d.router
	d.alerts = alert.New(alert.Options{Incidents: d.db, To: d.ops.alerts.To, Check: func(ctx context.Context) alert.Result {
		r := d.monitor.Check(ctx)
		alarms, err := d.ops.signin.Alarms(ctx)
		if r.Wrong = append(r.Wrong, alarms...); err != nil {
			r.Unknown = append(r.Unknown, alert.Key{Kind: alert.SignIn})
			d.log.Error("checking sign-ins", "err", err)
		}
		return r
	}, Now: d.now, Log: d.log.With("component", "alert")})
	words, nouns := &bots.Commands{}, d.newCommands()
	home := &commands.Home{Commands: nouns}
	shown := []bots.Platform{at, at.On(store.OnHTTP), page}
	for _, p := range d.opt.platforms() {
		bot := p.open(d, words, home)
		d.bots.Add(bot)
		shown = append(shown, bot)
	}
	d.conversation = bots.New(bots.Options{
		Agent: d.tracer.Agent(agent), Approver: d.gateway, Inbox: d.db, Threads: d.db, Calls: d.db, Feed: d.db, Places: d.db, Backlog: d.db, Audience: audience{d.db, d.db, d.gateway.Policy}, Channels: d.db, Privacy: d.db, Trail: d.db, Plans: d.ops.plans, MayAdd: d.mayAdd, ViewLink: d.ops.views.Links.Address,
		Platforms: shown, Config: d.config, Log: d.log.With("component", "bots"), Now: d.now,
	})
	d.ops.conversations.Handler, home.Cards = d.conversation, d.conversation
	d.gateway.CallerLeft = d.conversation.Refresh
	words.Add(bots.CoreCommands(words, bots.Core{Threads: d.db, Claims: d.db, Handler: d.conversation, Calls: d.db, Cards: d.conversation, Claimable: d.claimable})...)
	words.Add(d.ops.commands(nouns)...)
}

// ExitInUse is nized's exit code if the data directory, the address or the control socket
// is in use by another process.
const ExitInUse = 5

// ChildMain must be called first in main. It does not return in a process that nized
// started from its own executable to guard the children, check a database or read a file.
func ChildMain() {
	process.GuardMain()
	bolt.CheckMain()
	filetext.ChildMain()
}

func (d *Daemon) addr() string { return d.public.Addr().String() }

// noteAddr writes the address file, see noteAt.
func noteAddr(d *Daemon) error { return noteAt(d, "nized.addr", d.addr()) }

// noteAt writes an address to a file of the data directory. It ignores a full disk, which
// must not prevent a start: people can still read, deny calls and export their data.
func noteAt(d *Daemon, name, at string) error {
	err := writeAddr(filepath.Join(d.opt.DataDir, name), at)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		d.log.Warn("the disk is full: the address file was not written", "file", name, "at", at, "err", err)
		return nil
	}
	return err
}

// writeAddr writes the listener's actual address for scripts, since the port may have been
// 0.
func writeAddr(path, addr string) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(addr+"\n"), 0o600); err != nil {
		_ = os.Remove(tmp) // an empty file
		return fmt.Errorf("writing the address: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("writing the address: %w", err)
	}
	return nil
}

// Run works until ctx ends, then drains and returns nil, or ErrRestart if a restore ended
// it. It must be called only once.
func (d *Daemon) Run(ctx context.Context) (err error) {
	var restored *backup.Staged
	defer d.unlock()
	defer func() { err = errors.Join(err, d.swap(restored)) }()
	defer d.closeAll()
	work, stopWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopWork(nil)
	var running sync.WaitGroup
	failed := make(chan error, 30) // one slot for each of the goroutines below
	keep := func(name string, f func(context.Context) error) {
		running.Go(func() {
			if err := f(work); err != nil && work.Err() == nil {
				failed <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	d.edge.setLimits(d.limits())
	control, public := d.controlServer(d.controlHandler()), d.publicServer(d.httpHandler())
	keep("gateway", d.gateway.Run)
	keep("mcp server", d.mcp.Run)
	keep("rounds", d.programs.rounds.Run)
	keep("titles", d.programs.agent.Titles.Run)
	keep("temporary servers", d.programs.servers.Keep)
	keep("streams", func(ctx context.Context) error { return d.streams.Run(ctx, d.db) })
	d.ops.doubles.Mend(work)
	d.ops.bots.Start(work) // before any message is delivered: messages for a bot that is starting are queued
	keep("conversations", d.conversation.Run)
	for _, bot := range d.bots.All() {
		keep(string(bot.Surface()), func(ctx context.Context) error { return bot.Run(ctx, d.conversation) })
	}
	keep("web", func(ctx context.Context) error { return d.ops.browser.Platform.Run(ctx, d.conversation) })
	keep("groups", d.groups.Run)
	keep("schedule", d.scheduler.run)
	keep("control socket", serve(control, d.control, d.serveControl))
	keep("http listener", serve(public, d.public, d.servePublic))
	keep("reloads", d.keepReloading)
	keep("watchdog", d.keepWatchdog)
	keep("keys", d.ops.keys.FinishRotation)
	keep("alerts", d.alerts.Run)
	keep("sign-ins", d.ops.signin.Run)
	keep("traces", d.tracer.Run)
	for _, m := range d.ops.modules() {
		if m.Run != nil {
			keep(m.Name, m.Run)
		}
	}
	keep("database", func(ctx context.Context) error { return d.dir.Hold(ctx, advertised(d)) })
	keep("check of the database", func(ctx context.Context) error { return d.dir.CheckRest(ctx, d.db) })
	if err := d.pool.Start(work); err != nil {
		return err
	}
	if d.servers != nil {
		keep("servers file", d.servers.Keep)
	}
	d.ready.Store(true)
	d.log.Info("nized is ready", "listen", d.addr(), "socket", d.opt.Socket, "data", d.opt.DataDir, "version", api.Version, "took", d.now().Sub(d.started).Round(time.Microsecond))
	if d.opt.Ready != nil {
		d.opt.Ready()
	}
	d.tell("READY=1\nSTATUS=")
	select {
	case <-ctx.Done():
	case err = <-failed:
	case s := <-d.ops.restores.Staged():
		restored = &s
	}
	d.drain(restored == nil, control, public)
	stopWork(llm.ErrShutdown) // a running turn stays open and continues after the restart
	running.Wait()
	restored = d.ops.restores.Late(restored)
	d.log.Info("nized has stopped")
	return err
}

// unlock releases the data directory for the next daemon. Closing the file isn't enough: a
// child that is being started may briefly hold a copy of the descriptor.
func (d *Daemon) unlock() {
	if d.lock != nil {
		_ = syscall.Flock(int(d.lock.Fd()), syscall.LOCK_UN) // on failure, closing it releases the lock later
		_ = d.lock.Close()                                   // nothing was written to it
	}
}

// ErrRestart is returned by Run if nized must restart because its database was replaced.
var ErrRestart = errors.New("nized starts again")

// swap puts a staged copy in place after the database was closed. It returns ErrRestart,
// even if it fails and the old database must be used, or nil if nothing was staged.
func (d *Daemon) swap(s *backup.Staged) error {
	if s == nil {
		return nil
	}
	if err := d.dir.Replace(s); err != nil {
		d.log.Error("restoring; the previous database remains in use", "err", err)
	} else {
		d.log.Info("the database was restored", "kept", s.Kept())
	}
	return ErrRestart
}

// serve returns a function that serves until the server is shut down.
func serve(s *http.Server, ln net.Listener, how func(*http.Server, net.Listener) error) func(context.Context) error {
	return func(context.Context) error {
		if err := how(s, ln); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
}

// drain stops accepting work and lets running work finish within the grace time.
func (d *Daemon) drain(forGood bool, servers ...*http.Server) {
	d.ready.Store(false)
	if forGood {
		d.tell("STOPPING=1")
	}
	// The grace time covers the whole stop: near its end, running calls are cancelled, then
	// there is a moment to answer their callers, then the children are ended.
	grace := store.GetSpan(d.config, "", "drain.grace")
	d.deadline = time.Now().Add(grace)
	reserve := min(maxReserve, grace/4)
	ctx, cancel := context.WithDeadline(context.Background(), d.deadline.Add(-reserve/2))
	defer cancel()
	d.gateway.Drain(d.deadline.Add(-reserve))
	d.close()            // streams on the control socket
	d.mcp.CloseStreams() // Shutdown would wait forever for a connected stream
	var ending sync.WaitGroup
	ending.Go(func() { d.mcp.WaitConns(ctx) }) // upgraded connections, which Shutdown doesn't wait for
	for _, s := range servers {
		ending.Go(func() {
			if err := s.Shutdown(ctx); err != nil {
				d.log.Warn("closing connections that are still busy", "err", err)
				_ = s.Close() // drops them; nothing else can be done
			}
		})
	}
	ending.Wait()
}

// closeAll closes in reverse order what New opened.
func (d *Daemon) closeAll() {
	d.close()
	if d.standing != nil {
		d.standing.Wait()
	}
	for _, ln := range []net.Listener{d.control, d.public} {
		if ln != nil {
			_ = ln.Close() // a drain has already closed it
		}
	}
	if d.deadline.IsZero() { // Run was never called
		d.deadline = time.Now().Add(10 * time.Second)
	}
	ctx, cancel := context.WithDeadline(context.Background(), d.deadline)
	defer cancel()
	if d.pool != nil {
		if err := d.pool.Close(ctx); err != nil {
			d.log.Error("closing servers", "err", err)
		}
	}
	if d.programs.servers != nil {
		if err := d.programs.servers.Close(ctx); err != nil {
			d.log.Error("closing temporary servers", "err", err)
		}
	}
	if d.guard != nil {
		if err := d.guard.Close(); err != nil {
			d.log.Error("closing the guard", "err", err)
		}
	}
	if d.indexer != nil {
		d.indexer.Index.Close()
	}
	d.transport.CloseIdleConnections()
	d.memory.Stop()
	if d.db != nil {
		if err := d.db.Close(); err != nil {
			d.log.Error("closing the database", "err", err)
		}
	}
	if d.holder != nil {
		d.holder.Wait() // for requests that waited for the database
	}
	if d.public != nil {
		_ = os.Remove(filepath.Join(d.opt.DataDir, "nized.addr")) // it may not exist
		_ = os.Remove(filepath.Join(d.opt.DataDir, api.SocketNote))
	}
}
