package programs

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"nize/daemon/rounds"
	"nize/store"
	"nize/store/project"
)

// TestFollowersAreCounted: requests that follow a round are counted for its project, and
// one too many is refused before the round is read.
func TestFollowersAreCounted(t *testing.T) {
	asked := ""
	s := &Server{
		Engine: &rounds.Engine{}, Log: slog.New(slog.DiscardHandler),
		UseKey: func(context.Context, [32]byte) (k project.Key, p project.Project, err error) {
			p.ID = "p1"
			return k, p, nil
		},
		Count: func(project string, _ context.CancelFunc) (func(), error) {
			asked = project
			return nil, errors.New("too many (the setting limits.user.requests)")
		},
	}
	on := http.NewServeMux()
	for _, route := range s.Routes() {
		on.Handle(route.Method+" "+route.Path, route.Handler)
	}
	secret, _ := store.NewToken(time.Now())
	r := httptest.NewRequest("GET", "/llm-exec/rounds/x/events", nil)
	r.Header.Set("X-Api-Key", secret.Reveal())
	w := httptest.NewRecorder()
	on.ServeHTTP(w, r)
	if w.Code != http.StatusTooManyRequests || asked != "p1" || !strings.Contains(w.Body.String(), "limits.user.requests") || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s (asked for %q)", w.Code, w.Body, asked)
	}
}
