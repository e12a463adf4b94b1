package commands

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/daemon/signin"
	"nize/store"
)

// confirmed follows the code once its owner was shown.
const confirmed = "confirm"

func isLinkWords(words string) bool {
	code, _, _ := strings.Cut(words, " "+confirmed)
	_, err := store.ReadCode(code)
	return words == "" || err == nil
}

// maybeLink accepts any words after a code, which must not be treated as a question that
// others can read.
func maybeLink(words string) bool {
	first, _, _ := strings.Cut(words, " ")
	_, err := store.ReadCode(first)
	return isLinkWords(words) || err == nil
}

// sayLink returns a code for another place, or redeems one after showing its owner.
func (cmd *Commands) sayLink(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if a.Words == "" {
		code, _, err := cmd.Links.NewCode(ctx, a.By, a.By.User)
		if err != nil {
			return bots.Answer{}, fmt.Errorf("a code for you: %w", err)
		}
		minutes := strconv.Itoa(int(store.LinkLife / time.Minute))
		return bots.Said(w.Say(phrases.LinkCode, minutes, code.Reveal(), code.Reveal())), nil
	}
	if a.Open { // anyone who reads it could redeem it first
		return bots.Said(w.Say(phrases.LinkOpen)), nil
	}
	code, sure := strings.CutSuffix(a.Words, " "+confirmed)
	given := api.UseLinkRequest{Code: api.NewSecret(code)}
	if !sure {
		link, err := cmd.Links.Show(ctx, a.By, given)
		if err != nil {
			return bots.Answer{}, err
		}
		other := link.Other
		text := w.Say(phrases.LinkAsk, bots.Brief(other.Name, 80), bots.Brief(strings.Join(other.Identities, ", "), 300), bots.Brief(a.By.Name, 80))
		return bots.Answer{Text: text, Buttons: []bots.Button{{Label: phrases.ButtonJoin, Words: "link " + code + " " + confirmed}}}, nil
	}
	joined, err := cmd.Links.Join(ctx, a.By, given)
	if err != nil {
		return bots.Answer{}, err
	}
	return bots.Said(w.Say(phrases.LinkDone, bots.Brief(strings.Join(joined.User.Identities, ", "), 300))), nil
}

// denied follows the code of a sign-in that the person did not request.
const denied = "deny"

// maybeLogin accepts anything that looks like a code, which must not be treated as a
// question that others can read.
func maybeLogin(words string) bool {
	f := strings.Fields(words)
	if len(f) == 0 || len(f) > 2 || len(f) == 2 && f[1] != confirmed && f[1] != denied {
		return len(f) == 0
	}
	code := strings.ReplaceAll(f[0], "-", "")
	return len(code) == 8 && strings.ToUpper(code) == code
}

// sayLogin shows who requests the sign-in of a code, and returns the number for the page
// after the button is pressed.
func (cmd *Commands) sayLogin(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	f := strings.Fields(a.Words)
	if len(f) == 0 {
		return bots.Said(w.Say(phrases.LoginHow)), nil
	}
	if a.Open { // anyone who reads it could confirm it as themselves
		return bots.Said(w.Say(phrases.LoginOpen)), nil
	}
	given := api.LoginCodeRequest{Code: f[0]}
	switch {
	case len(f) > 1 && f[1] == confirmed:
		approved, err := cmd.SignIns.Approve(ctx, a.By, given)
		if err != nil {
			return bots.Answer{}, err
		}
		return bots.Said(w.Say(phrases.LoginNumber, approved.Number.Reveal())), nil
	case len(f) > 1:
		if _, err := cmd.SignIns.Deny(ctx, a.By, given); err != nil {
			return bots.Answer{}, err
		}
		return bots.Said(w.Say(phrases.LoginDenied)), nil
	}
	asked, err := cmd.SignIns.Show(ctx, a.By, given)
	if err != nil {
		return bots.Answer{}, err
	}
	lines := []string{w.Say(phrases.LoginBrowser)}
	if asked.Client != "" {
		vouched := w.Say(phrases.LoginUnknown)
		if asked.Host != "" {
			vouched = w.Say(phrases.LoginVouched, asked.Host)
		}
		lines = []string{w.Say(phrases.LoginClient, bots.Brief(asked.Client, 80), vouched), w.Say(phrases.LoginRedirect, bots.Brief(asked.Redirect, 100))}
		for _, one := range signin.ScopeWords(strings.Fields(asked.Scope)) {
			lines = append(lines, w.Say(phrases.LoginScope, bots.Brief(w.Text(one), 300)))
		}
	}
	lines = append(lines, w.Say(phrases.LoginFrom, asked.Address, bots.Brief(asked.Browser, 60), asked.Asked.In(zoneOf(a)).Format("15:04 MST")), w.Say(phrases.LoginAsk))
	return bots.Answer{Text: strings.Join(lines, "\n"), Buttons: []bots.Button{
		{Label: phrases.ButtonConfirm, Words: "login " + f[0] + " " + confirmed}, {Label: phrases.ButtonNotMe, Words: "login " + f[0] + " " + denied},
	}}, nil
}
