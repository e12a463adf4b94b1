package slack

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"nize/bots"
	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// TestCheck: wrong tokens and a wrongly configured app are detected before anything is
// stored.
func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fake   slacktest.Options
		off    bool // Socket Mode
		bot    string
		second string // "" means the right one
		want   string
	}{
		"right":               {},
		"right, over HTTP":    {second: slacktest.SigningSecret},
		"another bot token":   {bot: "xoxb-other", want: "invalid_auth"},
		"an app token as bot": {bot: "xapp-1-A0NIZE-fake", want: "neither begins with xoxb-"},
		"another app token":   {second: "xapp-1-A0NIZE-other", want: "invalid_auth"},
		"no connections":      {fake: slacktest.Options{NoConnections: true}, want: "connections:write"},
		"scopes":              {fake: slacktest.Options{Scopes: []string{"chat:write", "users:read"}}, want: "lacks the scopes app_mentions:read"},
		"Socket Mode off":     {off: true, want: "(link_disabled): switch Socket Mode on"},
		"two apps":            {fake: slacktest.Options{ForeignApp: true}, want: "they are of two apps, the bot token of A0NIZE and the app-level token of A0FOREIGN"},
		"organization":        {fake: slacktest.Options{Organization: true}, want: "nize serves one workspace"},
		"no signing secret":   {second: "hello", want: "neither an app-level token (xapp-…) nor a signing secret"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := startFake(t, c.fake)
			fake.SetSocketMode(!c.off)
			b := New(Options{Store: storeOf(databasetest.Open(t)), Config: store.Defaults{"slack.api_url": fake.APIURL()}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Commands: &bots.Commands{}, testOnlyWait: short})
			bot, second := fake.BotToken(), fake.AppToken()
			if c.bot != "" {
				bot = c.bot
			}
			if c.second != "" {
				second = c.second
			}
			_, err := b.check(t.Context(), []store.Secret{store.NewSecret(bot), store.NewSecret(second)})
			if c.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v, want %q", err, c.want)
			}
			if !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%v is not ErrInvalid", err)
			}
		})
	}
}
