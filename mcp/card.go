package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/mcp/commandline"
	"nize/mcp/policy"
	"nize/store"
)

// cards makes the cards of one request.
type cards struct {
	*Gateway
	rules  *policy.Engine
	stored func(ctx context.Context, tool string) (store.Tool, error)
	fields func(tool store.Tool) []string
	listed func(ctx context.Context, thread string) ([]store.Call, error) // those that wait in a conversation
}

// Card returns the card on which a person decides. It is built from the stored call alone.
func (g *Gateway) Card(ctx context.Context, id string) (store.Card, error) {
	c, err := g.calls.GetCall(ctx, id)
	if err != nil {
		return store.Card{}, fmt.Errorf("call %s: %w", id, err)
	}
	if err := g.Catalog.Load(ctx); err != nil {
		return store.Card{}, err
	}
	fields := func(t store.Tool) []string { return fieldsOf(t.InputSchema) }
	return cards{g, g.Policy, g.Catalog.GetStored, fields, g.waitingIn}.card(ctx, c)
}

// Cards returns the cards of many calls, as they are in one moment. What the calls share, such
// as tools, people and conversations, is read once.
func (g *Gateway) Cards(ctx context.Context, calls []store.Call) ([]store.Card, error) {
	if err := g.Catalog.Load(ctx); err != nil {
		return nil, err
	}
	known := map[string][]string{}
	fields := func(t store.Tool) []string {
		id := t.Server + ":" + t.Name
		if _, ok := known[id]; !ok {
			known[id] = fieldsOf(t.InputSchema)
		}
		return known[id]
	}
	r := cards{g, g.Policy.ReadOnce(), policy.Once(g.Catalog.GetStored), fields, policy.Once(g.waitingIn)}
	list := make([]store.Card, 0, len(calls))
	for _, c := range calls {
		card, err := r.card(ctx, c)
		if err != nil {
			return nil, err
		}
		list = append(list, card)
	}
	return list, nil
}

func (g cards) card(ctx context.Context, c store.Call) (_ store.Card, err error) {
	a := c.Policy.Approvers()
	card := store.Card{
		Call: c.ID, Tool: c.ToolID(), Server: c.Server, By: nonEmpty(c.ByName, c.By), RunsAs: c.RunsAs, Why: c.Why, Args: c.Args,
		Warnings: c.Warnings, Digest: c.Digest, Policy: c.Policy, Expires: c.Expires, State: c.State, Approved: !c.Approved.IsZero(),
		CardVotes: store.CardVotes{Need: a.Need, NotRequester: a.NotRequester}, Successor: c.Successor, Private: c.Private, InPrivateTurn: c.InPrivateTurn,
	}
	if card.CardOrigin, err = g.originOf(ctx, c); err != nil {
		return store.Card{}, err
	}
	card.ID, card.View, card.Requester = c.ID, c.View, c.By
	if card.Edited, err = g.edited(ctx, c); err != nil {
		return store.Card{}, err
	}
	if err := g.addToolToCard(ctx, c, &card); err != nil {
		return store.Card{}, err
	}
	if c.Waiting() {
		return card, g.addVotesToCard(ctx, c, &card)
	}
	card.DecidedBy, card.Settled = decidedBy(c), settledAt(c)
	if !c.Started.IsZero() && c.Finished.After(c.Started) {
		card.Took = c.Finished.Sub(c.Started).Milliseconds()
	}
	if c.Successor == "" && !c.Decides() {
		card.RepeatVerb = map[store.State]store.Verb{store.Failed: store.Retry, store.Expired: store.Again}[c.State]
	}
	if c.State.Final() {
		card.Outcome = c.Reason
		if card.Ended = endingOf(c); card.Ended != "" { // the card shows who ended it separately
			card.Outcome = c.Decisions[len(c.Decisions)-1].Reason
		}
		if c.State == store.Done && !c.Private {
			card.Outcome = store.Plain(briefResult(c.Result))
		}
	}
	return card, nil
}

// decidedBy returns the name of the person whose decision determined the call's state, or
// "" if no decision did: an approval doesn't count if the call was then edited, cancelled
// or outdated before it ran.
func decidedBy(c store.Call) string {
	if len(c.Decisions) == 0 {
		return ""
	}
	last := c.Decisions[len(c.Decisions)-1]
	ends := map[store.State]store.Verb{store.Approved: store.Approve, store.Refused: store.Deny, store.Cancelled: store.Cancel, store.Expired: store.Expire}
	if verb, ok := ends[c.State]; ok && last.Verb != verb {
		return ""
	}
	return last.Name
}

// endingOf returns how a person prevented a call from running, or "" if no person did: nize
// decided by itself, or the call was edited.
func endingOf(c store.Call) store.Ending {
	if decidedBy(c) == "" || c.Successor != "" {
		return ""
	}
	switch last := c.Decisions[len(c.Decisions)-1]; {
	case last.Auto || last.By == store.System.User:
		return ""
	case c.Question != nil && c.State == store.Cancelled:
		return store.Withdrawn
	case c.State == store.Refused, c.State == store.Cancelled && c.Policy.Approvers().Alone():
		return store.Declined
	case c.State == store.Cancelled && last.By == c.By:
		return store.Withdrawn
	}
	return ""
}

// edited reports whether a call replaces one that was edited. A call that was retried or
// requested again replaces one that had ended in another state.
func (g *Gateway) edited(ctx context.Context, c store.Call) (bool, error) {
	if c.Replaces == "" {
		return false, nil
	}
	old, err := g.calls.GetCall(ctx, c.Replaces)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("reading call %s: %w", c.Replaces, err)
	}
	return err == nil && old.State == store.Cancelled, nil
}

// settledAt returns when a call ended or was decided.
func settledAt(c store.Call) time.Time {
	if !c.Finished.IsZero() || len(c.Decisions) == 0 {
		return c.Finished
	}
	return c.Decisions[len(c.Decisions)-1].At
}

// originOf returns where a call comes from. It omits private conversations, because a card
// must not link other people to them.
func (g cards) originOf(ctx context.Context, c store.Call) (o store.CardOrigin, err error) {
	if at := g.rules.Address(ctx, c.Thread); !at.Direct && at.Channel != "" {
		o.In = at
	}
	// Outside a conversation there is one caller, who waits or left.
	o.Gone = !c.Decides() && !c.Task && c.Thread == "" && !c.State.Final() && !g.waiters.anybody(c.ID)
	if c.Token == "" {
		return o, nil
	}
	o.Token, err = g.rules.TokenName(ctx, c.By, c.Token)
	return o, err
}

// addToolToCard adds the tool's description to the card, and its changes.
func (g cards) addToolToCard(ctx context.Context, c store.Call, card *store.Card) error {
	if card.Question = c.Question; c.Question != nil { // nothing runs, so the tool's present definition doesn't matter
		card.Fields = fieldsOf(c.Question.Schema)
		if tool, ok := g.Catalog.Get(c.ToolID()); ok {
			card.Where = tool.Record.Where()
		}
		return nil
	}
	tool, ok := g.Catalog.Get(c.ToolID())
	if !ok {
		card.Warnings = append(card.Warnings, store.Textf("the tool is gone; it will not run"))
		return nil
	}
	card.Title, card.Description, card.Where = tool.Title, tool.Description, tool.Record.Where()
	card.Effect = tool.Effect()
	if card.Asked = c.Ask != nil; card.Asked {
		card.Title, card.Description, card.Where = c.Ask.Title, askClaims(c.Ask), c.Ask.Where()
	}
	// The store changes before the catalog, and a subscriber to that change reads the card
	// immediately, so read the store.
	stored, err := g.stored(ctx, c.ToolID())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("reading tool %s: %w", c.ToolID(), err)
	}
	if tool.Server != policy.BuiltinServer && (err != nil || stored.Accepted != c.Pin || stored.Pin != c.Pin) {
		card.Warnings = append(card.Warnings, store.Textf("the tool's definition changed since this was proposed; it will not run"))
	}
	if err == nil {
		card.Fields = g.fields(stored)
	}
	if !c.Waiting() {
		return nil
	}
	card.Claim, card.Asks = tool.Claim(), c.Reason
	if lifting, err := g.rules.Lifting(ctx, c, tool); err == nil {
		card.Always, card.Stops = lifting.Always, lifting.How
		card.Here = lifting.Always && (c.Thread != "" || c.Session() != "")
		if c.Ask != nil && lifting.Always {
			if card.Patterns, err = g.patternsOf(ctx, c); err != nil {
				return err
			}
		}
	}
	if tainted, err := g.rules.Tainted(ctx, c.Thread); err != nil || tainted && !warnsOf(c, policy.TaintWarning) {
		card.Warnings = append(card.Warnings, policy.TaintWarning) // tainted since it was proposed, or it isn't known when
	}
	return nil
}

const (
	// coveredDays and maxCovered limit the earlier asks against which a proposed pattern is
	// tested.
	coveredDays = 30
	maxCovered  = 500
)

// patternsOf proposes patterns for an ask, and counts how many of its requester's earlier
// asks they would have allowed.
func (g *Gateway) patternsOf(ctx context.Context, c store.Call) ([]store.CardPattern, error) {
	list := commandline.PatternsOf(c.Ask, c.Args)
	if len(list) == 0 {
		return nil, nil
	}
	earlier, err := g.calls.ListCalls(ctx, store.CallQuery{Asks: true, User: c.By, Limit: maxCovered})
	if err != nil {
		return nil, fmt.Errorf("reading earlier asks: %w", err)
	}
	since := g.now().AddDate(0, 0, -coveredDays)
	for _, old := range earlier {
		if old.Created.Before(since) || old.Server != c.Server || old.Tool != c.Tool || old.Successor != "" {
			continue
		}
		for i := range list {
			list[i].Of++
			gr := store.Grant{Pattern: list[i].Args, Repository: list[i].Repository, Host: list[i].Host}
			if commandline.Allows(gr, old.Args, old.Ask) {
				list[i].Covered++
			}
		}
	}
	return list, nil
}

// warnsOf reports whether the call has the warning. It compares the English texts, because
// calls stored by earlier versions have nothing else.
func warnsOf(c store.Call, warning store.Text) bool {
	return slices.ContainsFunc(c.Warnings, func(w store.Text) bool { return w.String() == warning.String() })
}

// maxWarnings limits the warnings about one call's arguments.
const maxWarnings = 20

var moreWarnings = store.Textf("there is more of that kind than is listed here") // the text that mcp/scan uses for a single text

// warnings returns the warnings about the strings in the arguments, including field names.
func (g *Gateway) warnings(args json.RawMessage) []store.Text {
	if g.warn == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var out []store.Text
	for {
		token, err := dec.Token()
		if err != nil {
			return out // end of input: canonical arguments are well-formed
		}
		text, ok := token.(string)
		if !ok {
			continue
		}
		for _, w := range g.warn(text) {
			switch {
			case slices.Contains(out, w):
			case len(out) >= maxWarnings:
				return append(out, moreWarnings)
			default:
				out = append(out, w)
			}
		}
	}
}

// addVotesToCard adds who may decide, who did, and which calls can be approved together.
func (g cards) addVotesToCard(ctx context.Context, c store.Call, card *store.Card) error {
	var err error
	if card.Approvers, err = g.rules.Describe(ctx, c); err != nil {
		return err
	}
	for _, id := range c.Yes() {
		for _, d := range c.Decisions {
			if d.By == id && d.Verb == store.Approve {
				card.Yes = append(card.Yes, nonEmpty(d.Name, id))
				break
			}
		}
	}
	together, err := othersOfStep(c, func() ([]store.Call, error) { return g.listed(ctx, c.Thread) })
	if card.Together = len(together); card.Together > 0 {
		card.Step = c.Step
	}
	return err
}

// maxFields limits how many fields of a schema are ordered as its author wrote them.
// Further fields follow by name.
const maxFields = 200

// fieldsOf returns the fields of a schema in the order in which its author wrote them.
func fieldsOf(schema json.RawMessage) (names []string) {
	var s struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(s.Properties))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for dec.More() && len(names) < maxFields {
		name, err := dec.Token()
		if err != nil {
			return names
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return names
		}
		if text, ok := name.(string); ok && !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	return names
}
