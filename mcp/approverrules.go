package mcp

import (
	"context"
	"errors"
	"fmt"

	"nize/store"
)

// appointing is all that the rules of who may press look at.
type appointing struct {
	entry   *entry
	setting store.Policy  // approvals.approvers
	shared  bool          // it runs on a shared credential
	room    store.Channel // the zero one outside a channel
}

// deciderRule is one rule about who may press.
type deciderRule struct {
	name    string
	says    func(*appointing) store.Policy // "" for nothing
	reason  func(*appointing) string
	command func(*appointing) string // that changes it
}

// deciderRules say in order who may approve: the first that says something
// decides. What an admin of nize's set stands before what a channel's admins
// did, and so does the default of a shared credential: a channel can't let
// others press for what is not theirs. Without those it may be stricter or name others.
var deciderRules = [...]deciderRule{
	{"server",
		func(a *appointing) store.Policy { return a.entry.server.Approvers },
		func(a *appointing) string { return "the server " + a.entry.Server + " says who" },
		func(a *appointing) string { return "nizectl servers edit " + a.entry.Server + " --approvers ''" }},
	{"setting",
		func(a *appointing) store.Policy { return a.setting },
		func(*appointing) string { return "the setting approvals.approvers says who" },
		func(*appointing) string { return "nizectl config unset approvals.approvers" }},
	{"credential",
		func(a *appointing) store.Policy {
			if a.shared {
				return store.ByAdmins
			}
			return ""
		},
		func(*appointing) string { return "it runs on a shared credential" },
		func(a *appointing) string { return "nizectl servers edit " + a.entry.Server + " --approvers WHO" }},
	{"channel",
		func(a *appointing) store.Policy { return a.room.Approvers },
		func(*appointing) string { return "the channel says who" },
		func(a *appointing) string {
			return "nizectl bots channels set " + a.room.Place + " --approvers default"
		}},
	{"default",
		func(*appointing) store.Policy { return store.ByRequester },
		func(*appointing) string { return "nothing else says who" },
		func(*appointing) string { return "nizectl config set approvals.approvers WHO" }},
}

func (g *Gateway) appointing(e *entry, shared bool, room store.Channel) *appointing {
	return &appointing{entry: e, setting: store.Policy(g.opt.Config.Get("", "approvals.approvers")), shared: shared, room: room}
}

// policy walks the rules; it is the one place that says who may press.
func (g *Gateway) policy(e *entry, shared bool, room store.Channel) store.Policy {
	a := g.appointing(e, shared, room)
	for i := range deciderRules {
		if p := deciderRules[i].says(a); p != "" {
			return p.Approvers().Policy()
		}
	}
	return store.ByAdmins
}

// why is what each of the rules says.
func (a *appointing) why() []WhyRule {
	var out []WhyRule
	decided := false
	for i := range deciderRules {
		r := &deciderRules[i]
		said := WhyRule{Rule: r.name}
		if p := r.says(a); p != "" {
			said.Verdict, said.Says, said.Command = string(p.Approvers().Policy()), r.reason(a), r.command(a)
			said.Decides, decided = !decided, true
			if !said.Decides && r.name == "channel" {
				said.Says += "; that does not count, since an admin's policy or a shared credential stands before it"
			}
		}
		out = append(out, said)
	}
	return out
}

// room is how the channel is set up that the scope is in, the zero one outside
// any. What can't be read is an error: nothing may be wider than it was set.
func (g *Gateway) room(ctx context.Context, scope store.Scope) (store.Channel, error) {
	place := scope.Place
	if scope.Thread != "" {
		th, err := g.opt.Store.GetThread(ctx, scope.Thread)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.Channel{}, fmt.Errorf("reading the conversation: %w", err)
		}
		place = th.Address.Place()
	}
	if place == "" {
		return store.Channel{}, nil
	}
	c, err := g.opt.Store.GetChannel(ctx, place)
	if err != nil {
		return c, fmt.Errorf("reading how the channel is set up: %w", err)
	}
	return c, nil
}

// addressOf is where a call is, the zero one outside any conversation; of a
// call that only the rules are asked about it may be a channel.
func (g *Gateway) addressOf(ctx context.Context, c store.Call) store.Address {
	if c.Thread == "" && c.Place != "" {
		at, err := store.ParsePlace(c.Place)
		if err != nil {
			g.opt.Log.Warn("reading a place; it counts as in no channel", "err", err)
		}
		return at
	}
	return g.address(ctx, c.Thread)
}
