package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

func (a *app) approvals() *cli.Command {
	reason := &cli.StringFlag{Name: "reason", Usage: "why, for the record"}
	digest := func() cli.Flag {
		return &cli.StringFlag{Name: "digest", Usage: "decide only if the call is still the one with this digest, or head of it"}
	}
	return group("approvals", "calls that wait for a person",
		a.command(leaf{name: "list", usage: "list calls that wait", run: approvalsList}),
		a.command(leaf{name: "show", args: "ID", usage: "show a call whole: every argument and its digest", names: approvalIDs, run: approvalsShow}),
		a.command(leaf{name: "approve", args: "ID", usage: "let a call run, once", names: approvalIDs, run: approvalsDecide(store.Approve),
			flags: []cli.Flag{&cli.BoolFlag{Name: "always", Usage: "also from now on, for this exact tool"}, grantFor(),
				&cli.StringFlag{Name: "where", Usage: `with --always, only where the arguments hold this JSON ` + "`OBJECT`" + `, as of grants add --args`},
				&cli.BoolFlag{Name: "exact", Usage: "with --always, only for these very arguments"}, grantExpires(),
				&cli.BoolFlag{Name: "all", Usage: "and the other calls that the model proposed together with it"}, digest(), reason, yesFlag()}}),
		a.command(leaf{name: "deny", args: "ID", usage: "refuse a call", names: approvalIDs, run: approvalsDecide(store.Deny),
			flags: []cli.Flag{&cli.BoolFlag{Name: "always", Usage: "also from now on, for this tool"}, grantFor(), grantExpires(), digest(), reason}}),
		a.command(leaf{name: "edit", args: "ID", usage: "let a call run with other arguments: a new call replaces it", names: approvalIDs, run: approvalsEdit,
			flags: []cli.Flag{&cli.StringFlag{Name: "args", Usage: "the arguments, a JSON `OBJECT`, @FILE, or - for standard input"}, digest(), reason}}),
		a.command(leaf{name: "retry", args: "ID", usage: "make a call anew that failed, or that nobody answered", run: approvalsRetry}),
		group("grants", "standing answers (always, never)",
			a.command(leaf{name: "add", args: "TOOL", usage: "allow a tool from now on, or deny it", names: toolNames, run: grantsAdd, flags: []cli.Flag{
				&cli.BoolFlag{Name: "deny", Usage: "deny it, instead of allowing"}, grantFor(),
				&cli.StringFlag{Name: "args", Usage: `only where the arguments hold this JSON ` + "`OBJECT`" + `; a text may end with *, as in '{"path":"/srv/docs/*"}'`},
				grantExpires(),
			}}),
			a.command(leaf{name: "list", usage: "list standing answers", run: grantsList,
				flags: []cli.Flag{&cli.StringFlag{Name: "user", Usage: "only this person's"}}}),
			a.command(leaf{name: "revoke", args: "ID", usage: "revoke a standing answer", run: grantsRevoke}),
		),
	)
}

func grantFor() cli.Flag {
	return &cli.StringFlag{Name: "for", Usage: "for whose calls: me, channel (of the call) or everywhere, for admins (default: me)"}
}

func grantExpires() cli.Flag {
	return &cli.StringFlag{Name: "expires", Usage: "`HOW LONG` a standing answer holds, such as 8h or 30d (default: until it is revoked)"}
}

// grantEnd is when a standing answer ends; zero where --expires is not given.
func (c *call) grantEnd() (time.Time, error) {
	text := c.cmd.String("expires")
	if !c.cmd.IsSet("expires") {
		return time.Time{}, nil
	}
	d, err := store.ParseSpan(text)
	if err != nil || d <= 0 {
		return time.Time{}, usagef("--expires %s: write 8h or 30d", text)
	}
	return time.Now().Add(d), nil
}

func approvalIDs(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Approvals(ctx)
	return each(list, func(card store.Card) string { return card.Call }), err
}

func approvalsList(ctx context.Context, c *call) error {
	list, err := c.api.Approvals(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("ID", "TOOL", "BY", "EXPIRES", "ARGUMENTS").text(4)
	for _, card := range list {
		t.row(card.Call, card.Tool, card.By, c.when(card.Expires), clip(string(card.Args), 60))
	}
	t.print("nothing waits")
	return nil
}

func approvalsShow(ctx context.Context, c *call) error {
	card, err := c.api.Approval(ctx, c.arg(0))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(card)
	}
	c.printCard(card)
	return nil
}

// digestHead is how much of a digest people compare.
const digestHead = 12

// printCard shows the whole card: what the model and the server claim is marked
// as theirs, and nothing is cut.
func (c *call) printCard(card store.Card) {
	c.field("call", card.Call)
	c.field("tool", card.Tool)
	c.field("its title", store.Escape(card.Title))
	if card.Description != "" {
		c.field("its claim", store.Escape(strings.Join(strings.Fields(card.Description), " ")))
	}
	c.field("server", store.Escape(card.Server+" ("+card.Where+")"))
	c.field("asked by", store.Escape(card.By))
	c.field("runs as", store.Escape(card.RunsAs))
	c.field("model says", store.Escape(card.Why))
	c.line("%s", c.paint(bold, "arguments:"))
	args, _ := store.PrettyJSON(card.Args) // what is no JSON comes back quoted
	c.line("%s", indent(args))
	for _, w := range card.Warnings {
		c.field("warning", store.Escape(w))
	}
	c.field("digest", card.Digest[:min(len(card.Digest), digestHead)])
	if len(card.Approvers) > 0 {
		c.field("decided by", card.Who())
	}
	if len(card.Yes) > 0 {
		c.field("said yes", fmt.Sprintf("%s (%d of %d)", strings.Join(card.Yes, ", "), len(card.Yes), card.Need))
	}
	if card.Together > 0 {
		c.field("together", count(card.Together, "other call")+" of the same step: --all approves them with it")
	}
	state := card.State.Word()
	if card.Approved && card.State == store.Pending {
		state = "approved, not started yet"
	}
	if card.DecidedBy != "" {
		state += " (" + card.DecidedBy + ")"
	}
	c.field("state", state)
	if card.State == store.Pending {
		c.field("expires", c.when(card.Expires))
	}
	c.field("outcome", card.Outcome)
	c.field("replaced by", card.Successor)
	if card.RepeatVerb != "" {
		c.field("anew", "nizectl approvals retry "+card.Call)
	}
}

// approvalsDecide binds the decision to the card's digest, so that what was
// shown is what is decided.
func approvalsDecide(verb store.Verb) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		card, err := c.api.Approval(ctx, c.arg(0))
		if err != nil {
			return err
		}
		if err := c.checkDigest(card); err != nil {
			return err
		}
		if verb == store.Approve && c.inTTY && c.errTTY && !c.cmd.IsSet("digest") && !c.cmd.Bool("yes") && card.State == store.Pending {
			c.printCard(card)
			if err := c.flush(); err != nil {
				return err
			}
			if err := c.ask("Run it?"); err != nil {
				return err
			}
		}
		d := api.Decide{Verb: verb, Digest: card.Digest, Always: c.cmd.Bool("always"), For: store.GrantScope(c.cmd.String("for")), Reason: c.cmd.String("reason")}
		if d.Until, err = c.grantEnd(); err != nil {
			return err
		}
		if where := c.cmd.String("where"); where != "" {
			if d.Pattern, err = store.CheckPattern([]byte(where)); err != nil {
				return usagef("--where: %v", err)
			}
		}
		d.Exact = c.cmd.Bool("exact")
		if (d.For != "" || !d.Until.IsZero() || d.Pattern != nil || d.Exact) && !d.Always {
			return usagef("--for, --where, --exact and --expires say how --always holds: give it, too")
		}
		if c.cmd.Bool("all") {
			if d.Verb = store.RunAll; d.Always {
				return usagef("--always is for one tool: give --all without it")
			}
		}
		call, err := c.api.Decide(ctx, card.Call, d)
		if err != nil {
			return err
		}
		word := "denied"
		if verb == store.Approve {
			word = "approved"
		}
		if c.cmd.Bool("always") {
			word += ", and from now on"
		}
		state := call.State.Word()
		switch {
		case call.Waiting() && verb == store.Approve:
			yes, need := len(call.Yes()), call.Policy.Approvers().Need
			state = fmt.Sprintf("%d of %d said yes; it waits for %s", yes, need, others(need-yes))
		case call.State == store.Pending && verb == store.Approve:
			state = "it starts now" // the press only decides
		}
		if c.cmd.Bool("all") && card.Together > 0 {
			word += " with " + count(card.Together, "other call")
		}
		return c.report(call, "%s %s: %s", card.Tool, word, state)
	}
}

// approvalsEdit replaces a waiting call by one with other arguments. Where the
// editor may approve, that is the approval, too.
func approvalsEdit(ctx context.Context, c *call) error {
	if !c.cmd.IsSet("args") {
		return usagef("approvals edit needs --args with the new arguments")
	}
	args, err := c.readArgs()
	if err != nil {
		return err
	}
	card, err := c.api.Approval(ctx, c.arg(0))
	if err != nil {
		return err
	}
	if err := c.checkDigest(card); err != nil {
		return err
	}
	made, err := c.api.Decide(ctx, card.Call, api.Decide{Verb: store.Edit, Digest: card.Digest, Args: args, Reason: c.cmd.String("reason")})
	if err != nil {
		return err
	}
	state := "it waits for a yes"
	switch {
	case !made.Approved.IsZero() && made.State == store.Pending:
		state = "it starts now"
	case made.State != store.Pending:
		state = made.State.Word()
	}
	return c.report(made, "%s edited: call %s replaces it, %s", card.Tool, made.ID, state)
}

func others(n int) string {
	if n == 1 {
		return "another person"
	}
	return fmt.Sprintf("%d other people", n)
}

// approvalsRetry makes a call anew. A retry is a yes where who presses may
// approve; a call that nobody answered is only asked for again.
func approvalsRetry(ctx context.Context, c *call) error {
	card, err := c.api.Approval(ctx, c.arg(0))
	if err != nil {
		return err
	}
	if card.RepeatVerb == "" {
		why := "only a call that failed or expired can be made anew"
		switch {
		case card.Successor != "":
			why = "call " + card.Successor + " replaced it"
		case card.State == store.Lost:
			why = "look what it did, then propose it anew"
		}
		return failf(api.ExitConflict, "call %s is %s: %s", card.Call, card.State.Word(), why)
	}
	made, err := c.api.Decide(ctx, card.Call, api.Decide{Verb: card.RepeatVerb, Digest: card.Digest})
	if err != nil {
		return err
	}
	state := "it waits for a yes: nizectl approvals show " + made.ID
	switch {
	case !made.Approved.IsZero() && made.State == store.Pending:
		state = "it starts now"
	case made.State != store.Pending:
		state = made.State.Word() + " " + made.Reason
	}
	return c.report(made, "%s: call %s replaces it, %s", card.Tool, made.ID, state)
}

// checkDigest compares --digest with the card.
func (c *call) checkDigest(card store.Card) error {
	want := strings.ToLower(c.cmd.String("digest"))
	if !c.cmd.IsSet("digest") {
		return nil
	}
	if len(want) < 8 {
		return usagef("--digest %s: want at least 8 of its digits", want)
	}
	if !strings.HasPrefix(card.Digest, want) {
		return failf(api.ExitConflict, "call %s has another digest, %s: look at it again with nizectl approvals show %s", card.Call, card.Digest[:min(len(card.Digest), digestHead)], card.Call)
	}
	return nil
}

func grantsList(ctx context.Context, c *call) error {
	list, err := c.api.Grants(ctx, c.cmd.String("user"))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("ID", "USER", "FOR", "TOOL", "ANSWER", "WHERE", "CREATED", "EXPIRES").text(5)
	names := c.userNames(ctx)
	for _, g := range list {
		answer := "always"
		if g.Deny {
			answer = "never"
		}
		scope := cmp.Or(string(g.Scope), string(store.ForMe))
		if g.Channel != "" {
			scope = g.Channel
		}
		where := string(g.Pattern)
		if g.Exact != "" {
			where = "exactly those with SHA-256 " + g.Exact[:min(len(g.Exact), digestHead)]
		}
		t.row(g.ID, cmp.Or(names[g.User], g.User), scope, g.Tool, answer, clip(where, 60), c.when(g.Created), c.when(g.Expires))
	}
	t.print("no standing answers")
	return nil
}

func grantsAdd(ctx context.Context, c *call) error {
	g := api.AddGrant{Tool: toolID(c.arg(0)), Deny: c.cmd.Bool("deny"), For: store.GrantScope(c.cmd.String("for"))}
	if c.cmd.IsSet("args") {
		pattern, err := c.readArgs()
		if err != nil {
			return err
		}
		g.Pattern = pattern
	}
	var err error
	if g.Expires, err = c.grantEnd(); err != nil {
		return err
	}
	made, err := c.api.AddGrant(ctx, g)
	if err != nil {
		return err
	}
	word := "allowed"
	if made.Deny {
		word = "denied"
	}
	return c.report(made, "%s is %s from now on (%s); to end that: nizectl approvals grants revoke %s", made.Tool, word, made.Scope, made.ID)
}

func grantsRevoke(ctx context.Context, c *call) error {
	if err := c.api.RevokeGrant(ctx, c.arg(0)); err != nil {
		return err
	}
	return c.removed("standing answer", c.arg(0))
}
