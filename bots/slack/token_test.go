package slack

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/queue"
	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// fares waits until the bot's health has that state and error.
func fares(t *testing.T, b *Bot, state, why string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		h := b.Health()
		if h.State == state && strings.Contains(h.Error, why) {
			return
		}
		if queue.Sleep(ctx, time.Millisecond) != nil {
			t.Fatalf("the bot is %s: %q, want %s: %q", h.State, h.Error, state, why)
		}
	}
}

// A link depends on the app-level token only. The bot still notices that the app was
// uninstalled, and that it is installed again.
func TestUninstalled(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b := runBotWith(t, fake, Options{}, newHeard(), fake.AppToken())
	fares(t, b, bots.Connected, "")
	fake.Uninstall()
	fares(t, b, bots.Refused, "the app was uninstalled")
	if links := fake.Stats().Links; links != 1 {
		t.Errorf("%d links: the app-level token goes on", links)
	}
	fake.RevokeBot("")
	if err := b.Current().wire.TestToken(t.Context()); err != nil {
		t.Fatal(err)
	}
	fares(t, b, bots.Connected, "")
}

// A request refused because of the token reveals that too, without an event.
func TestRevokedWhileRunning(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true, Events: []string{"app_mention", "message.channels"}})
	b := runBotWith(t, fake, Options{}, newHeard(), fake.AppToken())
	fares(t, b, bots.Connected, "")
	for _, code := range []string{"token_revoked", "accesslimited", "team_access_not_granted", "org_login_required"} {
		fake.RevokeBot(code)
		if _, err := fake.Mention(slacktest.Ann, slacktest.General, "hello"); err != nil {
			t.Fatal(err)
		}
		fares(t, b, bots.Refused, code+": ")
		if _, err := b.check(t.Context(), []store.Secret{store.NewSecret(fake.BotToken()), store.NewSecret(fake.AppToken())}); err == nil || !strings.Contains(err.Error(), "("+code+"): ") {
			t.Errorf("who connects is told %v", err)
		}
		fake.RevokeBot("")
		if err := b.Current().wire.TestToken(t.Context()); err != nil {
			t.Fatal(err)
		}
		fares(t, b, bots.Connected, "")
	}
}

// Socket Mode is disabled while the bot runs.
func TestLinkDisabled(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b := runBotWith(t, fake, Options{}, newHeard(), fake.AppToken())
	fares(t, b, bots.Connected, "")
	fake.SetSocketMode(false)
	fares(t, b, bots.Refused, "Socket Mode is switched off")
	fake.SetSocketMode(true)
	used := b.Current().account
	b.Use(&used) // nizectl bots slack start
	fares(t, b, bots.Connected, "")
}

// From the moment that a bot is switched off, it is neither reported as connected nor
// accepts requests, until it is on again.
func TestSwitched(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	db := databasetest.Open(t)
	b := runBotWith(t, fake, Options{Store: storeOf(db)}, newHeard(), fake.AppToken())
	fares(t, b, bots.Connected, "")
	was := b.Current()
	used := was.account
	b.Use(nil)
	if h := b.Health(); h.State != bots.Stopped || !errors.Is(b.Sweep(), account.ErrOff) {
		t.Errorf("switched off it is %s, and sweeps", h.State)
	}
	b.Use(&used)
	if h := b.Health(); b.Current() == was || h.State == bots.Connected && b.Current() == nil {
		t.Errorf("switched on again it is %s before it is linked", h.State)
	}
	fares(t, b, bots.Connected, "")
	if err := b.Sweep(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if s, err := db.GetSweep(ctx, store.OnSlack); err == nil && !s.Ended.IsZero() {
			return
		}
		if queue.Sleep(ctx, time.Millisecond) != nil {
			t.Fatal("the sweep that was asked for does not come")
		}
	}
}

// In HTTP mode the operator is told if nothing arrives, or nothing that is signed with this
// secret.
func TestHTTPHealth(t *testing.T) {
	t.Parallel()
	var b *Bot
	front := httpServer(t, func(w http.ResponseWriter, r *http.Request) { b.Handler().ServeHTTP(w, r) })
	fake := startFake(t, slacktest.Options{Unlimited: true, Endpoint: front})
	b = newHTTPBot(t, fake, Options{Store: storeOf(databasetest.Open(t))}, newHeard())
	fares(t, b, bots.Connected, "Slack has sent nothing")
	if err := fake.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h := b.Health(); h.Error != "" {
		t.Errorf("after a request that was good: %q", h.Error)
	}
	for want, header := range map[string]http.Header{
		"":                           {"X-Slack-Signature": {"junk"}},
		"not of this signing secret": {"X-Slack-Signature": {"v0=" + strings.Repeat("0", 64)}},
		"its time is 10m":            {"X-Slack-Request-Timestamp": {strconv.FormatInt(time.Now().Add(-10*time.Minute).Unix(), 10)}},
	} {
		b.Current().setHealth(func(h *bots.Health) { h.Error = "" })
		if got, err := fake.PostSigned(t.Context(), "/slack/events", header, []byte(`{}`)); err != nil || got.Status != http.StatusUnauthorized {
			t.Errorf("%v: %d, %v", header, got.Status, err)
		}
		if h := b.Health(); !strings.Contains(h.Error, want) || want == "" && h.Error != "" {
			t.Errorf("%v: the operator is told %q, want %q", header, h.Error, want)
		}
	}
	fake.RevokeBot("account_inactive")
	if err := b.Current().wire.TestToken(t.Context()); err != nil {
		t.Fatal(err)
	}
	fares(t, b, bots.Refused, "account_inactive")
}
