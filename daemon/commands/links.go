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
	"nize/store"
)

// confirmed stands behind the code once its owner was shown.
const confirmed = "confirm"

func isLinkWords(words string) bool {
	code, _, _ := strings.Cut(words, " "+confirmed)
	_, err := store.ReadCode(code)
	return words == "" || err == nil
}

// maybeLink takes whatever follows a code: it must not be said to everybody as
// a question.
func maybeLink(words string) bool {
	first, _, _ := strings.Cut(words, " ")
	_, err := store.ReadCode(first)
	return isLinkWords(words) || err == nil
}

// sayLink gives a code for another place, or joins with the owner of one after
// showing who that is.
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
	if a.Open { // whoever read it could use it before
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
