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

// Unknown returns the reply to an unknown command; near is the command that the person may
// have meant.
func Unknown(w phrases.Catalogue, near string) string {
	if near != "" {
		return w.Say(phrases.DidYouMean, near)
	}
	return w.Say(phrases.UnknownCommand)
}

// FindClaim finds a claim, the only command that runs even if nize's own rules exclude its
// author: a claim code comes from the operator and makes its user an admin.
func FindClaim(list *bots.Commands, by store.Caller, barred bool, line string) (cmd bots.Command, words string, ok bool) {
	if !barred {
		return cmd, "", false
	}
	cmd, words, _, ok = list.Find(by, line, true)
	return cmd, words, ok && cmd.Name == "claim"
}

// formTime is how long making a form may take: platforms only open a dialog within three
// seconds.
const formTime = 1500 * time.Millisecond

// MakeForm returns a command's dialog, or nil if it has none or takes too long. It calls
// the command in a goroutine started by run, which may outlive it.
func MakeForm(ctx context.Context, cmd bots.Command, asked bots.Asked, log *slog.Logger, run func(func())) *bots.Form {
	made := make(chan *bots.Form, 1) // one slot, so that a late result doesn't block its sender
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

// Filled returns the command that applies the values of its submitted dialog.
func Filled(cmd bots.Command, values map[string][]string) bots.Command {
	filler := cmd.Form
	cmd.Run = func(ctx context.Context, a bots.Asked) (bots.Answer, error) { return filler.Fill(ctx, a, values) }
	cmd.Form, cmd.Secret = nil, nil
	return cmd
}

// Final marks an error so that it ends the work on an item, because a part was done that
// must not be repeated; lasting reports errors that end it anyway.
func Final(err error, lasting func(error) bool) error {
	if err == nil || lasting(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return store.Mark(err, store.ErrRefused)
}
