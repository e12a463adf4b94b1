package alert

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/store"
)

var update = flag.Bool("update", false, "write the golden files")

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func incident(state store.IncidentState) store.Incident {
	i := store.Incident{
		ID: "01KJMS20000000000000000000", Kind: ServerDown, Subject: "box", State: state, Opened: at,
		Title: store.Plain("Server box is down"), Text: store.Plain("It <ended>."), Cure: "nizectl servers test box", Users: []string{"u1"}, Delivery: store.Delivery{Error: "secret"},
	}
	if state == store.IncidentRecovered {
		i.Recovered = at.Add(time.Hour)
	}
	return i
}

func hookTo(t *testing.T, url, secret string) *Webhook {
	t.Helper()
	w, err := NewWebhook(url, store.NewSecret(secret), func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The body's fields are stable; what is nobody's business is not among them.
func TestWebhookBody(t *testing.T) {
	var got strings.Builder
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got.WriteString(r.Method + " " + r.URL.RequestURI() + "\n")
		for _, h := range []string{"Content-Type", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
			got.WriteString(h + ": " + r.Header.Get(h) + "\n")
		}
		got.WriteString("\n" + string(body) + "\n\n")
	}))
	defer srv.Close()
	w := hookTo(t, srv.URL+"/hook?key=1", "whsec_"+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
	for _, state := range []store.IncidentState{store.IncidentOpen, store.IncidentRecovered} {
		if _, err := w.Notify(t.Context(), incident(state)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join("testdata", "webhook.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got.String(), string(want)); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestWebhookAnswers(t *testing.T) {
	followed := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed++ }))
	defer elsewhere.Close()
	for name, test := range map[string]struct {
		answer    http.HandlerFunc
		err       string
		permanent bool
	}{
		"ok":       {func(w http.ResponseWriter, _ *http.Request) {}, "", false},
		"accepted": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }, "", false},
		"error":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "my token is hunter2", 500) }, "the webhook answered 500 Internal Server Error", false},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "redirects are not followed", false},
		"gone": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }, "gone for good", true},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			block := make([]byte, 64<<10)
			for r.Context().Err() == nil {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "", false},
		"cut": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "the webhook can't be reached: the connection broke off", false},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(test.answer)
			defer srv.Close()
			_, err := hookTo(t, srv.URL+"/s3cret-path", "").Notify(t.Context(), incident(store.IncidentOpen))
			switch {
			case test.err == "" && err != nil:
				t.Errorf("got %v", err)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("got %v, want %q", err, test.err)
			case errors.Is(err, ErrPermanent) != test.permanent:
				t.Errorf("permanent: %v", err)
			case err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "hunter2")):
				t.Errorf("the error tells too much: %v", err)
			}
		})
	}
	if followed > 0 {
		t.Error("it followed a redirect")
	}
}

func TestWebhookThatHangs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not look whether the client is there
		cancel()                           // as its time is up, but never before the request came
		<-r.Context().Done()               // the client has left
		close(gone)
	}))
	defer srv.Close()
	_, err := hookTo(t, srv.URL, "").Notify(ctx, incident(store.IncidentOpen))
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), srv.URL) {
		t.Errorf("got %v", err)
	}
	<-gone
}

func TestWebhookThatNobodyServes(t *testing.T) {
	_, err := hookTo(t, "http://127.0.0.1:1/s3cret", "").Notify(t.Context(), incident(store.IncidentOpen))
	if err == nil || !strings.Contains(err.Error(), "nothing listens at 127.0.0.1:1") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}
