package daemon

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/terminal"
	"nize/bots/web"
	"nize/daemon/api"
	"nize/daemon/asks"
	"nize/daemon/backup"
	"nize/daemon/browser"
	"nize/daemon/chatclient"
	"nize/daemon/commands"
	"nize/daemon/company"
	"nize/daemon/connect"
	"nize/daemon/control"
	"nize/daemon/credentials"
	"nize/daemon/documents"
	"nize/daemon/extensions"
	"nize/daemon/failure"
	"nize/daemon/fileconfig"
	"nize/daemon/hooks"
	"nize/daemon/imports"
	"nize/daemon/indexer"
	"nize/daemon/monitor"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/daemon/programs"
	"nize/daemon/registry"
	"nize/daemon/settings"
	"nize/daemon/signin"
	"nize/daemon/spending"
	"nize/daemon/views"
	"nize/mcp"
	"nize/mcp/egress"
	upstreamoauth "nize/mcp/upstream/oauth"
	"nize/store"
)

// operations implement the control API. wire creates each of them once; nizectl, the chats
// and the pages share them.
type operations struct {
	// Servers and their tools.
	servers    *control.Servers
	extensions *extensions.Extensions
	registry   *registry.Registry
	imports    *imports.Importer
	tools      *control.Tools
	hooks      *hooks.Hooks
	index      *control.Index
	unmet      *control.UnmetRequests
	indexer    *indexer.Indexer

	// Models, agents and costs.
	providers *control.Providers
	models    *control.Models
	prices    *spending.Prices
	agents    *control.Agents
	usage     *spending.Usage
	budgets   *spending.Budgets
	plans     *spending.Plans

	// Access rights and keys.
	tokens      *control.Tokens
	ownTokens   *control.OwnTokens
	credentials *credentials.Credentials
	connect     *connect.Connect
	views       *views.Views
	projects    *programs.Projects
	documents   *documents.Documents
	approvals   *control.Approvals
	asks        *asks.Asks
	grants      *control.Grants

	// People and groups.
	users   *people.Users
	leavers *people.Leavers
	groups  *people.Groups
	links   *people.Links

	signin  *signin.Server
	company *company.Company

	// Conversations, bots and channels.
	bots          *control.Bots
	doubles       *control.Doubles
	channels      *control.Channels
	conversations *control.Conversations
	chatClient    *chatclient.Client
	browser       *browser.Browser
	entries       *fileconfig.Applier
	mcp           *mcp.Server

	// The installation.
	alerts   *monitor.Alerts
	doctor   *monitor.Doctor
	status   *monitor.Status
	settings *settings.Settings
	backups  *backup.Backups
	restores *backup.Restores
	keys     *backup.Keys
	clock    *backup.Clock
	records  *backup.Records
	audit    *control.Audit
}

func (d *Daemon) newOperations(at *terminal.Platform, page *web.Platform, members *control.ChannelMembers) *operations {
	o := new(operations)
	o.providers = d.providers
	o.prices = &spending.Prices{Store: d.db, Providers: o.providers}
	o.models = &control.Models{Store: guarded(d.db), Providers: o.providers, Prices: o.prices, Router: d.router, Directory: d.directory}
	o.entries = &fileconfig.Applier{Store: d.db, Open: d.openProvider, Router: d.router, Directory: d.directory, CheckPattern: d.native.CheckPattern, Env: d.opt.Env, Now: d.now}
	o.extensions = extensions.New(extensions.Options{
		Dir: filepath.Join(d.opt.DataDir, "extensions"), Tools: d.native.Registry, DB: d.db, Spawn: d.guard.Spawn, Show: d.native.renderers.Put, Check: d.indexer.Gate.Check,
		Agents: o.entries.Extend, Log: d.log.With("component", "extensions"),
	})
	d.monitor = d.newMonitor(o.extensions)
	o.agents = &control.Agents{CheckPattern: d.native.CheckPattern, Store: guarded(d.db), Router: d.router, Directory: d.directory, Now: d.now}
	o.documents = d.native.documents
	o.projects = &programs.Projects{Store: d.db, Directory: d.directory, Documents: o.documents, Now: d.now}
	o.usage = &spending.Usage{Store: d.db, Directory: d.directory, Projects: o.projects}
	o.budgets = &spending.Budgets{Store: d.db, Users: d.db, Directory: d.directory, Projects: o.projects, Config: d.config, Providers: o.providers, Servers: d.db, Now: d.now}
	o.plans = &spending.Plans{DB: d.db, Budgets: o.budgets, Config: d.config, Now: d.now}
	o.servers = &control.Servers{Store: d.db, CheckCredential: d.declared.Declarations.CheckServer, Extensions: o.extensions, NotAdded: func() []api.ServerView { return d.servers.NotAdded() }, Pool: d.pool, Gateway: d.gateway, Directory: d.directory, Now: d.now, Log: d.log}
	o.imports = &imports.Importer{Servers: o.servers, Env: d.opt.Env, Port: func() string { return d.port }, Now: d.now, Log: d.log}
	o.registry = &registry.Registry{Address: func() string { return d.config.Get("", "registry.url") }, Transport: d.transport}
	o.bots = &control.Bots{Store: d.db, Bots: d.bots, PublicURL: func() string { return d.layers.Get("public_url") }, Now: d.now, Log: d.log,
		Put: func(ctx context.Context, by store.Caller, req api.PutSettingRequest) (api.Setting, error) {
			return o.settings.Put(ctx, by, req)
		}}
	o.doubles = &control.Doubles{Bots: o.bots, Settings: d.db, People: d.db, Log: d.log, Put: func(ctx context.Context, by store.Caller, key, value string) error {
		if value == "" {
			_, err := o.settings.Unset(ctx, by, api.UnsetSettingRequest{Key: key})
			return err
		}
		_, err := o.settings.Put(ctx, by, api.PutSettingRequest{Key: key, Value: value})
		return err
	}}
	o.channels = &control.Channels{Store: d.db, Bots: d.bots, Members: members, Directory: d.directory, Agents: o.agents, Models: o.models, Servers: o.servers, Log: d.log}
	o.tools = &control.Tools{Store: d.db, Hooks: d.hooks, Budgets: o.budgets, Gateway: d.gateway, Servers: o.servers, Agents: o.agents, Directory: d.directory, PlaceOf: o.channels.PlaceOf, Config: d.config, Now: d.now}
	o.index = &control.Index{Index: d.indexer.Index, Unusable: d.indexer.Unusable, Servers: o.servers.All}
	o.hooks = &hooks.Hooks{Store: d.db, Set: d.hooks, BuiltIn: d.gateway.BuiltinHooks, Servers: o.servers, Directory: d.directory, Config: d.config}
	o.groups = &people.Groups{Store: d.db, Directory: d.directory, Live: d.groups, Bots: d.bots, Account: o.bots.Account}
	o.users = &people.Users{Store: d.db, Directory: d.directory, Groups: o.groups, UndecidablePolicies: d.gateway.Policy.UndecidablePolicies, Now: d.now}
	o.leavers = &people.Leavers{Store: d.db, Records: d.db, Modules: o.modules(), Users: o.users, Feedback: d.gateway.Feedback}
	o.links = &people.Links{Store: d.db, Users: d.db, Directory: d.directory, Joined: d.hooks.Reload, Log: d.log}
	origin := func(r *http.Request) string { return d.hosts.Load().origin(r) }
	widgets := func() string { return d.hosts.Load().widgets }
	pages := &people.Tokens{Store: d.db, Directory: d.directory, Now: d.now}
	base := func() string { url, _ := d.baseURL(); return url }
	o.company = company.New(company.Options{
		Store: d.db, Config: d.config, Base: base, Now: d.now, Log: d.log.With("component", "company"),
		HTTP: func(ctx context.Context, address string) *http.Client {
			return connect.Guarded(ctx, address, func() string { return d.config.Get("", "egress.allow") }, egress.Limits{Time: 15 * time.Second, Bytes: 1 << 20})
		},
	})
	o.signin = signin.New(signin.Options{
		Company:  o.company,
		Sessions: &signin.Sessions{Tokens: signedIn{d.db}, Notices: d.db, Config: d.config, Origin: origin, Now: d.now},
		Store:    d.db, Pages: pages, Tell: newChats(d).TellPerson, Directory: d.directory, Base: base,
		Serves:       func(r *http.Request, u *url.URL) bool { return d.hosts.Load().owns(r, u) },
		Transport:    egress.NewTransport(egress.Options{Allow: func() string { return d.config.Get("", "egress.allow") }, MaxHeaderTime: 5 * time.Second}),
		CheckPattern: d.native.CheckPattern,
		Log:          d.log.With("component", "signin"),
	})
	o.company.SignIn = o.signin
	d.groups.Confirm = o.company.Confirm
	o.indexer, o.mcp = d.indexer, d.mcp
	o.unmet = &control.UnmetRequests{Store: d.db}
	o.tokens = &control.Tokens{CheckPattern: d.native.CheckPattern, Store: d.db, Pages: pages, Directory: d.directory, Config: d.config, Now: d.now}
	o.ownTokens = &control.OwnTokens{Tokens: o.tokens}
	o.credentials = credentials.New(credentials.Options{
		Resolver: d.declared, Store: d.db, Servers: o.servers, Pool: d.pool, Directory: d.directory, Projects: o.projects, Bots: d.bots, Logins: d.logins,
		Tools: d.gateway.Catalog, CheckSecret: monitor.CheckSecret, Config: d.config, Now: d.now, Log: d.log,
	})
	o.connect = connect.New(connect.Options{Logins: d.logins, Declared: o.credentials, Servers: o.servers, Pool: d.pool, Users: d.db, Origin: browserOrigin(d),
		Person: o.signin.Person, Tell: newChats(d).TellPerson, Now: d.now, Log: d.log.With("component", "login")})
	o.asks = &asks.Asks{Gateway: d.gateway, Calls: d.db, Now: d.now}
	o.approvals = &control.Approvals{Calls: d.db, Trail: d.db, Gateway: d.gateway}
	o.grants = &control.Grants{Store: d.db, Trail: d.db, Policy: d.gateway.Policy, Directory: d.directory, Now: d.now, FindTool: d.gateway.Catalog.Get}
	o.alerts = d.newAlerts()
	o.doctor, o.status = d.newDoctor(o), d.newStatus(o)
	defaults := &settings.Defaults{Config: d.config, Users: d.db, CheckAgent: o.agents.Check, CheckModel: o.models.Check, CheckServer: o.servers.Check, Log: d.log}
	exclusive := new(backup.Exclusive)
	o.backups, o.restores = d.scheduler.backups, backup.NewRestores(d.dir, exclusive)
	o.records = &backup.Records{DB: d.db}
	o.clock = &backup.Clock{DB: d.db, Now: d.opt.Now}
	o.keys = &backup.Keys{Directory: d.dir, DB: d.db, Exclusive: exclusive, Closing: d.closing, Log: d.log}
	o.audit = &control.Audit{Store: d.db, Directory: d.directory, Now: d.now}
	o.settings = &settings.Settings{Config: d.config, Trail: d.db, Directory: d.directory, Defaults: defaults, CheckTarget: o.providers.CheckTarget, CheckExamples: d.indexer.CheckExamples, CheckRequired: o.company.CheckRequired, Changed: d.settingChanged}
	o.conversations = &control.Conversations{
		Store: d.db, Sees: d.gateway.Policy.Sees, Cards: d.gateway.Cards, Terminal: at, Config: d.config, Begins: defaults.Of, Now: d.now,
		Agents: o.agents, Models: o.models, Servers: o.servers,
	}
	o.chatClient = &chatclient.Client{Models: o.models, Servers: o.servers, Conversations: o.conversations, Approvals: o.approvals, Settings: o.settings}
	o.views = views.New(views.Options{
		DB: d.db, Store: d.db, Kept: d.db, Events: d.db, Calls: o.approvals, Tools: d.gateway.Catalog, Rights: views.Rights{Policy: d.gateway.Policy, Tools: d.gateway.Catalog},
		Gateway: d.gateway, Resources: mcp.Resources{Gateway: d.gateway}, Resource: d.pool.ReadView, Template: d.native.Template, Renderers: d.native.renderers,
		Widgets: widgets, PublicURL: func() string { return d.layers.Get("public_url") }, Config: d.config, Now: d.now, Log: d.log.With("component", "views"),
	})
	o.browser = browser.New(browser.Options{
		Platform: page, Conversations: o.conversations, Approvals: o.approvals, Agents: o.agents, Models: o.models, Providers: o.providers, Servers: o.servers, Tools: o.tools, Chat: o.chatClient, Bots: d.bots, Store: d.db, Schema: d.inputSchema, Config: d.config,
		Places: browser.Places{
			Settings: o.settings, Usage: o.usage, Budgets: o.budgets, Grants: o.grants, Hooks: o.hooks, Tokens: o.ownTokens, Credentials: o.credentials, Connect: o.connect,
			SignIns: o.signin, Sessions: d.db, Status: o.status, Doctor: o.doctor,
		},
		Views: o.views, Links: o.views.Links, Person: o.signin.Find, Origin: origin, Widgets: widgets, Watch: d.streams.Watch, Speak: speaker, Closing: d.closing, Now: d.now, Log: d.log.With("component", "browser"),
	})
	o.signin.Landing = o.browser.Landing
	return o
}

// newCommands returns the chat commands, on the same operations.
func (d *Daemon) newCommands() *commands.Commands {
	o := d.ops
	return &commands.Commands{
		Agents: o.agents, Approvals: o.approvals, Budgets: o.budgets, Channels: o.channels, Conversations: o.conversations, Credentials: o.credentials, Connect: o.connect,
		Grants: o.grants, Links: o.links, Models: o.models, Servers: o.servers, Settings: o.settings, Keys: d.layers.StoredKeys(), SignIns: o.signin, Tokens: o.tokens, Tools: o.tools, Usage: o.usage,
		BaseURL: d.baseURL, Now: d.now,
	}
}

// commandOrder is the order in which help lists the chat commands within their groups.
var commandOrder = []string{
	"tools", "servers", "agent", "model", "streaming", "usage", "approvals", "settings", "channel", "hooks", "credentials", "connect", "tokens", "login", "link", "privacy", "forget",
}

// commands returns the chat commands of all modules.
func (o *operations) commands(rest *commands.Commands) []bots.Command {
	all := rest.List()
	for _, m := range o.modules() {
		all = append(all, m.Commands...)
	}
	slices.SortFunc(all, func(a, b bots.Command) int {
		return cmp.Compare(slices.Index(commandOrder, a.Name), slices.Index(commandOrder, b.Name))
	})
	return all
}

// mount registers the operations of all modules; a test finds missing ones.
func (o *operations) mount(m *mux.Mux) {
	for _, one := range o.modules() {
		if one.Operations != nil {
			one.Operations(m)
		}
	}
}

// speaker returns the translator for a locale.
func speaker(locale string) mux.Speaker {
	if c := phrases.For(locale); !c.English() {
		return c
	}
	return nil
}

// controlMux serves the operations on the control socket.
func (d *Daemon) controlMux(on *http.ServeMux) *mux.Mux {
	m := mux.New(on, mux.Options{Caller: d.socketCaller, Speak: speaker, Fail: failure.Control.Write, Listen: d.streams.Enter, Closing: d.closing, Log: d.log})
	d.ops.mount(m)
	return m
}

// assertions gets assertions about people from the company's identity provider, which is
// made after the logins that need them.
type assertions struct{ d *Daemon }

func (a assertions) Assertion(ctx context.Context, user string, want upstreamoauth.AssertionRequest) (store.Secret, error) {
	return a.d.ops.company.Assertion(ctx, user, want)
}
