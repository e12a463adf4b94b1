package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/slack/manifest"
	"nize/store"
)

// secretForm is what a signing secret looks like.
var secretForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// checkTime bounds trying tokens out: somebody waits for it.
const checkTime = time.Minute

// Check tries two tokens out and returns the account that they make: which is
// which, who the bot is, what it may do, and that Socket Mode is on. With a
// signing secret in place of the app-level token it is an account in HTTP mode.
// Errors say what to do; they wrap ErrInvalid where the tokens are wrong, and
// nothing where Slack could not be asked.
func (b *Bot) Check(ctx context.Context, bot, second store.Secret) (store.Bot, error) {
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
	o, org := b.o, &orgWide{next: b.o.Transport}
	if org.next == nil {
		org.next = &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment}
	}
	o.Transport = org
	w := newWire(&o, bot, second)
	var who *slackgo.AuthTestResponse
	err := w.call(ctx, func(ctx context.Context) (err error) {
		who, err = w.api.AuthTestContext(ctx)
		return err
	})
	if err != nil {
		return account, refusedToken("the bot token (xoxb-…)", err)
	}
	if org.said || strings.HasPrefix(who.TeamID, "E") {
		return account, fmt.Errorf("%w bot token: the app is installed for a whole organization, and nize serves one workspace; install it in that one and take its token", store.ErrInvalid)
	}
	if who.BotID == "" || !idForm.MatchString(who.UserID) || !idForm.MatchString(who.TeamID) {
		return account, fmt.Errorf("%w bot token: it is a person's, not a bot's; take the Bot User OAuth Token", store.ErrInvalid)
	}
	account.Team, account.TeamName, account.User = who.TeamID, who.Team, who.UserID
	if lacking := lackingScopes(who.Header.Get("X-Oauth-Scopes")); len(lacking) > 0 {
		return account, fmt.Errorf("%w bot token: it lacks the scopes %s; compare the app with nizectl bots slack manifest, then install it again", store.ErrInvalid, strings.Join(lacking, ", "))
	}
	if account.Mode == HTTPMode {
		return account, nil
	}
	if l := b.current(); l != nil && b.Health().State == Connected && l.account.Tokens[AppToken].Reveal() == second.Reveal() {
		return account, nil // the link that stands proves it
	}
	app, err := w.probe(ctx)
	if err != nil {
		return account, refusedToken("the app-level token (xapp-…)", err)
	}
	if err := w.sameApp(ctx, who, app); err != nil {
		return account, err
	}
	return account, nil
}

// refusedToken says what Slack's answer means for who holds the tokens.
func refusedToken(which string, err error) error {
	c := reasonOf(err)
	cure, known := map[string]string{
		"invalid_auth":           "copy it again",
		"not_authed":             "copy it again",
		"account_inactive":       "install the app into its workspace again",
		"token_revoked":          "install the app again and copy the new one",
		"token_expired":          "switch token rotation off in the app's settings and copy the new one",
		"not_allowed_token_type": "it is of another kind",
		"missing_scope":          "an app-level token needs the scope connections:write",
		"forbidden":              "switch Socket Mode on in the app's settings",
		"link_disabled":          "switch Socket Mode on in the app's settings",
		"socket_mode_disabled":   "switch Socket Mode on in the app's settings",
		"too_many_websockets":    "the app has as many links as Slack allows; stop what else uses it",
	}[c]
	if !known {
		cure, known = tokenGone[c]
	}
	after, limited := limitOf(err)
	switch {
	case limited:
		return fmt.Errorf("asking Slack about %s: it has too much to do; try again in %s", which, after)
	case faulty[c]:
		return fmt.Errorf("asking Slack about %s: a fault on its side (%s); try again later", which, c)
	case known:
		return fmt.Errorf("%w: Slack refuses %s (%s): %s", store.ErrInvalid, which, c, cure)
	case c != "":
		return fmt.Errorf("%w: Slack refuses %s: %s", store.ErrInvalid, which, c)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("asking Slack about %s: no answer in time; check the network and slack.api_url", which)
	}
	return fmt.Errorf("asking Slack about %s; check the network and slack.api_url: %w", which, err)
}

// lackingScopes compares what a token allows with the manifest. Slack tells it
// in a header; without one nothing is known to lack.
func lackingScopes(header string) []string {
	if header == "" {
		return nil
	}
	var have, lacking []string
	for scope := range strings.SplitSeq(header, ",") {
		have = append(have, strings.TrimSpace(scope))
	}
	for _, scope := range manifest.Scopes() {
		if !slices.Contains(have, scope) {
			lacking = append(lacking, scope)
		}
	}
	return lacking
}
