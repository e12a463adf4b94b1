package control

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"nize/bots"
	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
)

// claimTime is how long an admin code is valid.
const claimTime = 10 * time.Minute

// Bots implements the operations on nize's accounts on chat platforms.
type Bots struct {
	Store interface {
		store.Bots
		GetSweep(ctx context.Context, at store.Surface) (store.Sweep, error)
	}
	Bots *bots.Registry
	// PublicURL returns the address at which people and platforms reach nized, "" if it is
	// unknown.
	PublicURL func() string
	// Put stores a setting.
	Put func(ctx context.Context, by store.Caller, req api.PutSettingRequest) (api.Setting, error)
	Now func() time.Time
	Log *slog.Logger
}

// Mount registers the operations.
func (b *Bots) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListBots, b.List)
	mux.Handle(m, api.RemoveBot, b.Remove)
	mux.Handle(m, api.ConnectBot, b.Connect)
	mux.Handle(m, api.ClaimBot, b.Claim)
	mux.Handle(m, api.StartBot, b.Switch(true))
	mux.Handle(m, api.StopBot, b.Switch(false))
	mux.Handle(m, api.SweepBot, b.Sweep)
	mux.Handle(m, api.SetBotAccess, b.SetAccess)
}

// Start starts every enabled bot with its account.
func (b *Bots) Start(ctx context.Context) {
	for _, bot := range b.Bots.All() {
		b.StartAgain(ctx, bot)
	}
}

// StartAgain restarts an enabled bot with its account.
func (b *Bots) StartAgain(ctx context.Context, bot bots.Bot) {
	account, err := b.Store.GetBot(ctx, bot.Surface())
	switch {
	case errors.Is(err, store.ErrNotFound), ctx.Err() != nil: // don't start a bot while the daemon stops
	case err != nil:
		b.Log.Error("the bot stays off", "bot", bot.Surface(), "err", err)
	case account.Enabled:
		bot.Use(&account)
	}
}

func viewOfBot(account store.Bot, h bots.Health) api.BotView {
	return api.BotView{Bot: account, State: h.State, Reason: h.Reason, Error: h.Error, Since: h.Since, Links: h.Links, Events: h.Events, LastEvent: h.LastSeen}
}

// List returns the accounts and their state.
func (b *Bots) List(ctx context.Context, _ store.Caller, _ api.Empty) (none api.List[api.BotView], err error) {
	var list []api.BotView
	for _, bot := range b.Bots.All() {
		account, err := b.Store.GetBot(ctx, bot.Surface())
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return none, fmt.Errorf("reading the bot on %s: %w", bot.Surface(), err)
		}
		v := viewOfBot(account, bot.Health())
		if v.Sweep, err = b.lastSweep(ctx, account.Surface); err != nil {
			return none, err
		}
		list = append(list, v)
	}
	return api.Items(list), nil
}

// lastSweep returns the last search for people who left a platform, nil before the first
// one.
func (b *Bots) lastSweep(ctx context.Context, at store.Surface) (*store.Sweep, error) {
	s, err := b.Store.GetSweep(ctx, at)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the last sweep of %s: %w", at, err)
	}
	return &s, nil
}

// Connect checks the tokens, seals them, starts the bot and creates the code for its first
// admin.
func (b *Bots) Connect(ctx context.Context, by store.Caller, req api.ConnectBotRequest) (none api.ConnectedBot, err error) {
	bot, err := b.Bots.Find(req.Name)
	if err != nil {
		return none, err
	}
	tokens := make([]store.Secret, len(req.Tokens))
	for i, t := range req.Tokens {
		tokens[i] = t.Secret
	}
	checked, err := bot.Check(ctx, bots.Connection{Tokens: tokens, Team: req.Team})
	switch {
	case errors.Is(err, store.ErrInvalid):
		return none, err
	case err != nil: // the platform did not respond, or the response wasn't the platform's
		return none, store.Mark(err, api.ErrUnavailable)
	}
	account := checked.Account
	account.Connected = b.Now()
	if err := b.Store.PutBot(ctx, by, account); err != nil {
		return none, fmt.Errorf("storing the bot: %w", err)
	}
	bot.Use(&account)
	claim, err := b.newClaim(ctx, by, account.Surface)
	if err != nil {
		return none, err
	}
	made := api.ConnectedBot{BotView: viewOfBot(account, bot.Health()), Claim: claim, Advice: checked.Advice}
	if receiver, ok := bot.(bots.Receiver); ok {
		for _, path := range receiver.Endpoints(account) {
			made.Endpoints = append(made.Endpoints, strings.TrimSuffix(b.PublicURL(), "/")+path)
		}
	}
	return made, nil
}

func (b *Bots) newClaim(ctx context.Context, by store.Caller, at store.Surface) (api.Claim, error) {
	code := rand.Text()[:13] // 65 random bits
	claim := api.Claim{Code: code, Send: "/nize claim " + code, Expires: b.Now().Add(claimTime)}
	if err := b.Store.PutClaim(ctx, by, at, bots.HashClaim(code), claim.Expires); err != nil {
		return claim, fmt.Errorf("storing a claim code: %w", err)
	}
	return claim, nil
}

// find returns a bot and its account.
func (b *Bots) find(ctx context.Context, name string) (bots.Bot, store.Bot, error) {
	bot, err := b.Bots.Find(name)
	if err != nil {
		return nil, store.Bot{}, err
	}
	account, err := b.Account(ctx, bot.Surface())
	return bot, account, err
}

// Account returns a bot's account.
func (b *Bots) Account(ctx context.Context, at store.Surface) (store.Bot, error) {
	account, err := b.Store.GetBot(ctx, at)
	if errors.Is(err, store.ErrNotFound) {
		return account, fmt.Errorf("the bot on %s %w: nizectl bots %s connect", at, store.ErrNotFound, at)
	}
	if err != nil {
		return account, fmt.Errorf("reading the bot on %s: %w", at, err)
	}
	return account, nil
}

// Claim creates a new admin code.
func (b *Bots) Claim(ctx context.Context, by store.Caller, req api.BotRequest) (none api.Claim, err error) {
	_, account, err := b.find(ctx, req.Name)
	if err != nil {
		return none, err
	}
	return b.newClaim(ctx, by, account.Surface)
}

// Switch returns the operation that starts or stops a bot.
func (b *Bots) Switch(on bool) func(context.Context, store.Caller, api.BotRequest) (api.BotView, error) {
	return func(ctx context.Context, by store.Caller, req api.BotRequest) (none api.BotView, err error) {
		bot, account, err := b.find(ctx, req.Name)
		if err != nil {
			return none, err
		}
		if account.Enabled != on {
			account.Enabled = on
			if err := b.Store.PutBot(ctx, by, account); err != nil {
				return none, fmt.Errorf("storing the bot: %w", err)
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

// Sweep starts a sweep and returns without waiting for its end: it looks people up on the
// platform one by one, slowly.
func (b *Bots) Sweep(ctx context.Context, _ store.Caller, req api.BotRequest) (v api.BotView, err error) {
	bot, account, err := b.find(ctx, req.Name)
	if err != nil {
		return v, err
	}
	if !account.Enabled {
		return v, store.Mark(fmt.Errorf("the bot on %s is stopped: nizectl bots %s start", req.Name, req.Name), store.ErrRefused)
	}
	sweeper, ok := bot.(bots.Sweeper)
	if !ok {
		return v, store.Mark(fmt.Errorf("the bot on %s does not look for people who left", req.Name), store.ErrRefused)
	}
	if err := sweeper.Sweep(); err != nil {
		return v, err
	}
	v = viewOfBot(account, bot.Health())
	v.Sweep, err = b.lastSweep(ctx, account.Surface)
	return v, err
}

// Remove stops a bot and deletes its tokens.
func (b *Bots) Remove(ctx context.Context, by store.Caller, req api.BotRequest) (none api.Empty, err error) {
	bot, account, err := b.find(ctx, req.Name)
	if err != nil {
		return none, err
	}
	if err := b.Store.DeleteBot(ctx, by, account.Surface); err != nil {
		return none, fmt.Errorf("removing the bot: %w", err)
	}
	bot.Use(nil)
	return none, nil
}

// SetAccess stores who may talk to a bot in the setting NAME.access. A role is stored by
// id, since its name may later belong to another role.
func (b *Bots) SetAccess(ctx context.Context, by store.Caller, req api.BotAccessRequest) (none api.BotAccess, err error) {
	bot, err := b.Bots.Find(req.Name)
	if err != nil {
		return none, err
	}
	key := req.Name + ".access"
	if _, ok := store.FindKey(key); ok != nil {
		return none, store.Mark(fmt.Errorf("who may talk to nize on %s is the setting bots.access", bot.Title()), store.ErrRefused)
	}
	set := api.BotAccess{Access: req.Who}
	if req.Role != "" {
		directory, ok := bot.(bots.GroupDirectory)
		if !ok || req.Who != "" {
			return none, fmt.Errorf("%w access: give a role, or who, and not both", store.ErrInvalid)
		}
		source, name, err := directory.UserGroup(ctx, req.Role)
		if err != nil {
			if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) {
				return none, err
			}
			return none, store.Mark(err, api.ErrUnavailable)
		}
		set = api.BotAccess{Access: "role:" + source[strings.LastIndexByte(source, ':')+1:], Role: name}
	}
	_, err = b.Put(ctx, by, api.PutSettingRequest{Key: key, Value: set.Access})
	return set, err
}
