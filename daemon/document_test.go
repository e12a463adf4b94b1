package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/daemon/chatclient"
	"nize/daemon/programs"
	"nize/store"
	"nize/store/project"
)

// Each operation that is documented answers in the document's form where something
// of nize's own goes wrong, a panic too, and says nothing of it.
func TestDocumentedFaults(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	routes := slices.Concat(
		(&programs.Server{Log: log, UseKey: func(context.Context, [32]byte) (k project.Key, p project.Project, err error) {
			return k, p, errors.New("the disk is gone")
		}}).Routes(),
		(&chatclient.Client{}).Routes(chatclient.Options{
			Log: log, Closing: t.Context(), Caller: func(*http.Request) (store.Caller, error) { return store.Caller{User: "u"}, nil },
			Listen: func(context.Context, store.Caller, context.CancelFunc) (func(), error) { return func() {}, nil },
		}))
	on := http.NewServeMux()
	mountDocumented(on, routes)
	key, _ := store.NewToken(time.Now())
	for _, r := range routes {
		body := ""
		if len(r.Examples) > 0 {
			body = r.Examples[0].Value
		}
		req := httptest.NewRequestWithContext(t.Context(), r.Method, strings.NewReplacer("{id}", "x", "{key}", "x").Replace(r.Path), strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("x-api-key", key.Reveal())
		got := httptest.NewRecorder()
		on.ServeHTTP(got, req)
		if got.Code != http.StatusInternalServerError || !strings.HasPrefix(got.Body.String(), `{"error":{"type":"internal","message":"internal error`) {
			t.Errorf("%s: %d %s", r.ID, got.Code, got.Body)
		}
	}
}
