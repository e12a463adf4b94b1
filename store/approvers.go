package store

import (
	"slices"
	"strconv"
	"strings"
)

// Policy is the text of an approval policy:
//
//	requester | admins | channel-admins | channel | user:ID | group:NAME
//
// or a comma-separated list of these, any of whom may decide. "2 of group:ops" needs the
// approval of two different people, and "not requester" at the end excludes the requester:
// "2 of group:ops,admins not requester". An empty list means the admins, never everyone.
// [ParsePolicy] parses it.
type Policy string

// Policies that name no user or group.
const (
	ByRequester     Policy = "requester"
	ByAdmins        Policy = "admins"
	ByChannelAdmins Policy = "channel-admins"
	ByChannel       Policy = "channel" // anyone in the channel
)

var policies = []string{string(ByRequester), string(ByAdmins), string(ByChannelAdmins), string(ByChannel)}

const (
	maxApprovers = 50   // names in a policy
	maxNeed      = 20   // people who must approve
	maxPolicy    = 4096 // bytes of its text
)

// Approvers is a parsed [Policy].
type Approvers struct {
	Need         int      // how many different people must approve, at least 1
	Who          []string // any of these: requester, admins, channel-admins, channel, user:ID, group:NAME
	NotRequester bool     // the requester's own approval does not count
}

// ParsePolicy parses the text of a [Policy]. An empty text means the admins.
func ParsePolicy(text string) (Approvers, error) {
	bad := func(why Text) (Approvers, error) {
		return Approvers{}, Errorf("%w approvers %q: %s", ErrInvalid, Clip(text, 80), why)
	}
	if len(text) > maxPolicy {
		return bad(Textf("more than %d bytes", maxPolicy))
	}
	a := Approvers{Need: 1}
	rest := strings.Join(strings.Fields(text), " ")
	rest, a.NotRequester = strings.CutSuffix(rest, " not requester")
	if n, list, ok := strings.Cut(rest, " of "); ok {
		need, err := strconv.Atoi(n)
		if err != nil || need < 1 || need > maxNeed {
			return bad(Textf("write how many, from 1 to %d, such as 2 of group:ops", maxNeed))
		}
		a.Need, rest = need, list
	}
	for who := range strings.SplitSeq(rest, ",") {
		who = strings.TrimSpace(who)
		if who == "" {
			continue
		}
		if !isApprover(who) {
			if near := Nearest(who, policies); near != "" {
				return bad(Textf("%q is none of requester, admins, channel-admins, channel, user:U and group:G; did you mean %s?", Clip(who, 80), near))
			}
			return bad(Textf("%q is none of requester, admins, channel-admins, channel, user:U and group:G", Clip(who, 80)))
		}
		if !slices.Contains(a.Who, who) {
			a.Who = append(a.Who, who)
		}
	}
	switch {
	case len(a.Who) == 0:
		a.Who = []string{string(ByAdmins)}
	case len(a.Who) > maxApprovers:
		return bad(Textf("more than %d names", maxApprovers))
	}
	if a.NotRequester && slices.Equal(a.Who, []string{string(ByRequester)}) {
		return bad(Textf("that is nobody"))
	}
	if one := slices.IndexFunc(a.Who, func(w string) bool { return !isOne(w) }) < 0; one && a.Need > len(a.Who) {
		return bad(Textf("it names %d, and %d must say yes", len(a.Who), a.Need))
	}
	return a, nil
}

func isOne(who string) bool { return who == string(ByRequester) || strings.HasPrefix(who, "user:") }

func isApprover(who string) bool {
	switch Policy(who) {
	case ByRequester, ByAdmins, ByChannelAdmins, ByChannel:
		return true
	}
	return namesSomebody(who)
}

// namesSomebody reports whether who has the form user:U or group:G.
func namesSomebody(who string) bool {
	kind, name, ok := strings.Cut(who, ":")
	if !ok || name == "" || len(name) > 128 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == 0xfffd }) {
		return false
	}
	return kind == "user" || kind == "group" && slug.MatchString(name)
}

// Policy returns the text of a in its normal form.
func (a Approvers) Policy() Policy {
	text := strings.Join(a.Who, ",")
	if a.Need > 1 {
		text = strconv.Itoa(a.Need) + " of " + text
	}
	if a.NotRequester {
		text += " not requester"
	}
	return Policy(text)
}

// Alone reports whether the requester's approval alone is enough.
func (a Approvers) Alone() bool {
	return a.Need <= 1 && !a.NotRequester && slices.Contains(a.Who, string(ByRequester))
}

// Approvers parses the policy of a stored call. If it can't be parsed, it returns the
// admins, who may decide everything.
func (p Policy) Approvers() Approvers {
	a, err := ParsePolicy(string(p))
	if err != nil {
		return Approvers{Need: 1, Who: []string{string(ByAdmins)}}
	}
	return a
}

// Yes returns the people whose approvals of the call count, in order of approval, each
// person once.
func (c Call) Yes() []string {
	var people []string
	for _, d := range c.Decisions {
		people = slices.DeleteFunc(people, func(p string) bool { return slices.Contains(d.Voids, p) })
		if d.Verb == Approve && !slices.Contains(people, d.By) {
			people = append(people, d.By)
		}
	}
	return people
}
