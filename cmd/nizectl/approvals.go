package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/chat"
	"nize/cmd/nizectl/clients"
	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
	"nize/store/printable"
)

func approvalsCommand(a *command.App) *cli.Command {
	reason := &cli.StringFlag{Name: "reason", Usage: "why, for the record"}
	digest := func() cli.Flag {
		return &cli.StringFlag{Name: "digest", Usage: "decide only if the call's digest is still this one, or begins with it"}
	}
	return command.Group("approvals", "decide pending calls; manage standing answers",
		a.Command(command.Leaf{Name: "list", Usage: "list pending calls", Run: approvalsList}),
		a.Command(command.Leaf{Name: "show", Args: "ID", Usage: "show a call with all arguments and its digest", Names: approvalNames, IDs: callIDs, Run: approvalsShow,
			Flags: []cli.Flag{&cli.StringFlag{Name: "reason", Usage: "`WHY`, recorded in the audit trail; admins need one to read calls that don't involve them"}}}),
		a.Command(command.Leaf{Name: "approve", Args: "ID", Usage: "let a call run once", IDs: approvalIDs, Run: approvalsDecide(store.Approve),
			Flags: []cli.Flag{&cli.BoolFlag{Name: "always", Usage: "also from now on: your calls of this exact tool with these arguments, if no other flag says more"}, grantFor(),
				&cli.StringFlag{Name: "where", Usage: `with --always, only if the arguments contain this JSON ` + "`OBJECT`" + `, as in grants add --args`},
				&cli.BoolFlag{Name: "exact", Usage: "with --always, only for exactly these arguments (the default)"},
				&cli.BoolFlag{Name: "any", Usage: "with --always, for any arguments"}, grantExpires(),
				&cli.BoolFlag{Name: "line", Usage: "with --always, only for exactly this command line of an ask"},
				&cli.BoolFlag{Name: "here", Usage: "with --always and --where, only in the repository of an ask"},
				&cli.BoolFlag{Name: "all", Usage: "also approve the other calls that the model proposed together with it"}, digest(), reason, command.YesFlag()}}),
		a.Command(command.Leaf{Name: "deny", Args: "ID", Usage: "refuse a call", IDs: approvalIDs, Run: approvalsDecide(store.Deny),
			Flags: []cli.Flag{&cli.BoolFlag{Name: "always", Usage: "also from now on, for this tool"}, grantFor(), grantExpires(), digest(), reason, command.YesFlag()}}),
		a.Command(command.Leaf{Name: "edit", Args: "ID", Usage: "run a call with other arguments", More: "A new call replaces it.", IDs: approvalIDs, Run: approvalsEdit,
			Flags: []cli.Flag{&cli.StringFlag{Name: "args", Usage: "the arguments, a JSON `OBJECT`, @FILE, or - for standard input (default: $VISUAL or $EDITOR opens)"}, digest(), reason}}),
		a.Command(command.Leaf{Name: "answer", Args: "ID", Usage: "answer a server's question", More: "Only the person whose call asks can answer it. On a terminal each field is asked for.", IDs: questionIDs, Run: approvalsAnswer,
			Flags: []cli.Flag{&cli.StringFlag{Name: "args", Usage: "the answer, a JSON `OBJECT`, @FILE, or - for standard input"},
				&cli.BoolFlag{Name: "decline", Usage: "decline the question"}, &cli.BoolFlag{Name: "cancel", Usage: "give no answer"}, digest()}}),
		a.Command(command.Leaf{Name: "retry", Args: "ID", Usage: "repeat a call that failed or expired", IDs: callIDs, Run: approvalsRetry}),
		command.Group("grants", "manage standing answers (always, never)",
			a.Command(command.Leaf{Name: "add", Args: "TOOL", Usage: "allow a tool from now on, or deny it", Names: command.ToolNames, Run: grantsAdd, Flags: []cli.Flag{
				&cli.BoolFlag{Name: "deny", Usage: "deny it, instead of allowing"}, grantFor(),
				&cli.StringFlag{Name: "args", Usage: `only if the arguments contain this JSON ` + "`OBJECT`" + `; a text may end with *, as in '{"path":"/srv/docs/*"}'`},
				grantExpires(),
				&cli.StringFlag{Name: "repository", Usage: "only for asks in the repository of this `DIRECTORY`, or with this name, that don't leave it"},
				&cli.StringFlag{Name: "host", Usage: "with --repository, the `MACHINE` that it is on (default: this one, for a directory)"},
			}}),
			a.Command(command.Leaf{Name: "list", Usage: "list standing answers", Run: grantsList,
				Flags: []cli.Flag{&cli.StringFlag{Name: "user", Usage: "only this person's (default: for admins all, for others their own)"}, &cli.StringFlag{Name: "reason", Usage: "`WHY`, recorded in the audit trail; needed to read the arguments of another person's answers"}}}),
			a.Command(command.Leaf{Name: "revoke", Args: "ID", Usage: "revoke a standing answer", IDs: grantIDs, Run: grantsRevoke}),
		),
	)
}

func grantFor() cli.Flag {
	return &cli.StringFlag{Name: "for", Usage: "for whose calls: me, conversation or channel (of the call), or everywhere, for admins (default: me)"}
}

func grantExpires() cli.Flag {
	return &cli.StringFlag{Name: "expires", Usage: "`HOW LONG` a standing answer is valid, such as 8h or 30d (default: until it is revoked)"}
}

// grantEnd returns when a standing answer ends; zero without --expires.
func grantEnd(c *command.Call) (time.Time, error) {
	text := c.Cmd.String("expires")
	if !c.Cmd.IsSet("expires") {
		return time.Time{}, nil
	}
	d, err := store.ParseSpan(text)
	if err != nil || d <= 0 {
		return time.Time{}, command.Usagef("--expires %s: write 8h or 30d", text)
	}
	return time.Now().Add(d), nil
}

// approvalIDs returns the ids of waiting calls.
func approvalIDs(ctx context.Context, c *api.Client) ([]command.ID, error) {
	list, err := api.ListApprovals.Call(ctx, c, api.Empty{})
	return command.Each(list.Items, func(card store.Card) command.ID {
		return command.ID{ID: card.Call, About: card.Tool + " by " + card.By}
	}), err
}

// questionIDs are the questions that wait for the caller.
func questionIDs(ctx context.Context, c *api.Client) ([]command.ID, error) {
	list, err := api.ListApprovals.Call(ctx, c, api.Empty{})
	questions := slices.DeleteFunc(list.Items, func(card store.Card) bool { return card.Question == nil })
	return command.Each(questions, func(card store.Card) command.ID {
		return command.ID{ID: card.Call, About: card.Tool + " asks " + card.By}
	}), err
}

func approvalNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := approvalIDs(ctx, c)
	return command.Each(list, func(id command.ID) string { return id.ID }), err
}

// recentCalls is how many events are searched for the id of a call.
const recentCalls = 2000

// callIDs returns the ids of waiting calls and of those in the newest events.
func callIDs(ctx context.Context, c *api.Client) ([]command.ID, error) {
	list, err := approvalIDs(ctx, c)
	if err != nil {
		return nil, err
	}
	for e, err := range api.ReadAudit.Call(ctx, c, api.AuditRequest{Kind: "call", Limit: recentCalls}) {
		if err != nil {
			return nil, err
		}
		list = append(list, command.ID{ID: e.Subject, About: e.Tool})
	}
	return list, nil
}

// grantIDs returns the ids of the standing answers that the caller may see.
func grantIDs(ctx context.Context, c *api.Client) ([]command.ID, error) {
	list, err := listGrants(ctx, c, "", "")
	return command.Each(list.Items, func(g api.GrantView) command.ID { return command.ID{ID: g.ID, About: g.Tool} }), err
}

func approvalsList(ctx context.Context, c *command.Call) error {
	list, err := api.ListApprovals.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("ID", "TOOL", "BY", "EXPIRES", "ARGUMENTS").Text(4)
	for _, card := range list.Items {
		args := string(card.Args)
		switch {
		case card.Withheld:
			args = "(withheld)"
		case card.Question != nil:
			args = "asks: " + strings.SplitN(card.Question.Message, "\n", 2)[0]
		}
		t.Row(card.Call, card.Tool, card.By, c.When(card.Expires), args)
	}
	t.Print("nothing waits")
	return nil
}

func approvalsShow(ctx context.Context, c *command.Call) error {
	card, err := api.GetApproval.Call(ctx, c.API, api.CallRequest{ID: c.Arg(0), Reason: c.Cmd.String("reason")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(card)
	}
	printCard(c, card)
	return nil
}

// digestHead is how many characters of a digest people compare.
const digestHead = 12

// printCard prints the whole card, as in a chat, without cutting anything.
func printCard(c *command.Call, card store.Card) {
	for i, line := range chat.CardLines(card, c.Now()) {
		if i == 0 {
			line = c.Paint(command.Bold, line)
		}
		c.Line("%s", line)
	}
	if card.Withheld {
		c.Line("its content is withheld; --reason shows it and is recorded in the audit trail")
	}
	for _, pattern := range card.Patterns {
		where := ""
		if pattern.Repository != "" {
			where = " --repository " + printable.ShellWord(pattern.Repository)
			if pattern.Host != "" {
				where += " --host " + printable.ShellWord(pattern.Host)
			}
		}
		c.Line("to allow such: nizectl approvals grants add %s --args %s%s", display.Clean(card.Tool), display.Clean(printable.ShellWord(string(pattern.Args))), display.Clean(where))
		risk := ""
		if pattern.Wide {
			risk = "wide: " + pattern.Risk.String() + "; "
		}
		c.Line("   (%sit would have covered %d of %s in 30 days)", display.Clean(risk), pattern.Covered, command.Count(pattern.Of, "ask"))
	}
	if card.Together > 0 {
		c.Line("together: %s", command.Count(card.Together, "other call")+" of the same step: --all approves them with it")
	}
	if card.Successor != "" {
		c.Line("replaced by: %s", display.Clean(card.Successor))
	}
	if card.RepeatVerb != "" {
		c.Line("again: nizectl approvals retry %s", display.Clean(card.Call))
	}
}

// approvalsDecide binds the decision to the card's digest, so that it applies only to what
// was shown.
func approvalsDecide(verb store.Verb) func(context.Context, *command.Call) error {
	return func(ctx context.Context, c *command.Call) error {
		card, err := api.GetApproval.Call(ctx, c.API, api.CallRequest{ID: c.Arg(0)})
		if err != nil {
			return err
		}
		if err := checkDigest(c, card); err != nil {
			return err
		}
		if card.Question != nil {
			return command.Usagef("%s is a question: nizectl approvals answer %s, with --decline to decline it", card.Call, card.Call)
		}
		if verb == store.Approve && c.InTTY && c.ErrTTY && !c.Cmd.IsSet("digest") && !c.Cmd.Bool("yes") && card.State == store.Pending {
			printCard(c, card)
			if err := c.Flush(); err != nil {
				return err
			}
			if err := c.Ask("Run it?"); err != nil {
				return err
			}
		}
		d := api.DecideCallRequest{ID: card.Call, Verb: verb, Digest: card.Digest, Always: c.Cmd.Bool("always"), For: store.GrantScope(c.Cmd.String("for")), Reason: c.Cmd.String("reason")}
		if d.Until, err = grantEnd(c); err != nil {
			return err
		}
		if where := c.Cmd.String("where"); where != "" {
			if d.Pattern, err = store.CheckPattern([]byte(where)); err != nil {
				return command.Usagef("--where: %v", err)
			}
		}
		d.Exact = c.Cmd.Bool("exact")
		anyArgs := c.Cmd.Bool("any")
		d.Line, d.Here = c.Cmd.Bool("line"), c.Cmd.Bool("here")
		if anyArgs && (d.Exact || d.Line || d.Pattern != nil) {
			return command.Usagef("--any is for any arguments: leave out --exact, --line and --where")
		}
		if d.Line && (d.Exact || d.Pattern != nil) {
			return command.Usagef("--line is for one command line: leave out --exact and --where")
		}
		asks := d.Always && c.InTTY && c.ErrTTY && !c.Cmd.Bool("yes") && d.For == "" && d.Until.IsZero() && d.Pattern == nil && !d.Exact && !d.Line && !d.Here && !anyArgs
		if asks { // ask for scope, arguments and duration, as the chats do
			said, err := chat.AskStanding(verb == store.Deny, card, c.AskLine, c.Now())
			if err != nil {
				return err
			}
			d.For, d.Exact, d.Until, d.Pattern, d.Line, d.Here = said.For, said.Exact, said.Until, said.Pattern, said.Line, said.Here
		}
		if (d.For != "" || !d.Until.IsZero() || d.Pattern != nil || d.Exact || d.Line || d.Here || anyArgs) && !d.Always {
			return command.Usagef("--for, --where, --exact, --line, --here, --any and --expires need --always")
		}
		if d.Always && verb == store.Approve && !asks && !anyArgs && !d.Line && d.Pattern == nil {
			d.Exact = true // as in the card's menu
		}
		if c.Cmd.Bool("all") {
			if d.Verb = store.RunAll; d.Always {
				return command.Usagef("--always is for one tool: give --all without it")
			}
		}
		call, err := api.DecideCall.Call(ctx, c.API, d)
		if err != nil {
			return err
		}
		word := "denied"
		if verb == store.Approve {
			word = "approved"
		}
		if c.Cmd.Bool("always") {
			word += ", and from now on"
		}
		state := call.State.Word().String()
		switch {
		case call.Waiting() && verb == store.Approve:
			yes, need := len(call.Yes()), call.Policy.Approvers().Need
			state = fmt.Sprintf("%d of %d approved; waiting for %s", yes, need, others(need-yes))
		case call.State == store.Pending && verb == store.Approve:
			state = "it starts now" // the request only decides; the call runs afterwards
		}
		if card.Gone && verb == store.Approve {
			state += "; its caller left, so nothing waits for the result"
		}
		if c.Cmd.Bool("all") && card.Together > 0 {
			word += " with " + command.Count(card.Together, "other call")
		}
		if err := c.Report(call, "%s %s: %s", card.Tool, word, state); err != nil || !d.Always || c.JSON {
			return err
		}
		line, err := chat.KeptLine(ctx, c.API, card.Tool, store.Decision{Verb: verb, For: d.For, Exact: d.Exact, Until: d.Until, Pattern: d.Pattern, Line: d.Line, Here: d.Here}, c.Now())
		if err != nil {
			return err
		}
		c.Note("%s", line)
		return nil
	}
}

// approvalsEdit replaces a waiting call by one with other arguments. If the editor may
// approve the call, that also approves it.
func approvalsEdit(ctx context.Context, c *command.Call) error {
	card, err := api.GetApproval.Call(ctx, c.API, api.CallRequest{ID: c.Arg(0)})
	if err != nil {
		return err
	}
	if err := checkDigest(c, card); err != nil {
		return err
	}
	edit := func(args json.RawMessage) (store.Call, error) {
		return api.DecideCall.Call(ctx, c.API, api.DecideCallRequest{ID: card.Call, Verb: store.Edit, Digest: card.Digest, Args: args, Reason: c.Cmd.String("reason")})
	}
	var made store.Call
	if c.Cmd.IsSet("args") {
		args, err := readArgs(c)
		if err != nil {
			return err
		}
		made, err = edit(args)
		if err != nil {
			return err
		}
	} else if made, err = editInProgram(ctx, c, card, edit); err != nil {
		return err
	}
	state := "it is waiting for approval"
	switch {
	case !made.Approved.IsZero() && made.State == store.Pending:
		state = "it starts now"
	case made.State != store.Pending:
		state = made.State.Word().String()
	}
	return c.Report(made, "%s edited: call %s replaces it, %s", card.Tool, made.ID, state)
}

// approvalsAnswer answers a question of a server, declines it or dismisses it.
func approvalsAnswer(ctx context.Context, c *command.Call) error {
	card, err := api.GetApproval.Call(ctx, c.API, api.CallRequest{ID: c.Arg(0)})
	if err != nil {
		return err
	}
	if card.Question == nil {
		return command.Usagef("%s is no question: nizectl approvals approve or deny decides it", card.Call)
	}
	if err := checkDigest(c, card); err != nil {
		return err
	}
	decline, cancel := c.Cmd.Bool("decline"), c.Cmd.Bool("cancel")
	d := api.DecideCallRequest{ID: card.Call, Verb: store.Edit, Digest: card.Digest}
	switch {
	case decline && cancel, (decline || cancel) && c.Cmd.IsSet("args"):
		return command.Usagef("give one of --args, --decline and --cancel")
	case decline:
		d.Verb = store.Deny
	case cancel:
		d.Verb = store.Cancel
	case c.Cmd.IsSet("args"):
		if d.Args, err = readArgs(c); err != nil {
			return err
		}
	default:
		if !c.InTTY || !c.ErrTTY {
			return command.Usagef("approvals answer needs --args with the answer, --decline or --cancel, or a terminal to ask on")
		}
		printCard(c, card)
		if err := c.Flush(); err != nil {
			return err
		}
		d.Args, err = chat.AskAnswer(card, c.AskLine, func(line string) { c.Note("%s", display.Clean(line)) })
		if err != nil {
			return err
		}
		if d.Args == nil {
			question := "Send the answer?"
			if host := card.Question.Host(); host != "" {
				question = "Did you open " + host + "?"
			}
			if err := c.Ask(display.Clean(question)); err != nil {
				return err
			}
			d.Verb = store.Approve
		}
	}
	call, err := api.DecideCall.Call(ctx, c.API, d)
	if err != nil {
		return err
	}
	word := map[store.State]string{store.Approved: "answered", store.Refused: "declined", store.Cancelled: "cancelled"}[call.State]
	return c.Report(call, "question of %s %s", card.Tool, cmp.Or(word, call.State.Word().String()))
}

// editInProgram opens the arguments in the person's editor until they are valid or the
// person gives up; the last input is then kept in a file.
func editInProgram(ctx context.Context, c *command.Call, card store.Card, edit func(json.RawMessage) (store.Call, error)) (made store.Call, err error) {
	program := chat.Editor(c.Env)
	if program == "" {
		return made, command.Usagef("approvals edit needs --args with the new arguments, or $VISUAL or $EDITOR to write them in")
	}
	text, _ := printable.PrettyJSON(card.Args)
	for text += "\n"; ; {
		text, err = chat.EditText(program, text, func(argv []string) error {
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("running the editor %s: %w", program, err)
			}
			return nil
		})
		if err != nil {
			return made, err
		}
		args, err := store.Canonical([]byte(text))
		if err == nil && string(args) == string(card.Args) {
			return made, command.Failf(api.ExitFailed, "the arguments are the same as before: nothing was changed")
		}
		if err == nil {
			if made, err = edit(args); err == nil || !errors.Is(err, store.ErrInvalid) {
				return made, err
			}
		}
		if c.InTTY && c.ErrTTY {
			c.Note("%v", err)
			if c.Ask("Edit them again?") == nil {
				continue
			}
		}
		kept, keepErr := os.CreateTemp("", "nize-arguments-*.json") // 0600
		if keepErr != nil {
			return made, errors.Join(err, keepErr)
		}
		_, keepErr = kept.WriteString(text)
		return made, errors.Join(fmt.Errorf("%w; your input is saved; to use it: nizectl approvals edit %s --args @%s", err, card.Call, kept.Name()), keepErr, kept.Close())
	}
}

func others(n int) string {
	if n == 1 {
		return "another person"
	}
	return fmt.Sprintf("%d other people", n)
}

// approvalsRetry repeats a call. If the caller may approve it, a retry approves it; for a
// call that expired unanswered, approval is only requested again.
func approvalsRetry(ctx context.Context, c *command.Call) error {
	card, err := api.GetApproval.Call(ctx, c.API, api.CallRequest{ID: c.Arg(0)})
	if err != nil {
		return err
	}
	if card.RepeatVerb == "" {
		why := "only a call that failed or expired can be repeated"
		switch {
		case card.Successor != "":
			why = "call " + card.Successor + " replaced it"
		case card.State == store.Lost:
			why = "check what it did, then propose it again"
		}
		return command.Failf(api.ExitConflict, "call %s is %s: %s", card.Call, card.State.Word().String(), why)
	}
	made, err := api.DecideCall.Call(ctx, c.API, api.DecideCallRequest{ID: card.Call, Verb: card.RepeatVerb, Digest: card.Digest})
	if err != nil {
		return err
	}
	state := "it is waiting for approval: nizectl approvals show " + made.ID
	switch {
	case !made.Approved.IsZero() && made.State == store.Pending:
		state = "it starts now"
	case made.State != store.Pending:
		state = made.State.Word().String() + " " + made.Reason.String()
	}
	return c.Report(made, "%s: call %s replaces it, %s", card.Tool, made.ID, state)
}

// checkDigest compares --digest with the card.
func checkDigest(c *command.Call, card store.Card) error {
	want := strings.ToLower(c.Cmd.String("digest"))
	if !c.Cmd.IsSet("digest") {
		return nil
	}
	if len(want) < 8 {
		return command.Usagef("--digest %s: want at least 8 of its digits", want)
	}
	if !strings.HasPrefix(card.Digest, want) {
		return command.Failf(api.ExitConflict, "call %s has another digest, %s; review it again with nizectl approvals show %s", card.Call, card.Digest[:min(len(card.Digest), digestHead)], card.Call)
	}
	return nil
}

// listGrants returns a person's standing answers, or without a person all that the caller
// may see.
func listGrants(ctx context.Context, c *api.Client, user, reason string) (api.List[api.GrantView], error) {
	list, err := api.ListGrants.Call(ctx, c, api.ListGrantsRequest{User: cmp.Or(user, api.Everybody), Reason: reason})
	if user == "" && errors.Is(err, store.ErrNotFound) { // an older daemon
		list, err = api.ListGrants.Call(ctx, c, api.ListGrantsRequest{Reason: reason})
	}
	return list, err
}

func grantsList(ctx context.Context, c *command.Call) error {
	list, err := listGrants(ctx, c.API, c.Cmd.String("user"), c.Cmd.String("reason"))
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("ID", "USER", "FOR", "TOOL", "ANSWER", "WHERE", "CREATED", "EXPIRES").Text(5)
	names := c.UserNames(ctx)
	for _, g := range list.Items {
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
		if g.Repository != "" {
			where = strings.TrimSpace(where + " in " + strings.TrimPrefix(g.Host+":"+g.Repository, ":"))
		}
		if g.Void != "" {
			answer += " (void: " + g.Void + ")"
		}
		t.Row(g.ID, cmp.Or(names[g.User], g.User), scope, g.Tool, answer, where, c.When(g.Created), c.When(g.Expires))
	}
	t.Print("no standing answers")
	return nil
}

func grantsAdd(ctx context.Context, c *command.Call) error {
	g := api.AddGrantRequest{Tool: toolID(c.Arg(0)), Deny: c.Cmd.Bool("deny"), For: store.GrantScope(c.Cmd.String("for"))}
	if c.Cmd.IsSet("args") {
		pattern, err := readArgs(c)
		if err != nil {
			return err
		}
		g.Pattern = pattern
	}
	var err error
	if g.Expires, err = grantEnd(c); err != nil {
		return err
	}
	g.Repository, g.Host = c.Cmd.String("repository"), c.Cmd.String("host")
	if dir, err := filepath.EvalSymlinks(g.Repository); g.Repository != "" && err == nil && !c.Cmd.IsSet("host") {
		if g.Repository = clients.WorkingTree(dir); g.Repository == "" {
			return command.Usagef("--repository %q is in no repository", dir)
		}
		if g.Host, err = os.Hostname(); err != nil {
			return fmt.Errorf("--host is needed, since this machine has no name: %w", err)
		}
	}
	made, err := api.AddGrant.Call(ctx, c.API, g)
	if err != nil {
		return err
	}
	word := "allowed"
	if made.Deny {
		word = "denied"
	}
	return c.Report(made, "%s is %s from now on (%s); to end that: nizectl approvals grants revoke %s", made.Tool, word, made.Scope, made.ID)
}

func grantsRevoke(ctx context.Context, c *command.Call) error {
	if _, err := api.RevokeGrant.Call(ctx, c.API, api.RevokeGrantRequest{ID: c.Arg(0)}); err != nil {
		return err
	}
	return c.Removed("standing answer", c.Arg(0))
}
