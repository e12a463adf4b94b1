package api

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

var exportSecret = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

func signForTest(m []byte) ([]byte, ed25519.PublicKey) {
	return ed25519.Sign(exportSecret, m), exportSecret.Public().(ed25519.PublicKey)
}

// exported is an export of the events numbered so.
func exported(t testing.TB, change func(*Export), seqs ...int) string {
	t.Helper()
	var b strings.Builder
	for _, n := range seqs {
		fmt.Fprintf(&b, `{"seq":%d,"kind":"x","data":{"a":"<b>"}}`+"\n", n)
	}
	sum := sha256.Sum256([]byte(b.String()))
	e := Export{At: time.Unix(1, 0).UTC(), Events: len(seqs), SHA256: hex.EncodeToString(sum[:]), Head: 100, Chain: "ab"}
	if len(seqs) > 0 {
		e.First, e.Last = uint64(seqs[0]), uint64(seqs[len(seqs)-1])
	}
	if change != nil {
		change(&e)
	}
	last, err := e.Line(signForTest)
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + string(last)
}

func TestReadExport(t *testing.T) {
	whole := exported(t, nil, 3, 4, 5)
	first, rest, _ := strings.Cut(whole, "\n")
	filtered := func(e *Export) { e.Filter = map[string]string{"kind": "x"} }
	for _, test := range []struct {
		name, text, want string
	}{
		{"whole", whole, ""},
		{"kept alive", "\n" + first + "\n\n" + rest, ""},
		{"filtered", exported(t, filtered, 1, 9), ""},
		{"empty", exported(t, nil), ""},
		{"of nothing", "", "last line is missing"},
		{"without its end", whole[:strings.LastIndex(whole, `{"export"`)], "last line is missing"},
		{"cut", whole[:len(whole)-1], "is cut off"},
		{"one changed", strings.Replace(whole, `"x"`, `"y"`, 1), "other lines"},
		{"the first removed", rest, "other lines"},
		{"one removed in the middle", strings.Replace(whole, `{"seq":4,"kind":"x","data":{"a":"<b>"}}`+"\n", "", 1), "other lines"},
		{"two swapped", strings.Replace(strings.Replace(strings.Replace(whole, `"seq":3`, `"seq":0`, 1), `"seq":4`, `"seq":3`, 1), `"seq":0`, `"seq":4`, 1), "not in its place"},
		{"one twice", first + "\n" + whole, "not in its place"},
		{"one added at the end", whole + first + "\n", "follows its last line"},
		{"another's end", strings.Replace(whole, rest[strings.Index(rest, `{"export"`):], "", 1) + exported(t, nil), "other lines"},
		{"a gap that is no filter", exported(t, nil, 1, 9), "other lines"},
		{"the end changed", strings.Replace(whole, `"events":3`, `"events":4`, 1), "signature"},
		{"the filter removed", strings.Replace(exported(t, filtered, 1, 9), `"filter":{"kind":"x"},`, "", 1), "signature"},
		{"another key named", strings.Replace(whole, `"key":"`, `"key":"00`, 1), "signature"},
		{"no event", "hello\n" + whole, "no event"},
		{"a line without end", strings.Repeat("x", maxEventLine+1), "is over"},
		{"the daemon's last word", first + "\n" + `{"error":{"code":"internal","message":"the disk is gone"}}` + "\n", "the disk is gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var copied bytes.Buffer
			x, err := ReadExport(strings.NewReader(test.text), &copied)
			switch {
			case test.want == "" && (err != nil || x.Key != hex.EncodeToString(exportSecret.Public().(ed25519.PublicKey))):
				t.Errorf("%+v, %v", x, err)
			case test.want == "" && copied.String() != strings.ReplaceAll(strings.TrimPrefix(test.text, "\n"), "\n\n", "\n"):
				t.Errorf("copied %q", copied.String())
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
			var wire *Error
			if test.want != "" && !errors.Is(err, ErrExport) && !errors.As(err, &wire) {
				t.Errorf("%v is no ErrExport", err)
			}
		})
	}
	// Who signs with a key of their own is found out by it.
	forged, err := Export{SHA256: hex.EncodeToString(sha256.New().Sum(nil))}.Line(func(m []byte) ([]byte, ed25519.PublicKey) {
		k := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
		return ed25519.Sign(k, m), k.Public().(ed25519.PublicKey)
	})
	if err != nil {
		t.Fatal(err)
	}
	if x, err := ReadExport(bytes.NewReader(forged), io.Discard); err != nil || x.Key == hex.EncodeToString(exportSecret.Public().(ed25519.PublicKey)) {
		t.Errorf("%+v, %v", x, err)
	}
}

func FuzzReadExport(f *testing.F) {
	f.Add([]byte(exported(f, nil, 1, 2)))
	f.Add([]byte(`{"export":{},"key":"","signature":""}` + "\n"))
	f.Add([]byte(`{"seq":18446744073709551615,` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := ReadExport(bytes.NewReader(b), io.Discard)
		if err == nil && len(x.Key) != 2*ed25519.PublicKeySize {
			t.Fatalf("%q holds: %+v", b, x)
		}
	})
}
