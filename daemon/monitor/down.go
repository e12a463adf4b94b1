package monitor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"nize/daemon/alert"
	"nize/mcp"
	"nize/store"
)

// DownNotifier runs calls. If a server is down, it adds to the caller's error since when,
// and whether the admins have been notified. It omits the reason, which may contain paths
// and the server's last output and is for admins only.
type DownNotifier struct {
	mcp.Runner
	Pool interface {
		DownSince(server string) (time.Time, bool)
	}
	Incidents store.Incidents
	Now       func() time.Time
	Log       *slog.Logger
}

// Run implements mcp.Runner.
func (t DownNotifier) Run(ctx context.Context, by store.Caller, c *store.Call, progress store.ProgressFunc) (*store.Result, error) {
	result, err := t.Runner.Run(ctx, by, c, progress)
	var failed *store.CallError
	if err == nil || !errors.As(err, &failed) || failed.Code != store.CodeUnavailable {
		return result, err
	}
	since, down := t.Pool.DownSince(c.Server)
	if !down {
		return result, err
	}
	said := *failed
	said.Message = downWords(c.Server, t.Now().Sub(since), t.adminsKnow(ctx, c.Server))
	if by.IsAdmin() {
		said.Message = store.Textf("%s: %s", said.Message, failed.Message)
	}
	return result, &said
}

// downWords returns how long a server has been down and that nothing was sent to it.
func downWords(server string, lasts time.Duration, told bool) store.Text {
	if lasts = max(lasts, time.Second).Round(time.Second); lasts >= time.Hour {
		lasts = lasts.Round(time.Minute)
	}
	span := store.Span(store.SpanText(lasts))
	if told {
		return store.Textf("server %s has been unreachable for %s, and the admins were notified", server, span)
	}
	return store.Textf("server %s has been unreachable for %s; the admins will be notified if that continues", server, span)
}

// adminsKnow reports whether an alert about the server was delivered.
func (t DownNotifier) adminsKnow(ctx context.Context, server string) bool {
	list, err := t.Incidents.ListIncidents(ctx, store.IncidentQuery{Kinds: []string{alert.ServerDown}})
	if err != nil {
		t.Log.Error("reading the incidents", "err", err)
		return false
	}
	for _, i := range list {
		if i.Kind == alert.ServerDown && i.Subject == server {
			return i.Delivery.Sent != ""
		}
	}
	return false
}
