package policy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"nize/mcp/commandline"
	"nize/store"
)

// Standing answers. A standing approval is one person's approval: it removes the need for
// approval only if that person's approval alone would be enough, so it never replaces two
// people, and it ends when the person may no longer approve.

// sessionAnswers is the maximum lifetime of a standing answer for an asker's session,
// because the end of such a session is not reported.
const sessionAnswers = 7 * 24 * time.Hour

// GrantFor returns the grant that a decision with "always" creates.
func (p *Engine) GrantFor(ctx context.Context, by store.Caller, c store.Call, d store.Decision) (store.Grant, error) {
	gr := store.Grant{Tool: c.ToolID(), Pin: c.Pin, Deny: d.Verb == store.Deny, Scope: d.For, Pattern: d.Pattern, Expires: d.Until}
	if d.Exact {
		gr.Exact = store.SumArgs(c.Args)
	}
	if d.Line {
		list := commandline.PatternsOf(c.Ask, c.Args)
		if c.Ask == nil || gr.Pattern != nil || len(list) == 0 || !list[0].Exact {
			return gr, store.Errorf("%w pattern: this call has no command line that could be allowed as it is", store.ErrInvalid)
		}
		gr.Pattern = list[0].Args
	}
	if d.Here {
		if c.Ask == nil || c.Ask.Repository == "" {
			return gr, store.Errorf("%w scope: this call is in no repository", store.ErrInvalid)
		}
		gr.Repository, gr.Host = c.Ask.Repository, c.Ask.Host
	}
	if !commandline.Allows(gr, c.Args, c.Ask) {
		return gr, store.Errorf("%w pattern: it does not fit the arguments of this call", store.ErrInvalid)
	}
	if gr.Scope == store.ForChannel {
		gr.Channel = p.Address(ctx, c.Thread).Place()
	}
	if gr.Scope == store.ForConversation {
		gr.Thread = c.Thread
		if session := c.Session(); session != "" {
			gr.Thread = session
			if end := p.now().Add(sessionAnswers); gr.Expires.IsZero() || gr.Expires.After(end) {
				gr.Expires = end
			}
		}
	}
	if !gr.Deny {
		tainted, err := p.Tainted(ctx, c.Thread)
		if err != nil {
			return gr, err
		}
		if tainted {
			return gr, store.Mark(store.Errorf("a conversation that has read untrusted text allows no standing approvals"), store.ErrRefused)
		}
	}
	t, ok := p.tools.Get(gr.Tool)
	if !ok {
		return gr, store.Errorf("tool %s %w", gr.Tool, store.ErrNotFound)
	}
	return p.checkGrant(ctx, by, gr, pressed{call: c, tool: t})
}

// AddGrant stores a standing answer about a tool that by may use.
func (p *Engine) AddGrant(ctx context.Context, by store.Caller, gr store.Grant) (store.Grant, error) {
	v, err := p.View(ctx, by, store.Scope{Tools: []string{gr.Tool}, Ask: true})
	if err != nil {
		return gr, err
	}
	t, err := p.Find(v, gr.Tool)
	if err != nil {
		return gr, err
	}
	as, err := p.wouldRunAs(ctx, by, t)
	if err != nil {
		return gr, err
	}
	gr.Tool, gr.Pin, gr.Channel, gr.Thread = t.id, t.Accepted, "", ""
	switch gr.Scope {
	case store.ForChannel:
		return gr, fmt.Errorf("%w scope: a channel's standing answers are made there", store.ErrInvalid)
	case store.ForConversation:
		return gr, fmt.Errorf("%w scope: a conversation's standing answers are made on the cards of its calls", store.ErrInvalid)
	}
	gr, err = p.checkGrant(ctx, by, gr, pressed{call: store.Call{By: by.User, ByName: by.Name, Policy: p.ApproverPolicy(v, t, as)}, tool: t})
	if err != nil {
		return gr, err
	}
	if err := p.store.PutGrant(ctx, by, gr); err != nil {
		return gr, fmt.Errorf("storing the standing answer: %w", err)
	}
	return gr, nil
}

// pressed is a call about which a user gives a standing answer.
type pressed struct {
	call store.Call
	tool *Tool
}

// checkGrant returns an error for a standing answer that would have no effect, and sets its
// other fields.
func (p *Engine) checkGrant(ctx context.Context, by store.Caller, gr store.Grant, g pressed) (store.Grant, error) {
	gr.ID, gr.User, gr.Created = store.NewID(p.now()), by.User, p.now()
	gr.Quota = store.QuotaOf(p.config, "limits.user.grants", "limits.grants")
	if gr.Scope == "" {
		gr.Scope = store.ForMe
	}
	switch gr.Scope {
	case store.ForMe:
	case store.ForChannel:
		if gr.Channel == "" {
			return gr, store.Errorf("%w scope: this conversation is in no channel", store.ErrInvalid)
		}
		if !by.IsAdmin() && !p.administers(ctx, by.User, g.call) {
			return gr, store.Mark(store.Errorf("only the channel's admins can give a standing answer for it"), store.ErrRefused)
		}
	case store.ForConversation:
		if gr.Thread == "" {
			return gr, store.Errorf("%w scope: this call is in no conversation", store.ErrInvalid)
		}
		if gr.Deny { // it would apply to every user who writes there
			return gr, store.Errorf("%w scope: a standing denial is for you, a channel or everybody", store.ErrInvalid)
		}
	case store.ForEveryone:
		if !by.IsAdmin() {
			return gr, store.Mark(store.Errorf("only admins can give a standing answer for everybody"), store.ErrRefused)
		}
	default:
		return gr, store.Errorf("%w scope %q: use me, conversation, channel or everywhere", store.ErrInvalid, gr.Scope)
	}
	if !gr.Expires.IsZero() && !gr.Expires.After(p.now()) {
		return gr, store.Errorf("%w expiry: it is in the past", store.ErrInvalid)
	}
	var err error
	if gr.Pattern, err = store.CheckPattern(gr.Pattern); err != nil {
		return gr, err
	}
	switch {
	case gr.Host != "" && gr.Repository == "":
		return gr, store.Errorf("%w host: it requires a repository on that host", store.ErrInvalid)
	case gr.Repository != "" && (g.tool == nil || !g.tool.Asked()):
		return gr, store.Errorf("%w repository: only asks by other programs have one", store.ErrInvalid)
	case len(gr.Repository) > store.MaxAskText || len(gr.Host) > store.MaxAskText:
		return gr, store.Errorf("%w repository: it is longer than %d bytes", store.ErrInvalid, store.MaxAskText)
	case gr.Deny && (gr.Pattern != nil || gr.Exact != "" || gr.Repository != ""):
		return gr, store.Errorf("%w pattern: a standing denial is for the whole tool", store.ErrInvalid)
	case gr.Deny:
		return gr, nil
	case g.tool.destructive() && !store.GetBool(p.config, "", "approvals.grant_destructive"):
		return gr, store.Mark(store.Errorf("%s may destroy something, so each of its calls needs approval (approvals.grant_destructive)", gr.Tool), store.ErrRefused)
	case !p.suffices(ctx, gr, g.call):
		return gr, store.Mark(store.Errorf("a standing answer would have no effect, because %s decides", p.WhoDecides(ctx, g.call)), store.ErrRefused)
	}
	return gr, nil
}

// administers reports whether the user is an admin of the channel of a call.
func (p *Engine) administers(ctx context.Context, user string, c store.Call) bool {
	yes, err := p.newBallot(ctx, c).matches(ctx, string(store.ByChannelAdmins), store.User{ID: user})
	return yes && err == nil
}

// suffices reports whether the approval of a standing answer's author alone would let the
// call run.
func (p *Engine) suffices(ctx context.Context, gr store.Grant, c store.Call) bool {
	a := c.Policy.Approvers()
	if a.Need > 1 {
		return false
	}
	u, err := p.store.GetUser(ctx, gr.User)
	if err != nil || u.State != store.Active {
		return false
	}
	if p.approves(ctx, u, c) {
		return true
	}
	// An answer for others is a rule that an admin made: it may replace the decision that
	// each of them makes alone, but not one reserved for named people.
	rule := slices.Equal(a.Who, []string{string(store.ByRequester)}) && !a.NotRequester
	switch gr.Scope {
	case store.ForEveryone:
		return rule && u.Role == store.Admin
	case store.ForChannel:
		return rule && (u.Role == store.Admin || p.administers(ctx, u.ID, c))
	}
	return false
}
