package discord

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/discord/incoming"
	"nize/bots/discord/invite"
	"nize/bots/discord/wire"
	"nize/store"
)

// tokenForm roughly matches a bot token: Discord itself decides if it is valid.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{20,200}$`)

// checkTime limits the check of a new token, because the operator is waiting.
const checkTime = time.Minute

const portal = "at https://discord.com/developers/applications, your app, page Bot"

// Check implements [bots.Bot]. It verifies that the token is a bot's and that the bot is in
// the guild, and reads the app's id and intents.
func (b *Bot) Check(ctx context.Context, c bots.Connection) (bots.Checked, error) {
	none := bots.Checked{}
	if len(c.Tokens) != 1 {
		return none, fmt.Errorf("%w tokens: one is needed, the bot token; got %d", store.ErrInvalid, len(c.Tokens))
	}
	token := c.Tokens[0]
	if !tokenForm.MatchString(token.Reveal()) {
		return none, fmt.Errorf("%w token: a bot token has three parts with dots between them; it is shown once when it is made with Reset Token, %s", store.ErrInvalid, portal)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	w := wire.New(b.o.wire(), token)
	var self discordgo.User
	if err := w.Do(ctx, wire.Request{Method: "GET", Path: "users/@me", Into: &self}); err != nil {
		return none, refusedToken(err)
	}
	if !self.Bot || !incoming.IDForm.MatchString(self.ID) {
		return none, fmt.Errorf("%w token: it is a person's, not a bot's; take the one %s", store.ErrInvalid, portal)
	}
	a, err := askApp(ctx, w)
	if err != nil {
		return none, refusedToken(err)
	}
	account := store.Bot{
		Surface: store.OnDiscord, Mode: modeOf(a), Enabled: true, Team: c.Team, User: self.ID, App: a.ID,
		Tokens: map[string]store.Secret{Token: token},
	}
	if !incoming.IDForm.MatchString(c.Team) {
		return none, fmt.Errorf("%w guild %q: give its id, as nizectl bots discord connect --guild ID; Discord copies it from the server's menu in developer mode", store.ErrInvalid, store.Clip(c.Team, 40))
	}
	var g discordgo.Guild
	err = w.Do(ctx, wire.Request{Method: "GET", Path: "guilds/" + c.Team, Into: &g})
	switch {
	case wire.Refused(err) && !wire.TokenGone(err):
		return none, fmt.Errorf("%w guild: the bot is not in %s; who manages that server lets it in at %s", store.ErrInvalid, c.Team, invite.URL(a.ID, c.Team))
	case err != nil:
		return none, refusedToken(err)
	}
	account.TeamName = g.Name
	checked := bots.Checked{Account: account}
	if account.Mode == Mentions {
		checked.Advice = append(checked.Advice, "Message Content Intent is off: nize answers mentions and direct messages, and can't follow a thread without them. Switch it on "+portal+".")
	}
	if a.Flags&flagMembers == 0 {
		checked.Advice = append(checked.Advice, "Server Members Intent is off: who leaves the server is noticed by the daily sweep, and not at once. Switch it on "+portal+".")
	}
	if a.BotPublic {
		checked.Advice = append(checked.Advice, "Public Bot is on: anybody can let the bot into their server, which nize leaves. Switch it off "+portal+".")
	}
	return checked, nil
}

// refusedToken explains Discord's error to the owner of the token.
func refusedToken(err error) error {
	after, limited := wire.LimitOf(err)
	switch {
	case wire.TokenGone(err):
		return fmt.Errorf("%w token: Discord does not take it; make a new one with Reset Token, %s", store.ErrInvalid, portal)
	case limited:
		return fmt.Errorf("asking Discord about the token: it has too much to do; try again in %s", store.SpanText(after))
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("asking Discord about the token: no answer in time; check the network and discord.api_url")
	}
	return fmt.Errorf("asking Discord about the token: %w; check the network and discord.api_url", store.NetworkError(err))
}
