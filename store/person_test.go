package store_test

import (
	"errors"
	"strings"
	"testing"

	"nize/store"
)

func TestCode(t *testing.T) {
	code, hash := store.NewCode()
	text := code.Reveal()
	for _, typed := range []string{text, strings.ToLower(text), strings.ReplaceAll(text, "-", ""), " " + strings.ReplaceAll(text, "-", " ")} {
		if got, err := store.ReadCode(typed); err != nil || got != hash {
			t.Errorf("%q is read as another: %v", typed, err)
		}
	}
	if again, _ := store.NewCode(); again.Reveal() == text {
		t.Error("the same code twice")
	}
}

func FuzzReadCode(f *testing.F) {
	for _, s := range []string{"ABCD-EFGH-JKLM", "abcd efgh jklm", "", "ABCD-EFGH-JKL0", "\x00", strings.Repeat("A", 100)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := store.ReadCode(s)
		if err != nil && (!errors.Is(err, store.ErrInvalid) || got != [32]byte{}) {
			t.Errorf("%q: %v", s, err)
		}
		if upper, err2 := store.ReadCode("-" + s); len(s) < 60 && (upper != got || (err2 == nil) != (err == nil)) {
			t.Errorf("%q is another with a dash", s)
		}
	})
}
