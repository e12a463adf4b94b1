package daemon_test

import (
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
)

// A token that is made in a chat stands in one dialog and nowhere else, and a
// link is joined with a button after its owner was shown.
func TestSlackAccess(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	fake := onSlack(t, k)
	ctx := t.Context()
	slash := func(user, line string) {
		t.Helper()
		if err := fake.Slash(ctx, user, slacktest.General, line); err != nil {
			t.Fatal(err)
		}
	}
	// whisper waits for what only that person reads.
	whisper := func(user, text string) (found slacktest.Message) {
		t.Helper()
		k.until(text, func() bool {
			for _, m := range fake.Ephemerals(slacktest.General, user) {
				if strings.Contains(m.Text, text) {
					found = m
					return true
				}
			}
			return false
		})
		return found
	}

	slash(slacktest.Ann, "/nize connect")
	snippet := whisper(slacktest.Ann, "claude mcp add")
	if err := fake.Press(ctx, slacktest.Ann, snippet, "words:0"); err != nil {
		t.Fatal(err)
	}
	token := ""
	k.until("the token in a dialog", func() bool {
		for _, v := range fake.Views(slacktest.Ann) {
			if _, rest, ok := strings.Cut(string(v.Blocks), "nize_"); ok {
				token = "nize_" + rest[:strings.IndexAny(rest, `"\`)]
			}
		}
		return token != ""
	})
	if _, err := store.ReadToken(token); err != nil {
		t.Errorf("the dialog shows %q: %v", token, err)
	}
	for _, m := range append(fake.Ephemerals(slacktest.General, slacktest.Ann), fake.Messages(slacktest.General)...) {
		if strings.Contains(m.Text+string(m.Blocks), token) {
			t.Errorf("the token stands in a message: %q", m.Text)
		}
	}
	slash(slacktest.Ann, "/nize tokens")
	whisper(slacktest.Ann, "chat (nize_")
	slash(slacktest.Ann, "/nize tokens revoke chat")
	whisper(slacktest.Ann, "chat is revoked")
	// After a mention there is no dialog: nothing is made.
	if _, err := fake.Mention(slacktest.Ann, slacktest.General, "tokens new other"); err != nil {
		t.Fatal(err)
	}
	whisper(slacktest.Ann, "write `/nize tokens new other`")
	tokens, err := api.ListTokens.Call(ctx, k.Client, api.ListTokensRequest{})
	if err != nil || len(tokens.Items) != 1 {
		t.Errorf("tokens %+v, %v", tokens.Items, err)
	}

	// Ben has a code of another identity; in the open it is not used.
	made, err := api.MakeLink.Call(ctx, k.Client, api.MakeLinkRequest{})
	if err != nil {
		t.Fatal(err)
	}
	code := made.Code.Reveal()
	if _, err := fake.Mention(slacktest.Ben, slacktest.General, "link "+code); err != nil {
		t.Fatal(err)
	}
	whisper(slacktest.Ben, "Others can read")
	slash(slacktest.Ann, "/nize link "+code)
	ask := whisper(slacktest.Ann, "would become one with you")
	if err := fake.Press(ctx, slacktest.Ann, ask, "words:0"); err != nil {
		t.Fatal(err)
	}
	whisper(slacktest.Ann, "You are one user now")

	// A question as a command is written down and answered below.
	slash(slacktest.Ann, "/nize ask help me with the moon")
	k.until("the answer below the question", func() bool {
		for _, m := range fake.Messages(slacktest.General) {
			if strings.Contains(m.Text, "asks: help me with the moon") {
				return len(fake.Thread(m.Channel, m.TS)) > 1
			}
		}
		return false
	})
}

// The Home of a member shows what is theirs.
func TestSlackHome(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	fake := onSlack(t, k)
	fake.OpenHome(slacktest.Ann)
	k.until("Ann's Home", func() bool {
		v, ok := fake.Home(slacktest.Ann)
		all := string(v.Blocks)
		return ok && strings.Contains(all, "No call waits") && strings.Contains(all, "home:set:language") && strings.Contains(all, "Make a token")
	})
}

// A channel's mode is set by its admins and by nobody else, and holds at once.
func TestSlackChannel(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	fake := onSlack(t, k)
	ctx := t.Context()
	slash := func(user, line, answer string) {
		t.Helper()
		if err := fake.Slash(ctx, user, slacktest.General, line); err != nil {
			t.Fatal(err)
		}
		k.until(answer, func() bool {
			for _, m := range fake.Ephemerals(slacktest.General, user) {
				if strings.Contains(m.Text, answer) {
					return true
				}
			}
			return false
		})
	}
	slash(slacktest.Ben, "/nize channel mode all", "Only admins of this channel")
	slash(slacktest.Ben, "/nize channel", "mode = follow")
	slash(slacktest.Ann, "/nize channel mode all", "mode is all in this channel")
	said, err := fake.Say(slacktest.Ben, slacktest.General, "what is the weather on the moon")
	if err != nil {
		t.Fatal(err)
	}
	k.until("an answer without a mention", func() bool { return len(fake.Thread(said.Channel, said.TS)) > 1 })
}
