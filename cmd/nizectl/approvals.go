package main

import (
	"context"
	"strings"

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
			flags: []cli.Flag{&cli.BoolFlag{Name: "always", Usage: "also from now on, for you and this exact tool"}, digest(), reason, yesFlag()}}),
		a.command(leaf{name: "deny", args: "ID", usage: "refuse a call", names: approvalIDs, run: approvalsDecide(store.Deny),
			flags: []cli.Flag{&cli.BoolFlag{Name: "always", Usage: "also from now on, for you and this tool"}, digest(), reason}}),
		a.command(leaf{name: "edit", args: "ID", usage: "let a call run with other arguments: a new call replaces it", names: approvalIDs, run: approvalsEdit,
			flags: []cli.Flag{&cli.StringFlag{Name: "args", Usage: "the arguments, a JSON `OBJECT`, @FILE, or - for standard input"}, digest(), reason}}),
		group("grants", "standing answers (always, never)",
			a.command(leaf{name: "list", usage: "list standing answers", run: grantsList,
				flags: []cli.Flag{&cli.StringFlag{Name: "user", Usage: "only this person's"}}}),
			a.command(leaf{name: "revoke", args: "ID", usage: "revoke a standing answer", run: grantsRevoke}),
		),
	)
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
	t := c.table("ID", "TOOL", "BY", "EXPIRES", "ARGUMENTS")
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
	c.field("title", card.Title)
	if card.Description != "" {
		c.field("its claim", strings.Join(strings.Fields(card.Description), " "))
	}
	c.field("server", card.Server+" ("+card.Where+")")
	c.field("asked by", card.By)
	c.field("runs as", card.RunsAs)
	c.field("model says", card.Why)
	c.line("%s", c.paint(bold, "arguments:"))
	c.line("%s", cleanText(indent(prettyJSON(card.Args))))
	for _, w := range card.Warnings {
		c.field("warning", w)
	}
	c.field("digest", card.Digest[:min(len(card.Digest), digestHead)])
	if card.Policy != "" {
		c.field("decided by", map[store.Policy]string{store.ByRequester: "the requester", store.ByAdmins: "an admin"}[card.Policy])
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
		call, err := c.api.Decide(ctx, card.Call, api.Decide{Verb: verb, Digest: card.Digest, Always: c.cmd.Bool("always"), Reason: c.cmd.String("reason")})
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
		if call.State == store.Pending && verb == store.Approve {
			state = "it starts now" // the press only decides
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
	t := c.table("ID", "USER", "TOOL", "ANSWER", "CREATED", "EXPIRES")
	for _, g := range list {
		answer := "always"
		if g.Deny {
			answer = "never"
		}
		t.row(g.ID, g.User, g.Tool, answer, c.when(g.Created), c.when(g.Expires))
	}
	t.print("no standing answers")
	return nil
}

func grantsRevoke(ctx context.Context, c *call) error {
	if err := c.api.RevokeGrant(ctx, c.arg(0)); err != nil {
		return err
	}
	return c.removed("standing answer", c.arg(0))
}
