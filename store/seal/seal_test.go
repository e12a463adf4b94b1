package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nize/store"
)

func mustOpen(t *testing.T, file string) *Master {
	t.Helper()
	m, err := Open(file, store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	m := mustOpen(t, file)
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("the key is written before anything needs it")
	}
	dk := NewDataKey(1)
	wrapped, err := m.Wrap(dk)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	again := mustOpen(t, file)
	got, err := again.Unwrap(1, wrapped)
	if err != nil || got != dk || again.ID() != m.ID() {
		t.Fatalf("after a restart: %v", err)
	}
	if _, err := m.Wrap(NewDataKey(2)); err != nil { // does not write it again
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o601} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(file, store.Secret{}); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

// TestKeyFileLink: what a link leads to is not taken for the key.
func TestKeyFileLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "key"), filepath.Join(dir, "link")
	if _, err := mustOpen(t, file).Wrap(NewDataKey(1)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(link, store.Secret{}); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "it is a link") {
		t.Errorf("got %v", err)
	}
}

// TestKeyFileRace: a file that appeared meanwhile is not overwritten.
func TestKeyFileRace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	first, second := mustOpen(t, file), mustOpen(t, file)
	if _, err := first.Wrap(NewDataKey(1)); err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Wrap(NewDataKey(1)); !errors.Is(err, os.ErrExist) {
		t.Fatalf("the second one: %v", err)
	}
	if is, err := os.ReadFile(file); err != nil || !bytes.Equal(is, was) {
		t.Fatal("the first key is gone", err)
	}
}

func TestBadKeyFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "passphrase": "correct horse battery staple", "short": base64.StdEncoding.EncodeToString(make([]byte, 16)), "long": strings.Repeat("A", 5000)} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(file, store.Secret{}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(dir, store.Secret{}); err == nil {
		t.Error("a folder is a key")
	}
}

func TestEnv(t *testing.T) {
	key := bytes.Repeat([]byte{0xfb, 0xef, 0x01, 0x7f}, 8)
	var id string
	for _, text := range []string{
		hex.EncodeToString(key), strings.ToUpper(hex.EncodeToString(key)), base64.StdEncoding.EncodeToString(key), base64.RawStdEncoding.EncodeToString(key),
		base64.URLEncoding.EncodeToString(key), " " + base64.RawURLEncoding.EncodeToString(key) + "\n",
	} {
		m, err := Open("/nowhere/at/all", store.NewSecret(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if id == "" {
			id = m.ID()
		}
		if m.ID() != id {
			t.Errorf("%q is another key", text)
		}
	}
	for _, text := range []string{"hunter2", "correct horse battery staple", strings.Repeat("x", 32), strings.Repeat("ab", 31), strings.Repeat("ab", 33), " "} {
		_, err := Open("/nowhere/at/all", store.NewSecret(text))
		if !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), text) && text != " " {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestUnwrap(t *testing.T) {
	dir := t.TempDir()
	m, other := mustOpen(t, filepath.Join(dir, "a")), mustOpen(t, filepath.Join(dir, "b"))
	wrapped, err := m.Wrap(NewDataKey(7))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Unwrap(7, wrapped); !errors.Is(err, ErrWrongKey) || !strings.Contains(err.Error(), m.ID()) {
		t.Errorf("with another key: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "b")); !errors.Is(err, os.ErrNotExist) {
		t.Error("Unwrap made a key file")
	}
	if _, err := m.Unwrap(8, wrapped); !errors.Is(err, ErrDamaged) {
		t.Errorf("under another number: %v", err)
	}
	for i := range wrapped {
		bad := bytes.Clone(wrapped)
		bad[i] ^= 1
		if _, err := m.Unwrap(7, bad); err == nil {
			t.Errorf("byte %d may be changed", i)
		}
		if _, err := m.Unwrap(7, wrapped[:i]); err == nil {
			t.Errorf("%d bytes are enough", i)
		}
	}
}

func TestSealer(t *testing.T) {
	k1, k2 := NewDataKey(1), NewDataKey(2)
	old, err := NewSealer(k1)
	if err != nil {
		t.Fatal(err)
	}
	both, err := NewSealer(k1, k2)
	if err != nil {
		t.Fatal(err)
	}
	aad := Place("credentials", []byte("a"))
	for _, plain := range []string{"", "x", strings.Repeat("long", 10_000)} {
		a, b := old.Seal(aad, []byte(plain)), old.Seal(aad, []byte(plain))
		if bytes.Equal(a, b) || len(plain) > 8 && bytes.Contains(a, []byte(plain)) {
			t.Fatal("it is not sealed")
		}
		got, err := both.Open(aad, a) // a newer key does not shut out the older one
		if err != nil || string(got) != plain {
			t.Fatalf("got %.10q, %v", got, err)
		}
	}
	sealed := both.Seal(aad, []byte("secret"))
	if n, err := KeyNumber(sealed); n != 2 || err != nil {
		t.Errorf("it is sealed under %d, %v", n, err)
	}
	if _, err := old.Open(aad, sealed); !errors.Is(err, ErrDamaged) {
		t.Errorf("without its key: %v", err)
	}
	for _, place := range [][]byte{Place("credentials", []byte("b")), Place("credential", []byte("sa")), Place("", nil), nil} {
		if _, err := both.Open(place, sealed); !errors.Is(err, ErrDamaged) {
			t.Errorf("it opens at %q: %v", place, err)
		}
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 0x80
		if _, err := both.Open(aad, bad); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d may be changed: %v", i, err)
		}
	}
	// Under another key's number, with that number bound in.
	moved := bytes.Clone(old.Seal(aad, []byte("secret")))
	moved[4] = 2
	if _, err := both.Open(aad, moved); !errors.Is(err, ErrDamaged) {
		t.Errorf("a changed key number: %v", err)
	}
	if _, err := NewSealer(); err == nil {
		t.Error("a sealer without keys")
	}
}

func TestPlaceIsUnambiguous(t *testing.T) {
	if bytes.Equal(Place("ab", []byte("c")), Place("a", []byte("bc"))) {
		t.Error("two places read alike")
	}
}

// TestPrints: keys do not show, however they are printed.
func TestPrints(t *testing.T) {
	m := mustOpen(t, filepath.Join(t.TempDir(), "key"))
	k := NewDataKey(3)
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		fmt.Fprintf(&out, verb+" "+verb+"\n", m, k)
	}
	for _, form := range []string{hex.EncodeToString(m.key), hex.EncodeToString(k.key[:]), fmt.Sprint(m.key), fmt.Sprint(k.key[:])} {
		if strings.Contains(out.String(), form) {
			t.Errorf("it is shown: %s", out.String())
		}
	}
}

func FuzzOpen(f *testing.F) {
	s, err := NewSealer(NewDataKey(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(s.Seal(nil, []byte("x")))
	f.Add([]byte{1, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, sealed []byte) {
		if _, err := s.Open([]byte("elsewhere"), sealed); !errors.Is(err, ErrDamaged) {
			t.Fatalf("got %v", err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(strings.Repeat("ab", 32))
	f.Add(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	f.Fuzz(func(t *testing.T, text string) {
		if key, err := decode(text); err == nil && len(key) != keySize {
			t.Fatalf("%q is a key of %d bytes", text, len(key))
		}
	})
}
