package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"nize/store"
)

// Channels tells who is in a channel of a chat, as it is now. The platforms
// are it; where there are none, nobody is in a channel. An error counts as no.
type Channels interface {
	// Member says whether the user is in the channel. Bots and guests are not.
	Member(ctx context.Context, at store.Address, user string) (bool, error)
	// Admins returns the ids of the users who administer the channel.
	Admins(ctx context.Context, at store.Address) ([]string, error)
}

// Groups tells who is in which group. Those of a chat platform are asked there,
// within a bound; an error counts as no, since groups only ever allow here.
type Groups interface {
	// GroupsOf names the groups that the user is in. What a platform said five
	// minutes ago at most counts.
	GroupsOf(ctx context.Context, user string) ([]string, error)
	// InGroup says whether the user is in the group now: for a press.
	InGroup(ctx context.Context, name, user string) (bool, error)
}

// holds counts those of the credentials that a holder has.
func (g *Gateway) holds(ctx context.Context, h store.Holder, server string, names []string) (int, error) {
	n := 0
	for _, name := range names {
		_, err := g.opt.Store.GetCredential(ctx, h.Key(server, name))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return 0, fmt.Errorf("reading credential %s of %s: %w", name, server, err)
		}
		if err == nil {
			n++
		}
	}
	return n, nil
}

// reached is the policy of a call whose requester may have no place to press:
// somebody who comes in with tokens alone is nobody there, and a list of nobody
// is the admins.
func (g *Gateway) reached(ctx context.Context, p store.Policy, requester string) (store.Policy, error) {
	if p != store.ByRequester {
		return p, nil
	}
	u, err := g.opt.Store.GetUser(ctx, requester)
	if err != nil {
		return p, fmt.Errorf("reading user %s: %w", requester, err)
	}
	if !u.CanApprove() {
		return store.ByAdmins, nil
	}
	return p, nil
}

// renamed is a policy under the ids that its people have now: after a join a
// file's policy, and for a moment that of a server, has an older one.
func (g *Gateway) renamed(ctx context.Context, p store.Policy) store.Policy {
	a := p.Approvers()
	var who []string
	for _, w := range a.Who {
		if id, ok := strings.CutPrefix(w, "user:"); ok {
			if u, err := g.opt.Store.GetUser(ctx, id); err == nil {
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

// address is where the conversation of a call is, the zero one outside one.
func (g *Gateway) address(ctx context.Context, thread string) store.Address {
	return g.thread(ctx, thread).Address
}

// thread reads a conversation; one that is not kept narrows nothing and has no
// channel.
func (g *Gateway) thread(ctx context.Context, id string) store.Thread {
	if id == "" {
		return store.Thread{}
	}
	th, err := g.opt.Store.GetThread(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		g.opt.Log.Warn("reading a conversation; it counts as in no channel", "thread", id, "err", err)
	}
	return th
}

// approves says whether the yes of u would count for the call now. What cannot
// be looked up is a no.
func (g *Gateway) approves(ctx context.Context, u store.User, c store.Call) bool {
	return g.ballot(ctx, c).counts(ctx, u)
}

// ballot is one look at who may press for a call: what is asked of a platform
// is asked once in it.
type ballot struct {
	g      *Gateway
	call   store.Call
	who    store.Approvers
	at     func() store.Address
	admins func() ([]string, error) // of the channel there
	unsure bool                     // something could not be looked up and counted as no
}

func (g *Gateway) ballot(ctx context.Context, c store.Call) *ballot {
	at := sync.OnceValue(func() store.Address { return g.addressOf(ctx, c) })
	return &ballot{
		g: g, call: c, who: c.Policy.Approvers(), at: at,
		admins: sync.OnceValues(func() ([]string, error) { return g.opt.Channels.Admins(ctx, at()) }),
	}
}

func (b *ballot) counts(ctx context.Context, u store.User) bool {
	if u.State != store.Active || b.who.NotRequester && u.ID == b.call.By {
		return false
	}
	return slices.ContainsFunc(b.who.Who, func(who string) bool {
		yes, err := b.among(ctx, who, u)
		if err != nil {
			b.unsure = true
			b.g.opt.Log.Warn("looking up an approver; it counts as no", "user", u.ID, "who", who, "err", err)
		}
		return yes && err == nil
	})
}

func (b *ballot) among(ctx context.Context, who string, u store.User) (bool, error) {
	switch store.Policy(who) {
	case store.ByRequester:
		return u.ID == b.call.By, nil
	case store.ByAdmins:
		return u.Role == store.Admin, nil
	case store.ByChannel, store.ByChannelAdmins:
		at := b.at()
		if b.g.opt.Channels == nil || at.Channel == "" {
			return false, nil
		}
		if store.Policy(who) == store.ByChannel {
			return b.g.opt.Channels.Member(ctx, at, u.ID)
		}
		admins, err := b.admins()
		return slices.Contains(admins, u.ID), err
	}
	if name, ok := strings.CutPrefix(who, "group:"); ok {
		return b.g.opt.Groups.InGroup(ctx, name, u.ID)
	}
	// A setting of a file may name an id that the person had before a join.
	return who == "user:"+u.ID || slices.ContainsFunc(u.Aliases, func(id string) bool { return who == "user:"+id }), nil
}

// electorate is who could press for a call now: people who have a place to do
// so. open says that anyone in its channel could, too.
type electorate struct {
	people []store.User
	open   bool
	unsure bool // there may be more: somebody could not be looked up
}

func (g *Gateway) electorate(ctx context.Context, c store.Call) (electorate, error) {
	var e electorate
	a := c.Policy.Approvers()
	users, err := g.candidates(ctx, a, c.By)
	if err != nil {
		return e, err
	}
	if slices.Contains(a.Who, string(store.ByChannel)) {
		e.open = g.opt.Channels != nil && g.addressOf(ctx, c).Channel != ""
		c.Policy = store.Approvers{Need: a.Need, NotRequester: a.NotRequester, Who: slices.DeleteFunc(slices.Clone(a.Who), func(w string) bool { return w == string(store.ByChannel) })}.Policy()
		if len(a.Who) == 1 {
			return e, nil
		}
	}
	look := g.ballot(ctx, c)
	for _, u := range users {
		if u.CanApprove() && look.counts(ctx, u) {
			e.people = append(e.people, u)
		}
	}
	e.unsure = look.unsure
	return e, nil
}

// candidates are the people among whom those are who may press: the few that
// are named, or all.
func (g *Gateway) candidates(ctx context.Context, a store.Approvers, requester string) ([]store.User, error) {
	var few []store.User
	for _, who := range a.Who {
		id, one := strings.CutPrefix(who, "user:")
		if store.Policy(who) == store.ByRequester {
			id, one = requester, true
		}
		if !one {
			all, err := g.opt.Store.ListUsers(ctx)
			if err != nil {
				return nil, fmt.Errorf("listing users: %w", err)
			}
			return all, nil
		}
		u, err := g.opt.Store.GetUser(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound): // they are gone
		case err != nil:
			return nil, fmt.Errorf("reading user %s: %w", id, err)
		case !slices.ContainsFunc(few, func(f store.User) bool { return f.ID == u.ID }):
			few = append(few, u)
		}
	}
	return few, nil
}

// reachable refuses a call that nobody could approve, at once.
func (g *Gateway) reachable(ctx context.Context, c store.Call) error {
	e, err := g.electorate(ctx, c)
	if err != nil {
		return err
	}
	if e.suffices(c) {
		return nil
	}
	return &store.CallError{Code: store.CodeRefused, Message: g.nobody(ctx, c, e)}
}

// suffices says whether the people could let the call run.
func (e electorate) suffices(c store.Call) bool {
	return e.open || len(e.people) >= c.Policy.Approvers().Need
}

// nobody says why a call is refused whose electorate does not suffice.
func (g *Gateway) nobody(ctx context.Context, c store.Call, e electorate) string {
	could := "nobody could give now"
	if len(e.people) > 0 {
		could = fmt.Sprintf("only %d of %d could give now", len(e.people), c.Policy.Approvers().Need)
	}
	return fmt.Sprintf("it needs a yes (%s), which %s: it is for %s; an admin can change who decides", c.Reason, could, g.whoDecides(ctx, c))
}

// Lacking names the servers, the channels, and "" for the setting, whose policy names too few
// people who could press now. One that counts on who asks or on a
// channel depends on the call, and is not among them.
func (g *Gateway) UndecidablePolicies(ctx context.Context) ([]string, error) {
	if err := g.tools.load(ctx); err != nil {
		return nil, err
	}
	policies := map[string]store.Policy{"": store.Policy(g.opt.Config.Get("", "approvals.approvers"))}
	g.tools.eachServer(func(s store.Server) { policies[s.Name] = s.Approvers })
	rooms, err := g.opt.Store.ListChannels(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range rooms {
		policies[c.Place] = c.Approvers
	}
	var out []string
	for name, p := range policies {
		a := p.Approvers()
		if p == "" || slices.ContainsFunc(a.Who, func(who string) bool {
			return !strings.Contains(who, ":") && store.Policy(who) != store.ByAdmins
		}) {
			continue
		}
		e, err := g.electorate(ctx, store.Call{Policy: p})
		if err != nil {
			return nil, err
		}
		if len(e.people) < a.Need {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Approvers lists the people, other than who asked, who could approve a waiting
// call: its card is brought to the first of them who can be reached.
func (g *Gateway) Approvers(ctx context.Context, id string) ([]store.User, error) {
	c, err := g.opt.Store.GetCall(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", id, err)
	}
	e, err := g.electorate(ctx, c)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(e.people, func(u store.User) bool { return u.ID == c.By }), nil
}

// maxNamed is how many approvers are named.
const maxNamed = 5

// named says on a card who may press: up to five people, or the
// group, by what the policy calls them.
func (g *Gateway) named(ctx context.Context, c store.Call) ([]store.Approver, error) {
	users, err := g.candidates(ctx, c.Policy.Approvers(), c.By)
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
			line.Names = []string{nonEmpty(c.ByName, c.By)}
		case store.Policy(who) != store.ByChannel:
			only := c
			only.Policy = store.Policy(who)
			look := g.ballot(ctx, only)
			for _, u := range users {
				if u.CanApprove() && look.counts(ctx, u) {
					line.Names = append(line.Names, u.Name)
				}
			}
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

func nameOf(users []store.User, id string) string {
	for _, u := range users {
		if u.ID == id {
			return nonEmpty(u.Name, id)
		}
	}
	return id
}

// may says whether the caller may say this of the call: yes is for whom the
// policy names, no also for the requester and for admins, and to propose it
// otherwise or anew for the requester, too.
func (g *Gateway) may(ctx context.Context, by store.Caller, c store.Call, verb store.Verb) bool {
	mine := by.User == c.By
	switch verb {
	case store.Approve, store.RunAll:
		return g.mayApprove(ctx, by, c)
	case store.Edit, store.Retry, store.Again:
		return !silentSurface(by) && (mine || g.mayApprove(ctx, by, c))
	case store.Deny, store.Cancel:
		return mine || by.IsAdmin() || g.mayApprove(ctx, by, c)
	}
	return false
}

// silentSurface is where a model or a program speaks, not a person: nothing
// there says yes.
func silentSurface(by store.Caller) bool { return by.Surface == store.OnMCP }

// MayApprove says whether a waiting call waits for the caller's yes: they may
// give one, and did not.
func (g *Gateway) MayApprove(ctx context.Context, by store.Caller, c store.Call) bool {
	return c.State == store.Pending && !slices.Contains(c.Yes(), by.User) && g.mayApprove(ctx, by, c)
}

func (g *Gateway) mayApprove(ctx context.Context, by store.Caller, c store.Call) bool {
	switch {
	case by.Guest || silentSurface(by):
		return false
	case by.Surface == store.OnHTTP && (c.Surface != store.OnHTTP || by.User != c.By || c.Policy != store.ByRequester):
		return false
	}
	u, err := g.opt.Store.GetUser(ctx, by.User) // as it is now, not as it was at the edge
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			g.opt.Log.Warn("reading who presses; it counts as no", "user", by.User, "err", err)
		}
		return false
	}
	return g.approves(ctx, u, c)
}

// Sees says whether the caller may look at the call at all: who asked, who may
// approve it while it waits, and admins.
func (g *Gateway) Sees(ctx context.Context, by store.Caller, c store.Call) bool {
	if by.User == c.By || by.IsAdmin() {
		return true
	}
	said := slices.ContainsFunc(c.Decisions, func(d store.Decision) bool { return d.By == by.User })
	return said || c.State == store.Pending && g.mayApprove(ctx, by, c)
}

// whoDecides says who may press, in words.
func (g *Gateway) whoDecides(ctx context.Context, c store.Call) string {
	names, err := g.named(ctx, c)
	if err != nil {
		return string(c.Policy)
	}
	a := c.Policy.Approvers()
	return store.Card{By: nonEmpty(c.ByName, c.By), Approvers: names, Need: a.Need, NotRequester: a.NotRequester}.Who()
}
