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

// Card is what a person decides on, made from the stored call alone.
func (g *Gateway) Card(ctx context.Context, id string) (store.Card, error) {
	c, err := g.calls.GetCall(ctx, id)
	if err != nil {
		return store.Card{}, fmt.Errorf("call %s: %w", id, err)
	}
	if err := g.Catalog.Load(ctx); err != nil {
		return store.Card{}, err
	}
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
	if c.Successor == "" && c.Ask == nil {
		card.RepeatVerb = map[store.State]store.Verb{store.Failed: store.Retry, store.Expired: store.Again}[c.State]
	}
	if c.State.Final() {
		card.Outcome = c.Reason
		if card.Ended = endingOf(c); card.Ended != "" { // who ended it is told beside it
			card.Outcome = c.Decisions[len(c.Decisions)-1].Reason
		}
		if c.State == store.Done && !c.Private {
			card.Outcome = store.Plain(briefResult(c.Result))
		}
	}
	return card, nil
}

// decidedBy is who decided what became of a call, "" where no decision did: a yes
// to what was edited, given up or out of date before it ran did not do that.
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

// endingOf says how a person kept a call from running, "" if no person did: it
// was nize's own decision, or its call was edited.
func endingOf(c store.Call) store.Ending {
	if decidedBy(c) == "" || c.Successor != "" {
		return ""
	}
	switch last := c.Decisions[len(c.Decisions)-1]; {
	case last.Auto || last.By == store.System.User:
		return ""
	case c.State == store.Refused, c.State == store.Cancelled && c.Policy.Approvers().Alone():
		return store.Declined
	case c.State == store.Cancelled && last.By == c.By:
		return store.Withdrawn
	}
	return ""
}

// edited reports whether a call stands in the place of one with other arguments. What
// was retried or asked for again had ended otherwise.
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

// settledAt is when a call ended, or was decided.
func settledAt(c store.Call) time.Time {
	if !c.Finished.IsZero() || len(c.Decisions) == 0 {
		return c.Finished
	}
	return c.Decisions[len(c.Decisions)-1].At
}

// originOf says where a call comes from. A conversation that is somebody's own
// is no place to send others to.
func (g *Gateway) originOf(ctx context.Context, c store.Call) (o store.CardOrigin, err error) {
	if at := g.Policy.Address(ctx, c.Thread); !at.Direct && at.Channel != "" {
		o.In = at
	}
	// Outside a conversation there is one caller, who waits or left.
	o.Gone = c.Ask == nil && !c.Task && c.Thread == "" && !c.State.Final() && !g.waiters.anybody(c.ID)
	if c.Token == "" {
		return o, nil
	}
	o.Token, err = g.Policy.TokenName(ctx, c.By, c.Token)
	return o, err
}

// addToolToCard says what the tool is, and what changed about it.
func (g *Gateway) addToolToCard(ctx context.Context, c store.Call, card *store.Card) error {
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
	// The store is changed first: who is told of a change there asks at once.
	stored, err := g.Catalog.GetStored(ctx, c.ToolID())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("reading tool %s: %w", c.ToolID(), err)
	}
	if tool.Server != policy.BuiltinServer && (err != nil || stored.Accepted != c.Pin || stored.Pin != c.Pin) {
		card.Warnings = append(card.Warnings, store.Textf("the tool's definition changed since this was proposed; it will not run"))
	}
	if err == nil {
		card.Fields = fieldsOf(stored.InputSchema)
	}
	if !c.Waiting() {
		return nil
	}
	card.Claim, card.Asks = tool.Claim(), c.Reason
	if lifting, err := g.Policy.Lifting(ctx, c, tool); err == nil {
		card.Always, card.Stops = lifting.Always, lifting.How
		card.Here = lifting.Always && (c.Thread != "" || c.Session() != "")
		if c.Ask != nil && lifting.Always {
			if card.Patterns, err = g.patternsOf(ctx, c); err != nil {
				return err
			}
		}
	}
	if tainted, err := g.Policy.Tainted(ctx, c.Thread); err != nil || tainted && !warnsOf(c, policy.TaintWarning) {
		card.Warnings = append(card.Warnings, policy.TaintWarning) // since it was proposed, or nobody knows
	}
	return nil
}

const (
	// coveredDays and maxCovered bound the asks that a proposed pattern is tried on.
	coveredDays = 30
	maxCovered  = 500
)

// patternsOf proposes patterns for an ask, and counts what they would have allowed of
// what its requester was asked before.
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

// warnsOf compares in English: what was stored long ago is nothing else.
func warnsOf(c store.Call, warning store.Text) bool {
	return slices.ContainsFunc(c.Warnings, func(w store.Text) bool { return w.String() == warning.String() })
}

// maxWarnings bounds what is said of one call's arguments.
const maxWarnings = 20

var moreWarnings = store.Textf("there is more of that kind than is listed here") // as mcp/scan says it of one text

// warnings is what should be known of the texts in arguments, names of fields
// included.
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
			return out // the end: canonical arguments are whole
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

// addVotesToCard says who may press, who did, and what can be approved together.
func (g *Gateway) addVotesToCard(ctx context.Context, c store.Call, card *store.Card) error {
	var err error
	if card.Approvers, err = g.Policy.Describe(ctx, c); err != nil {
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
	together, err := g.callsOfStep(ctx, c)
	if card.Together = len(together); card.Together > 0 {
		card.Step = c.Step
	}
	return err
}

// maxFields bounds how many of a schema's fields are named: those after them follow
// in the order of their names.
const maxFields = 200

// fieldsOf lists the fields of a schema in the order in which its author wrote them.
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
