package database_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/store"
	"nize/store/database"
	"nize/store/kv/kvtest"
	"nize/store/kv/postgres"
	"nize/store/kv/postgres/postgrestest"
	"nize/store/seal"
	"nize/store/storetest"
)

// TestPostgres: the contracts hold over a database server as well, and where what
// one nized did is looked at by another on the same database.
func TestPostgres(t *testing.T) {
	t.Run("contract", func(t *testing.T) { storetest.Run(t, served[store.DB]) })
	t.Run("waist", func(t *testing.T) { kvtest.Run(t, served[kvtest.Engine]) })
	t.Run("contract of two", func(t *testing.T) { storetest.Run(t, servedByTwo[store.DB]) })
	t.Run("waist of two", func(t *testing.T) { kvtest.Run(t, servedByTwo[kvtest.Engine]) })
}

// several opens a new database as often as asked for.
func several(t *testing.T) (open func() *database.DB, master *seal.Master) {
	url := postgrestest.New(t)
	master, err := seal.Open(filepath.Join(t.TempDir(), "nize.key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	return func() *database.DB {
		e, err := postgres.Open(t.Context(), postgres.Options{URL: url, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		db, err := database.Open(t.Context(), database.Options{Engine: e, Master: master})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}, master
}

func served[DB any](t *testing.T) (DB, func() DB) {
	open, _ := several(t)
	db := open()
	return any(db).(DB), func() DB {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = open()
		return any(db).(DB)
	}
}

// servedByTwo goes on with the other one instead of a restart.
func servedByTwo[DB any](t *testing.T) (DB, func() DB) {
	open, _ := several(t)
	db, other := open(), open()
	return any(db).(DB), func() DB {
		if err := db.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		db, other = other, db
		return any(db).(DB)
	}
}

// TestSeveral: what several nized do at once on one database is decided and counted
// once, leaves one trail, and each is told of all of it in the same order.
func TestSeveral(t *testing.T) {
	const writers, rounds = 4, 25
	ctx := t.Context()
	open, _ := several(t)
	dbs := []*database.DB{open(), open(), open()}
	ada, err := dbs[0].AddUser(ctx, store.System, store.User{Name: "ada", Role: store.Member, Identities: []string{"slack:T:U1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := dbs[1].PutBudget(ctx, store.System, store.Budget{Subject: "user:" + ada.ID, Period: store.Daily, Unit: store.InTokens, Limit: 1000}); err != nil {
		t.Fatal(err)
	}
	by := store.Caller{User: ada.ID, Name: ada.Name, Role: ada.Role, Surface: store.OnMCP}
	var began, reserved, yes, runs atomic.Int64
	var wg sync.WaitGroup
	for i, db := range dbs {
		for w := range writers {
			wg.Go(func() {
				for n := range rounds {
					id := fmt.Sprintf("call-%d-%d", w, n) // the same at each of them
					err := db.Begin(ctx, by, store.Call{ID: id, Server: "box", Tool: "move", Args: []byte("{}"), By: ada.ID, State: store.Pending, Digest: "d", Created: db.Now()})
					switch {
					case err == nil:
						began.Add(1)
					case !errors.Is(err, store.ErrExists):
						t.Error(err)
					}
					if _, err = db.Decide(ctx, by, id, store.Decision{Verb: store.Approve}); err == nil {
						yes.Add(1)
					}
					if _, err = db.Start(ctx, id, fmt.Sprint("replica", i)); err == nil {
						runs.Add(1)
					} else if !errors.Is(err, store.ErrDecided) {
						t.Error(err)
					}
					err = db.Reserve(ctx, by, store.Reservation{Spend: store.Spend{ID: fmt.Sprintf("%d-%s", i, id), User: ada.ID, Provider: "p", Model: "m"}, Tokens: 100})
					var spent *store.BudgetError
					switch {
					case err == nil:
						reserved.Add(1)
					case !errors.As(err, &spent):
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if n := int64(writers * rounds); began.Load() != n || yes.Load() != n || runs.Load() != n || reserved.Load() != 10 {
		t.Errorf("of %d calls %d began, %d were decided and %d ran; %d reservations of 10", n, began.Load(), yes.Load(), runs.Load(), reserved.Load())
	}
	last := dbs[0].Last()
	var seen [3][]store.Change
	for i, db := range dbs {
		if _, err := db.VerifyEvents(ctx); err != nil {
			t.Errorf("the trail as %d sees it: %v", i, err)
		}
		for c, err := range db.Watch(ctx, 0) { // it ends when this one was told of the last
			if err != nil {
				t.Fatal(err)
			}
			if seen[i] = append(seen[i], c); c.Seq >= last {
				break
			}
		}
	}
	if !slices.Equal(seen[0], seen[1]) || !slices.Equal(seen[0], seen[2]) || len(seen[0]) != int(last) {
		t.Errorf("they were told of %d, %d and %d changes, or of others", len(seen[0]), len(seen[1]), len(seen[2]))
	}
}

// TestOthersAreFollowed: what is kept in memory is what another made of it, by the
// time at which the feed tells of it.
func TestOthersAreFollowed(t *testing.T) {
	ctx := t.Context()
	open, master := several(t)
	a, b := open(), open()
	hash := sha256.Sum256([]byte("a token"))
	ada, err := a.AddUser(ctx, store.System, store.User{Name: "ada", Role: store.Member, Identities: []string{"slack:T:U1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.CreateToken(ctx, store.System, store.Token{User: ada.ID, Name: "t", Hash: hash, Audience: store.ForMCP, Expires: a.Now().Add(time.Hour)}, false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Authenticate(ctx, hash); err != nil {
		t.Errorf("at the other: %v", err)
	}
	after := b.Last()
	if _, err := a.RevokeTokens(ctx, store.System, ada.ID, "t"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Authenticate(ctx, hash); !errors.Is(err, store.ErrRefused) {
		t.Errorf("revoked at one, at the other: %v", err)
	}
	if _, err := a.Rotate(ctx, store.System, master); err != nil {
		t.Fatal(err)
	}
	for c, err := range b.Watch(ctx, after) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind == "keys" {
			break
		}
	}
	key := store.CredentialKey{Scope: "system", Service: "box", Name: "K"}
	if err := a.PutCredential(ctx, store.System, store.Credential{CredentialKey: key, Secret: store.NewSecret("new")}); err != nil {
		t.Fatal(err)
	}
	if c, err := b.GetCredential(ctx, key); err != nil || c.Secret.Reveal() != "new" {
		t.Errorf("sealed under the key that one made, at the other: %v", err)
	}
}
