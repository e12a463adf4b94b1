package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func (a *app) tools() *cli.Command {
	return group("tools", "find, read about and call tools",
		a.command(leaf{name: "search", args: "QUERY", usage: "find tools by what they do", run: toolsSearch, flags: []cli.Flag{
			&cli.StringFlag{Name: "domain", Usage: "only tools of this domain"},
			&cli.IntFlag{Name: "top-k", Aliases: []string{"n"}, Usage: "at most so many answers (default: 5, at most 50)"},
			&cli.FloatFlag{Name: "min", Usage: "only answers with at least this score, 0 to 1"},
			&cli.BoolFlag{Name: "explain", Usage: "say what put each answer in its place"},
		}}),
		a.command(leaf{name: "list", usage: "list tools", run: toolsList,
			flags: []cli.Flag{&cli.StringFlag{Name: "server", Usage: "only tools of this server"}}}),
		a.command(leaf{name: "show", args: "TOOL", usage: "show a tool and its parameters", names: toolNames, run: toolsShow}),
		a.command(leaf{name: "call", args: "TOOL", usage: "call a tool and wait for its result", names: toolNames, run: toolsCall,
			flags: []cli.Flag{&cli.StringFlag{Name: "args", Usage: "arguments as a `JSON` object, @FILE, or - for standard input", Value: "{}"}}}),
		a.command(leaf{name: "domains", args: "[DOMAIN]", usage: "list domains, or the tools of one", names: domainNames, run: toolsDomains}),
		a.toolsWhy(),
		a.toolsWanted(),
	)
}

// toolID accepts server.tool for server:tool; a server's name has no dot.
func toolID(s string) string {
	if !strings.Contains(s, ":") {
		return strings.Replace(s, ".", ":", 1)
	}
	return s
}

func toolsSearch(ctx context.Context, c *call) error {
	if k := c.cmd.Int("top-k"); c.cmd.IsSet("top-k") && (k < 1 || k > 50) {
		return usagef("--top-k %d: want 1 to 50", k)
	}
	if m := c.cmd.Float("min"); m < 0 || m > 1 {
		return usagef("--min %g: want 0 to 1", m)
	}
	found, err := c.api.SearchTools(ctx, api.Search{Query: c.arg(0), Domain: c.cmd.String("domain"), TopK: c.cmd.Int("top-k"), Min: c.cmd.Float("min"), Explain: c.cmd.Bool("explain")})
	if err != nil {
		return err
	}
	if c.json {
		found.Tools = items(found.Tools)
		return c.printJSON(found)
	}
	t := c.table("TOOL", "SCORE", "DESCRIPTION").numbers(1).text(2)
	if c.cmd.Bool("explain") {
		t = c.table("TOOL", "SCORE", "WHY").numbers(1)
	}
	for _, f := range found.Tools {
		text := clip(f.Description, 80)
		if c.cmd.Bool("explain") {
			text = why(f.Shares)
		}
		t.row(f.ID, fmt.Sprintf("%.2f", f.Score), text)
	}
	t.print("no tool fits: say it in other words, or see nizectl tools domains")
	if found.Note != "" {
		c.note("note: %s", found.Note)
	} else if found.Degraded {
		c.note("note: the embedding service is down, so the ranking is lexical only")
	}
	return nil
}

// why is what put a tool in its place, the weightiest reason first.
func why(shares []api.Share) string {
	shares = slices.Clone(shares)
	slices.SortStableFunc(shares, func(a, b api.Share) int { return cmp.Compare(math.Abs(b.Value), math.Abs(a.Value)) })
	parts := make([]string, len(shares))
	for i, s := range shares {
		parts[i] = fmt.Sprintf("%s %+.2f", s.Signal, s.Value)
	}
	return strings.Join(parts, ", ")
}

func toolsList(ctx context.Context, c *call) error {
	tools, err := c.api.Tools(ctx, c.cmd.String("server"))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(tools))
	}
	c.toolTable(tools).print("no tools: nizectl servers add registers a server")
	return nil
}

func toolsShow(ctx context.Context, c *call) error {
	tool, err := c.api.Tool(ctx, toolID(c.arg(0)))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(tool)
	}
	c.field("tool", tool.ID)
	c.field("title", tool.Title)
	c.field("server", tool.Server)
	c.field("domain", tool.Domain)
	c.field("state", string(tool.State))
	for _, f := range tool.Findings {
		c.field("finding", f)
	}
	approval := "not needed"
	if tool.NeedsApproval {
		approval = "needed"
	}
	if tool.Why != "" {
		approval += ": " + tool.Why
	}
	c.field("approval", approval)
	if tool.Private {
		c.field("results", privateResults)
	}
	c.field("claims", claims(tool.Annotations))
	if tool.Description != "" {
		c.line("%s", c.paint(bold, "description:"))
		c.line("%s", display.CleanLines(indent(tool.Description)))
	}
	c.line("%s", c.paint(bold, "parameters:"))
	c.line("%s", display.CleanLines(indent(prettyJSON(tool.InputSchema))))
	if len(tool.OutputSchema) > 0 {
		c.line("%s", c.paint(bold, "result:"))
		c.line("%s", display.CleanLines(indent(prettyJSON(tool.OutputSchema))))
	}
	return nil
}

// claims is what the server says of the tool.
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

func toolsDomains(ctx context.Context, c *call) error {
	if c.arg(0) != "" {
		return domainTools(ctx, c)
	}
	domains, err := c.api.Domains(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(domains))
	}
	t := c.table("DOMAIN", "TOOLS", "DESCRIPTION").numbers(1).text(2)
	for _, d := range domains {
		t.row(d.ID, fmt.Sprint(d.ToolCount), clip(d.Description, 80))
	}
	t.print("no domains: nizectl servers add registers a server")
	return nil
}

// domainTools lists a domain, page after page.
func domainTools(ctx context.Context, c *call) error {
	var all []api.ToolView
	for cursor := ""; ; {
		page, err := c.api.Domain(ctx, c.arg(0), cursor)
		if err != nil {
			return err
		}
		all = append(all, page.Items...)
		if page.NextCursor == "" || page.NextCursor == cursor {
			break
		}
		cursor = page.NextCursor
	}
	if c.json {
		return c.printJSON(items(all))
	}
	c.toolTable(all).print("the domain has no tools")
	return nil
}

// pollEvery is how often a call that waits for somebody else is looked at.
const pollEvery = 500 * time.Millisecond

func toolsCall(ctx context.Context, c *call) error {
	args, err := c.readArgs()
	if err != nil {
		return err
	}
	id := toolID(c.arg(0))
	done := c.busy("calling %s …", id)
	record, err := c.api.CallTool(ctx, id, api.CallTool{Args: args})
	done()
	if err != nil {
		return err
	}
	if !record.State.Final() {
		if record, err = c.await(ctx, record); err != nil {
			return err
		}
	}
	if c.json {
		if err := c.printJSON(record); err != nil {
			return err
		}
	} else if record.State == store.Done && ok(record.Result) {
		c.line("%s", display.CleanLines(record.Result.Text()))
	}
	return callError(record)
}

// readArgs reads --args and checks that it is one JSON object, so that a slip
// at the keyboard is told as what it is.
func (c *call) readArgs() (json.RawMessage, error) {
	text, err := c.textOrFile("--args", c.cmd.String("args"))
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	if _, err := store.Canonical([]byte(text)); err != nil {
		return nil, usagef(`--args: %v; want an object such as '{"city":"Lisbon"}'`, err)
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, usagef(`--args: want a JSON object such as '{"city":"Lisbon"}'`)
	}
	return json.RawMessage(text), nil
}

// await waits for a call that needs somebody else's yes. Who stops waiting
// withdraws the call.
func (c *call) await(ctx context.Context, record store.Call) (store.Call, error) {
	if record.Waiting() {
		c.note("%s waits for a yes: nizectl approvals show %s", record.ToolID(), record.ID)
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !record.State.Final() {
		select {
		case <-ctx.Done():
			return record, c.withdraw(context.WithoutCancel(ctx), record, context.Cause(ctx))
		case <-tick.C:
		}
		now, err := c.api.Call(ctx, record.ID)
		if err != nil && ctx.Err() == nil {
			return record, err
		} else if err == nil {
			record = now
		}
	}
	return record, nil
}

func (c *call) withdraw(ctx context.Context, record store.Call, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if !record.Waiting() {
		return cause
	}
	if _, err := c.api.Decide(ctx, record.ID, api.Decide{Verb: store.Cancel, Digest: record.Digest}); err != nil && !errors.Is(err, store.ErrDecided) {
		return fmt.Errorf("withdrawing call %s: %w", record.ID, err)
	}
	return cause
}

// callError says why a call did not succeed, with the exit code of its kind.
func callError(r store.Call) error {
	id := r.ToolID()
	reason := r.Reason
	if r.Result != nil && (r.Result.IsError || r.Result.Error != nil) && r.Result.Text() != "" {
		reason = r.Result.Text()
	}
	if reason == "" {
		reason = "no reason was given"
	}
	switch r.State {
	case store.Done:
		if ok(r.Result) {
			return nil
		}
		return failf(api.ExitFailed, "%s failed: %s", id, reason)
	case store.Refused, store.Expired, store.Cancelled:
		return failf(api.ExitRefused, "%s was not run (%s): %s", id, r.State.Word(), reason)
	case store.Lost:
		return failf(api.ExitFailed, "%s: the outcome is unknown: %s; look before you call it again", id, reason)
	}
	code := api.ExitFailed
	if r.Result != nil && r.Result.Error != nil {
		code = api.ExitCode(&api.Error{Code: string(r.Result.Error.Code)})
	}
	return failf(code, "%s failed: %s", id, reason)
}

// ok says whether the tool itself was content.
func ok(r *store.Result) bool { return r == nil || !r.IsError && r.Error == nil }
