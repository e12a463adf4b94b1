package daemon_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
)

// The dialog of a standing answer offers the patterns that the card of an ask proposes.
// The one that was chosen there covers the session's plain commands of that form, and
// nothing behind them.
func TestSlackAsksPatterns(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, s.Client, api.AddServerRequest{Server: store.Server{Name: "claude-code", Transport: store.External, Visibility: []string{"all"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.fake.Mention(slacktest.Ben, slacktest.General, "hello"); err != nil {
		t.Fatal(err)
	}
	s.until("nize knows Ben", func() bool { _, ok := s.person(slacktest.Ben); return ok })
	made, err := api.CreateToken.Call(ctx, s.Client, api.CreateTokenRequest{Name: "agent", User: s.userOf(slacktest.Ben).ID, Audience: store.ForAPI})
	if err != nil {
		t.Fatal(err)
	}
	status, err := api.GetStatus.Call(ctx, s.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	in := func(where api.AskContext, command string) (got api.Ask) {
		t.Helper()
		body, err := json.Marshal(api.AskRequest{Source: "claude-code", Tool: "Bash", Arguments: json.RawMessage(`{"command":"` + command + `"}`), Context: &where})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+status.Listen+"/asks", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+made.Secret.Reveal())
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v", resp.Status, err)
		}
		return got
	}
	ask := func(session, command string) api.Ask {
		t.Helper()
		return in(api.AskContext{Session: session}, command)
	}
	cardOf := func(a api.Ask) (posted slacktest.Message) {
		t.Helper()
		s.until("the card is posted", func() bool {
			for _, m := range s.private(slacktest.Ben)() {
				if strings.Contains(m.Text, "\ncall: "+a.ID) {
					posted = m
					return true
				}
			}
			return false
		})
		return posted
	}
	first := ask("s1", "git status")
	posted := cardOf(first)
	s.press(slacktest.Ben, posted, "always")
	if err := s.dialog(slacktest.Ben, map[string][]string{"args": {`pattern {"command":"make *"}`}}); err == nil {
		t.Error("a pattern is offered that the card does not propose")
	}
	s.press(slacktest.Ben, posted, "always")
	if err := s.dialog(slacktest.Ben, map[string][]string{"args": {`pattern {"command":"git status*"}`}, "for": {"conversation"}, "until": {"8h"}}); err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Ben, "Saved: claude-code:Bash: always allowed · ")
	s.cardOf(first.ID, "approved", s.private(slacktest.Ben))
	for _, c := range []struct{ session, command, state string }{
		{"s1", "git status --short", "approved"},
		{"s1", "git status; rm -rf .", "pending"}, {"s1", "git status > x", "pending"}, {"s1", "git push", "pending"}, {"s2", "git status", "pending"},
	} {
		if got := ask(c.session, c.command); got.State != c.state || (got.Standing != "") != (c.state == "approved") {
			t.Errorf("%s: %s is %s by %q", c.session, c.command, got.State, got.Standing)
		}
	}
	web := api.AskContext{Session: "s3", Cwd: "/srv/web", Repository: "/srv/web", Host: "build-7"}
	posted = cardOf(in(web, "make test"))
	s.press(slacktest.Ben, posted, "always")
	if err := s.dialog(slacktest.Ben, map[string][]string{"args": {`here {"command":"make*"}`}, "until": {"ever"}}); err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Ben, "in this repository")
	other := web
	other.Cwd, other.Repository = "/srv/api", "/srv/api"
	for _, c := range []struct {
		where          api.AskContext
		command, state string
	}{
		{web, "make", "approved"}, {web, "make deploy", "approved"}, {web, "make -C /srv/api", "pending"}, {other, "make", "pending"}, {api.AskContext{Session: "s3"}, "make", "pending"},
	} {
		if got := in(c.where, c.command); got.State != c.state {
			t.Errorf("%s in %q is %s", c.command, c.where.Repository, got.State)
		}
	}
	s.wellBehaved()
}
