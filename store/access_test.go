package store

import (
	"errors"
	"strings"
	"testing"
)

func TestAccess(t *testing.T) {
	for text, want := range map[string]string{
		"members": "members", " members , group:ops": "members", "group:ops, user:Ann": "group:ops,user:Ann", "admins": "admins",
		"admins,admins,": "admins",
	} {
		a, err := ParseAccess(text)
		if err != nil || a.String() != want {
			t.Errorf("%q is %q, %v; want %q", text, a, err, want)
		}
	}
	for _, text := range []string{"", " ", ",", "all", "guests", "member", "group:", "group:Not A Slug", "user:", "user:a b", "everyone", "requester", "user:\u0000", strings.Repeat("group:a", 2000)} {
		if a, err := ParseAccess(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%.40q is %q, %v", text, a, err)
		}
	}
	ann := User{ID: "1", Role: Member, Aliases: []string{"0"}}
	boss := User{ID: "9", Role: Admin}
	for _, test := range []struct {
		access string
		u      User
		groups []string
		want   bool
	}{
		{"members", ann, nil, true}, {"members", User{Role: Member}, nil, true},
		{"admins", ann, nil, false}, {"admins", boss, nil, true}, {"group:ops", boss, nil, true},
		{"group:ops", ann, []string{"ops"}, true}, {"group:ops", ann, []string{"op", "all"}, false}, {"group:all", ann, nil, false},
		{"user:1", ann, nil, true}, {"user:0", ann, nil, true}, {"user:2", ann, nil, false}, {"user:2", User{Role: Member}, nil, false},
		{"group:ops", User{Role: Member}, []string{"ops"}, true},
	} {
		a, err := ParseAccess(test.access)
		if err != nil || a.Admits(test.u, test.groups) != test.want {
			t.Errorf("%s admits %+v in %v: %v, want %v", test.access, test.u, test.groups, !test.want, test.want)
		}
	}
	if a := AccessOf(Defaults{"bots.access": "nonsense"}); a.Admits(ann, nil) || !a.Admits(boss, nil) {
		t.Errorf("what can't be read is %q", a)
	}
	if !AccessOf(Defaults{}).Everybody() {
		t.Error("the default is not the full members")
	}
}

func FuzzAccess(f *testing.F) {
	for _, text := range []string{"members", "group:ops,user:1", ",,", "user:\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAccess(text)
		if err != nil {
			return
		}
		again, err := ParseAccess(a.String())
		if err != nil || again.String() != a.String() {
			t.Errorf("%q becomes %q, then %q, %v", text, a, again, err)
		}
		if len(a) == 0 || a.Admits(User{Role: Member}, nil) != a.Everybody() {
			t.Errorf("%q lets somebody in who is nobody", text)
		}
	})
}
