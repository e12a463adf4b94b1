package daemon

import (
	"context"
	"encoding/json"
	"fmt"

	"nize/bots"
	"nize/bots/slack"
	"nize/daemon/people"
	"nize/mcp/policy"
	"nize/store"
)

// The chat platforms of the house.

// newSlack makes the bot on Slack; it gets its account when Run begins.
func (d *Daemon) newSlack(commands *bots.Commands) *slack.Bot {
	return slack.New(slack.Options{
		Store:    slack.Store{Inbox: d.db, Threads: d.db, People: d.db, Posts: d.db, Homes: d.db, Attachments: d.db},
		Approver: d.gateway, Calls: d.db, Config: d.config, Commands: commands, Transport: d.transport,
		Log: d.log.With("component", "slack"), Now: d.now, Schema: d.inputSchema, Fits: d.gateway.CheckArguments, Begins: d.defaults.Of, Admit: (&people.Access{Config: d.config, Groups: d.groups}).Admits, Keeper: homes{d}, Feed: d.db,
	})
}

// inputSchema is what a tool takes, for the form that edits a call of it.
func (d *Daemon) inputSchema(ctx context.Context, id string) (json.RawMessage, error) {
	t, err := d.db.GetTool(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("reading tool %s: %w", id, err)
	}
	return t.InputSchema, nil
}

// audience is to whom cards are brought in private.
type audience struct {
	store.Users
	calls  store.Calls
	policy *policy.Engine
}

// Approvers implements [bots.Audience].
func (a audience) Approvers(ctx context.Context, call string) ([]store.User, error) {
	c, err := a.calls.GetCall(ctx, call)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", call, err)
	}
	return a.policy.OtherApprovers(ctx, c)
}

// Sees implements [bots.Audience].
func (a audience) Sees(ctx context.Context, by store.Caller, c store.Call) bool {
	return a.policy.Sees(ctx, by, c)
}
