package store

import (
	"slices"
	"strconv"
	"strings"
)

// Policy says who may press, as text:
//
//	requester | admins | channel-admins | channel | user:ID | group:NAME
//
// or several of these, parted by commas: any of them may. "2 of group:ops" wants
// the yes of two different people, and "not requester" at the end leaves out
// who asked: "2 of group:ops,admins not requester". A list of nobody is the
// admins, never everyone. [ParsePolicy] reads it.
type Policy string

// The policies without names.
const (
	ByRequester     Policy = "requester"
	ByAdmins        Policy = "admins"
	ByChannelAdmins Policy = "channel-admins"
	ByChannel       Policy = "channel" // anyone in it
)

var policies = []string{string(ByRequester), string(ByAdmins), string(ByChannelAdmins), string(ByChannel)}

const (
	maxApprovers = 50   // names in a policy
	maxNeed      = 20   // people who must say yes
	maxPolicy    = 4096 // bytes of its text
)

// Approvers is a policy that was read.
type Approvers struct {
	Need         int      // how many different people must say yes, at least 1
	Who          []string // any of these: requester, admins, channel-admins, channel, user:ID, group:NAME
	NotRequester bool     // the yes of who asked does not count
}

// ParsePolicy reads the text of a [Policy]. An empty one is the admins.
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

// namesSomebody says whether who can be user:U or group:G.
func namesSomebody(who string) bool {
	kind, name, ok := strings.Cut(who, ":")
	if !ok || name == "" || len(name) > 128 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == 0xfffd }) {
		return false
	}
	return kind == "user" || kind == "group" && slug.MatchString(name)
}

// Policy is the text of a, in its normal form.
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

// Alone says whether one yes of the requester is enough.
func (a Approvers) Alone() bool {
	return a.Need <= 1 && !a.NotRequester && slices.Contains(a.Who, string(ByRequester))
}

// Approvers reads the policy of a stored call. One that cannot be read is the
// admins: what is unknown is decided by those who may decide everything.
func (p Policy) Approvers() Approvers {
	a, err := ParsePolicy(string(p))
	if err != nil {
		return Approvers{Need: 1, Who: []string{string(ByAdmins)}}
	}
	return a
}

// Yes lists who said yes to the call and is still counted, the first first:
// each person once.
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
