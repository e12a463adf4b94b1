package daemon

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/slack"
	"nize/daemon/api"
	"nize/daemon/doctor"
	"nize/daemon/people"
	"nize/store"
)

// claimTime is how long a code that makes an admin is good.
const claimTime = 10 * time.Minute

// newSlack makes the bot on Slack; it gets its account when Run begins.
func (d *Daemon) newSlack(commands *bots.Commands) *slack.Bot {
	return slack.New(slack.Options{
		Store: d.db, Approver: d.gateway, Calls: d.db, Config: d.config, Commands: commands, Transport: d.transport,
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

// startBots gives every bot that is switched on its account.
func (d *Daemon) startBots(ctx context.Context) {
	for _, bot := range d.bots.All() {
		name := string(bot.Surface())
		account, err := d.db.GetBot(ctx, store.Surface(name))
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			d.log.Error("the bot stays off", "bot", name, "err", err)
		case account.Enabled:
			bot.Use(&account)
		}
	}
}

// bot finds the one that a request names.
func (d *Daemon) bot(r *http.Request) (string, bots.Bot, error) {
	name := r.PathValue("name")
	bot, err := d.bots.Find(name)
	return name, bot, err
}

func viewOfBot(account store.Bot, h bots.Health) api.BotView {
	return api.BotView{Bot: account, State: h.State, Error: h.Error, Since: h.Since, Links: h.Links, Events: h.Events, LastEvent: h.LastSeen}
}

func (d *Daemon) listBots(ctx context.Context, _ store.Caller, _ *http.Request) (any, error) {
	var list []api.BotView
	for _, bot := range d.bots.All() {
		name := string(bot.Surface())
		account, err := d.db.GetBot(ctx, store.Surface(name))
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the bot on %s: %w", name, err)
		}
		v := viewOfBot(account, bot.Health())
		if v.Sweep, err = d.lastSweep(ctx, account.Surface); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return items(list), nil
}

// botStates is what the daemon's status tells of them.
func (d *Daemon) botStates(ctx context.Context) []api.BotState {
	states := []api.BotState{}
	for _, bot := range d.bots.All() {
		if _, err := d.db.GetBot(ctx, bot.Surface()); err != nil {
			continue
		}
		h := bot.Health()
		states = append(states, api.BotState{Name: string(bot.Surface()), State: h.State, LastError: h.Error, Since: h.Since})
	}
	return states
}

// connectBot checks the tokens, seals them, starts the bot and makes the code
// for its first admin.
func (d *Daemon) connectBot(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name, bot, err := d.bot(r)
	if err != nil {
		return nil, err
	}
	req, err := decode[api.ConnectBot](r)
	if err != nil {
		return nil, err
	}
	tokens := make([]store.Secret, len(req.Tokens))
	for i, t := range req.Tokens {
		tokens[i] = t.Secret
	}
	account, err := bot.Check(ctx, tokens)
	switch {
	case errors.Is(err, store.ErrInvalid):
		return nil, err
	case err != nil: // the platform did not answer, or something else did
		return nil, fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	account.Connected = d.now()
	if err := d.db.PutBot(ctx, by, account); err != nil {
		return nil, fmt.Errorf("storing the bot: %w", err)
	}
	bot.Use(&account)
	claim, err := d.newClaim(ctx, by, name)
	if err != nil {
		return nil, err
	}
	made := api.ConnectedBot{BotView: viewOfBot(account, bot.Health()), Claim: claim}
	if receiver, ok := bot.(bots.Receiver); ok {
		for _, path := range receiver.Endpoints(account) {
			made.Endpoints = append(made.Endpoints, strings.TrimSuffix(d.layers.Get("public_url"), "/")+path)
		}
	}
	return made, nil
}

func (d *Daemon) newClaim(ctx context.Context, by store.Caller, name string) (api.Claim, error) {
	code := rand.Text()[:13] // 65 random bits
	claim := api.Claim{Code: code, Send: "/nize claim " + code, Expires: d.now().Add(claimTime)}
	if err := d.db.PutClaim(ctx, by, store.Surface(name), bots.HashClaim(code), claim.Expires); err != nil {
		return claim, fmt.Errorf("storing a claim code: %w", err)
	}
	return claim, nil
}

func (d *Daemon) claimBot(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name, _, err := d.bot(r)
	if err != nil {
		return nil, err
	}
	if _, err := d.account(ctx, name); err != nil {
		return nil, err
	}
	return d.newClaim(ctx, by, name)
}

// account reads a bot's account.
func (d *Daemon) account(ctx context.Context, name string) (store.Bot, error) {
	account, err := d.db.GetBot(ctx, store.Surface(name))
	if errors.Is(err, store.ErrNotFound) {
		return account, fmt.Errorf("the bot on %s %w: nizectl bots %s connect", name, store.ErrNotFound, name)
	}
	if err != nil {
		return account, fmt.Errorf("reading the bot on %s: %w", name, err)
	}
	return account, nil
}

func (d *Daemon) switchBot(on bool) answerFunc {
	return func(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
		name, bot, err := d.bot(r)
		if err != nil {
			return nil, err
		}
		account, err := d.account(ctx, name)
		if err != nil {
			return nil, err
		}
		if account.Enabled != on {
			account.Enabled = on
			if err := d.db.PutBot(ctx, by, account); err != nil {
				return nil, fmt.Errorf("storing the bot: %w", err)
			}
		}
		if on {
			bot.Use(&account)
		} else {
			bot.Use(nil)
		}
		return viewOfBot(account, bot.Health()), nil
	}
}

func (d *Daemon) removeBot(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	name, bot, err := d.bot(r)
	if err != nil {
		return nil, err
	}
	if _, err := d.account(ctx, name); err != nil {
		return nil, err
	}
	if err := d.db.DeleteBot(ctx, by, store.Surface(name)); err != nil {
		return nil, fmt.Errorf("removing the bot: %w", err)
	}
	bot.Use(nil)
	return nil, nil
}

// botPatience is how long doctor and a group's first check wait for a platform.
const botPatience = 10 * time.Second

// botFacts tries the bots' tokens out again, if it shall.
func (d *Daemon) botFacts(ctx context.Context, online bool) ([]doctor.Bot, error) {
	var out []doctor.Bot
	for _, bot := range d.bots.All() {
		name := string(bot.Surface())
		account, err := d.db.GetBot(ctx, store.Surface(name))
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the bot on %s: %w", name, err)
		}
		h := bot.Health()
		b := doctor.Bot{Name: name, State: h.State, Error: h.Error, Disabled: !account.Enabled}
		if online && account.Enabled {
			asking, cancel := context.WithTimeout(ctx, botPatience)
			_, err := bot.Check(asking, slices.Collect(maps.Values(account.Tokens)))
			cancel()
			b.Asked, b.Wrong = true, store.ErrText(err)
		}
		out = append(out, b)
	}
	return out, nil
}
