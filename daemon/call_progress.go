package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"nize/bots"
	"nize/daemon/monitor"
	"nize/mcp"
	"nize/mcp/taskwire"
	"nize/store"
)

// tellEvery is the interval of progress updates in a conversation: short enough to show
// that a call is still running, long enough for every chat platform's rate limit.
const tellEvery = 2 * time.Second

// decorated returns a runner with decorators around it, the first one innermost.
func decorated(r mcp.Runner, decorators ...func(mcp.Runner) mcp.Runner) mcp.Runner {
	for _, decorate := range decorators {
		r = decorate(r)
	}
	return r
}

// downTime makes a runner's errors say for how long a server has been down.
func (d *Daemon) downTime(r mcp.Runner) mcp.Runner {
	return monitor.DownNotifier{Runner: r, Pool: d.pool, Incidents: d.db, Now: d.now, Log: d.log}
}

// callProgress makes a runner post the progress of calls.
func (d *Daemon) callProgress(r mcp.Runner) mcp.Runner {
	return progressTeller{Runner: r, now: d.now, log: d.log, tell: func(ctx context.Context, c store.Call, done, total float64, message string) error {
		return bots.ShowProgress(ctx, d.conversation, c, done, total, message)
	}}
}

// progressTeller posts the progress of calls to their conversation, as their servers report
// it. It wraps the runner, so that it also covers calls that were pending.
type progressTeller struct {
	mcp.Runner
	tell func(ctx context.Context, c store.Call, done, total float64, message string) error
	now  func() time.Time
	log  *slog.Logger
}

// Run implements mcp.Runner. No progress is posted after it returns.
func (p progressTeller) Run(ctx context.Context, by store.Caller, c *store.Call, progress store.ProgressFunc) (*store.Result, error) {
	if c.Thread == "" {
		return p.Runner.Run(ctx, by, c, progress)
	}
	var (
		mu    sync.Mutex // guards the fields below, and is held while progress is posted
		last  time.Time
		ended bool
	)
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
	}()
	shown := *c
	return p.Runner.Run(ctx, by, c, func(done, total float64, message string) {
		if progress != nil {
			progress(done, total, message)
		}
		mu.Lock()
		defer mu.Unlock()
		if now := p.now(); !ended && now.Sub(last) >= tellEvery {
			last = now
			if err := p.tell(ctx, shown, done, total, message); err != nil && ctx.Err() == nil {
				p.log.Warn("showing how far a call is", "call", c.ID, "err", err)
			}
		}
	})
}

// attendant is the gateway for the pool, which is created before the gateway.
type attendant struct{ d *Daemon }

func (a attendant) AskRequester(ctx context.Context, c *store.Call, e taskwire.Elicit) (taskwire.Answer, error) {
	return a.d.gateway.AskRequester(ctx, c, e)
}

func (a attendant) NoteRemote(ctx context.Context, c *store.Call, t store.RemoteTask) error {
	return a.d.gateway.NoteRemote(ctx, c, t)
}
