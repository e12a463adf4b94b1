package commands

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

func (cmd *Commands) sayPrivacy(_ context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	kept := func(what string) string { return w.Span(cmd.Settings.Config.Get("", "retention."+what)) }
	return bots.Said(w.Say(phrases.PrivacyText, kept("conversations"), kept("output"), kept("audit"), kept("usage"))), nil
}

// isForget accepts the words after forget: none, or a conversation's id.
func isForget(words string) bool { return words == "" || store.ValidID(strings.ToUpper(words)) }

// sayForget asks for confirmation before it erases a thread's conversation, and erases the
// one that the button names.
func (cmd *Commands) sayForget(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if a.Words != "" {
		return cmd.forgetWords(ctx, a, strings.ToUpper(a.Words))
	}
	if a.Thread == "" {
		return bots.Said(w.Say(phrases.NothingHere)), nil
	}
	th, err := cmd.Conversations.Find(ctx, a.Thread)
	if err != nil {
		return bots.Answer{}, err
	}
	if th.User != a.By.User && !a.By.IsAdmin() {
		return bots.Said(w.Say(phrases.ForgetNotYours)), nil
	}
	return bots.Answer{Text: w.Say(phrases.ForgetAsk), Buttons: []bots.Button{{Label: phrases.ButtonForget, Words: "forget " + th.ID}}}, nil
}

func (cmd *Commands) forgetWords(ctx context.Context, a bots.Asked, id string) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	f, err := cmd.Conversations.Forget(ctx, a.By, api.ConversationRequest{ID: id})
	switch {
	case errors.Is(err, store.ErrConflict):
		return bots.Said(w.Say(phrases.ForgetBusy)), nil
	case errors.Is(err, store.ErrNotFound):
		return bots.Said(w.Say(phrases.ForgetNone)), nil
	case err != nil:
		return bots.Answer{}, err
	}
	return bots.Said(w.Say(phrases.ForgetDone, strconv.Itoa(f.Turns), strconv.Itoa(f.Calls))), nil
}
