package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

func TestText(t *testing.T) {
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.FixedZone("", 3600))
	inner := Errorf("that is %s", "nobody")
	for _, row := range []struct {
		text         Text
		english, key string
		stored       string
	}{
		{Text{}, "", "", `""`},
		{Textf("edited"), "edited", "edited", `"edited"`},
		{Plain("disk quota %s"), "disk quota %s", "%s", `["%s","disk quota %s"]`},
		{Textf("%d of %q, %.1f %%, %t", 3, "a\"b", 1.25, true), `3 of "a\"b", 1.2 %, true`, "%d of %q, %.1f %%, %t", ""},
		{Textf("%s: %v", State("done"), 90*time.Second), "done: 1m30s", "%s: %v", `["%s: %v","done",{"span":"1m30s"}]`},
		{Textf("on %s", Moment{at}), "on Sunday, 1 March, 00:00", "on %s", `["on %s",{"moment":"2026-03-01T00:00"}]`},
		{Textf("%s (%s)", Textf("group %s", "ops"), Textf("all")), "group ops (all)", "%s (%s)", `["%s (%s)",["group %s","ops"],["all"]]`},
		{TextOf(Errorf("%w channel: %w", ErrInvalid, inner)), "invalid channel: that is nobody", "invalid channel: %w", `["invalid channel: %w",["that is %s","nobody"]]`},
		{TextOf(Errorf("call %s %w", "1", ErrNotFound)), "call 1 not found", "call %s not found", ""},
		{TextOf(Errorf("code expired: %s", io.EOF)), "code expired: EOF", "code expired: %s", `["code expired: %s",["%s","EOF"]]`},
		{TextOf(fmt.Errorf("reading: %w", inner)), "reading: that is nobody", "%s", ""},
	} {
		if got := row.text.String(); got != row.english {
			t.Errorf("got %q, want %q", got, row.english)
		}
		if key, _ := row.text.Parts(); key != row.key {
			t.Errorf("%s: got the format %q, want %q", row.english, key, row.key)
		}
		b, err := json.Marshal(StoredText{row.text})
		if err != nil || row.stored != "" && string(b) != row.stored {
			t.Errorf("%s is stored as %s, %v; want %s", row.english, b, err, row.stored)
		}
		var back StoredText
		if err := json.Unmarshal(b, &back); err != nil || back.Text != row.text {
			t.Errorf("%s came back as %v, %v", b, back, err)
		}
		b, err = json.Marshal(row.text)
		var wire Text
		if err := errors.Join(err, json.Unmarshal(b, &wire)); err != nil || wire.String() != row.english || wire != Plain(row.english) {
			t.Errorf("%s travels as %s, %v", row.english, b, err)
		}
	}
}

func TestErrorf(t *testing.T) {
	inner := Errorf("reading %s: %w, %w", "x", ErrExpired, io.EOF)
	err := fmt.Errorf("doing: %w", inner)
	var text interface{ Text() Text }
	if !errors.Is(err, ErrExpired) || !errors.Is(err, io.EOF) || !errors.As(err, &text) || text.Text() != TextOf(inner) || err.Error() != "doing: reading x: expired, EOF" {
		t.Errorf("got %q of %v", err, text)
	}
}

// Whatever is stored or sent can be printed.
func FuzzText(f *testing.F) {
	for _, s := range []string{`"edited"`, `["%d of %s",3,["x"]]`, `["%s",{"span":"1m"},{"moment":"2026-03-01T00:00"}]`, `[]`, `[1]`, `["%s",[1,[]],{},null]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var stored StoredText
		if json.Unmarshal(b, &stored) == nil {
			again, err := json.Marshal(stored)
			var back StoredText
			if err != nil || json.Unmarshal(again, &back) != nil || back.String() != stored.String() {
				t.Errorf("%q was stored as %s, %v", stored.String(), again, err)
			}
		}
		var wire Text
		_ = json.Unmarshal(b, &wire)
		_ = wire.String()
	})
}

// A marked error reads as it did and is of one kind more.
func TestMark(t *testing.T) {
	inner := Errorf("only %s can decide this", "ann")
	err := fmt.Errorf("deciding: %w", Mark(inner, ErrRefused))
	if !errors.Is(err, ErrRefused) || !errors.Is(err, inner) || err.Error() != "deciding: only ann can decide this" {
		t.Errorf("got %v", err)
	}
	if got := TextOf(Mark(inner, ErrRefused)); got != TextOf(inner) {
		t.Errorf("got %v", got)
	}
}

func TestFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"Reads a page. Then more.":                        "Reads a page.",
		"Give a path, e.g. /tmp/x. It must exist.":        "Give a path, e.g. /tmp/x.",
		"Units (e.g. Kilometres) are converted. Exactly.": "Units (e.g. Kilometres) are converted.",
		"A date, i.e. A day. More.":                       "A date, i.e. A day.",
		"Files, mails, etc. Anything. More.":              "Files, mails, etc. Anything.",
		"By J. Smith and others. More.":                   "By J. Smith and others.",
		"approx. Ten. More":                               "approx. Ten.",
		"Is it there? Yes.":                               "Is it there?",
		"Stop! Now.":                                      "Stop!",
		"Version 1.2 is out. More.":                       "Version 1.2 is out.",
		"Takes v2. Returns v3.":                           "Takes v2.",
		"One sentence":                                    "One sentence",
		"One sentence.":                                   "One sentence.",
		"see foo. bar is small":                           "see foo. bar is small",
		". odd":                                           ". odd",
		"":                                                "",
	} {
		if got := FirstSentence(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
