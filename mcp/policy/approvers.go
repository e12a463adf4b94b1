package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/store"
)

// Approvers determines who may decide on a call.
type Approvers struct {
	store    Store
	groups   Groups
	channels Channels
	config   store.Config
	log      *slog.Logger
	now      func() time.Time
	// described has the names that Describe found before, if it is set; see ReadOnce.
	described map[place][]string
}

// hasPlace reports whether a user can currently make decisions somewhere: in a chat,
// through the socket, or in a browser in which they are signed in. It returns false if that
// can't be looked up.
func (p *Approvers) hasPlace(ctx context.Context, u store.User) bool {
	if u.CanApprove() || u.State != store.Active || !store.GetBool(p.config, "", "web.enabled") {
		return u.CanApprove()
	}
	tokens, err := p.store.ListTokens(ctx, u.ID)
	if err != nil {
		p.log.Warn("looking up where somebody is signed in; it counts as nowhere", "user", u.ID, "err", err)
	}
	now, idle := p.now(), store.GetSpan(p.config, "", "web.session_idle")
	return slices.ContainsFunc(tokens, func(t store.Token) bool {
		return t.Audience == store.ForWeb && t.State(now) == "active" && min(now.Sub(t.Created), now.Sub(t.LastUsed)) < idle
	})
}

// HasPlace reports whether a card can reach a user now: in a chat, at the control socket
// or in a browser. It returns false for an unknown user.
func (p *Approvers) HasPlace(ctx context.Context, user string) (bool, error) {
	u, err := p.store.GetUser(ctx, user)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading user %s: %w", user, err)
	}
	return p.hasPlace(ctx, u), nil
}

// Reachable returns the policy for a call whose requester may have no place to make
// decisions. If only the requester could approve, but they only have tokens, it returns
// ByAdmins.
func (p *Approvers) Reachable(ctx context.Context, policy store.Policy, requester string) (store.Policy, error) {
	if policy != store.ByRequester {
		return policy, nil
	}
	u, err := p.store.GetUser(ctx, requester)
	if err != nil {
		return policy, fmt.Errorf("reading user %s: %w", requester, err)
	}
	if !p.hasPlace(ctx, u) {
		return store.ByAdmins, nil
	}
	return policy, nil
}

// withCurrentIDs returns a policy with its people's current ids: after a join, a file's
// policy, and for a moment that of a server, contains an older id.
func (p *Approvers) withCurrentIDs(ctx context.Context, policy store.Policy) store.Policy {
	a := policy.Approvers()
	var who []string
	for _, w := range a.Who {
		if id, ok := strings.CutPrefix(w, "user:"); ok {
			if u, err := p.store.GetUser(ctx, id); err == nil {
				w = "user:" + u.ID
			}
		}
		if !slices.Contains(who, w) {
			who = append(who, w)
		}
	}
	a.Who = who
	return a.Policy()
}

// approves reports whether u's approval would count for the call now. It returns false if
// that can't be looked up.
func (p *Approvers) approves(ctx context.Context, u store.User, c store.Call) bool {
	if c.Policy == store.ByRequester { // nearly all calls: no ballot needed
		return u.State == store.Active && u.ID == c.By
	}
	b := p.newBallot(ctx, c)
	b.decides = true
	return b.counts(ctx, u)
}

// ballot is one evaluation of the approvers of a call. It asks a platform each question
// only once.
type ballot struct {
	p    *Approvers
	call store.Call
	who  store.Approvers
	// decides is set if a decision depends on the result: then it is not based on what the
	// identity provider said long ago.
	decides bool
	at      func() store.Address
	admins  func() ([]string, error) // admins of the channel on the platform
	unsure  bool                     // a lookup failed and counted as no
}

func (p *Approvers) newBallot(ctx context.Context, c store.Call) *ballot {
	at := sync.OnceValue(func() store.Address { return p.addressOf(ctx, c) })
	return &ballot{
		p: p, call: c, who: c.Policy.Approvers(), at: at,
		admins: sync.OnceValues(func() ([]string, error) { return p.channels.Admins(ctx, at()) }),
	}
}

func (b *ballot) counts(ctx context.Context, u store.User) bool {
	if u.State != store.Active || b.who.NotRequester && u.ID == b.call.By {
		return false
	}
	return slices.ContainsFunc(b.who.Who, func(who string) bool {
		yes, err := b.matches(ctx, who, u)
		if err != nil {
			b.unsure = true
			b.p.log.Warn("looking up an approver; it counts as no", "user", u.ID, "who", who, "err", err)
		}
		return yes && err == nil
	})
}

func (b *ballot) matches(ctx context.Context, who string, u store.User) (bool, error) {
	switch store.Policy(who) {
	case store.ByRequester:
		return u.ID == b.call.By, nil
	case store.ByAdmins:
		if b.decides && u.Role == store.Admin && u.AdminByGroup {
			return b.p.groups.StillAdmin(ctx, u.ID)
		}
		return u.Role == store.Admin, nil
	case store.ByChannel, store.ByChannelAdmins:
		at := b.at()
		if b.p.channels == nil || at.Channel == "" {
			return false, nil
		}
		if store.Policy(who) == store.ByChannel {
			return b.p.channels.Member(ctx, at, u.ID)
		}
		admins, err := b.admins()
		return slices.Contains(admins, u.ID), err
	}
	if name, ok := strings.CutPrefix(who, "group:"); ok {
		if b.decides {
			return b.p.groups.StillInGroup(ctx, name, u.ID)
		}
		return b.p.groups.InGroup(ctx, name, u.ID)
	}
	// A setting in a file may contain an id that the person had before a join.
	return who == "user:"+u.ID || slices.ContainsFunc(u.Aliases, func(id string) bool { return who == "user:"+id }), nil
}

// Electorate is the set of people who could approve a call now and have a place to do so.
// Open means that anyone in its channel could, too.
type Electorate struct {
	people []store.User
	open   bool
	Unsure bool // there may be more: a lookup failed
}

// Electorate returns the people who could approve the call now.
func (p *Approvers) Electorate(ctx context.Context, c store.Call) (Electorate, error) {
	var e Electorate
	a := c.Policy.Approvers()
	users, err := p.candidates(ctx, a, c.By)
	if err != nil {
		return e, err
	}
	if slices.Contains(a.Who, string(store.ByChannel)) {
		e.open = p.channels != nil && p.addressOf(ctx, c).Channel != ""
		c.Policy = store.Approvers{Need: a.Need, NotRequester: a.NotRequester, Who: slices.DeleteFunc(slices.Clone(a.Who), func(w string) bool { return w == string(store.ByChannel) })}.Policy()
		if len(a.Who) == 1 {
			return e, nil
		}
	}
	look := p.newBallot(ctx, c)
	for _, u := range users {
		if p.hasPlace(ctx, u) && look.counts(ctx, u) {
			e.people = append(e.people, u)
		}
	}
	e.Unsure = look.unsure
	return e, nil
}

// candidates returns a superset of the possible approvers: the few people that are named,
// or all.
func (p *Approvers) candidates(ctx context.Context, a store.Approvers, requester string) ([]store.User, error) {
	var few []store.User
	for _, who := range a.Who {
		id, one := strings.CutPrefix(who, "user:")
		if store.Policy(who) == store.ByRequester {
			id, one = requester, true
		}
		if !one {
			all, err := p.store.ListUsers(ctx)
			if err != nil {
				return nil, fmt.Errorf("listing users: %w", err)
			}
			return all, nil
		}
		u, err := p.store.GetUser(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound): // the user was deleted
		case err != nil:
			return nil, fmt.Errorf("reading user %s: %w", id, err)
		case !slices.ContainsFunc(few, func(f store.User) bool { return f.ID == u.ID }):
			few = append(few, u)
		}
	}
	return few, nil
}

// CheckReachable returns an error immediately if no user could approve the call.
func (p *Approvers) CheckReachable(ctx context.Context, c store.Call) error {
	e, err := p.Electorate(ctx, c)
	if err != nil {
		return err
	}
	if e.Suffices(c) {
		return nil
	}
	return &store.CallError{Code: store.CodeRefused, Message: p.UnreachableReason(ctx, c, e)}
}

// Suffices reports whether these people could together approve the call.
func (e Electorate) Suffices(c store.Call) bool {
	return e.open || len(e.people) >= c.Policy.Approvers().Need
}

// UnreachableReason returns the reason for refusing a call whose electorate does not
// suffice.
func (p *Approvers) UnreachableReason(ctx context.Context, c store.Call, e Electorate) store.Text {
	could := store.Textf("nobody can approve it now")
	if len(e.people) > 0 {
		could = store.Textf("only %d of the required %d people can approve it now", len(e.people), c.Policy.Approvers().Need)
	}
	return store.Textf("it needs approval (%s), but %s: the approvers are %s; an admin can change them", c.Reason, could, p.WhoDecides(ctx, c))
}

// OtherApprovers returns the people, other than the requester, who could approve a waiting
// call: its card is sent to the first of them who can be reached.
func (p *Approvers) OtherApprovers(ctx context.Context, c store.Call) ([]store.User, error) {
	e, err := p.Electorate(ctx, c)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(e.people, func(u store.User) bool { return u.ID == c.By }), nil
}

// maxNamed is the maximum number of approvers that are named.
const maxNamed = 5

// Describe returns the approvers for a card: up to five people, or the group under the name
// that the policy uses.
func (p *Approvers) Describe(ctx context.Context, c store.Call) ([]store.Approver, error) {
	users, err := p.candidates(ctx, c.Policy.Approvers(), c.By)
	if err != nil {
		return nil, err
	}
	var out []store.Approver
	single := store.Approver{Kind: "user"}
	for _, who := range c.Policy.Approvers().Who {
		kind, name, _ := strings.Cut(who, ":")
		line := store.Approver{Kind: kind}
		switch {
		case kind == "group":
			line.Names = []string{name}
		case kind == "user":
			single.Names = append(single.Names, nameOf(users, name))
			continue
		case store.Policy(who) == store.ByRequester:
			line.Names = []string{cmp.Or(c.ByName, c.By)}
		case store.Policy(who) != store.ByChannel:
			line.Names = p.namesOf(ctx, c, store.Policy(who), users)
		}
		out = append(out, line)
	}
	if len(single.Names) > 0 {
		out = append(out, single)
	}
	for i := range out {
		if n := len(out[i].Names); n > maxNamed {
			out[i].Names, out[i].More = out[i].Names[:maxNamed], n-maxNamed
		}
	}
	return out, nil
}

// namesOf returns the names of the users that one word of a call's policy means and that
// have a place to decide.
func (p *Approvers) namesOf(ctx context.Context, c store.Call, who store.Policy, users []store.User) (names []string) {
	at := place{who: string(who)}
	if who != store.ByAdmins {
		at.thread = c.Thread
	}
	if names, ok := p.described[at]; ok {
		return names
	}
	c.Policy = who
	look := p.newBallot(ctx, c)
	for _, u := range users {
		if p.hasPlace(ctx, u) && look.counts(ctx, u) {
			names = append(names, u.Name)
		}
	}
	if p.described != nil {
		p.described[at] = names
	}
	return names
}

func nameOf(users []store.User, id string) string {
	for _, u := range users {
		if u.ID == id {
			return cmp.Or(u.Name, id)
		}
	}
	return id
}

// May reports whether the caller may apply the verb to the call. Those whom the policy
// names may approve; the requester and admins may also deny; and the requester may also
// edit or repeat it.
func (p *Approvers) May(ctx context.Context, by store.Caller, c store.Call, verb store.Verb) bool {
	mine := by.User == c.By
	if c.Question != nil && !mine { // only the requester answers
		return false
	}
	switch verb {
	case store.Approve, store.RunAll:
		return p.mayApprove(ctx, by, c)
	case store.Edit, store.Retry, store.Again:
		if c.Question != nil && by.Surface == store.OnHTTP {
			return false // programs don't answer for people
		}
		return !silentSurface(by) && (mine || p.mayApprove(ctx, by, c))
	case store.Deny, store.Cancel:
		return mine || by.IsAdmin() || p.mayApprove(ctx, by, c)
	}
	return false
}

// silentSurface reports whether the caller is a model or a program on a surface where no
// person can approve.
func silentSurface(by store.Caller) bool { return by.Surface == store.OnMCP }

// MayApprove reports whether a waiting call still needs the caller's approval: they may
// give it and haven't yet.
func (p *Approvers) MayApprove(ctx context.Context, by store.Caller, c store.Call) bool {
	return p.Presser(ctx, by).MayApprove(ctx, c)
}

func (p *Approvers) mayApprove(ctx context.Context, by store.Caller, c store.Call) bool {
	return p.Presser(ctx, by).approves(ctx, c)
}

// Sees reports whether the caller may read the call, see [Presser.Sees].
func (p *Approvers) Sees(ctx context.Context, by store.Caller, c store.Call) bool {
	return p.Presser(ctx, by).Sees(ctx, c)
}

// Presser checks the rights of one caller for many calls. It reads the caller's record
// once, when it is first needed. It is valid for the request for which it was created.
type Presser struct {
	p    *Approvers
	by   store.Caller
	user func() (u store.User, ok bool)
}

// Presser returns the Presser of a caller.
func (p *Approvers) Presser(ctx context.Context, by store.Caller) Presser {
	return Presser{p, by, sync.OnceValues(func() (store.User, bool) {
		u, err := p.store.GetUser(ctx, by.User) // the current record, not the one read at the edge
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			p.log.Warn("reading who presses; it counts as no", "user", by.User, "err", err)
		}
		return u, err == nil
	})}
}

// MayApprove is [Approvers.MayApprove].
func (pr Presser) MayApprove(ctx context.Context, c store.Call) bool {
	return c.State == store.Pending && !slices.Contains(c.Yes(), pr.by.User) && pr.approves(ctx, c)
}

func (pr Presser) approves(ctx context.Context, c store.Call) bool {
	switch {
	case pr.by.Guest || silentSurface(pr.by), c.Decides() && pr.by.Surface == store.OnHTTP, c.Question != nil && pr.by.User != c.By:
		return false
	case pr.by.Surface == store.OnHTTP && (c.Surface != store.OnHTTP || pr.by.User != c.By || c.Policy != store.ByRequester):
		return false
	}
	u, ok := pr.user()
	return ok && pr.p.approves(ctx, u, c)
}

// Sees reports whether the caller may read the call. Its requester and those who approved
// it may. Those who could approve it may while it waits, and afterwards if they denied it.
// The admin role alone doesn't grant access: an admin may deny a call without seeing its
// content.
func (pr Presser) Sees(ctx context.Context, c store.Call) bool {
	if pr.by.User == c.By {
		return true
	}
	said := false
	for _, d := range c.Decisions {
		if d.By != pr.by.User {
			continue
		}
		if said = true; d.Verb != store.Deny && d.Verb != store.Cancel { // only those who may approve can have given other verbs
			return true
		}
	}
	return (said || c.State == store.Pending) && pr.approves(ctx, c)
}

// WhoAlone is WhoDecides for a user who may not decide: "only … can decide this".
func (p *Approvers) WhoAlone(ctx context.Context, c store.Call) store.Text {
	if c.Policy.Approvers().Who[0] == string(store.ByChannel) {
		return store.Textf("people in its channel")
	}
	if c.Policy == store.ByRequester {
		return store.Plain(cmp.Or(c.ByName, c.By))
	}
	return p.WhoDecides(ctx, c)
}

// WhoDecides describes the approvers in words.
func (p *Approvers) WhoDecides(ctx context.Context, c store.Call) store.Text {
	names, err := p.Describe(ctx, c)
	if err != nil {
		return store.Plain(string(c.Policy))
	}
	a := c.Policy.Approvers()
	return store.Card{By: cmp.Or(c.ByName, c.By), CardVotes: store.CardVotes{Approvers: names, Need: a.Need, NotRequester: a.NotRequester}}.Who()
}
