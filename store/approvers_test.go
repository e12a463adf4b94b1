package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParsePolicy(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "admins",
		" , ":                           "admins",
		"requester":                     "requester",
		"1 of admins":                   "admins",
		"user:01A, group:ops ,user:01A": "user:01A,group:ops",
		"2 of group:ops":                "2 of group:ops",
		" 2  of group:ops,admins not  requester ": "2 of group:ops,admins not requester",
		"channel not requester":                   "channel not requester",
		"2 of user:01A,user:01B":                  "2 of user:01A,user:01B",
		"channel-admins,requester":                "channel-admins,requester",
		"2 of requester,admins":                   "2 of requester,admins",
	} {
		a, err := ParsePolicy(text)
		if err != nil || string(a.Policy()) != want {
			t.Errorf("%q: %q, %v; want %q", text, a.Policy(), err, want)
		}
	}
	for _, text := range []string{
		"everyone", "all", "user:", "group:Ops!", "0 of admins", "21 of admins", "-1 of admins", "x of admins",
		"requester not requester", "2 of user:01A", "3 of user:01A,requester", "user:a b", "2 of 2 of admins",
		strings.Repeat("user:a,", 2000), "user:\x00", "group:", "not requester",
	} {
		if a, err := ParsePolicy(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%.40q was read as %q (%v)", text, a.Policy(), err)
		}
		if a := Policy(text).Approvers(); !slices.Equal(a.Who, []string{"admins"}) || a.Need != 1 {
			t.Errorf("%.40q counts as %+v", text, a)
		}
	}
}

func TestYes(t *testing.T) {
	yes := func(by string, voids ...string) Decision { return Decision{Verb: Approve, By: by, Voids: voids} }
	c := Call{Decisions: []Decision{yes("a"), yes("a"), yes("b", "a"), {Verb: Deny, By: "c"}, yes("a"), yes("d", "b")}}
	if got := c.Yes(); !slices.Equal(got, []string{"a", "d"}) {
		t.Errorf("got %q", got)
	}
}

func FuzzParsePolicy(f *testing.F) {
	for _, s := range []string{"requester", "2 of group:ops not requester", "user:a,user:b", "channel-admins", "", "9 of channel"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParsePolicy(text)
		if err != nil {
			return
		}
		if a.Need < 1 || len(a.Who) == 0 || len(a.Who) > maxApprovers {
			t.Errorf("%q: %+v", text, a)
		}
		again, err := ParsePolicy(string(a.Policy()))
		if err != nil || again.Policy() != a.Policy() || again.NotRequester != a.NotRequester || again.Need != a.Need {
			t.Errorf("%q is written %q, which is read as %+v (%v)", text, a.Policy(), again, err)
		}
	})
}
