package daemon_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"nize/daemon/api"
	"nize/store"
)

// sink is a receiver of alerts that answers as the test says.
type sink struct {
	*httptest.Server
	mu     sync.Mutex // guards what follows
	status int
	ids    []string // webhook-id of each request that it took
}

func newSink(t *testing.T) *sink {
	s := &sink{status: http.StatusOK}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var message struct{ ID, Kind, State, Cure string }
		if err != nil || json.Unmarshal(body, &message) != nil || message.Cure == "" {
			t.Errorf("body %s, %v", body, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.status == http.StatusOK && message.Kind != "test" {
			s.ids = append(s.ids, r.Header.Get("Webhook-Id"))
		}
		w.WriteHeader(s.status)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// A daemon that is stopped while its alerts are not taken delivers them after
// the restart, once.
func TestAlertsOverARestart(t *testing.T) {
	t.Parallel()
	dir, sink := t.TempDir(), newSink(t)
	if err := os.WriteFile(filepath.Join(dir, "nize.db.migration-failed"), []byte(`{"to":99,"error":"no room"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"NIZE_ALERTS_TO": sink.URL}
	sink.answer(http.StatusInternalServerError)
	r := open(t, dir, env)
	// What is noted is waited for, not what the sink saw: a stop between the two
	// would send it again.
	noted := func(what string, ok func(store.Delivery) bool) (list []store.Incident) {
		t.Helper()
		eventually(t, what, func() bool {
			all, err := api.ListAlerts.Call(t.Context(), r.Client, api.ListAlertsRequest{All: true})
			if err != nil {
				t.Fatal(err)
			}
			list = all.Items
			return len(list) > 0 && ok(list[0].Delivery)
		})
		return list
	}
	noted("the first try failed", func(d store.Delivery) bool { return d.Tries > 0 })
	if _, err := api.TestAlert.Call(t.Context(), r.Client, api.Empty{}); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "500") {
		t.Errorf("a test: %v", err)
	}
	r.stop()
	sink.answer(http.StatusOK)
	r = open(t, dir, env)
	said, err := api.TestAlert.Call(t.Context(), r.Client, api.Empty{}) // which also tries again what failed
	if err != nil || said.To != strings.TrimPrefix(sink.URL, "http://") || said.Signed {
		t.Fatalf("a test: %+v, %v", said, err)
	}
	list := noted("it was taken", func(d store.Delivery) bool { return d.Sent == store.IncidentOpen })
	if len(list) != 1 || list[0].Kind != "migration" {
		t.Fatalf("%+v", list)
	}
	r.stop()
	r = open(t, dir, env)
	if _, err := api.TestAlert.Call(t.Context(), r.Client, api.Empty{}); err != nil {
		t.Fatal(err)
	}
	r.stop()
	sink.mu.Lock()
	defer sink.mu.Unlock()
	if want := "msg_" + list[0].ID + "_open"; len(sink.ids) != 1 || sink.ids[0] != want {
		t.Errorf("took %v, want %s once", sink.ids, want)
	}
}

// A destination that nobody could sign for gets nothing.
func TestAlertsAreNeverUnsignedByMistake(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	key := store.CredentialKey{Scope: "system", Service: "alerts", Name: "WEBHOOK_SECRET"}
	if _, err := api.PutCredential.Call(ctx, r.Client, api.PutCredentialRequest{CredentialKey: key, Secret: api.NewSecret("hunter2")}); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a secret that is none: %v", err)
	}
	if _, err := api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "alerts.to", Value: sink.URL}); err != nil {
		t.Fatal(err)
	}
	if d, err := api.Doctor.Call(ctx, r.Client, api.DoctorRequest{Online: true}); err != nil || !d.OK || !d.Daemon || len(d.Findings) < 20 {
		t.Errorf("%+v, %v", d, err)
	}
}
