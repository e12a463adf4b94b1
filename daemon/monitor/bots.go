package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"nize/bots"
	"nize/daemon/api"
	"nize/daemon/doctor"
	"nize/store"
)

// botPatience is doctor's timeout for a platform.
const botPatience = 10 * time.Second

// Bots reports the state of the accounts on chat platforms.
type Bots struct {
	Store interface {
		GetBot(ctx context.Context, at store.Surface) (store.Bot, error)
	}
	Bots *bots.Registry
}

// each calls f with every bot that has an account.
func (b *Bots) each(ctx context.Context, f func(bots.Bot, store.Bot)) error {
	for _, bot := range b.Bots.All() {
		account, err := b.Store.GetBot(ctx, bot.Surface())
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the bot on %s: %w", bot.Surface(), err)
		}
		f(bot, account)
	}
	return nil
}

// States returns the states of all accounts, or only of enabled ones.
func (b *Bots) States(ctx context.Context, enabled bool) ([]api.BotState, error) {
	states := []api.BotState{}
	err := b.each(ctx, func(bot bots.Bot, account store.Bot) {
		if h := bot.Health(); !enabled || account.Enabled {
			states = append(states, api.BotState{Name: string(bot.Surface()), State: h.State, LastError: h.Error, Since: h.Since})
		}
	})
	return states, err
}

// Facts returns the facts for doctor; if online, it tests the accounts' tokens.
func (b *Bots) Facts(ctx context.Context, online bool) (facts []doctor.Bot, err error) {
	err = b.each(ctx, func(bot bots.Bot, account store.Bot) {
		h := bot.Health()
		f := doctor.Bot{Name: string(bot.Surface()), State: h.State, Error: h.Error, Disabled: !account.Enabled}
		if online && account.Enabled {
			asking, cancel := context.WithTimeout(ctx, botPatience)
			_, err := bot.Check(asking, bots.Connection{Tokens: slices.Collect(maps.Values(account.Tokens)), Team: account.Team})
			cancel()
			f.Asked, f.Wrong = true, store.ErrText(err)
		}
		facts = append(facts, f)
	})
	return facts, err
}
