package store

import (
	"fmt"
	"slices"
	"strings"
)

// Access is who may talk to nize in chats (bots.access), of those whom
// a platform itself lets in: guests, bots and people of other workspaces never
// may. Its text is "members", or several of
//
//	admins | group:NAME | user:ID
//
// parted by commas. Admins always may.
type Access []string

const (
	everyMember = "members"
	onlyAdmins  = "admins"
	maxAccess   = 100 // names in it
)

// ParseAccess reads the text of an [Access].
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

// AccessOf reads what bots.access is now. What can't be read is the admins.
func AccessOf(c Config) Access {
	a, err := ParseAccess(c.Get("", "bots.access"))
	if err != nil {
		return Access{onlyAdmins}
	}
	return a
}

// String is the text of a, in its normal form.
func (a Access) String() string { return strings.Join(a, ",") }

// Everybody says whether everyone may whom the platform lets in.
func (a Access) Everybody() bool { return slices.Contains(a, everyMember) }

// Admits says whether a person may, who is in the groups named.
func (a Access) Admits(u User, groups []string) bool {
	if a.Everybody() || u.Role == Admin {
		return true
	}
	if slices.ContainsFunc(u.Aliases, func(id string) bool { return Among(a, id, nil) }) {
		return true
	}
	return Among(a, u.ID, groups)
}
