package database

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/record/access"
	"nize/store/record/calls"
	"nize/store/seal"
)

func TestSecondOpen(t *testing.T) {
	dir := t.TempDir()
	openTest(t, dir, Options{})
	_, err := openAt(t.Context(), dir, Options{})
	if !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "another nized") {
		t.Fatalf("got %v", err)
	}
}

func TestModes(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	path := filepath.Join(dir, "nize.db")
	if err := os.Chmod(path, 0o644); err != nil { // as after a careless copy
		t.Fatal(err)
	}
	openTest(t, dir, Options{}).Close()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

func TestWrongKey(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	before, err := os.ReadFile(filepath.Join(dir, "nize.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "key"), filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	_, err = openAt(t.Context(), dir, Options{})
	if !errors.Is(err, seal.ErrWrongKey) || !strings.Contains(err.Error(), "missing") {
		t.Fatalf("without the key file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "key")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("a lost key was made anew")
	}
	master, err := seal.Open("", store.NewSecret(strings.Repeat("ab", 32)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Open(t.Context(), Options{Path: filepath.Join(dir, "nize.db"), Master: master}); !errors.Is(err, seal.ErrWrongKey) {
		t.Fatalf("with another key: %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, "nize.db"))
	if err != nil || !bytes.Equal(before, after) {
		t.Fatal("the file was changed")
	}
	if err := os.Rename(filepath.Join(dir, "old"), filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	openTest(t, dir, Options{})
	if _, err := Open(t.Context(), Options{Path: filepath.Join(dir, "x.db")}); !errors.Is(err, store.ErrInvalid) {
		t.Fatalf("without any: %v", err)
	}
}

// TestSealed: nothing that is sealed can be read from the file, and a value
// moved to another record does not open.
func TestSealed(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	d := openTest(t, dir, Options{})
	a, b := testCall(store.Done), testCall(store.Pending)
	a.Args = []byte(`{"password":"canary-args"}`) // of which the trail's redacted look shows nothing
	a.Result = &store.Result{Raw: []byte(`{"password":"canary-result"}`)}
	if _, err := d.Accept(ctx, store.Item{ID: a.ID, Kind: "k", Payload: []byte("canary-inbox")}); err != nil {
		t.Fatal(err)
	}
	ka, kb := store.CredentialKey{Scope: "system", Service: "a", Name: "T"}, store.CredentialKey{Scope: "system", Service: "b", Name: "T"}
	err := errors.Join(
		d.Begin(ctx, tester, b),
		d.PutCredential(ctx, tester, store.Credential{CredentialKey: ka, Secret: store.NewSecret("canary-credential")}),
		d.PutCredential(ctx, tester, store.Credential{CredentialKey: kb, Secret: store.NewSecret("x")}),
		d.PutProvider(ctx, tester, store.Provider{Name: "p", Key: store.NewSecret("canary-provider")}),
	)
	if err != nil {
		t.Fatal(err)
	}
	d.Record(tester, a)
	if err := d.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if c, err := d.GetCall(ctx, a.ID); err != nil || !strings.Contains(string(c.Args), "canary") {
		t.Fatalf("%v %s", err, c.Args)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "nize.db"))
	if err != nil || bytes.Contains(raw, []byte("canary")) {
		t.Fatalf("it stands in the file: %v", err)
	}

	swap := func(bucket string, k1, k2 []byte) {
		t.Helper()
		behind(t, d, func(b *commit.Tx) error {
			v1, v2 := commit.CloneBytes(b.Get(bucket, k1)), commit.CloneBytes(b.Get(bucket, k2))
			return errors.Join(b.Put(bucket, k1, v2), b.Put(bucket, k2, v1))
		})
	}
	swap("credentials", access.CredentialKey(ka), access.CredentialKey(kb))
	for _, k := range []store.CredentialKey{ka, kb} {
		if _, err := d.GetCredential(ctx, k); !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("a moved credential opens: %v", err)
		}
	}
	// A call's record names itself; its sealed parts are moved under another name.
	behind(t, d, func(x *commit.Tx) error {
		s1, err := calls.DecodeCall(a.ID, x.Get("calls", []byte(a.ID)))
		if err != nil {
			return err
		}
		s2, err := calls.DecodeCall(b.ID, x.Get("calls", []byte(b.ID)))
		if err != nil {
			return err
		}
		s2.Args = s1.Args
		v, err := calls.EncodeCall(x, s2)
		if err != nil {
			return err
		}
		return x.Put("calls", []byte(b.ID), v)
	})
	if _, err := d.GetCall(ctx, b.ID); !errors.Is(err, seal.ErrDamaged) {
		t.Errorf("moved arguments open: %v", err)
	}
}

func TestMigrate(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	path := filepath.Join(dir, "nize.db")
	d := openTest(t, dir, Options{})
	if err := d.PutSetting(ctx, tester, "", "a", "1"); err != nil {
		t.Fatal(err)
	}
	d.Close()

	// A schema to come: settings are renamed.
	next := append(append([]migration(nil), migrations...), migration{version: 3, what: "rename a to b", apply: func(b kv.Transaction) error {
		v, err := b.Get("settings", commit.Key("", "a"))
		v = commit.CloneBytes(v)
		return errors.Join(err, b.Delete("settings", commit.Key("", "a")), b.Put("settings", commit.Key("", "b"), v))
	}})
	failing := append(append([]migration(nil), next...), migration{version: 4, what: "fail", apply: func(b kv.Transaction) error {
		return errors.Join(b.Delete("settings", commit.Key("", "b")), errors.New("no"))
	}})
	if _, err := openAt(ctx, dir, Options{testOnlyMigrations: failing}); err == nil || !strings.Contains(err.Error(), "schema 4") {
		t.Fatalf("a failing migration: %v", err)
	}
	var log strings.Builder
	d, err := openAt(ctx, dir, Options{testOnlyMigrations: next, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.ListSettings(ctx, "")
	if err != nil || got["b"] != "1" || len(got) != 1 {
		t.Fatalf("after it: %v, %v", got, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "way_back") {
		t.Errorf("no way back in the log: %s", log.String())
	}

	// The older nized refuses, and says what to do.
	_, err = openAt(ctx, dir, Options{})
	if !errors.Is(err, store.ErrOldSchema) || !strings.Contains(err.Error(), "schema is 3") {
		t.Fatalf("a newer database: %v", err)
	}
	// The way back works.
	copied := path + ".before-schema-3"
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(err)
	}
	if err := os.Rename(copied, path); err != nil {
		t.Fatal(err)
	}
	d = openTest(t, dir, Options{})
	if got, err = d.ListSettings(ctx, ""); err != nil || got["a"] != "1" {
		t.Fatalf("the copy: %v, %v", got, err)
	}
}

func TestMigrationsAreOrdered(t *testing.T) {
	for i, m := range migrations {
		if m.version != uint64(i+1) || m.what == "" {
			t.Errorf("place %d has version %d %q", i, m.version, m.what)
		}
	}
}

// makeFile makes a file of the engine.
func makeFile(t *testing.T, path string, fill func(kv.Transaction) error) {
	t.Helper()
	f, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(commit.Transact(f, true, fill), f.Close(true)); err != nil {
		t.Fatal(err)
	}
}

// without makes the closed database at path lack a bucket.
func without(t *testing.T, path, bucket string) {
	t.Helper()
	f, err := bolt.Open(path, bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	makeFile(t, path+".new", func(to kv.Transaction) error {
		return commit.Transact(f, false, func(from kv.Transaction) error {
			names, err := from.Buckets()
			for _, name := range slices.DeleteFunc(names, func(name string) bool { return name == bucket }) {
				err = errors.Join(err, to.Make(name))
				for k, v := range (&commit.Tx{Raw: from}).Scan(name, kv.Range{}) {
					err = errors.Join(err, to.Put(name, k, v))
				}
			}
			return err
		})
	})
	if err := errors.Join(f.Close(false), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func TestForeignFile(t *testing.T) {
	dir := t.TempDir()
	makeFile(t, filepath.Join(dir, "nize.db"), func(b kv.Transaction) error { return b.Make("theirs") })
	if _, err := openAt(t.Context(), dir, Options{}); !errors.Is(err, store.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
}

// TestCleanMark: the mark holds for one state of the file only.
func TestCleanMark(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "nize.db")
	d := openTest(t, dir, Options{})
	if !d.WasClean() || bolt.Clean(path) {
		t.Error("a new database was clean, an open one is not")
	}
	d.Close()
	mark, err := os.ReadFile(bolt.MarkPath(path))
	if err != nil || !bolt.Clean(path) {
		t.Fatal("closed, but not clean", err)
	}
	d = openTest(t, dir, Options{})
	if !d.WasClean() {
		t.Error("it had been closed")
	}
	if err := d.PutSetting(t.Context(), tester, "", "a", "1"); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if err := os.WriteFile(bolt.MarkPath(path), mark, 0o600); err != nil {
		t.Fatal(err)
	}
	if bolt.Clean(path) {
		t.Error("the mark of another state counts")
	}
}

func TestBackup(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	d := openTest(t, dir, Options{})
	c := testCall(store.Pending)
	if err := d.Begin(ctx, tester, c); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	said, err := d.Backup(ctx, copied)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(whole)); got != said.SHA256 || said.Size != int64(len(whole)) || said.Key != d.KeyID() {
		t.Errorf("backup says %+v; the file has %d bytes, sum %s, the key is %s", said, len(whole), got, d.KeyID())
	}
	if _, err := d.Backup(ctx, copied); !errors.Is(err, os.ErrExist) {
		t.Errorf("a backup over a file that is there: %v", err)
	}
	if err := bolt.Check(copied); err != nil {
		t.Fatal(err)
	}
	master, err := seal.Open(filepath.Join(dir, "key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	d2, err := Open(ctx, Options{Path: copied, Master: master})
	if err != nil {
		t.Fatal(err)
	}
	defer d2.Close()
	if _, err := d2.GetCall(ctx, c.ID); err != nil || d2.WasClean() {
		t.Fatal(err)
	}
}

// TestClock: a clock that jumps back revives nothing, not even over a restart.
func TestClock(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var log strings.Builder
	o := Options{Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil))}
	d := openTest(t, dir, o)
	u, err := d.EnsureUser(ctx, "local:1", "U", store.Admin)
	if err != nil {
		t.Fatal(err)
	}
	hash := [32]byte{1}
	if _, err := d.CreateToken(ctx, tester, store.Token{Name: "t", User: u.ID, Hash: hash, Expires: now.Add(time.Hour)}, false); err != nil {
		t.Fatal(err)
	}
	c := testCall(store.Pending)
	c.Created, c.Expires = now, now.Add(time.Hour)
	if err := d.Begin(ctx, tester, c); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	if _, _, err := d.Authenticate(ctx, hash); !errors.Is(err, store.ErrExpired) {
		t.Fatalf("after its time: %v", err)
	}
	now = now.Add(-30 * 24 * time.Hour)
	if _, _, err := d.Authenticate(ctx, hash); !errors.Is(err, store.ErrExpired) {
		t.Fatalf("the clock went back: %v", err)
	}
	if err := d.PutSetting(ctx, tester, "", "a", "1"); err != nil {
		t.Fatal(err)
	}
	d.Close()
	d = openTest(t, dir, o)
	if _, _, err := d.Authenticate(ctx, hash); !errors.Is(err, store.ErrExpired) {
		t.Fatalf("the clock went back, and a restart: %v", err)
	}
	if got, err := d.Decide(ctx, tester, c.ID, store.Decision{Verb: store.Approve}); !errors.Is(err, store.ErrExpired) || got.State != store.Expired {
		t.Fatalf("a call past its time: %v, %s", err, got.State)
	}
	if !strings.Contains(log.String(), "clock is behind") {
		t.Error("nobody was told of the clock")
	}
}

// TestInboxDay: keys are kept for a day, then the same event is new again, and
// they do not pile up.
func TestInboxDay(t *testing.T) {
	ctx := t.Context()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := openTest(t, t.TempDir(), Options{Now: func() time.Time { return now }})
	accept := func(i int) bool {
		t.Helper()
		ok, err := d.Accept(ctx, store.Item{ID: store.NewID(now), Keys: []string{fmt.Sprint("k", i)}})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for i := range 20 {
		accept(i)
	}
	now = now.Add(23 * time.Hour)
	if accept(3) {
		t.Error("forgotten before the day was over")
	}
	now = now.Add(2 * time.Hour)
	if !accept(3) || accept(3) {
		t.Error("a day later it is new, once")
	}
	for i := 100; i < 110; i++ {
		accept(i)
	}
	left := 0
	err := d.Read(ctx, "", func(t *commit.Tx) error {
		left = len(t.Keys("inbox_keys", nil, 0))
		if seen := len(t.Keys("inbox_seen", nil, 0)); seen != left {
			return fmt.Errorf("%d keys, %d times", left, seen)
		}
		return nil
	})
	if err != nil || left != 22 {
		t.Errorf("%d keys are left, want those of 11 items: %v", left, err)
	}
}

// TestTokenUse: the last use is noted once a minute.
func TestTokenUse(t *testing.T) {
	ctx := t.Context()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := openTest(t, t.TempDir(), Options{Now: func() time.Time { return now }})
	u, err := d.EnsureUser(ctx, "local:1", "U", store.Admin)
	if err != nil {
		t.Fatal(err)
	}
	hash := [32]byte{1}
	if _, err := d.CreateToken(ctx, tester, store.Token{Name: "t", User: u.ID, Hash: hash, Expires: now.Add(time.Hour)}, false); err != nil {
		t.Fatal(err)
	}
	used := func() time.Time {
		t.Helper()
		if _, _, err := d.Authenticate(ctx, hash); err != nil {
			t.Fatal(err)
		}
		if err := d.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		list, err := d.ListTokens(ctx, u.ID)
		if err != nil {
			t.Fatal(err)
		}
		return list[0].LastUsed
	}
	first := now
	if got := used(); !got.Equal(first) {
		t.Errorf("got %v, want %v", got, first)
	}
	now = now.Add(59 * time.Second)
	if got := used(); !got.Equal(first) {
		t.Errorf("within the minute: %v", got)
	}
	now = now.Add(time.Second)
	if got := used(); !got.Equal(now) {
		t.Errorf("a minute later: %v", got)
	}
	if _, err := d.RevokeTokens(context.Background(), tester, u.ID, ""); err != nil {
		t.Fatal(err)
	}
}

// A database from before a bucket was thought of gets it on open, and keeps
// what it has.
func TestMissingBucketIsMade(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	without(t, filepath.Join(dir, "nize.db"), "agents")
	db := openTest(t, dir, Options{})
	if err := db.PutAgent(t.Context(), store.System, store.Agent{ID: "ops", Name: "Ops"}); err != nil {
		t.Fatal(err)
	}
	calls, err := db.ListCalls(t.Context(), store.CallQuery{Limit: 300})
	if err != nil || len(calls) != 300 {
		t.Errorf("what it had: %d calls, %v", len(calls), err)
	}
}

// What an earlier nize stored in the inbox, before payloads were sealed, is
// worked off and passed over by sealing again.
func TestInboxOfOld(t *testing.T) {
	d := openTest(t, t.TempDir(), Options{})
	ctx := t.Context()
	id := store.NewID(time.Now())
	err := d.Write(ctx, "storing as of old", func(t *commit.Tx) error {
		return t.Put("inbox", []byte(id), commit.Pack([]byte(`{"id":"`+id+`","kind":"k"}`), []byte("plain")))
	})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := d.Pending(ctx); err != nil || len(list) != 1 || string(list[0].Payload) != "plain" {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := d.Reseal(ctx); err != nil {
		t.Fatal(err)
	}
}
