package daemon

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/openapi"
	"nize/daemon/programs"
	"nize/daemon/rounds"
	"nize/llm"
	"nize/mcp"
	"nize/mcp/egress"
	"nize/mcp/expose"
	"nize/mcp/policy"
	"nize/mcp/upstream"
	"nize/store"
	"nize/store/database"
	"nize/store/project"
)

// programsParts are the components that serve programs. engine and servers are built from
// the others.
type programsParts struct {
	db      *database.DB
	router  *llm.Router
	gateway *mcp.Gateway
	config  store.Config
	now     func() time.Time
	log     *slog.Logger
	servers *programs.ServerPool
	agent   *llm.Agent
	rounds  *rounds.Engine
}

// newEngine returns the engine that runs programs' rounds.
func (d programsParts) newEngine() *rounds.Engine {
	return rounds.New(rounds.Options{
		Threads: d.db, Calls: d.db, Rounds: d.db, Models: d.router, Window: d.router.Window, Gateway: d.gateway, Servers: d.servers, Config: d.config, Now: d.now, Log: d.log.With("component", "rounds"),
		FindTool: func(ctx context.Context, by store.Caller, id string) (none store.Tool, err error) {
			v, err := d.gateway.Policy.View(ctx, by, store.Scope{Tools: []string{id}})
			if err != nil {
				return none, err
			}
			t, err := d.gateway.Policy.Find(v, id)
			if err != nil {
				return none, err
			}
			return t.Tool, nil
		},
		FindAgent: func(ctx context.Context, by store.Caller, id string) (none store.Agent, err error) {
			a, err := d.db.GetAgent(ctx, id)
			if err == nil && !a.MayUse(by, nil) {
				err = store.ErrNotFound
			}
			return a, err
		},
		RunAgent: d.agent.RunTask,
		RunsUnattended: func(ctx context.Context, by store.Caller, c store.Call) bool {
			v, err := d.gateway.Policy.View(ctx, by, store.Scope{Thread: c.Thread, Tools: []string{c.ToolID()}})
			if err != nil {
				return false
			}
			t, err := d.gateway.Policy.Find(v, c.ToolID())
			if err != nil {
				return false
			}
			verdict, err := d.gateway.Policy.Judge(ctx, v, t, policy.Proposal{Approval: store.ApproveNever, Unattended: true, Call: &c})
			return err == nil && !verdict.Asks()
		},
		CheckModel: func(ctx context.Context, name string) error {
			_, err := d.router.Resolve(ctx, name)
			return err
		},
	})
}

// routes returns the routes for programs. count counts the streams that they follow, bearer
// returns the owner of a request's API token, and find finds a project that a person
// belongs to.
func (d programsParts) routes(count func(string, context.CancelFunc) (func(), error), bearer func(*http.Request) (store.Caller, error), find func(context.Context, store.Caller, string) (project.Project, error)) []openapi.Route {
	return (&programs.Server{Engine: d.rounds, UseKey: signedInProject(d.db.UseKey), Bearer: bearer, Find: find, Count: count, Log: d.log.With("component", "programs")}).Routes()
}

// newServers returns the pool for servers that programs bring.
func (d programsParts) newServers(gate upstream.Gate, traceparent func(context.Context) string) *programs.ServerPool {
	outside := outsideOf(d.config, callTime, 30*time.Second) // kept between the steps of a round
	return programs.NewServerPool(programs.ServerOptions{Store: d.db, Credentials: d.db, Now: d.now, Log: d.log.With("component", "temporary"),
		Upstream: upstream.Options{Gate: gate, Base: outside, Version: api.Version, Traceparent: traceparent}})
}

// outsideOf returns a transport with egress checks, for addresses that no admin configured.
func outsideOf(config store.Config, headerTime, keep time.Duration) *egress.Transport {
	return egress.NewTransport(egress.Options{Allow: func() string { return config.Get("", "egress.allow") }, MaxHeaderTime: headerTime, Keep: keep})
}

// callTime bounds the time until a temporary server's response headers; the call has a
// timeout of its own.
const callTime = 5 * time.Minute

// runners routes calls to the pool that has their server.
type runners struct {
	mcp.Runner
	temporary mcp.Runner
	native    mcp.Runner
}

// Run implements mcp.Runner.
func (r runners) Run(ctx context.Context, by store.Caller, c *store.Call, progress store.ProgressFunc) (*store.Result, error) {
	switch {
	case policy.IsTemporary(c.Server):
		return r.temporary.Run(ctx, by, c, progress)
	case c.Server == policy.NativeServer:
		return r.native.Run(ctx, by, c, progress)
	}
	return r.Runner.Run(ctx, by, c, progress)
}

// directTools are the tools that an agent's model gets by name.
type directTools struct{ gateway *mcp.Gateway }

// list returns the tools that the caller may use within a scope, under names that every
// provider accepts.
func (d directTools) list(ctx context.Context, by store.Caller, scope store.Scope) ([]llm.DirectTool, error) {
	v, err := d.gateway.Policy.View(ctx, by, scope)
	if err != nil {
		return nil, err
	}
	var list []llm.DirectTool
	var ids []string
	d.gateway.Catalog.Each(func(t *policy.Tool) bool {
		if t.Server != policy.BuiltinServer && v.Usable(t) {
			ids = append(ids, t.ID())
			list = append(list, llm.DirectTool{ID: t.ID(), Function: store.Function{Description: t.Description, Schema: t.InputSchema}})
		}
		return true
	})
	names := expose.Names(ids)
	for i, t := range list {
		list[i].Function.Name = names[t.ID]
	}
	slices.SortFunc(list, func(a, b llm.DirectTool) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// domains returns the domains with a tool that the caller may use within a scope.
func (d directTools) domains(ctx context.Context, by store.Caller, scope store.Scope) ([]string, error) {
	list, err := d.gateway.Discovery.Domains(ctx, by, scope)
	names := make([]string, len(list))
	for i, one := range list {
		names[i] = one.ID
	}
	return names, err
}
