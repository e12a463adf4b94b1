package account

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/queue"
	"nize/store"
)

// Unknown is what somebody reads whose command is none; near is what they may have
// meant.
func Unknown(w phrases.Catalogue, near string) string {
	if near != "" {
		return w.Say(phrases.DidYouMean, near)
	}
	return w.Say(phrases.UnknownCommand)
}

// FindClaim finds the one command that somebody may give whom nize's own rules
// keep out: a code is the operator's word, and who has it becomes an admin.
func FindClaim(list *bots.Commands, by store.Caller, barred bool, line string) (cmd bots.Command, words string, ok bool) {
	if !barred {
		return cmd, "", false
	}
	cmd, words, _, ok = list.Find(by, line, true)
	return cmd, words, ok && cmd.Name == "claim"
}

// formTime is how long a form may take to be made: platforms open a dialog within
// three seconds or not at all.
const formTime = 1500 * time.Millisecond

// MakeForm asks a command what its dialog has; nil where it has none, or not in
// time. It is asked in a goroutine that run begins, which may end later.
func MakeForm(ctx context.Context, cmd bots.Command, asked bots.Asked, log *slog.Logger, run func(func())) *bots.Form {
	made := make(chan *bots.Form, 1) // so that a late one leaves
	ctx, cancel := context.WithTimeout(ctx, formTime)
	defer cancel()
	run(func() {
		defer close(made)
		err := queue.Guard(func() error {
			form, err := cmd.Form.Form(ctx, asked)
			made <- form
			return err
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			log.Warn("making a dialog", "command", cmd.Name, "err", err)
		}
	})
	select {
	case form := <-made:
		return form
	case <-ctx.Done():
		return nil
	}
}

// Filled is a command that does what its dialog, sent in with these values, asks
// for.
func Filled(cmd bots.Command, values map[string][]string) bots.Command {
	filler := cmd.Form
	cmd.Run = func(ctx context.Context, a bots.Asked) (bots.Answer, error) { return filler.Fill(ctx, a, values) }
	cmd.Form, cmd.Secret = nil, nil
	return cmd
}

// Final makes an error one that ends the work on an item, since a part of it was
// done that must not be done again; lasting are those that end it anyhow.
func Final(err error, lasting func(error) bool) error {
	if err == nil || lasting(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return store.Mark(err, store.ErrRefused)
}
