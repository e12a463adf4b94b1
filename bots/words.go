package bots

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"nize/bots/phrases"
	"nize/store"
)

// Core is what the commands of all chats depend on.
type Core struct {
	Threads store.Threads
	Claims  store.Bots
	Handler Handler
	Calls   Calls
	Cards   ReadCards
	// Claimable reports whether a surface has no admin yet; nil means yes.
	Claimable func(store.Surface) bool
}

// CoreCommands returns the commands that control a conversation and its calls. The
// composition root adds those that need other packages.
func CoreCommands(c *Commands, core Core) []Command {
	return []Command{
		{Name: "ask", Args: "QUESTION", About: phrases.AboutAsk, Group: phrases.HelpTalk, Fits: func(string) bool { return true }, Run: ask},
		{Name: "help", Args: "[WORD]", About: phrases.AboutHelp, Group: phrases.HelpTalk,
			Fits: func(words string) bool { return c.Explain(Asked{By: store.Caller{Role: store.Admin}}, words) != "" },
			Run: func(_ context.Context, a Asked) (Answer, error) {
				if text := c.Explain(a, a.Words); text != "" {
					return Said(text), nil
				}
				return Said(c.Help(a)), nil
			}},
		{Name: "stop", About: phrases.AboutStop, Group: phrases.HelpTalk, Fits: isStop, Run: core.stop},
		{Name: "mute", About: phrases.AboutMute, Group: phrases.HelpTalk, Here: InThread, Run: core.mute(true)},
		{Name: "unmute", About: phrases.AboutUnmute, Group: phrases.HelpTalk, Here: InThread, Run: core.mute(false)},
		{Name: "approve", Args: "ID", About: phrases.AboutApprove, Group: phrases.HelpTools, Fits: isCallID, Most: 1, Decides: true, Run: core.decide(store.Approve)},
		{Name: "deny", Args: "ID", About: phrases.AboutDeny, Group: phrases.HelpTools, Fits: isCallID, Most: 1, Decides: true, Run: core.decide(store.Deny)},
		{Name: "claim", Args: "CODE", About: phrases.AboutClaim, Fits: isClaim, Most: 1, Here: core.claimable, Run: core.claim},
	}
}

// isStop accepts no arguments that say where or what to stop: those are for the model.
func isStop(words string) bool {
	return slices.Contains([]string{"now", "please", "it", "that", "this"}, strings.ToLower(strings.Trim(words, " .!")))
}

func isCallID(words string) bool { return store.ValidID(callID(words)) }

// callID returns the id of a call as typed or copied.
func callID(words string) string { return strings.ToUpper(strings.Trim(words, "`.")) }

// claimForm matches a claim code from the command line.
var claimForm = regexp.MustCompile(`^[A-Za-z2-7]{13}( |$)`)

// isClaim accepts anything that may be a code, with any words after it: a code must not be
// posted as a question that others read.
func isClaim(words string) bool {
	return !strings.ContainsAny(words, " \n") || claimForm.MatchString(words)
}

// claimable reports whether the requester can claim anything.
func (c Core) claimable(a Asked) bool {
	return !a.By.IsAdmin() && (c.Claimable == nil || c.Claimable(a.At.Surface))
}

// ask submits the rest of the line as a message, whatever its first word is.
func ask(ctx context.Context, a Asked) (Answer, error) {
	if a.Words == "" || a.Say == nil {
		return Said(phrases.For(a.Locale).Say(phrases.WhatToDo)), nil
	}
	return Answer{}, a.Say(ctx, a.Words)
}

func (c Core) stop(ctx context.Context, a Asked) (Answer, error) {
	words := phrases.For(a.Locale)
	threads := []string{a.Thread}
	if a.Thread == "" {
		var err error
		if threads, err = c.begun(ctx, a); err != nil {
			return Answer{}, err
		}
	}
	for _, id := range threads {
		if err := c.Handler.Stop(ctx, a.By, id); err != nil {
			return Answer{}, err
		}
	}
	if len(threads) == 0 {
		return Said(words.Say(phrases.NothingRuns)), nil
	}
	return Said(words.Say(phrases.Stopping)), nil
}

// begun returns the running conversations that the requester began in this channel. Outside
// threads, which is where /nize always runs, these are the only ones a command can refer
// to.
func (c Core) begun(ctx context.Context, a Asked) ([]string, error) {
	open, err := c.Threads.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for what goes on: %w", err)
	}
	var ids []string
	for _, th := range open {
		if th.User == a.By.User && th.Address.Place() == a.At.Place() {
			ids = append(ids, th.ID)
		}
	}
	return ids, nil
}

func (c Core) mute(on bool) func(context.Context, Asked) (Answer, error) {
	return func(ctx context.Context, a Asked) (Answer, error) {
		words := phrases.For(a.Locale)
		if a.Thread == "" {
			return Said(words.Say(phrases.NothingHere)), nil
		}
		_, err := c.Threads.EditThread(ctx, a.By, a.Thread, func(th *store.Thread) { th.Muted = on })
		if err != nil {
			return Answer{}, fmt.Errorf("changing the conversation: %w", err)
		}
		if on {
			return Said(words.Say(phrases.Muted)), nil
		}
		return Said(words.Say(phrases.Unmuted)), nil
	}
}

// decide acts like a button press on the call in its current state, for people who may
// decide and can read its card.
func (c Core) decide(verb store.Verb) func(context.Context, Asked) (Answer, error) {
	return func(ctx context.Context, a Asked) (Answer, error) {
		id := callID(a.Words)
		if id == "" {
			return Answer{}, store.Errorf("%w: write %s and the id of a call: it stands on the card, and approvals lists it", store.ErrInvalid, verb)
		}
		if !store.ValidID(id) {
			return Answer{}, store.Errorf("%w call id %q: it stands on the card", store.ErrInvalid, a.Words)
		}
		call, err := c.Calls.GetCall(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return Answer{}, store.Errorf("call %q %w", id, store.ErrNotFound)
		}
		if err != nil {
			return Answer{}, err
		}
		shown, err := c.Cards.Shown(ctx, a.By, call, a.At)
		if err != nil {
			return Answer{}, err
		}
		if !shown {
			return Said(phrases.For(a.Locale).Say(phrases.CardNotHere)), nil
		}
		card, err := c.Handler.Press(ctx, a.By, id, store.Decision{Verb: verb, Digest: call.Digest})
		if err != nil {
			return Answer{}, err
		}
		return Said(phrases.For(a.Locale).Say(phrases.CallIs, Escape(card.Tool), StateWords(card, a.Locale))), nil
	}
}

// HashClaim returns the stored form of a claim code.
func HashClaim(code string) [32]byte {
	return sha256.Sum256([]byte(strings.ToUpper(strings.TrimSpace(code))))
}

func (c Core) claim(ctx context.Context, a Asked) (Answer, error) {
	words := phrases.For(a.Locale)
	_, err := c.Claims.Claim(ctx, a.At.Surface, HashClaim(a.Words), store.Claimer{Identity: a.By.Identity, Name: a.By.Name})
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrExpired):
		return Said(words.Say(phrases.ClaimWrong, a.At.Surface)), nil
	case err != nil:
		return Answer{}, err
	}
	return Said(words.Say(phrases.Claimed)), nil
}
