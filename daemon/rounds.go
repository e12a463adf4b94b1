package daemon

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"nize/daemon/programs"
	"nize/daemon/rounds"
	"nize/llm"
	"nize/mcp"
	"nize/store"
	"nize/store/bolt"
	"nize/store/project"
)

// programsParts are the rooms that serve programs.
type programsParts struct {
	db      *bolt.DB
	router  *llm.Router
	gateway *mcp.Gateway
	config  store.Config
	bearer  func(*http.Request) (store.Caller, error)
	find    func(ctx context.Context, by store.Caller, who string) (project.Project, error)
	now     func() time.Time
	log     *slog.Logger
}

// handler serves programs.
func (d programsParts) handler() http.Handler {
	engine := rounds.New(rounds.Options{
		Threads: d.db, Calls: d.db, Rounds: d.db, Models: d.router, Gateway: d.gateway, Config: d.config, Now: d.now, Log: d.log.With("component", "rounds"),
		FindTool: func(ctx context.Context, by store.Caller, id string) (none store.Tool, err error) {
			v, err := d.gateway.Policy.View(ctx, by, store.Scope{})
			if err != nil {
				return none, err
			}
			t, err := d.gateway.Policy.Find(v, id)
			if err != nil {
				return none, err
			}
			return t.Tool, nil
		},
		CheckModel: func(ctx context.Context, name string) error {
			_, err := d.router.Resolve(ctx, name)
			return err
		},
	})
	return (&programs.Server{Engine: engine, UseKey: d.db.UseKey, Bearer: d.bearer, Find: d.find, Log: d.log.With("component", "programs")}).Handler()
}
