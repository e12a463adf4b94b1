package store

import (
	"fmt"
	"slices"
	"strings"
)

// Access lists the people who may use nize in chats (the setting bots.access), out of those
// whom the platform admits: guests, bots and members of other workspaces are always
// refused. Its text is "members", or a comma-separated list of
//
//	admins | group:NAME | user:ID
//
// Admins are always admitted.
type Access []string

const (
	everyMember = "members"
	onlyAdmins  = "admins"
	maxAccess   = 100 // names in one Access
)

// ParseAccess parses the text of an [Access].
func ParseAccess(text string) (Access, error) {
	bad := func(why string) (Access, error) {
		return nil, fmt.Errorf("%w access %q: %s", ErrInvalid, Clip(text, 80), why)
	}
	var a Access
	for who := range strings.SplitSeq(text, ",") {
		who = strings.TrimSpace(who)
		switch {
		case who == "":
		case who != everyMember && who != onlyAdmins && !namesSomebody(who):
			return bad(fmt.Sprintf("%q is none of members, admins, group:G and user:U", Clip(who, 80)))
		case !slices.Contains(a, who):
			a = append(a, who)
		}
	}
	switch {
	case len(a) == 0:
		return bad("say who: members, admins, group:G or user:U")
	case len(a) > maxAccess:
		return bad(fmt.Sprintf("more than %d names; make a group of them", maxAccess))
	case slices.Contains(a, everyMember):
		a = Access{everyMember}
	}
	return a, nil
}

// AccessOf returns the current value of bots.access. If it can't be parsed, only admins are
// admitted.
func AccessOf(c Config) Access {
	a, err := ParseAccess(c.Get("", "bots.access"))
	if err != nil {
		return Access{onlyAdmins}
	}
	return a
}

// String returns the text of a in its normal form.
func (a Access) String() string { return strings.Join(a, ",") }

// Everybody reports whether a admits everyone whom the platform admits.
func (a Access) Everybody() bool { return slices.Contains(a, everyMember) }

// Admits reports whether a admits the user, a member of the given groups.
func (a Access) Admits(u User, groups []string) bool {
	if a.Everybody() || u.Role == Admin {
		return true
	}
	if slices.ContainsFunc(u.Aliases, func(id string) bool { return Among(a, id, nil) }) {
		return true
	}
	return Among(a, u.ID, groups)
}
