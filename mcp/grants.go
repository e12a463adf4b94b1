package mcp

import (
	"context"
	"fmt"
	"slices"

	"nize/store"
)

// Standing answers. A standing yes is one person's yes: it lifts what
// is asked only where that person's yes alone would, so it never stands in for
// two people, and it ends when the person may no longer approve.

// grantFor is the grant that "always" makes of a decision.
func (g *Gateway) grantFor(ctx context.Context, by store.Caller, c store.Call, d store.Decision) (store.Grant, error) {
	gr := store.Grant{Tool: c.ToolID(), Pin: c.Pin, Deny: d.Verb == store.Deny, Scope: d.For, Pattern: d.Pattern, Expires: d.Until}
	if d.Exact {
		gr.Exact = store.SumArgs(c.Args)
	}
	if !gr.Matches(c.Args) {
		return gr, fmt.Errorf("%w pattern: it does not fit the arguments of this call", store.ErrInvalid)
	}
	if gr.Scope == store.ForChannel {
		gr.Channel = g.address(ctx, c.Thread).Place()
	}
	if !gr.Deny {
		tainted, err := g.tainted(ctx, c.Thread)
		if err != nil {
			return gr, err
		}
		if tainted {
			return gr, fmt.Errorf("%w: nothing is allowed for good in a conversation that read untrusted text", store.ErrRefused)
		}
	}
	e, ok := g.tools.get(gr.Tool)
	if !ok {
		return gr, fmt.Errorf("tool %s %w", gr.Tool, store.ErrNotFound)
	}
	return g.checkGrant(ctx, by, gr, pressed{call: c, entry: e})
}

// AddGrant makes a standing answer about a tool that by may use.
func (g *Gateway) AddGrant(ctx context.Context, by store.Caller, gr store.Grant) (store.Grant, error) {
	v, err := g.view(ctx, by, store.Scope{})
	if err != nil {
		return gr, err
	}
	e, err := g.findIn(v, gr.Tool)
	if err != nil {
		return gr, err
	}
	as, err := g.wouldRunAs(ctx, by, e)
	if err != nil {
		return gr, err
	}
	gr.Tool, gr.Pin, gr.Channel = e.id, e.Accepted, ""
	if gr.Scope == store.ForChannel {
		return gr, fmt.Errorf("%w scope: a channel's standing answers are made there", store.ErrInvalid)
	}
	gr, err = g.checkGrant(ctx, by, gr, pressed{call: store.Call{By: by.User, ByName: by.Name, Policy: g.policy(e, as.shared, v.room)}, entry: e})
	if err != nil {
		return gr, err
	}
	if err := g.opt.Store.PutGrant(ctx, by, gr); err != nil {
		return gr, fmt.Errorf("storing the standing answer: %w", err)
	}
	return gr, nil
}

// pressed is a call that somebody gives a standing answer about.
type pressed struct {
	call  store.Call
	entry *entry
}

// checkGrant refuses a standing answer that would not hold, and completes it.
func (g *Gateway) checkGrant(ctx context.Context, by store.Caller, gr store.Grant, p pressed) (store.Grant, error) {
	gr.ID, gr.User, gr.Created = store.NewID(g.opt.Now()), by.User, g.opt.Now()
	if gr.Scope == "" {
		gr.Scope = store.ForMe
	}
	switch gr.Scope {
	case store.ForMe:
	case store.ForChannel:
		if gr.Channel == "" {
			return gr, fmt.Errorf("%w scope: this conversation is in no channel", store.ErrInvalid)
		}
		if !by.IsAdmin() && !g.administers(ctx, by.User, p.call) {
			return gr, fmt.Errorf("%w: for a whole channel only its admins answer", store.ErrRefused)
		}
	case store.ForEveryone:
		if !by.IsAdmin() {
			return gr, fmt.Errorf("%w: for everybody only admins answer", store.ErrRefused)
		}
	default:
		return gr, fmt.Errorf("%w scope %q: use me, channel or everywhere", store.ErrInvalid, gr.Scope)
	}
	if !gr.Expires.IsZero() && !gr.Expires.After(g.opt.Now()) {
		return gr, fmt.Errorf("%w expiry: it is in the past", store.ErrInvalid)
	}
	var err error
	if gr.Pattern, err = store.CheckPattern(gr.Pattern); err != nil {
		return gr, err
	}
	switch {
	case gr.Deny && (gr.Pattern != nil || gr.Exact != ""):
		return gr, fmt.Errorf("%w pattern: a tool is denied whole", store.ErrInvalid)
	case gr.Deny:
		return gr, nil
	case p.entry.destructive() && !store.GetBool(g.opt.Config, "", "approvals.grant_destructive"):
		return gr, fmt.Errorf("%w: %s may destroy something, and such tools are asked for each time (approvals.grant_destructive)", store.ErrRefused, gr.Tool)
	case !g.suffices(ctx, gr, p.call):
		return gr, fmt.Errorf("%w: that would not lift it, since %s decides", store.ErrRefused, g.whoDecides(ctx, p.call))
	}
	return gr, nil
}

// administers says whether the user is an admin of the channel of a call.
func (g *Gateway) administers(ctx context.Context, user string, c store.Call) bool {
	yes, err := g.ballot(ctx, c).among(ctx, string(store.ByChannelAdmins), store.User{ID: user})
	return yes && err == nil
}

// suffices says whether the yes of who gave a standing answer alone would let
// the call run.
func (g *Gateway) suffices(ctx context.Context, gr store.Grant, c store.Call) bool {
	a := c.Policy.Approvers()
	if a.Need > 1 {
		return false
	}
	u, err := g.opt.Store.GetUser(ctx, gr.User)
	if err != nil || u.State != store.Active {
		return false
	}
	if g.approves(ctx, u, c) {
		return true
	}
	// An answer for others is a rule that an admin made: it may stand for what
	// each of them decides alone, not for what was given to named people.
	rule := slices.Equal(a.Who, []string{string(store.ByRequester)}) && !a.NotRequester
	switch gr.Scope {
	case store.ForEveryone:
		return rule && u.Role == store.Admin
	case store.ForChannel:
		return rule && (u.Role == store.Admin || g.administers(ctx, u.ID, c))
	}
	return false
}
