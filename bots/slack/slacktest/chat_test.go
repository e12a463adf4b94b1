package slacktest_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nize/bots/slack/slacktest"
)

func TestWhoMayCall(t *testing.T) {
	a := start(t, slacktest.Options{Scopes: []string{"channels:read"}})
	form := "application/x-www-form-urlencoded"
	for _, row := range []struct{ method, token, want string }{
		{"auth.test", "", "not_authed"},
		{"auth.test", "xoxb-wrong", "invalid_auth"},
		{"auth.test", a.fake.AppToken(), "not_allowed_token_type"},
		{"apps.connections.open", a.fake.BotToken(), "not_allowed_token_type"},
		{"chat.postMessage", a.fake.BotToken(), "missing_scope"},
		{"no.such.method", a.fake.BotToken(), "unknown_method"},
	} {
		if got := a.post(row.method, row.token, form, ""); got.Error != row.want {
			t.Errorf("%s with %q: got %q, want %q", row.method, row.token, got.Error, row.want)
		}
	}
	got := a.bad("missing_scope", "chat.postMessage", "channel", slacktest.General, "text", "x")
	if got.Needed != "chat:write" || got.Provided != "channels:read" || got.header.Get("X-OAuth-Scopes") != "channels:read" {
		t.Errorf("needed %q, provided %q, header %q", got.Needed, got.Provided, got.header.Get("X-OAuth-Scopes"))
	}
	a.bad("missing_scope", "conversations.info", "channel", slacktest.Secret)
	a.fake.Revoke("account_inactive")
	a.bad("account_inactive", "auth.test")
}

func TestPostingAndItsErrors(t *testing.T) {
	a := start(t, slacktest.Options{Unlimited: true})
	a.bad("channel_not_found", "chat.postMessage", "text", "x")
	a.bad("channel_not_found", "chat.postMessage", "channel", "C0NONE", "text", "x")
	a.bad("not_in_channel", "chat.postMessage", "channel", slacktest.Random, "text", "x")
	a.bad("no_text", "chat.postMessage", "channel", slacktest.General)
	a.bad("thread_not_found", "chat.postMessage", "channel", slacktest.General, "text", "x", "thread_ts", "1.000001")
	a.bad("too_many_attachments", "chat.postMessage", "channel", slacktest.General, "text", "x", "attachments", several(101, `{"text":"a"}`))
	got := a.bad("invalid_blocks", "chat.postMessage", "channel", slacktest.General, "text", "x", "blocks", "["+section(3001)+"]")
	if len(got.Meta.Messages) != 1 || !strings.HasPrefix(got.Meta.Messages[0], "[ERROR] must be less than 3001") {
		t.Errorf("messages %q", got.Meta.Messages)
	}
	first := a.good("chat.postMessage", "channel", slacktest.General, "text", x(40_001))
	second := a.good("chat.postMessage", "channel", slacktest.General, "text", "in it", "thread_ts", first.TS)
	if m, _ := a.fake.Message(slacktest.General, first.TS); len(m.Text) != 40_000 {
		t.Errorf("a text of %d characters stands, want it cut at 40,000", len(m.Text))
	}
	if thread := a.fake.Thread(slacktest.General, first.TS); len(thread) != 2 || thread[1].TS != second.TS {
		t.Errorf("the thread holds %+v", thread)
	}
	a.bad("msg_too_long", "chat.update", "channel", slacktest.General, "ts", first.TS, "text", x(4001))
	a.good("chat.update", "channel", slacktest.General, "ts", first.TS, "text", "short")
	if m, _ := a.fake.Message(slacktest.General, first.TS); m.Text != "short" || len(m.Versions) != 2 {
		t.Errorf("after the update: %q, %d versions", m.Text, len(m.Versions))
	}
	theirs := must[slacktest.Message](t)(a.fake.Say(slacktest.Ann, slacktest.General, "mine"))
	a.bad("cant_update_message", "chat.update", "channel", slacktest.General, "ts", theirs.TS, "text", "x")
	a.bad("message_not_found", "chat.update", "channel", slacktest.General, "ts", "9.9", "text", "x")
	eph := a.good("chat.postEphemeral", "channel", slacktest.General, "user", slacktest.Ben, "text", "psst")
	a.bad("message_not_found", "chat.update", "channel", slacktest.General, "ts", eph.MsgTS, "text", "x")
	a.bad("user_not_in_channel", "chat.postEphemeral", "channel", slacktest.General, "user", slacktest.Stranger, "text", "x")
	if got := a.fake.Ephemerals(slacktest.General, slacktest.Ben); len(got) != 1 || len(a.fake.Ephemerals(slacktest.General, slacktest.Ann)) != 0 {
		t.Errorf("Ben sees %d ephemeral messages, and Ann some of them", len(got))
	}
	a.good("chat.postEphemeral", "channel", slacktest.General, "user", slacktest.Ben, "thread_ts", theirs.TS, "text", "nobody sees it")
	a.good("chat.postMessage", "channel", slacktest.General, "thread_ts", theirs.TS, "text", "a reply")
	a.good("chat.postEphemeral", "channel", slacktest.General, "user", slacktest.Ben, "thread_ts", theirs.TS, "text", "in the thread")
	if got := a.fake.Ephemerals(slacktest.General, slacktest.Ben); len(got) != 2 || got[1].Text != "in the thread" {
		t.Errorf("Ben sees %+v", got)
	}
	a.good("chat.delete", "channel", slacktest.General, "ts", first.TS)
	a.bad("message_not_found", "chat.update", "channel", slacktest.General, "ts", first.TS, "text", "x")
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startPiped(t, slacktest.Options{Burst: 2})
		for range 2 {
			a.good("chat.postMessage", "channel", slacktest.General, "text", "x")
		}
		got := a.bad("ratelimited", "chat.postMessage", "channel", slacktest.General, "text", "x")
		if got.status != 429 || got.header.Get("Retry-After") != "2" {
			t.Errorf("status %d, Retry-After %q", got.status, got.header.Get("Retry-After"))
		}
		a.good("chat.postMessage", "channel", slacktest.Secret, "text", "another channel")
		time.Sleep(2 * time.Second)
		m := a.good("chat.postMessage", "channel", slacktest.General, "text", "x")
		for range 50 { // tier 3
			a.good("chat.update", "channel", slacktest.General, "ts", m.TS, "text", "y")
		}
		a.bad("ratelimited", "chat.update", "channel", slacktest.General, "ts", m.TS, "text", "y")
		time.Sleep(time.Minute)
		a.good("chat.update", "channel", slacktest.General, "ts", m.TS, "text", "y")
	})
}

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startPiped(t, slacktest.Options{})
		a.fake.Fail("chat.postMessage", slacktest.Fault{Status: 500, Times: 2})
		a.fake.Fail("chat.postMessage", slacktest.Fault{RetryAfter: 7 * time.Second})
		a.fake.Fail("chat.postMessage", slacktest.Fault{Status: 502, After: true})
		a.fake.Fail("auth.test", slacktest.Fault{Delay: 4 * time.Second})
		post := func() answer { return a.call("chat.postMessage", "channel", slacktest.General, "text", "x") }
		var statuses []int
		for range 4 {
			statuses = append(statuses, post().status)
		}
		if want := []int{500, 500, 429, 502}; !slices.Equal(statuses, want) {
			t.Errorf("got %v, want %v", statuses, want)
		}
		if n := len(a.fake.Messages(slacktest.General)); n != 1 {
			t.Errorf("%d messages stand; the last fault lost the answer only", n)
		}
		began := time.Now()
		a.good("auth.test")
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("the slow answer took %v", took)
		}
	})
}

func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startPiped(t, slacktest.Options{})
		root := must[slacktest.Message](t)(a.fake.Mention(slacktest.Ann, slacktest.General, "hi"))
		at := []string{"channel", slacktest.General, "thread_ts", root.TS}
		with := func(more ...string) []string { return append(slices.Clone(at), more...) }
		a.bad("missing_recipient_user_id", "chat.startStream", at...)
		a.bad("missing_recipient_team_id", "chat.startStream", with("recipient_user_id", slacktest.Ann)...)
		a.bad("user_not_found", "chat.startStream", with("recipient_user_id", slacktest.Stranger, "recipient_team_id", slacktest.OtherTeam)...)
		a.bad("team_not_found", "chat.startStream", with("recipient_user_id", slacktest.Ann, "recipient_team_id", "T0NONE")...)
		to := with("recipient_user_id", slacktest.Ann, "recipient_team_id", slacktest.Team)
		ts := a.good("chat.startStream", append(to, "markdown_text", "Hel")...).TS
		on := []string{"channel", slacktest.General, "ts", ts}
		a.good("chat.appendStream", append(on, "markdown_text", "lo")...)
		a.bad("streaming_state_conflict", "chat.update", append(on, "text", "x")...)
		a.bad("msg_too_long", "chat.appendStream", append(on, "markdown_text", x(12_001))...)
		a.bad("no_text", "chat.appendStream", append(on, "markdown_text", " \n")...)
		a.bad("streaming_mode_mismatch", "chat.appendStream", append(on, "chunks", `[{"type":"markdown_text","text":"!"}]`)...)
		a.bad("cannot_provide_both_markdown_text_and_chunks", "chat.appendStream", append(on, "markdown_text", "x", "chunks", `[{"type":"markdown_text","text":"!"}]`)...)
		a.good("chat.stopStream", append(on, "blocks", "["+actions("["+button(`,"action_id":"a"`)+"]")+"]")...)
		m, _ := a.fake.Message(slacktest.General, ts)
		if m.Stream.Text != "Hello" || m.Stream.Ended != "stop" || !strings.Contains(string(m.Blocks), `"action_id":"a"`) {
			t.Errorf("the stream holds %+v, blocks %s", m.Stream, m.Blocks)
		}
		a.bad("message_not_in_streaming_state", "chat.appendStream", append(on, "markdown_text", "more")...)
		a.bad("block_mismatch", "chat.update", append(on, "blocks", `[{"type":"divider"}]`)...)
		a.good("chat.update", append(on, "markdown_text", "after the stop it can")...)

		ts = a.good("chat.startStream", append(to, "chunks", `[{"type":"markdown_text","text":"!"}]`)...).TS
		on = []string{"channel", slacktest.General, "ts", ts}
		a.bad("invalid_chunks", "chat.appendStream", append(on, "chunks", `[{"type":"nonsense"}]`)...)
		a.bad("streaming_mode_mismatch", "chat.stopStream", append(on, "markdown_text", "x")...)
		a.good("chat.appendStream", append(on, "chunks", `[{"type":"task_update","id":"1","title":"calling","status":"in_progress"}]`)...)
		a.good("chat.stopStream", on...)
		if m, _ := a.fake.Message(slacktest.General, ts); m.Stream.Text != "!" || len(m.Stream.Tasks) != 1 {
			t.Errorf("the stream of chunks holds %+v", m.Stream)
		}

		ts = a.good("chat.startStream", to...).TS
		time.Sleep(5 * time.Minute)
		a.bad("message_not_in_streaming_state", "chat.stopStream", "channel", slacktest.General, "ts", ts)
		if m, _ := a.fake.Message(slacktest.General, ts); m.Stream.Ended != "timeout" {
			t.Errorf("the old stream ended by %q", m.Stream.Ended)
		}
	})
}

func TestSessions(t *testing.T) {
	a := start(t, slacktest.Options{})
	a.dial()
	m := must[slacktest.Message](t)(a.fake.DM(slacktest.Ann, "hello"))
	on := []string{"channel_id", m.Channel, "thread_ts", m.TS}
	with := func(more ...string) []string { return append(slices.Clone(on), more...) }
	a.bad("invalid_status", "agents.sessions.setStatus", with("status", "thinking")...)
	a.good("agents.sessions.setStatus", with("status", "processing", "title", "A title", "initiator_user_id", slacktest.Ann)...)
	stream := a.good("chat.startStream", "channel", m.Channel, "thread_ts", m.TS, "markdown_text", "x", "recipient_user_id", slacktest.Ann, "recipient_team_id", slacktest.Team).TS
	if err := a.fake.StopSession(slacktest.Ann, m.Channel, m.TS); err != nil {
		t.Fatal(err)
	}
	a.until("agent_session_stopped", func() bool { return slices.Contains(a.events(), "agent_session_stopped") })
	a.bad("stopped_by_user", "chat.appendStream", "channel", m.Channel, "ts", stream, "markdown_text", "x")
	a.good("agents.sessions.setStatus", with("status", "active")...)
	a.good("agents.sessions.rename", with("title", "Another")...)
	if err := a.fake.StopSession(slacktest.Ann, m.Channel, m.TS); err == nil {
		t.Error("an active session has a Stop button")
	}
	if got := a.fake.Session(m.Channel, m.TS); got.Title != "Another" || !slices.Equal(got.Statuses, []string{"processing", "active"}) {
		t.Errorf("the session is %+v", got)
	}
	a.bad("invalid_arguments", "assistant.threads.setSuggestedPrompts", "channel_id", m.Channel, "prompts", several(5, `{"title":"t","message":"m"}`))
	a.good("assistant.threads.setSuggestedPrompts", "channel_id", m.Channel, "prompts", several(4, `{"title":"t","message":"m"}`))
}

func TestFiles(t *testing.T) {
	a := start(t, slacktest.Options{})
	up := a.good("files.getUploadURLExternal", "filename", "a.txt", "length", "5")
	put := func(body string) int {
		resp, err := a.http.Post(up.Upload, "application/octet-stream", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	done := []string{"files", `[{"id":"` + up.FileID + `","title":"A"}]`, "channel_id", slacktest.General}
	a.bad("file_not_found", "files.completeUploadExternal", done...)
	if got := put("too long"); got != 400 {
		t.Errorf("a wrong length got %d", got)
	}
	if got := put("hello"); got != 200 {
		t.Errorf("the upload got %d", got)
	}
	a.good("files.completeUploadExternal", done...)
	a.until("the share", func() bool { return len(a.fake.Messages(slacktest.General)) == 1 })
	if f := a.fake.Messages(slacktest.General)[0].Files[0]; f.Title != "A" || string(f.Content) != "hello" {
		t.Errorf("shared %+v", f)
	}
	a.bad("file_not_found", "files.completeUploadExternal", done...)
}

func TestPages(t *testing.T) {
	a := start(t, slacktest.Options{})
	root := a.good("chat.postMessage", "channel", slacktest.General, "text", "root")
	for range 4 {
		must[slacktest.Message](t)(a.fake.Reply(slacktest.Ann, slacktest.Message{Channel: slacktest.General, TS: root.TS}, "reply"))
	}
	cursor, seen := "", 0
	for range 3 {
		got := a.good("conversations.replies", "channel", slacktest.General, "ts", root.TS, "limit", "2", "cursor", cursor)
		seen += strings.Count(string(got.Messages), `"type":"message"`)
		cursor = got.Meta.Cursor
	}
	if seen != 5 || cursor != "" {
		t.Errorf("three pages of two held %d messages, next %q", seen, cursor)
	}
	a.bad("not_in_channel", "conversations.replies", "channel", slacktest.Random, "ts", root.TS)
	a.bad("user_not_found", "users.info", "user", "U0NONE")
	if got := a.good("users.info", "user", slacktest.Ben, "include_locale", "true"); !strings.Contains(string(got.User), `"locale":"de-DE"`) {
		t.Errorf("Ben is %s", got.User)
	}
	if got := a.good("conversations.open", "users", slacktest.Ben); !strings.Contains(string(got.Channel), `"id":"`+a.fake.DMChannel(slacktest.Ben)+`"`) {
		t.Errorf("opened %s", got.Channel)
	}
}

func TestEffects(t *testing.T) {
	for _, row := range []struct {
		text   string
		pings  bool
		links  int
		format string
	}{
		{"plain words, 2*3 and a_b_c", false, 0, ""},
		{"hello <@U0ANN>", true, 0, ""},
		{"<!channel> now", true, 0, ""},
		{"<!subteam^S0OPS|@ops>", true, 0, ""},
		{"`<!here>`", true, 0, "code"},
		{"&lt;!channel&gt;", false, 0, ""},
		{"see https://a.example/x", false, 1, ""},
		{"see <https://a.example/x|there>", false, 1, ""},
		{"*bold* and _it_ ~no~", false, 0, "bold italic strike"},
		{"```\n*kept*\n```", false, 0, "pre"},
		{"&gt; quoted", false, 0, "quote"},
		{"<#C0GENERAL>", false, 0, ""},
	} {
		got := slacktest.Message{Text: row.text, Mrkdwn: true}.Effects()
		if got.Pings() != row.pings || len(got.Links) != row.links || strings.Join(got.Format, " ") != row.format {
			t.Errorf("%q: pings %t, links %q, format %q", row.text, got.Pings(), got.Links, got.Format)
		}
	}
	quiet := slacktest.Message{Mrkdwn: true, Unfurl: true, Blocks: []byte(`[{"type":"section","text":{"type":"plain_text","text":"<!channel> *x* https://a.example"}},
		{"type":"rich_text","elements":[{"type":"rich_text_preformatted","elements":[{"type":"text","text":"<!channel>"}]}]}]`)}.Effects()
	if quiet.Pings() || quiet.Unfurls || len(quiet.Links) != 0 {
		t.Errorf("plain_text and preformatted text do something: %+v", quiet)
	}
	loud := slacktest.Message{Mrkdwn: true, Unfurl: true, Blocks: []byte(`[{"type":"context","elements":[{"type":"mrkdwn","text":"<!everyone>"}]},{"type":"markdown","text":"[x](https://a.example) **b**"},
		{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"U0BEN"}]}]}]`)}.Effects()
	if !slices.Equal(loud.Broadcast, []string{"everyone"}) || !slices.Equal(loud.Users, []string{"U0BEN"}) || !loud.Unfurls || !slices.Contains(loud.Format, "bold") {
		t.Errorf("got %+v", loud)
	}
}

func TestTyped(t *testing.T) {
	a := start(t, slacktest.Options{})
	if got, want := a.fake.Typed("@nize <b> & @here @ops #general @nobody https://a.example/x"), "<@U0NIZE> &lt;b&gt; &amp; <!here> <!subteam^S0OPS> <#C0GENERAL> @nobody <https://a.example/x>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
