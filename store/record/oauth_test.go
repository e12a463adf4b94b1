package record_test

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"nize/store"
	"nize/store/database"
	"nize/store/oauth"
	"nize/store/seal"
)

// TestClients: a thousand may have registered, and those that nobody used within
// a day make room.
func TestClients(t *testing.T) {
	dir := t.TempDir()
	master, err := seal.Open(filepath.Join(dir, "nize.key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	db, err := database.Open(t.Context(), database.Options{Path: filepath.Join(dir, "nize.db"), Master: master, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := t.Context()
	register := func(n int) error {
		return db.PutClient(ctx, store.System, oauth.Client{ID: fmt.Sprintf("c_%d", n), Name: "C", Redirects: []string{"http://localhost/cb"}})
	}
	for n := range oauth.MaxClients {
		if err := register(n); err != nil {
			t.Fatal(n, err)
		}
	}
	if err := register(oauth.MaxClients); !errors.Is(err, store.ErrRefused) {
		t.Fatalf("one too many: %v", err)
	}
	// Somebody signs in to the first.
	ann, err := db.EnsureUser(ctx, "local:1", "ann", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	asked := oauth.Request{ID: "r", Client: "c_0", Name: "C", User: ann.ID, Code: oauth.HashOf("code"), Grant: oauth.HashOf("grant"), Ended: oauth.Allowed}
	if err := db.AddRequest(ctx, store.System, asked); err != nil {
		t.Fatal(err)
	}
	_, err = db.ChangeRequest(ctx, store.System, "r", "signin.allow", func(o *oauth.Request, now time.Time, _ func(string) int) (bool, error) {
		o.Granted, o.Grant = now, oauth.HashOf("other")
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Redeem(ctx, oauth.Redeeming{Code: oauth.HashOf("other"), Check: func(oauth.Request) error { return nil }, Family: oauth.HashOf("family"), Life: time.Hour,
		Token: store.Token{ID: "t", Name: "oauth:c", Hash: oauth.HashOf("t"), Audience: store.ForMCP}, Next: oauth.Pair{Access: oauth.HashOf("a"), Refresh: oauth.HashOf("r")}})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(oauth.UnusedLife)
	if err := register(oauth.MaxClients); err != nil {
		t.Errorf("a day later: %v", err)
	}
	if _, err := db.GetClient(ctx, "c_0"); err != nil {
		t.Errorf("one that somebody uses: %v", err)
	}
	if _, err := db.GetClient(ctx, "c_1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("one that nobody used: %v", err)
	}
}
