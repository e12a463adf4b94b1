package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"nize/mcp"
	"nize/mcp/taskwire"
	"nize/store"
)

// tellEvery is how often a conversation is told how far a call is: often enough to
// see that it goes on, seldom enough for every chat platform.
const tellEvery = 2 * time.Second

// progressTeller tells a conversation how far its calls are, as their servers say
// it. It stands around what runs them, so that it sees those that waited, too.
type progressTeller struct {
	mcp.Runner
	tell func(ctx context.Context, c store.Call, done, total float64, message string) error
	now  func() time.Time
	log  *slog.Logger
}

// Run implements mcp.Runner. Nothing is told any more once it returned.
func (p progressTeller) Run(ctx context.Context, by store.Caller, c *store.Call, progress store.ProgressFunc) (*store.Result, error) {
	if c.Thread == "" {
		return p.Runner.Run(ctx, by, c, progress)
	}
	var (
		mu    sync.Mutex // guards what follows, and is held while something is told
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

// attendant is the gateway for the pool, which is made before it.
type attendant struct{ d *Daemon }

func (a attendant) AskRequester(ctx context.Context, c *store.Call, e taskwire.Elicit) (taskwire.Answer, error) {
	return a.d.gateway.AskRequester(ctx, c, e)
}

func (a attendant) NoteRemote(ctx context.Context, c *store.Call, t store.RemoteTask) error {
	return a.d.gateway.NoteRemote(ctx, c, t)
}
