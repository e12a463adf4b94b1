package hooks

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"nize/mcp"
	"nize/store"
)

// rateLimit allows a number of calls per interval, for each user, server or tool. It counts
// calls of tools, and uses of a meta-tool only if its tool names one, so that a call
// through execute_tool counts once. Denied calls don't count. Counters are in memory and
// reset by a restart; use a budget of calls, which is stored, if they must survive it.
type rateLimit struct {
	named
	Calls int      `json:"calls"`
	Per   string   `json:"per"`
	By    []string `json:"by"`

	per time.Duration
	now func() time.Time

	mu    sync.Mutex
	calls map[string][]time.Time // of the last interval, oldest first
}

// Limits of a configuration.
const (
	maxCalls    = 100_000
	maxPer      = 24 * time.Hour
	maxCounters = 10_000
)

func newRateLimit(n named, now func() time.Time) (mcp.Hook, error) {
	l := &rateLimit{named: n, now: now, calls: map[string][]time.Time{}}
	if err := decode(n.record, l); err != nil {
		return nil, err
	}
	var err error
	if l.per, err = time.ParseDuration(l.Per); err != nil || l.per <= 0 || l.per > maxPer || l.Calls < 1 || l.Calls > maxCalls {
		return nil, store.Errorf(`want {"calls":N,"per":"1m","by":["user","server","tool"]}: 1 to %d calls, at most 24h`, maxCalls)
	}
	for _, by := range l.By {
		if by != "user" && by != "server" && by != "tool" {
			return nil, fmt.Errorf("by %q: want user, server or tool", by)
		}
	}
	return l, nil
}

func (l *rateLimit) Before(_ context.Context, inv *mcp.Invocation) error {
	if inv.Point == mcp.AroundMeta && !strings.HasPrefix(l.record.Tool, "nize:") {
		return nil
	}
	key := make([]string, 0, 3)
	for _, by := range l.By {
		key = append(key, map[string]string{"user": inv.By.User, "server": inv.Server(), "tool": inv.ToolID()}[by])
	}
	if wait := l.take(strings.Join(key, "\x00")); wait > 0 {
		return &store.CallError{Code: store.CodeRateLimited, Retryable: true,
			Message: store.Textf("hook %s allows at most %d per %s; try again in %s", l.record.Name, l.Calls, l.Per, store.SpanText((wait + time.Second - 1).Truncate(time.Second)))}
	}
	return nil
}

// take counts a call, or returns how long to wait until one is allowed.
func (l *rateLimit) take(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if len(l.calls) >= maxCounters {
		for k, times := range l.calls {
			if now.Sub(times[len(times)-1]) >= l.per {
				delete(l.calls, k)
			}
		}
	}
	times := l.calls[key]
	for len(times) > 0 && now.Sub(times[0]) >= l.per {
		times = times[1:]
	}
	if len(times) >= l.Calls {
		l.calls[key] = times
		return l.per - now.Sub(times[0])
	}
	l.calls[key] = append(times, now)
	return 0
}
