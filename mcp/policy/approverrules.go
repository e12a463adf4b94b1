package policy

import (
	"context"
	"slices"
	"strings"

	"nize/store"
)

// approverQuestion holds the input of the rules that determine the approvers.
type approverQuestion struct {
	tool    *Tool
	setting store.Policy  // the setting approvals.approvers
	shared  bool          // it runs with a shared credential
	channel store.Channel // the zero value outside a channel
}

// approverRule is one rule that may determine the approvers.
type approverRule struct {
	name    string
	says    func(*approverQuestion) store.Policy // "" if it doesn't apply
	reason  func(*approverQuestion) string
	command func(*approverQuestion) string // command that changes it
}

// approverRules lists the rules in order of precedence: the first that applies determines
// the approvers. The settings of nize's admins precede those of a channel's admins, and so
// does the default for shared credentials: a channel can't let others approve the use of a
// credential that isn't theirs. If neither applies, a channel may be stricter or name other
// approvers.
var approverRules = [...]approverRule{
	{"server",
		func(a *approverQuestion) store.Policy { return a.tool.Record.Approvers },
		func(a *approverQuestion) string { return "the server " + a.tool.Server + " says who" },
		func(a *approverQuestion) string { return "nizectl servers edit " + a.tool.Server + " --approvers ''" }},
	{"setting",
		func(a *approverQuestion) store.Policy { return a.setting },
		func(*approverQuestion) string { return "the setting approvals.approvers says who" },
		func(*approverQuestion) string { return "nizectl config unset approvals.approvers" }},
	{"credential",
		func(a *approverQuestion) store.Policy {
			if a.shared {
				return store.ByAdmins
			}
			return ""
		},
		func(*approverQuestion) string { return "it runs on a shared credential" },
		func(a *approverQuestion) string { return "nizectl servers edit " + a.tool.Server + " --approvers WHO" }},
	{"channel",
		func(a *approverQuestion) store.Policy { return a.channel.Approvers },
		func(*approverQuestion) string { return "the channel says who" },
		func(a *approverQuestion) string {
			return "nizectl bots channels set " + a.channel.Place + " --approvers default"
		}},
	{"default",
		func(*approverQuestion) store.Policy { return store.ByRequester },
		func(*approverQuestion) string { return "nothing else says who" },
		func(*approverQuestion) string { return "nizectl config set approvals.approvers WHO" }},
}

func (p *Engine) newApproverQuestion(v *View, t *Tool, as RunsAs) *approverQuestion {
	return &approverQuestion{tool: t, setting: store.Policy(p.config.Get("", "approvals.approvers")), shared: as.shared, channel: v.channel}
}

// ApproverPolicy evaluates the rules. It is the only place that determines the approvers.
func (p *Engine) ApproverPolicy(v *View, t *Tool, as RunsAs) store.Policy {
	a := p.newApproverQuestion(v, t, as)
	for i := range approverRules {
		if says := approverRules[i].says(a); says != "" {
			return says.Approvers().Policy()
		}
	}
	return store.ByAdmins
}

// explain returns the result of each rule.
func (a *approverQuestion) explain() []RuleResult {
	var out []RuleResult
	decided := false
	for i := range approverRules {
		r := &approverRules[i]
		said := RuleResult{Rule: r.name}
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

// UndecidablePolicies returns the servers, the channels, and "" for the setting, whose
// policy names too few people who could approve now. It omits policies that include the
// requester or a channel, because they depend on the call.
func (p *Engine) UndecidablePolicies(ctx context.Context) ([]string, error) {
	if err := p.tools.Load(ctx); err != nil {
		return nil, err
	}
	policies := map[string]store.Policy{"": store.Policy(p.config.Get("", "approvals.approvers"))}
	p.tools.EachServer(func(s store.Server) { policies[s.Name] = s.Approvers })
	channels, err := p.store.ListChannels(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range channels {
		policies[c.Place] = c.Approvers
	}
	var out []string
	for name, policy := range policies {
		a := policy.Approvers()
		if policy == "" || slices.ContainsFunc(a.Who, func(who string) bool {
			return !strings.Contains(who, ":") && store.Policy(who) != store.ByAdmins
		}) {
			continue
		}
		e, err := p.Electorate(ctx, store.Call{Policy: policy})
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
