package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/cmd/nizectl/servers"
	"nize/daemon/api"
	"nize/store"
)

func toolsCommand(a *command.App) *cli.Command {
	return command.Group("tools", "find, inspect and call tools",
		a.Command(command.Leaf{Name: "search", Args: "QUERY", Usage: "find tools by what they do", Run: toolsSearch, Flags: []cli.Flag{
			&cli.StringFlag{Name: "domain", Usage: "only tools of this domain"},
			&cli.IntFlag{Name: "top-k", Aliases: []string{"n"}, Usage: "the maximum number of results (default: 5, at most 50)"},
			&cli.FloatFlag{Name: "min", Usage: "only results with at least this score, 0 to 1"},
			&cli.BoolFlag{Name: "explain", Usage: "explain the rank of each result"},
			&cli.StringFlag{Name: "user", Usage: "show this person's results (default: you; others: admins only)"},
		}}),
		a.Command(command.Leaf{Name: "list", Usage: "list tools", Run: toolsList,
			Flags: []cli.Flag{&cli.StringFlag{Name: "server", Usage: "only tools of this server"}}}),
		a.Command(command.Leaf{Name: "show", Args: "TOOL", Usage: "show a tool and its parameters", Names: command.ToolNames, Run: toolsShow}),
		a.Command(command.Leaf{Name: "call", Args: "TOOL [KEY=VALUE...]", Usage: "call a tool and wait for its result", Names: command.ToolNames, Run: toolsCall,
			More: "nizectl tools call toolbox:current_time place=Tokyo\n" +
				"nizectl tools call tracker:create_issue title='Broken link' labels=bug labels=docs urgent=true points:=3\n" +
				"nizectl tools call files:resource:file:///srv/a.txt\n" +
				"nizectl tools call browser:screenshot url=https://example.com -o page.png\n" +
				"Prompts and resources of a server are called by their ids, as nizectl servers tools NAME lists them.\n" +
				"The tool's schema determines the type of KEY=VALUE; repeat it for a list. KEY:=JSON is passed unchanged.",
			Flags: []cli.Flag{&cli.StringFlag{Name: "args", Usage: "arguments as a `JSON` object, @FILE, or - for standard input", Value: "{}"},
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "save the images and other bytes of the result to this `FILE`, or its text if there are none"}, command.YesFlag()}}),
		a.Command(command.Leaf{Name: "domains", Args: "[DOMAIN]", Usage: "list domains, or the tools of one", Names: command.DomainNames, Run: toolsDomains}),
		a.Command(command.Leaf{Name: "index", Usage: "show the state of the search vectors of each server", More: "It shows their model, their age, and failures.", Run: toolsIndex}),
		toolsWhyCommand(a),
		toolsWantedCommand(a),
		toolsRendererCommand(a),
	)
}

// toolID accepts server.tool for server:tool; a server's name has no dot.
func toolID(s string) string {
	if !strings.Contains(s, ":") {
		return strings.Replace(s, ".", ":", 1)
	}
	return s
}

func toolsSearch(ctx context.Context, c *command.Call) error {
	if k := c.Cmd.Int("top-k"); c.Cmd.IsSet("top-k") && (k < 1 || k > 50) {
		return command.Usagef("--top-k %d: want 1 to 50", k)
	}
	if m := c.Cmd.Float("min"); m < 0 || m > 1 {
		return command.Usagef("--min %g: want 0 to 1", m)
	}
	found, err := api.SearchTools.Call(ctx, c.API, api.SearchToolsRequest{Query: c.Arg(0), Domain: c.Cmd.String("domain"), TopK: c.Cmd.Int("top-k"), Min: c.Cmd.Float("min"), Explain: c.Cmd.Bool("explain"), User: c.Cmd.String("user")})
	if err != nil {
		return err
	}
	if c.JSON {
		found.Tools = command.Items(found.Tools)
		return c.PrintJSON(found)
	}
	first, last := "TOOL", "DESCRIPTION"
	if len(found.Tools) == 0 {
		first, found.Tools = "NEAREST", found.Near
	}
	if c.Cmd.Bool("explain") {
		last = "WHY"
	}
	t := c.Table(first, "SCORE", last).Numbers(1)
	if last != "WHY" {
		t.Text(2)
	}
	for _, f := range found.Tools {
		text := f.Description
		if c.Cmd.Bool("explain") {
			text = why(f.Shares)
		}
		t.Row(f.ID, fmt.Sprintf("%.2f", f.Score), text)
	}
	t.Print("no tool matches; use other words, or see nizectl tools domains")
	if found.Note != "" {
		c.Note("note: %s", found.Note)
	} else if found.Degraded {
		c.Note("note: the embedding service is down, so the ranking is lexical only")
	}
	return nil
}

// why returns the reasons for a tool's rank, the most important first.
func why(shares []api.Share) string {
	shares = slices.Clone(shares)
	slices.SortStableFunc(shares, func(a, b api.Share) int { return cmp.Compare(math.Abs(b.Value), math.Abs(a.Value)) })
	parts := make([]string, len(shares))
	for i, s := range shares {
		parts[i] = fmt.Sprintf("%s %+.2f", s.Signal, s.Value)
	}
	return strings.Join(parts, ", ")
}

func toolsList(ctx context.Context, c *command.Call) error {
	tools, err := api.ListTools.Call(ctx, c.API, api.ListToolsRequest{Server: c.Cmd.String("server")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(tools.Items))
	}
	servers.ToolTable(c.App, tools.Items).Print("no tools: nizectl servers add registers a server")
	return nil
}

func toolsShow(ctx context.Context, c *command.Call) error {
	tool, err := api.GetTool.Call(ctx, c.API, api.ToolRequest{ID: toolID(c.Arg(0))})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(tool)
	}
	c.Field("tool", tool.ID)
	c.Field("title", tool.Title)
	c.Field("server", tool.Server)
	c.Field("domain", tool.Domain)
	c.Field("state", string(tool.State))
	for _, f := range tool.Findings {
		c.Field("finding", f)
	}
	approval := "not needed"
	if tool.NeedsApproval {
		approval = "needed"
	}
	if tool.Why != "" {
		approval += ": " + tool.Why
	}
	c.Field("approval", approval)
	if tool.Private {
		c.Field("results", privateResults)
	}
	c.Field("claims", claims(tool.Annotations))
	if tool.Description != "" {
		c.Line("%s", c.Paint(command.Bold, "description:"))
		c.Line("%s", display.CleanLines(command.Indent(tool.Description)))
	}
	c.Line("%s", c.Paint(command.Bold, "parameters:"))
	c.Line("%s", display.CleanLines(command.Indent(command.PrettyJSON(tool.InputSchema))))
	if len(tool.OutputSchema) > 0 {
		c.Line("%s", c.Paint(command.Bold, "result:"))
		c.Line("%s", display.CleanLines(command.Indent(command.PrettyJSON(tool.OutputSchema))))
	}
	return nil
}

// claims returns the server's claims about the tool.
func claims(a store.Annotations) string {
	var words []string
	for _, hint := range []struct {
		value   *bool
		yes, no string
	}{
		{a.ReadOnly, "read-only", "changes something"},
		{a.Destructive, "destructive", "not destructive"},
		{a.Idempotent, "idempotent", "not idempotent"},
		{a.OpenWorld, "reaches out", "stays local"},
	} {
		if hint.value == nil {
			continue
		}
		word := hint.no
		if *hint.value {
			word = hint.yes
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func toolsDomains(ctx context.Context, c *command.Call) error {
	if c.Arg(0) != "" {
		return domainTools(ctx, c)
	}
	domains, err := api.ListDomains.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(domains.Items))
	}
	t := c.Table("DOMAIN", "TOOLS", "DESCRIPTION").Numbers(1).Text(2)
	for _, d := range domains.Items {
		t.Row(d.ID, fmt.Sprint(d.ToolCount), d.Description)
	}
	t.Print("no domains: nizectl servers add registers a server")
	return nil
}

// domainTools lists all pages of a domain.
func domainTools(ctx context.Context, c *command.Call) error {
	var all []api.ToolView
	for cursor := ""; ; {
		page, err := api.BrowseDomain.Call(ctx, c.API, api.BrowseDomainRequest{ID: c.Arg(0), Cursor: cursor})
		if err != nil {
			return err
		}
		all = append(all, page.Items...)
		if page.NextCursor == "" || page.NextCursor == cursor {
			break
		}
		cursor = page.NextCursor
	}
	if c.JSON {
		return c.PrintJSON(command.Items(all))
	}
	servers.ToolTable(c.App, all).Print("the domain has no tools")
	return nil
}

// pollEvery is how often a call that waits for another person is polled.
const pollEvery = 500 * time.Millisecond

func toolsCall(ctx context.Context, c *command.Call) error {
	id := toolID(c.Arg(0))
	args, err := callArgs(ctx, c, id)
	if err != nil {
		return err
	}
	if to := c.Cmd.String("output"); to != "" { // before anything runs
		if err := mayWrite(c, to); err != nil {
			return err
		}
	}
	follow := strconv.FormatInt(c.Now().UnixNano(), 36) // a key of its own, which no one else follows
	done := followProgress(ctx, c, id, follow)
	record, err := api.CallTool.Call(ctx, c.API, api.CallToolRequest{ID: id, Args: args, Follow: follow})
	done()
	if err != nil {
		return err
	}
	if !record.State.Final() {
		if record, err = await(ctx, c, record); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := c.PrintJSON(record); err != nil {
			return err
		}
	} else if record.State == store.Done && ok(record.Result) && c.Cmd.String("output") == "" {
		printResult(c, record.Result)
	}
	if to := c.Cmd.String("output"); to != "" && record.State == store.Done && ok(record.Result) {
		if err := saveResult(c, to, record.Result); err != nil {
			return err
		}
	}
	if record.Result != nil && record.Result.Masked {
		c.Note("a secret of server %s was masked in the result", record.Server)
	}
	if !c.JSON && record.Result != nil && record.Result.Late {
		c.Note("the disk is full: the call ended like this, but its record will be written when there is space")
	}
	return callError(record)
}

// callArgs reads the arguments of a call, as words or from --args.
func callArgs(ctx context.Context, c *command.Call, id string) (json.RawMessage, error) {
	if len(c.Args) < 2 {
		return readArgs(c)
	}
	if c.Cmd.IsSet("args") {
		return nil, command.Usagef("give the arguments as KEY=VALUE or with --args, not both")
	}
	tool, err := api.GetTool.Call(ctx, c.API, api.ToolRequest{ID: id})
	if err != nil {
		return nil, err
	}
	return wordArgs(id, tool.InputSchema, c.Args[1:])
}

// readArgs reads --args and checks that it is one JSON object, so that a typing error is
// reported as such.
func readArgs(c *command.Call) (json.RawMessage, error) {
	text, err := c.TextOrFile("--args", c.Cmd.String("args"))
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	if _, err := store.Canonical([]byte(text)); err != nil {
		return nil, command.Usagef(`--args: %v; want an object such as '{"city":"Lisbon"}'`, err)
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, command.Usagef(`--args: want a JSON object such as '{"city":"Lisbon"}'`)
	}
	return json.RawMessage(text), nil
}

// await waits for a call that needs another person's approval. If the wait is interrupted,
// it withdraws the call.
func await(ctx context.Context, c *command.Call, record store.Call) (store.Call, error) {
	if record.Waiting() {
		c.Note("%s is waiting for approval: nizectl approvals show %s", record.ToolID(), record.ID)
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !record.State.Final() {
		select {
		case <-ctx.Done():
			return record, withdraw(context.WithoutCancel(ctx), c, record, context.Cause(ctx))
		case <-tick.C:
		}
		now, err := api.GetCall.Call(ctx, c.API, api.CallRequest{ID: record.ID})
		if err != nil && ctx.Err() == nil {
			return record, err
		} else if err == nil {
			record = now
		}
	}
	return record, nil
}

func withdraw(ctx context.Context, c *command.Call, record store.Call, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if !record.Waiting() {
		return cause
	}
	if _, err := api.DecideCall.Call(ctx, c.API, api.DecideCallRequest{ID: record.ID, Verb: store.Cancel, Digest: record.Digest}); err != nil && !errors.Is(err, store.ErrDecided) {
		return fmt.Errorf("withdrawing call %s: %w", record.ID, err)
	}
	return cause
}

// callError returns why a call did not succeed, with the exit code of its kind.
func callError(r store.Call) error {
	id := r.ToolID()
	reason := r.Reason.String()
	if r.Result != nil && (r.Result.IsError || r.Result.Error != nil) && r.Result.Text() != "" {
		reason = r.Result.Text()
	}
	if reason == "" {
		reason = "no reason was given"
	}
	own := strings.HasPrefix(reason, id+" ") // the reason begins with the tool's name
	reason = strings.TrimPrefix(reason, id+": ")
	switch r.State {
	case store.Done:
		if ok(r.Result) {
			return nil
		}
		return command.Failf(api.ExitFailed, "%s failed: %s", id, reason)
	case store.Refused, store.Expired, store.Cancelled:
		return command.Failf(api.ExitRefused, "%s was not run (%s): %s", id, r.State.Word(), reason)
	case store.Lost:
		if strings.Contains(reason, "the outcome is unknown") { // the reason is complete
			return command.Failf(api.ExitFailed, "%s", reason)
		}
		return command.Failf(api.ExitFailed, "%s: the outcome is unknown: %s; check its effect before you call it again", id, reason)
	}
	code := api.ExitFailed
	if r.Result != nil && r.Result.Error != nil {
		code = api.ExitCode(&api.Error{Code: string(r.Result.Error.Code)})
	}
	if own {
		return command.Failf(code, "%s", reason)
	}
	return command.Failf(code, "%s failed: %s", id, reason)
}

// ok reports whether the tool itself succeeded.
func ok(r *store.Result) bool { return r == nil || !r.IsError && r.Error == nil }
