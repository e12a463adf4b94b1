package database

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/seal"
)

// TestHalfCopy: a database is not opened before a copy into it was proven, and a
// secret of it that does not open is named.
func TestHalfCopy(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	d := openTest(t, dir, Options{})
	if err := d.PutCredential(ctx, tester, store.Credential{CredentialKey: store.CredentialKey{Scope: "system", Service: "s", Name: "N"}, Secret: store.NewSecret("s3cret")}); err != nil {
		t.Fatal(err)
	}
	if err := d.PutVectors(ctx, "m", map[string][]float32{"k": {1, 2}}); err != nil {
		t.Fatal(err)
	}
	master := d.master.Load()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	from, err := bolt.Open(filepath.Join(dir, "nize.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close(true)
	path := filepath.Join(t.TempDir(), "nize.db")
	to, err := OpenCopy(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Transfer(from, to)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := InspectEngine(to); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "nizectl database copy") {
		t.Errorf("half a copy: %v", err)
	}
	if events, secrets, err := VerifyEngine(ctx, to, master, nil); err != nil || events != 1 || secrets != 2 {
		t.Errorf("%d events, %d secrets, %v", events, secrets, err)
	}
	other, err := seal.Open(filepath.Join(t.TempDir(), "key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := VerifyEngine(ctx, to, other, nil); !errors.Is(err, seal.ErrWrongKey) {
		t.Errorf("another key: %v", err)
	}
	if err := c.End(ctx); err != nil {
		t.Fatal(err)
	}
	// The same secret in the place of another.
	err = commit.Transact(to, true, func(b kv.Transaction) error {
		var k, v []byte
		err := b.Range("credentials", kv.Range{}, func(key, value []byte) bool { k, v = commit.CloneBytes(key), commit.CloneBytes(value); return false })
		return errors.Join(err, b.Put("credentials", append(k, 'x'), v))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := VerifyEngine(ctx, to, master, nil); !errors.Is(err, seal.ErrDamaged) || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("a secret that does not open: %v", err)
	}
	if err := to.Close(true); err != nil {
		t.Fatal(err)
	}
	copied, err := Open(ctx, Options{Path: path, Master: master})
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if got, err := copied.GetVectors(ctx, "m", []string{"k"}); err != nil || len(got["k"]) != 2 {
		t.Errorf("vectors: %v, %v", got, err)
	}
}
