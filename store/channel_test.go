package store_test

import (
	"testing"

	"nize/store"
)

func FuzzParsePlace(f *testing.F) {
	for _, s := range []string{"slack:T1:C1", "slack::C1", "slack:T1:", ":T1:C1", "slack:T1/C1", "terminal", "a:b:c:d", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := store.ParsePlace(text)
		if err == nil && at.Place() != text {
			t.Errorf("%q is read as %+v, whose place is %q", text, at, at.Place())
		}
	})
}

// A channel says which servers it allows, where an empty list is none.
func TestChannel(t *testing.T) {
	if c := (store.Channel{Place: "slack:T1:C1"}); !c.Unset() || !c.AllowsServer("box") || c.EffectiveMode() != store.ModeFollow || c.LocaleFor(store.Thread{Locale: "de"}) != "de" {
		t.Errorf("%+v", c)
	}
	if c := (store.Channel{Servers: []string{}, Language: "zh"}); c.Unset() || c.AllowsServer("box") || c.LocaleFor(store.Thread{Locale: "de"}) != "zh" {
		t.Errorf("%+v", c)
	}
	for _, c := range []store.Channel{{Mode: "loud"}, {Approvers: "everyone"}, {Admins: []string{"all"}}, {Admins: []string{"user:"}}, {Admins: []string{"requester"}}, {Servers: make([]string, 201)}} {
		if c.Check() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	for at, shared := range map[store.Address]bool{
		{Surface: store.OnSlack, Team: "T1", Channel: "C1"}: true, {Surface: store.OnSlack, Team: "T1", Channel: "G1"}: true,
		{Surface: store.OnSlack, Team: "T1", Channel: "D1"}: false, {Surface: store.OnTerminal, Thread: "x"}: false,
	} {
		if at.Shared() != shared {
			t.Errorf("%+v", at)
		}
	}
}
