package slack

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/slack/slacktest"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
	"nize/store/database/databasetest"
)

// outages are ways in which Slack, or a gateway in front of it, fails for a while.
var outages = map[string]slacktest.Fault{
	"status":            {Status: http.StatusBadGateway},
	"page":              {Body: "<html><body>Sign in</body></html>"},
	"half an answer":    {Body: `{"ok":true,"user":{"id":`},
	"its own fault":     {Error: "service_unavailable"},
	"timeout":           {Error: "request_timeout"},
	"being moved":       {Error: "team_added_to_org"},
	"moved over":        {Error: "org_login_required"},
	"limit, no time":    {Status: http.StatusTooManyRequests},
	"limit":             {RetryAfter: time.Second},
	"limit, no status":  {Error: "ratelimited"},
	"limit, other word": {Error: "rate_limited"},
}

// Acknowledged items are processed, however Slack's methods fail in the meantime.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, fault := range outages {
		t.Run(name, func(t *testing.T) {
			fake := startFake(t, slacktest.Options{Unlimited: true})
			h := newHeard()
			runBot(t, fake, Options{}, h)
			fault.Times = 12 // over a quarter of a minute with these pauses
			fake.Fail("users.info", fault)
			if _, err := fake.Mention(slacktest.Ann, slacktest.General, "are you there?"); err != nil {
				t.Fatal(err)
			}
			h.wait(t, 1)
		})
	}
}

// However long Slack asks to wait, nothing is sent earlier.
func TestLongLimit(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	var mu sync.Mutex
	var waited []time.Duration
	w := wire.New(wire.Options{
		URL: fake.APIURL(),
		Wait: func(_ context.Context, d time.Duration) error {
			mu.Lock()
			defer mu.Unlock()
			waited = append(waited, d)
			return nil
		},
	}, store.NewSecret(fake.BotToken()), store.Secret{})
	for _, asked := range []time.Duration{time.Second, 10 * time.Minute} {
		fake.Fail("chat.postMessage", slacktest.Fault{RetryAfter: asked})
		if _, err := w.Post(t.Context(), slacktest.General, view.Words("hello").Post...); err != nil {
			t.Fatal(err)
		}
		if last := waited[len(waited)-1]; last != asked {
			t.Errorf("asked to wait %s, waited %s", asked, last)
		}
	}
	fake.Fail("chat.postMessage", slacktest.Fault{RetryAfter: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := w.Post(ctx, slacktest.General, view.Words("hello").Post...); err == nil || len(waited) != 2 {
		t.Errorf("a wait that nobody outlives: %v, waits %v", err, waited)
	}
}

// While connecting, the operator learns at once that Slack can't be reached, and why.
func TestCheckWithoutSlack(t *testing.T) {
	t.Parallel()
	var visits int
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits++ }))
	defer elsewhere.Close()
	redirect := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer redirect.Close()
	check := func(t *testing.T, api, want string) {
		t.Helper()
		b := New(Options{Store: storeOf(databasetest.Open(t)), Config: store.Defaults{"slack.api_url": api}, Log: testLog(t), Commands: &bots.Commands{}})
		_, err := b.check(t.Context(), []store.Secret{store.NewSecret("xoxb-fake-bot"), store.NewSecret("xapp-1-A0NIZE-fake")})
		if err == nil || errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "xoxb-fake") {
			t.Errorf("it says %v, want %q", err, want)
		}
	}
	for name, want := range map[string]string{
		"status": "slack server error: 502 Bad Gateway; check the network and slack.api_url", "page": "check the network and slack.api_url", "half an answer": "check the network and slack.api_url",
		"its own fault": "a fault on its side (service_unavailable)", "timeout": "a fault on its side (request_timeout)",
	} {
		t.Run(name, func(t *testing.T) {
			fake := startFake(t, slacktest.Options{Unlimited: true})
			fake.Fail("auth.test", outages[name])
			check(t, fake.APIURL(), want)
		})
	}
	t.Run("long limit", func(t *testing.T) {
		fake := startFake(t, slacktest.Options{Unlimited: true})
		fake.Fail("auth.test", slacktest.Fault{RetryAfter: time.Hour})
		check(t, fake.APIURL(), "try again in 1h")
	})
	t.Run("redirect", func(t *testing.T) { check(t, redirect.URL+"/api/", "slack server error: 307") })
	t.Run("nobody", func(t *testing.T) {
		check(t, "http://127.0.0.1:1/api/", "nothing listens at 127.0.0.1:1; check the network and slack.api_url")
	})
	if visits > 0 {
		t.Errorf("%d requests with the token went where a redirect led", visits)
	}
}
