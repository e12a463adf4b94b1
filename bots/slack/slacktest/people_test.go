package slacktest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
)

// named sends an event and returns its name and the inner event.
func (a *app) named(do func()) (string, string) {
	a.t.Helper()
	n := len(a.fake.Events())
	do()
	list := a.fake.Events()
	if len(list) != n+1 {
		a.t.Errorf("%d events were sent, want one", len(list)-n)
		return "", ""
	}
	var in struct {
		Event json.RawMessage `json:"event"`
	}
	if err := json.Unmarshal(list[n].Payload, &in); err != nil {
		a.t.Fatal(err)
	}
	return list[n].Name, string(in.Event)
}

func TestWhatPeopleDoIsTold(t *testing.T) {
	a := start(t, slacktest.Options{Events: append(slices.Clone(slacktest.Events), "member_joined_channel", "member_left_channel")})
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	m := must[slacktest.Message](t)(a.fake.Say(slacktest.Ann, slacktest.General, "first"))
	for _, row := range []struct {
		do         func()
		name, says string
	}{
		{func() { check(a.fake.Edit(m, "second")) }, "message.channels", `"subtype":"message_changed"`},
		{func() { check(a.fake.Delete(m)) }, "message.channels", `"deleted_ts":"` + m.TS + `"`},
		{func() { check(a.fake.Join(slacktest.Ben, slacktest.Shared)) }, "member_joined_channel", slacktest.Ben},
		{func() { check(a.fake.Leave(slacktest.Ben, slacktest.Shared)) }, "member_left_channel", slacktest.Ben},
		{func() { check(a.fake.Deactivate(slacktest.Cho)) }, "user_change", `"deleted":true`},
		{func() { a.fake.Look(slacktest.Ann, slacktest.General, "") }, "app_context_changed", slacktest.General},
		{func() { a.fake.RenameSession(slacktest.Ann, slacktest.General, "1.1", "New") }, "agent_session_title_changed", `"title":"New"`},
		{func() { a.fake.OpenDM(slacktest.Ann) }, "app_home_opened", `"tab":"messages"`},
	} {
		if name, event := a.named(row.do); name != row.name || !strings.Contains(event, row.says) {
			t.Errorf("got %s %s, want %s with %s", name, event, row.name, row.says)
		}
	}
	if _, err := a.fake.Say(slacktest.Cho, slacktest.General, "still here"); err == nil {
		t.Error("a deactivated user spoke")
	}
	if a.fake.Edit(m, "x") == nil || a.fake.Delete(m) == nil || a.fake.Join("U0NONE", slacktest.General) == nil {
		t.Error("what is not there was changed")
	}
}

func TestAnOlderAppHasAssistantThreads(t *testing.T) {
	a := start(t, slacktest.Options{Assistant: true})
	thread := a.fake.OpenDM(slacktest.Ann)
	names := func() (list []string) {
		for _, e := range a.fake.Events() {
			list = append(list, e.Name)
		}
		return list
	}
	a.fake.Look(slacktest.Ann, slacktest.General, thread)
	if want := []string{"app_home_opened", "assistant_thread_started", "assistant_thread_context_changed"}; !slices.Equal(names(), want) {
		t.Errorf("got %q, want %q", names(), want)
	}
	on := []string{"channel_id", a.fake.DMChannel(slacktest.Ann), "thread_ts", thread}
	a.bad("not_an_agent", "agents.sessions.setStatus", append(on, "status", "active")...)
	a.bad("invalid_thread_ts", "assistant.threads.setSuggestedPrompts", "channel_id", on[1], "prompts", "[]")
	a.good("assistant.threads.setSuggestedPrompts", append(on, "prompts", `[{"title":"t","message":"m"}]`)...)
	a.good("assistant.threads.setTitle", append(on, "title", "T")...)
	a.bad("invalid_arguments", "assistant.threads.setStatus", append(on, "status", "s", "loading_messages", strings.Repeat("m,", 10)+"m")...)
	a.good("assistant.threads.setStatus", append(on, "status", "thinking", "loading_messages", "one,two")...)
	if s := a.fake.Session(on[1], thread); s.Title != "T" || s.Loading != "thinking" || len(s.LoadingMessages) != 2 || len(s.Prompts) != 1 {
		t.Errorf("got %+v", s)
	}
	a.good("chat.postMessage", "channel", on[1], "thread_ts", thread, "text", "an answer clears the status")
	if s := a.fake.Session(on[1], thread); s.Loading != "" {
		t.Errorf("still %q", s.Loading)
	}
}

func TestLists(t *testing.T) {
	a := start(t, slacktest.Options{Scopes: append(slices.Clone(slacktest.Scopes), "team:read", "mpim:write")})
	a.fake.AddUser(slacktest.User{ID: "U0NEW", Name: "new"})
	a.fake.AddChannel(slacktest.Channel{ID: "C0OLD", Name: "old", Archived: true, Members: []string{slacktest.Bot, "U0NEW"}})
	a.fake.AddGroup(slacktest.UserGroup{ID: "S0NEW", Handle: "new", Users: []string{"U0NEW"}})
	for _, row := range []struct {
		method, with, without string
		args                  []string
	}{
		{"users.list", `"U0NEW"`, "", nil},
		{"usergroups.list", `"S0NEW"`, `"users":`, nil},
		{"usergroups.users.list", `"U0NEW"`, "", []string{"usergroup", "S0NEW"}},
		{"conversations.list", `"C0RANDOM"`, `"C0SECRET"`, nil},
		{"conversations.list", `"C0SECRET"`, `"C0RANDOM"`, []string{"types", "private_channel"}},
		{"conversations.list", `"C0GENERAL"`, `"C0OLD"`, []string{"exclude_archived", "true"}},
		{"users.conversations", `"C0GENERAL"`, `"C0RANDOM"`, nil},
		{"users.conversations", `"C0OLD"`, `"C0RANDOM"`, []string{"user", "U0NEW"}},
		{"conversations.members", slacktest.OtherBot, "", []string{"channel", slacktest.General}},
		{"bots.info", `"B0OTHERBOT"`, "", []string{"bot", "B0OTHERBOT"}},
		{"team.info", `"Fake Inc"`, "", nil},
	} {
		got := a.raw(row.method, row.args...)
		if !strings.Contains(got, `{"ok":true`) || !strings.Contains(got, row.with) || row.without != "" && strings.Contains(got, row.without) {
			t.Errorf("%s %q: %s; want %s and not %s", row.method, row.args, got, row.with, row.without)
		}
	}
	a.bad("is_archived", "chat.postMessage", "channel", "C0OLD", "text", "x")
	a.bad("no_such_subteam", "usergroups.users.list", "usergroup", "S0NONE")
	a.bad("bot_not_found", "bots.info", "bot", "B0NONE")
	a.bad("channel_not_found", "conversations.members", "channel", "D0NONE")
	a.bad("cannot_dm_bot", "conversations.open", "users", slacktest.OtherBot)
	a.bad("users_list_not_supplied", "conversations.open")
	if got := a.good("conversations.open", "users", slacktest.Ann+","+slacktest.Ben); !strings.Contains(string(got.Channel), `"is_mpim":true`) {
		t.Errorf("opened %s", got.Channel)
	}
}

// raw is an answer's text.
func (a *app) raw(method string, kv ...string) string {
	a.t.Helper()
	form := []string{"token=" + a.fake.BotToken()} // the older way to give it
	for i := 0; i+1 < len(kv); i += 2 {
		form = append(form, kv[i]+"="+kv[i+1])
	}
	resp, err := a.http.Post(a.fake.APIURL()+method, "application/x-www-form-urlencoded", strings.NewReader(strings.Join(form, "&")))
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(body)
}

func TestJSONArguments(t *testing.T) {
	a := start(t, slacktest.Options{})
	kind := "application/json; charset=utf-8"
	if got := a.post("chat.postMessage", a.fake.BotToken(), kind, `{"channel":"C0GENERAL","text":"x","blocks":[{"type":"divider"}]}`); !got.OK {
		t.Errorf("got %q", got.Error)
	}
	if m := a.fake.Messages(slacktest.General); len(m) != 1 || string(m[0].Blocks) != `[{"type":"divider"}]` {
		t.Errorf("stands: %+v", m)
	}
	if got := a.post("chat.postMessage", a.fake.BotToken(), kind, `{"channel":`); got.Error != "invalid_json" {
		t.Errorf("got %q", got.Error)
	}
}

func TestReactions(t *testing.T) {
	a := start(t, slacktest.Options{})
	m := must[slacktest.Message](t)(a.fake.Say(slacktest.Ann, slacktest.General, "x"))
	on := []string{"channel", slacktest.General, "timestamp", m.TS, "name", "eyes"}
	a.bad("no_reaction", "reactions.remove", on...)
	a.good("reactions.add", on...)
	a.bad("already_reacted", "reactions.add", on...)
	if m, _ := a.fake.Message(m.Channel, m.TS); len(m.Reactions) != 1 || m.Reactions[0].Name != "eyes" {
		t.Errorf("got %+v", m.Reactions)
	}
	a.good("reactions.remove", on...)
	if m, _ := a.fake.Message(m.Channel, m.TS); len(m.Reactions) != 0 {
		t.Errorf("got %+v", m.Reactions)
	}
}

// TestInputs fills in every kind of input, right and wrong.
func TestInputs(t *testing.T) {
	a := start(t, slacktest.Options{})
	a.dial()
	opt := func(v string) string { return `{"text":{"type":"plain_text","text":"o"},"value":"` + v + `"}` }
	in := func(id, element string) string {
		return `{"type":"input","block_id":"` + id + `","optional":true,"label":{"type":"plain_text","text":"L"},"element":{"action_id":"` + id + `",` + element + `}}`
	}
	view := `{"type":"modal","notify_on_close":true,"title":{"type":"plain_text","text":"T"},"submit":{"type":"plain_text","text":"S"},"blocks":[` + strings.Join([]string{
		in("text", `"type":"plain_text_input","min_length":2,"max_length":4`), in("number", `"type":"number_input","is_decimal_allowed":true`),
		in("one", `"type":"static_select","options":[`+opt("a")+","+opt("b")+`]`), in("many", `"type":"multi_static_select","max_selected_items":1,"options":[`+opt("a")+","+opt("b")+`]`),
		in("grouped", `"type":"static_select","option_groups":[{"label":{"type":"plain_text","text":"G"},"options":[`+opt("g")+`]}]`),
		in("radio", `"type":"radio_buttons","options":[`+opt("a")+`]`), in("boxes", `"type":"checkboxes","initial_options":[`+opt("a")+`],"options":[`+opt("a")+`]`),
		in("user", `"type":"users_select"`), in("users", `"type":"multi_users_select"`), in("channel", `"type":"channels_select"`), in("conv", `"type":"conversations_select"`),
		in("date", `"type":"datepicker"`), in("time", `"type":"timepicker"`), in("moment", `"type":"datetimepicker"`),
		`{"type":"section","text":{"type":"mrkdwn","text":"x"},"accessory":` + button(`,"action_id":"deeper"`) + `}`,
	}, ",") + `]}`
	open := func() string {
		t.Helper()
		m := a.card(slacktest.General)
		if err := a.fake.Press(within(t), slacktest.Ann, m, "yes"); err != nil {
			t.Fatal(err)
		}
		return a.good("views.open", "trigger_id", a.last().Trigger, "view", view).View.ID
	}
	id := open()
	for name, given := range map[string][]string{"text": {"x"}, "one": {"c"}, "many": {"a", "b"}, "radio": {"b"}, "moment": {"soon"}, "nothing": {"x"}} {
		if err := a.fake.Submit(within(t), slacktest.Ann, id, map[string][]string{name: given}); err == nil {
			t.Errorf("%s took %q", name, given)
		}
	}
	err := a.fake.Submit(within(t), slacktest.Ann, id, map[string][]string{"text": {"abc"}, "number": {"1.5"}, "one": {"b"}, "many": {"a"}, "grouped": {"g"}, "radio": {"a"}, "boxes": {},
		"user": {"U0BEN"}, "users": {"U0BEN", "U0ANN"}, "channel": {"C0GENERAL"}, "conv": {"C0SECRET"}, "date": {"2026-11-21"}, "time": {"10:00"}, "moment": {"1795000000"}})
	if err != nil {
		t.Fatal(err)
	}
	list := a.got("interactive")
	got := string(list[len(list)-1].Payload)
	for _, want := range []string{`"value":"abc"`, `"value":"1.5"`, `"selected_user":"U0BEN"`, `"selected_users":["U0BEN","U0ANN"]`, `"selected_channel":"C0GENERAL"`, `"selected_conversation":"C0SECRET"`,
		`"selected_date":"2026-11-21"`, `"selected_time":"10:00"`, `"selected_date_time":1795000000`, `"boxes":{"boxes":{"type":"checkboxes","selected_options":[]}}`, `"value":"g"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the submission lacks %s: %s", want, got)
		}
	}

	// A dialog on top of a dialog, at most three; then all are cleared.
	id = open()
	for i, want := range []string{"", "", "push_limit_reached"} {
		if err := a.fake.PressView(within(t), slacktest.Ann, id, "deeper"); err != nil {
			t.Fatal(err)
		}
		got := a.call("views.push", "trigger_id", a.last().Trigger, "view", view)
		if got.Error != want {
			t.Errorf("push %d: got %q, want %q", i+1, got.Error, want)
		}
		if got.OK {
			id = got.View.ID
		}
	}
	if err := a.fake.CloseView(within(t), slacktest.Ann, id); err != nil || a.last().Type != "view_closed" || len(a.fake.Views(slacktest.Ann)) != 2 {
		t.Errorf("closing: %v, told %s, %d stay", err, a.last().Type, len(a.fake.Views(slacktest.Ann)))
	}
	a.bad("not_found", "views.update", "view_id", id, "view", view) // it was closed
	stack := a.fake.Views(slacktest.Ann)
	top := stack[len(stack)-1].ID
	answer := func(reply string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.ack = func(frame) (string, bool) { return reply, true }
	}
	answer(`{"response_action":"update","view":{"type":"modal","title":{"type":"plain_text","text":"Other"},"submit":{"type":"plain_text","text":"S"},"blocks":[]}}`)
	if err := a.fake.Submit(within(t), slacktest.Ann, top, nil); err != nil {
		t.Error(err)
	}
	if got := a.fake.Views(slacktest.Ann); got[len(got)-1].Title != "Other" {
		t.Errorf("the top reads %q", got[len(got)-1].Title)
	}
	for _, wrong := range []string{`{"response_action":"update"}`, `{"response_action":"explode"}`, `{"response_action":"errors","errors":{"nowhere":"x"}}`} {
		answer(wrong)
		if err := a.fake.Submit(within(t), slacktest.Ann, top, nil); err == nil {
			t.Errorf("%s was taken", wrong)
		}
	}
	answer(`{"response_action":"clear"}`)
	if err := a.fake.Submit(within(t), slacktest.Ann, top, nil); err != nil || len(a.fake.Views(slacktest.Ann)) != 0 {
		t.Errorf("clear: %v, %d stay", err, len(a.fake.Views(slacktest.Ann)))
	}
}

func TestShortcutsAndSelects(t *testing.T) {
	a := start(t, slacktest.Options{})
	a.dial()
	ts := a.good("chat.postMessage", "channel", slacktest.General, "text", "x", "blocks", "["+selection(several(3, option))+"]").TS
	m, _ := a.fake.Message(slacktest.General, ts)
	if err := a.fake.Choose(within(t), slacktest.Ann, m, "s", "v1"); err != nil {
		t.Fatal(err)
	}
	list := a.got("interactive")
	if got := string(list[0].Payload); !strings.Contains(got, `"selected_option":{"text":{"type":"plain_text","text":"o"},"value":"v1"},"action_id":"s"`) {
		t.Errorf("chose %s", got)
	}
	if err := a.fake.Choose(within(t), slacktest.Ann, m, "s", "v9"); err == nil {
		t.Error("chose what is no option")
	}
	if err := a.fake.Press(within(t), slacktest.Ann, m, "nothing"); err == nil || !strings.Contains(err.Error(), "there is s") {
		t.Errorf("pressed nothing: %v", err)
	}
	if err := a.fake.Shortcut(within(t), slacktest.Ben, m, "ask_about_message"); err != nil || a.last().Type != "message_action" {
		t.Errorf("the shortcut: %v, told %s", err, a.last().Type)
	}
	if err := a.fake.Shortcut(within(t), slacktest.Ben, slacktest.Message{}, "anywhere"); err != nil || a.last().Type != "shortcut" {
		t.Errorf("the global shortcut: %v, told %s", err, a.last().Type)
	}
}

func TestFilesNeedTheToken(t *testing.T) {
	a := start(t, slacktest.Options{})
	m := must[slacktest.Message](t)(a.fake.Post(slacktest.Said{User: slacktest.Ann, Channel: slacktest.General, Files: []slacktest.File{{Name: "a.txt", Content: []byte("inside")}}}))
	at := a.fake.URL() + "/files/" + m.Files[0].ID
	for token, want := range map[string]string{a.fake.BotToken(): "inside", "xoxb-wrong": "<!DOCTYPE html>"} {
		req, err := http.NewRequestWithContext(within(t), http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := a.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.HasPrefix(string(body), want) {
			t.Errorf("with %s: %v %s", token, err, body)
		}
	}
	a.good("files.info", "file", m.Files[0].ID)
	a.bad("file_not_found", "files.info", "file", "F0NONE")
}
