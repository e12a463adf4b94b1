package daemon

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

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
	"nize/daemon/fileconfig"
	"nize/daemon/imports"
	"nize/daemon/indexer"
	"nize/daemon/links"
	"nize/daemon/monitor"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/daemon/plans"
	"nize/daemon/registry"
	"nize/daemon/renderers"
	"nize/daemon/settings"
	"nize/daemon/signin"
	"nize/daemon/views"
	"nize/mcp"
	"nize/mcp/egress"
	"nize/mcp/policy"
	"nize/mcp/upstream/login"
	"nize/store"
)

// operations implement the control API. wire creates each of them once; nizectl, the chats
// and the pages share them.
type operations struct {
	// Servers and their tools.
	servers  *control.Servers
	all      *extensions.Extensions // including native tools
	registry *registry.Registry
	imports  *imports.Importer
	tools    *control.Tools
	hooks    *control.Hooks
	index    *control.Index
	unmet    *control.UnmetRequests
	indexer  *indexer.Indexer

	// Models, agents and costs.
	providers *control.Providers
	models    *control.Models
	prices    *control.Prices
	agents    *control.Agents
	usage     *control.Usage
	budgets   *control.Budgets
	plans     *plans.Plans

	// Access rights and keys.
	tokens      *control.Tokens
	ownTokens   *control.OwnTokens
	credentials *credentials.Credentials
	connect     *connect.Connect
	renderers   *renderers.Renderers
	projects    *control.Projects
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
	viewLinks     *links.Links
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
	o.prices = &control.Prices{Store: d.db, Providers: o.providers}
	o.models = &control.Models{Store: guarded(d.db), Providers: o.providers, Prices: o.prices, Router: d.router, Directory: d.directory}
	o.entries = &fileconfig.Applier{Store: d.db, Open: d.openProvider, Router: d.router, Directory: d.directory, CheckPattern: d.native.CheckPattern, Env: d.opt.Env, Now: d.now}
	o.agents = &control.Agents{CheckPattern: d.native.CheckPattern, Store: guarded(d.db), Router: d.router, Directory: d.directory, Now: d.now}
	o.documents = d.native.documents
	o.projects = &control.Projects{Store: d.db, Directory: d.directory, Documents: o.documents, Now: d.now}
	o.usage = &control.Usage{Store: d.db, Directory: d.directory, Projects: o.projects}
	o.budgets = &control.Budgets{Store: d.db, Users: d.db, Directory: d.directory, Projects: o.projects, Config: d.config, Providers: o.providers, Servers: d.db, Now: d.now}
	o.plans = &plans.Plans{Store: d.db, Budgets: o.budgets, Config: d.config, Now: d.now}
	o.servers = &control.Servers{Store: d.db, Pool: d.pool, Gateway: d.gateway, Directory: d.directory, Now: d.now, Log: d.log}
	o.all = &extensions.Extensions{Servers: o.servers, Loader: d.native.extensions, Registry: d.native.Registry, Failed: func() []imports.Failed { return d.servers.Failed() }}
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
	o.index = &control.Index{Index: d.indexer.Index, Unusable: d.indexer.Unusable, Servers: o.all.List}
	o.hooks = &control.Hooks{Store: d.db, Set: d.hooks, BuiltIn: d.gateway.BuiltinHooks, Servers: o.servers, Directory: d.directory, Config: d.config}
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
	o.indexer, o.mcp = d.indexer, d.mcp
	o.unmet = &control.UnmetRequests{Store: d.db}
	o.tokens = &control.Tokens{CheckPattern: d.native.CheckPattern, Store: d.db, Pages: pages, Directory: d.directory, Config: d.config, Now: d.now}
	o.ownTokens = &control.OwnTokens{Tokens: o.tokens}
	sealed := &control.Credentials{Store: d.db, Servers: o.servers, Pool: d.pool, Directory: d.directory, Projects: o.projects, CheckSecret: func(key store.CredentialKey, secret store.Secret) error {
		if err := monitor.CheckSecret(key, secret); err != nil {
			return err
		}
		return login.CheckSecret(key, secret)
	}, Config: d.config, Now: d.now, Log: d.log}
	o.renderers = &renderers.Renderers{Store: d.db, Set: d.native.renderers, Tool: d.gateway.Catalog.Get, IDs: d.gateway.Catalog.ToolIDs}
	o.credentials = &credentials.Credentials{Credentials: sealed, Resolver: d.declared, Bots: d.bots, Tools: d.gateway.Catalog.Each, Logins: d.logins}
	o.servers.CheckCredential = o.credentials.CheckServer
	o.connect = connect.New(connect.Options{Logins: d.logins, Declared: o.credentials, Servers: o.servers, Pool: d.pool, Users: d.db, Origin: browserOrigin(d),
		Person: o.signin.Person, Tell: newChats(d).TellPerson, Now: d.now, Log: d.log.With("component", "login")})
	o.asks = &asks.Asks{Gateway: d.gateway, Calls: d.db, Now: d.now}
	o.approvals = &control.Approvals{Calls: d.db, Trail: d.db, Gateway: d.gateway}
	o.grants = &control.Grants{Store: d.db, Trail: d.db, Policy: d.gateway.Policy, Directory: d.directory, Now: d.now, FindTool: d.gateway.Catalog.Get}
	o.alerts = d.newAlerts()
	o.doctor, o.status = d.newDoctor(o.alerts, o.all), d.newStatus(o.alerts, o.all)
	defaults := &settings.Defaults{Config: d.config, Users: d.db, CheckAgent: o.agents.Check, CheckModel: o.models.Check, CheckServer: o.servers.Check, Log: d.log}
	exclusive := new(backup.Exclusive)
	o.backups, o.restores = d.scheduler.backups, backup.NewRestores(d.dir, exclusive)
	o.records = &backup.Records{DB: d.db}
	o.clock = &backup.Clock{DB: d.db, Now: d.opt.Now}
	o.keys = &backup.Keys{Directory: d.dir, DB: d.db, Exclusive: exclusive, Closing: d.closing, Log: d.log}
	o.audit = &control.Audit{Store: d.db, Directory: d.directory, Now: d.now}
	o.settings = &settings.Settings{Config: d.config, Trail: d.db, Directory: d.directory, Defaults: defaults, CheckTarget: o.providers.CheckTarget, CheckExamples: d.indexer.CheckExamples, CheckRequired: o.company.CheckRequired, Changed: d.settingChanged}
	o.conversations = &control.Conversations{
		Store: d.db, Sees: d.gateway.Policy.Sees, Card: d.gateway.Card, Terminal: at, Config: d.config, Begins: defaults.Of, Now: d.now,
		Agents: o.agents, Models: o.models, Servers: o.servers,
	}
	o.chatClient = &chatclient.Client{Models: o.models, Servers: o.servers, Conversations: o.conversations, Approvals: o.approvals, Settings: o.settings}
	o.browser = browser.New(browser.Options{
		Platform: page, Conversations: o.conversations, Approvals: o.approvals, Agents: o.agents, Models: o.models, Providers: o.providers, Servers: o.servers, Tools: o.tools, Chat: o.chatClient, Bots: d.bots, Store: d.db, Schema: d.inputSchema, Config: d.config,
		Places: browser.Places{
			Settings: o.settings, Usage: o.usage, Budgets: o.budgets, Grants: o.grants, Hooks: o.hooks, Tokens: o.ownTokens, Credentials: o.credentials, Connect: o.connect,
			SignIns: o.signin, Sessions: d.db, Status: o.status, Doctor: o.doctor,
		},
		Person: o.signin.Find, Origin: origin, Widgets: widgets, Watch: d.streams.Watch, Speak: speaker, Closing: d.closing, Now: d.now, Log: d.log.With("component", "browser"),
	})
	o.signin.Landing = o.browser.Landing
	shown := o.newViews(d.gateway, views.Options{Template: d.native.Template, Gateway: d.gateway, Resources: mcp.Resources{Gateway: d.gateway}, Resource: d.pool.ReadView, Kept: d.db, Events: d.db, Config: d.config, Widgets: widgets, Now: d.now, Log: d.log.With("component", "views")})
	o.viewLinks = links.New(links.Options{Store: d.db, Views: shown, Config: d.config, PublicURL: func() string { return d.layers.Get("public_url") }, Now: d.now, Log: d.log.With("component", "links")})
	o.browser.Views, o.browser.Links = shown, o.viewLinks
	return o
}

// newViews returns the component that shows results in the views of their tools.
func (o *operations) newViews(gateway *mcp.Gateway, opt views.Options) *views.Views {
	opt.Calls, opt.Tools = o.approvals, gateway.Catalog
	opt.Usable = func(ctx context.Context, by store.Caller, c store.Call) error {
		v, err := gateway.Policy.View(ctx, by, store.Scope{Agent: c.Agent, Thread: c.Thread, View: c.View != ""})
		if err == nil {
			_, err = gateway.Policy.Find(v, c.ToolID())
		}
		return err
	}
	opt.Listed = func(ctx context.Context, by store.Caller, c store.Call) (list []*policy.Tool, err error) {
		v, err := gateway.Policy.View(ctx, by, store.Scope{Agent: c.Agent, Thread: c.Thread, View: true})
		if err != nil {
			return nil, err
		}
		gateway.Catalog.Each(func(t *policy.Tool) bool {
			if t.Server == c.Server && v.Usable(t) {
				list = append(list, t)
			}
			return true
		})
		slices.SortFunc(list, func(a, b *policy.Tool) int { return strings.Compare(a.Name, b.Name) })
		return list, nil
	}
	return views.New(opt)
}

// newCommands returns the chat commands, on the same operations.
func (d *Daemon) newCommands() *commands.Commands {
	o := d.ops
	return &commands.Commands{
		Agents: o.agents, Approvals: o.approvals, Budgets: o.budgets, Channels: o.channels, Conversations: o.conversations, Credentials: o.credentials, Connect: o.connect,
		Grants: o.grants, Hooks: o.hooks, Links: o.links, Models: o.models, Servers: o.servers, Settings: o.settings, SignIns: o.signin, Tokens: o.tokens, Tools: o.tools, Usage: o.usage,
		BaseURL: d.baseURL, Now: d.now,
	}
}

// mount registers each operation of daemon/api with its function; a test finds missing
// ones.
func (o *operations) mount(m *mux.Mux) {
	for _, one := range o.modules() {
		if one.Operations != nil {
			one.Operations(m)
		}
	}
	mux.Handle(m, api.ListAgents, o.agents.List)
	mux.Handle(m, api.RemoveAgent, o.agents.Remove)
	mux.Handle(m, api.PutAgent, o.agents.Put)
	mux.Handle(m, api.ListAlerts, o.alerts.List)
	mux.Handle(m, api.TestAlert, o.alerts.Test)
	mux.Handle(m, api.AckAlert, o.alerts.Acknowledge)
	mux.Handle(m, api.ListApprovals, o.approvals.List)
	mux.Handle(m, api.GetApproval, o.approvals.Get)
	mux.Handle(m, api.DecideCall, o.approvals.Decide)
	mux.Handle(m, api.PostAsk, o.asks.Post)
	mux.Handle(m, api.AskStats, o.asks.Stats)
	mux.Handle(m, api.GetAsk, o.asks.Get)
	mux.Handle(m, api.CancelAsk, o.asks.Cancel)
	mux.HandleStream(m, api.ReadAudit, o.audit.Read)
	mux.HandleStream(m, api.ExportAudit, o.audit.Export)
	mux.Handle(m, api.GetAuditKey, o.audit.Key)
	mux.HandleStream(m, api.VerifyAudit, o.audit.Verify)
	mux.HandleDownload(m, api.DownloadBackup, o.backups.Download)
	mux.Handle(m, api.ListBots, o.bots.List)
	mux.Handle(m, api.RemoveBot, o.bots.Remove)
	mux.Handle(m, api.ConnectBot, o.bots.Connect)
	mux.HandleStream(m, api.ConnectDouble, o.doubles.Connect)
	mux.Handle(m, api.DisconnectDouble, o.doubles.Disconnect)
	mux.Handle(m, api.ClaimBot, o.bots.Claim)
	mux.Handle(m, api.StartBot, o.bots.Switch(true))
	mux.Handle(m, api.StopBot, o.bots.Switch(false))
	mux.Handle(m, api.SweepBot, o.bots.Sweep)
	mux.Handle(m, api.SetBotAccess, o.bots.SetAccess)
	mux.Handle(m, api.ListBudgets, o.budgets.List)
	mux.Handle(m, api.RemoveBudget, o.budgets.Remove)
	mux.Handle(m, api.SetBudget, o.budgets.Set)
	mux.Handle(m, api.GetRenderer, o.renderers.Get)
	mux.Handle(m, api.PutRenderer, o.renderers.Put)
	mux.Handle(m, api.RemoveRenderer, o.renderers.Remove)
	mux.Handle(m, api.ListPlans, o.plans.List)
	mux.Handle(m, api.RemovePlan, o.plans.Remove)
	mux.Handle(m, api.PutPlan, o.plans.Put)
	mux.Handle(m, api.AssignPlan, o.plans.Assign)
	mux.Handle(m, api.GetCall, o.approvals.GetCall)
	mux.Handle(m, api.ListChannels, o.channels.List)
	mux.Handle(m, api.UnsetChannel, o.channels.Unset)
	mux.Handle(m, api.SetChannel, o.channels.Set)
	mux.Handle(m, api.ListConversations, o.conversations.List)
	mux.Handle(m, api.StartConversation, o.conversations.Start)
	mux.Handle(m, api.ShowConversation, o.conversations.Show)
	mux.HandleStream(m, api.FollowConversation, o.conversations.Follow)
	mux.Handle(m, api.ForgetConversation, o.conversations.Forget)
	mux.Handle(m, api.SendMessage, o.conversations.Send)
	mux.Handle(m, api.StopTurn, o.conversations.Stop)
	mux.Handle(m, api.ListSettings, o.settings.List)
	mux.Handle(m, api.UnsetSetting, o.settings.Unset)
	mux.Handle(m, api.ExplainSetting, o.settings.Explain)
	mux.Handle(m, api.PutSetting, o.settings.Put)
	mux.Handle(m, api.DeleteCredential, o.credentials.Delete)
	mux.Handle(m, api.ListCredentials, o.credentials.List)
	mux.Handle(m, api.PutCredential, o.credentials.Put)
	mux.Handle(m, api.ListDeclarations, o.credentials.ListDeclarations)
	mux.Handle(m, api.GetDeclaration, o.credentials.GetDeclaration)
	mux.Handle(m, api.Declare, o.credentials.Declare)
	mux.Handle(m, api.RemoveDeclaration, o.credentials.RemoveDeclaration)
	mux.Handle(m, api.LoginDeclared, o.connect.BeginDeclared)
	mux.Handle(m, api.Doctor, o.doctor.Examine)
	mux.Handle(m, api.ListDomains, o.tools.ListDomains)
	mux.Handle(m, api.BrowseDomain, o.tools.BrowseDomain)
	mux.Handle(m, api.ListGrants, o.grants.List)
	mux.Handle(m, api.AddGrant, o.grants.Add)
	mux.Handle(m, api.RevokeGrant, o.grants.Revoke)
	mux.Handle(m, api.ListGroups, o.groups.List)
	mux.Handle(m, api.AddGroup, o.groups.Add)
	mux.Handle(m, api.RemoveGroup, o.groups.Remove)
	mux.Handle(m, api.GetGroup, o.groups.Get)
	mux.Handle(m, api.PatchGroup, o.groups.Patch)
	mux.Handle(m, api.ListHooks, o.hooks.List)
	mux.Handle(m, api.AddHook, o.hooks.Add)
	mux.Handle(m, api.RemoveHook, o.hooks.Remove)
	mux.Handle(m, api.GetHook, o.hooks.Get)
	mux.Handle(m, api.PatchHook, o.hooks.Patch)
	mux.Handle(m, api.TestHook, o.hooks.Test)
	mux.Handle(m, api.GetOIDC, o.company.Show)
	mux.Handle(m, api.SetOIDC, o.company.Set)
	mux.Handle(m, api.TestOIDC, o.company.Test)
	mux.Handle(m, api.RemoveOIDC, o.company.Remove)
	mux.Handle(m, api.GetClock, o.clock.Show)
	mux.Handle(m, api.RepairClock, o.clock.Repair)
	mux.HandleStream(m, api.CompactDatabase, o.records.Compact)
	mux.Handle(m, api.ShowRecord, o.records.Show)
	mux.Handle(m, api.ExportKey, o.keys.Export)
	mux.Handle(m, api.RotateKeys, o.keys.Rotate)
	mux.Handle(m, api.MakeLink, o.links.Make)
	mux.Handle(m, api.Join, o.links.Join)
	mux.Handle(m, api.ShowLink, o.links.Show)
	mux.Handle(m, api.ListLogins, o.signin.List)
	mux.Handle(m, api.StartLogin, o.signin.Start)
	mux.Handle(m, api.ApproveLogin, o.signin.Approve)
	mux.Handle(m, api.DenyLogin, o.signin.Deny)
	mux.Handle(m, api.ShowLogin, o.signin.Show)
	mux.Handle(m, api.RevokeLogin, o.signin.Revoke)
	mux.HandleDuplex(m, api.ServeMCP, o.mcp.ServeConn)
	mux.Handle(m, api.ListModels, o.models.List)
	mux.Handle(m, api.RemoveModel, o.models.Remove)
	mux.Handle(m, api.SetModel, o.models.Set)
	mux.Handle(m, api.SetDefaultModel, o.models.SetDefault)
	mux.Handle(m, api.SetFallbacks, o.models.SetFallbacks)
	mux.Handle(m, api.UnsetPrice, o.prices.Unset)
	mux.Handle(m, api.GetPrice, o.prices.Get)
	mux.Handle(m, api.SetPrice, o.prices.Set)
	mux.Handle(m, api.ListProjects, o.projects.List)
	mux.Handle(m, api.AddProject, o.projects.Add)
	mux.Handle(m, api.GetProject, o.projects.Get)
	mux.Handle(m, api.PatchProject, o.projects.Patch)
	mux.Handle(m, api.RemoveProject, o.projects.Remove)
	mux.Handle(m, api.ListProjectKeys, o.projects.Keys)
	mux.Handle(m, api.CreateProjectKey, o.projects.CreateKey)
	mux.Handle(m, api.RevokeProjectKey, o.projects.RevokeKey)
	mux.Handle(m, api.ListProviders, o.providers.List)
	mux.Handle(m, api.AddProvider, o.providers.Add)
	mux.Handle(m, api.RemoveProvider, o.providers.Remove)
	mux.Handle(m, api.DisableProvider, o.providers.Disable)
	mux.Handle(m, api.EnableProvider, o.providers.Enable)
	mux.Handle(m, api.TestProvider, o.providers.Test)
	mux.HandleStream(m, api.Reindex, o.indexer.Reindex)
	mux.Handle(m, api.SearchRegistry, o.registry.Search)
	mux.Handle(m, api.GetRegistryServer, o.registry.Get)
	mux.HandleUpload(m, api.Restore, o.restores.Upload)
	mux.Handle(m, api.ListServers, o.all.List)
	mux.Handle(m, api.AddServer, o.servers.Add)
	mux.HandleStream(m, api.ImportServers, o.imports.Import)
	mux.Handle(m, api.RemoveServer, o.servers.Remove)
	mux.Handle(m, api.LoginServer, o.connect.Begin)
	mux.Handle(m, api.GetLogin, o.connect.Show)
	mux.Handle(m, api.ForgetLogin, o.connect.Forget)
	mux.Handle(m, api.GetLoginFlow, o.connect.Follow)
	mux.Handle(m, api.FinishLogin, o.connect.FinishPasted)
	mux.Handle(m, api.GetServer, o.servers.Get)
	mux.Handle(m, api.PatchServer, o.servers.Patch)
	mux.HandleStream(m, api.ServerLogs, o.servers.Logs)
	mux.Handle(m, api.RestartServer, o.servers.Restart)
	mux.Handle(m, api.TestServer, o.servers.Test)
	mux.Handle(m, api.ListUntrusted, o.all.ListUntrusted)
	mux.Handle(m, api.TrustTools, o.all.Trust)
	mux.Handle(m, api.GetStatus, o.status.Show)
	mux.Handle(m, api.RevokeTokens, o.tokens.RevokeAll)
	mux.Handle(m, api.ListTokens, o.tokens.List)
	mux.Handle(m, api.CreateToken, o.tokens.Create)
	mux.Handle(m, api.RevokeToken, o.tokens.Revoke)
	mux.Handle(m, api.RotateToken, o.tokens.Rotate)
	mux.Handle(m, api.ListTools, o.tools.List)
	mux.Handle(m, api.GetIndex, o.index.Show)
	mux.Handle(m, api.SearchTools, o.tools.Search)
	mux.Handle(m, api.ForgetUnmetRequests, o.unmet.Forget)
	mux.Handle(m, api.ListUnmetRequests, o.unmet.List)
	mux.Handle(m, api.GetTool, o.tools.Get)
	mux.Handle(m, api.CallTool, o.tools.Call)
	mux.HandleStream(m, api.FollowProgress, o.tools.FollowProgress)
	mux.Handle(m, api.ExplainTool, o.tools.Explain)
	mux.Handle(m, api.GetUsage, o.usage.Get)
	mux.Handle(m, api.ListUsers, o.users.List)
	mux.Handle(m, api.AddUser, o.users.Add)
	mux.Handle(m, api.RemoveUser, o.leavers.Remove)
	mux.Handle(m, api.GetUser, o.users.Get)
	mux.Handle(m, api.PatchUser, o.users.Patch)
	mux.HandleStream(m, api.ExportUser, o.leavers.Export)
	mux.Handle(m, api.ForgetUser, o.leavers.Forget)
	mux.Handle(m, api.Unlink, o.users.Unlink)
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
	m := mux.New(on, mux.Options{Caller: d.socketCaller, Speak: speaker, Fail: failControl, Listen: d.streams.Enter, Closing: d.closing, Log: d.log})
	d.ops.mount(m)
	return m
}
