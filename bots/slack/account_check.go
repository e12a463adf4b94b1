package slack

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/slack/incoming"
	"nize/bots/slack/wire"
	"nize/store"
)

// secretForm matches a signing secret.
var secretForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// checkTime limits the check of new tokens, because the operator is waiting.
const checkTime = time.Minute

// tellApart returns which of two tokens is the bot token.
func tellApart(tokens []store.Secret) (bot, second store.Secret, err error) {
	if len(tokens) != 2 {
		return bot, second, fmt.Errorf("%w tokens: two are needed, the bot token (xoxb-…) and the app-level token (xapp-…), one a line; got %d", store.ErrInvalid, len(tokens))
	}
	bot, second = tokens[0], tokens[1]
	if strings.HasPrefix(second.Reveal(), "xoxb-") {
		bot, second = second, bot
	}
	switch {
	case strings.HasPrefix(bot.Reveal(), "xoxe") || strings.HasPrefix(second.Reveal(), "xoxe"):
		return bot, second, fmt.Errorf("%w tokens: one is of an app whose tokens rotate (xoxe…), which Slack never switches off again; make a new app from `nizectl bots slack manifest`", store.ErrInvalid)
	case !strings.HasPrefix(bot.Reveal(), "xoxb-"):
		return bot, second, fmt.Errorf("%w tokens: neither begins with xoxb-; the bot token is on the app's page OAuth & Permissions", store.ErrInvalid)
	case strings.HasPrefix(second.Reveal(), "xoxb-"):
		return bot, second, fmt.Errorf("%w tokens: both are bot tokens; the other must be the app-level token (xapp-…) of the app's page Basic Information", store.ErrInvalid)
	case strings.HasPrefix(second.Reveal(), "xox"):
		return bot, second, fmt.Errorf("%w tokens: the other is neither an app-level token (xapp-…) nor a signing secret", store.ErrInvalid)
	}
	return bot, second, nil
}

// Check implements [bots.Bot]: see [Bot.check].
func (b *Bot) Check(ctx context.Context, c bots.Connection) (bots.Checked, error) {
	account, err := b.check(ctx, c.Tokens)
	return bots.Checked{Account: account}, err
}

// check determines the bot's identity and scopes, and that Socket Mode is enabled. With a
// signing secret instead of the app-level token, the account uses HTTP mode.
func (b *Bot) check(ctx context.Context, tokens []store.Secret) (store.Bot, error) {
	bot, second, err := tellApart(tokens)
	if err != nil {
		return store.Bot{}, err
	}
	account := store.Bot{
		Surface: store.OnSlack, Mode: SocketMode, Enabled: true,
		Tokens: map[string]store.Secret{BotToken: bot, AppToken: second},
	}
	if !strings.HasPrefix(second.Reveal(), "xapp-") {
		if !secretForm.MatchString(second.Reveal()) {
			return account, fmt.Errorf("%w tokens: the other is neither an app-level token (xapp-…) nor a signing secret, which has 32 characters of 0-9 and a-f; both are on the app's page Basic Information", store.ErrInvalid)
		}
		account.Mode = HTTPMode
		account.Tokens = map[string]store.Secret{BotToken: bot, SigningSecret: second}
		second = store.Secret{}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	w, who, org, err := wire.Identify(ctx, b.o.wire(), bot, second)
	if err != nil {
		return account, wire.RefusedToken("the bot token (xoxb-…)", err)
	}
	if org || strings.HasPrefix(who.TeamID, "E") {
		return account, fmt.Errorf("%w bot token: the app is installed for a whole organization, and nize serves one workspace; install it in that one and take its token", store.ErrInvalid)
	}
	if who.BotID == "" || !incoming.IDForm.MatchString(who.UserID) || !incoming.IDForm.MatchString(who.TeamID) {
		return account, fmt.Errorf("%w bot token: it is a person's, not a bot's; take the Bot User OAuth Token", store.ErrInvalid)
	}
	account.Team, account.TeamName, account.User = who.TeamID, who.Team, who.UserID
	if lacking := wire.LackingScopes(who.Header.Get("X-Oauth-Scopes")); len(lacking) > 0 {
		return account, fmt.Errorf("%w bot token: it lacks the scopes %s; compare the app with nizectl bots slack manifest, then install it again", store.ErrInvalid, strings.Join(lacking, ", "))
	}
	if account.Mode == HTTPMode {
		return account, nil
	}
	if l := b.Current(); l != nil && b.Health().State == bots.Connected && l.account.Tokens[AppToken].Reveal() == second.Reveal() {
		return account, nil // the open link proves that Socket Mode is enabled
	}
	app, err := w.Probe(ctx)
	if err != nil {
		return account, wire.RefusedToken("the app-level token (xapp-…)", err)
	}
	if err := w.SameApp(ctx, who, app); err != nil {
		return account, err
	}
	return account, nil
}
