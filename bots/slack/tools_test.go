package slack

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/botstest"
	"nize/bots/outbox"
	"nize/bots/slack/people"
	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// TestLookups: lookups are replaced by the call they led to, and there is a button only if
// there is a result.
func TestLookups(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	db := databasetest.Open(t)
	b := runBotWith(t, fake, Options{Store: storeOf(db), Calls: db}, nobody{}, fake.AppToken())
	root, err := fake.Say(slacktest.Ann, slacktest.General, "go")
	if err != nil {
		t.Fatal(err)
	}
	at := store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}
	now := time.Now()
	show := func(id string, line store.ToolLine) slacktest.Message {
		t.Helper()
		to, err := b.Post(t.Context(), at, store.Message{ID: id, Kind: store.ToolMessage, Tool: &line})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fake.Thread(root.Channel, root.TS) {
			if m.TS == to.Message {
				return m
			}
		}
		t.Fatal("the line stands nowhere")
		return slacktest.Message{}
	}
	search, call := "tool/"+store.NewID(now), "tool/"+store.NewID(now)
	if m := show(search, store.ToolLine{Name: "discover_tools", State: store.Running, Brief: store.Plain("dice")}); m.Text != "Search for tools… – dice" {
		t.Errorf("while it searches: %q", m.Text)
	}
	if m := show(search, store.ToolLine{Name: "discover_tools", State: store.Done, Brief: store.Plain("box:roll")}); m.Text != "Search for tools: box:roll" {
		t.Errorf("when it found: %q", m.Text)
	}
	if m := show(call, store.ToolLine{Name: "box:roll", State: store.Running}); m.Text != "box:roll: calling…" || strings.Contains(string(m.Blocks), "Show result") {
		t.Errorf("while it calls: %q %s", m.Text, m.Blocks)
	}
	if m := show(call, store.ToolLine{Name: "box:roll", State: store.Failed, Brief: store.Plain("no such tool")}); m.Text != "box:roll: failed – no such tool" || strings.Contains(string(m.Blocks), "Show result") {
		t.Errorf("a call that was never made: %q %s", m.Text, m.Blocks)
	}
	if m := show(call, store.ToolLine{Name: "box:roll", State: store.Done, Brief: store.Plain("4")}); !strings.Contains(string(m.Blocks), `"Show result"`) {
		t.Errorf("a call with a result: %s", m.Blocks)
	}
}

// People who may see a long result can get it as a file, in private.
func TestResultFile(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	db := databasetest.Open(t)
	b := runBotWith(t, fake, Options{Store: storeOf(db), Calls: db}, nobody{}, fake.AppToken())
	ctx := t.Context()
	if err := fake.Wait(ctx, linked(fake)); err != nil {
		t.Fatal(err)
	}
	ann, err := b.Current().people.Who(ctx, slacktest.Ann, people.Fresh)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a line of a result that is long\n", 1000)
	c := store.Call{ID: store.NewID(time.Now()), Server: "box", Tool: "big", Args: json.RawMessage(`{}`), By: ann.User.ID, State: store.Running, Created: time.Now(), Owner: "x"}
	if err := db.Begin(ctx, ann.Caller(), c); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"content": []map[string]string{{"type": "text", "text": text}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Finish(ctx, ann.Caller(), c.ID, store.Outcome{State: store.Done, Result: &store.Result{Raw: raw}}); err != nil {
		t.Fatal(err)
	}
	root, err := fake.Say(slacktest.Ann, slacktest.General, "go")
	if err != nil {
		t.Fatal(err)
	}
	at := store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}
	to, err := b.Post(ctx, at, store.Message{ID: "tool/" + c.ID, Kind: store.ToolMessage, Tool: &store.ToolLine{Name: "box:big", State: store.Done, Brief: store.Plain("a line")}})
	if err != nil {
		t.Fatal(err)
	}
	m := slacktest.Message{Channel: root.Channel, TS: to.Message}
	for _, who := range []string{slacktest.Ann, slacktest.Ben} {
		if err := fake.Press(ctx, who, m, "Show result"); err != nil {
			t.Fatal(err)
		}
		if err := fake.Wait(ctx, func() bool { return len(fake.Views(who)) == 1 }); err != nil {
			t.Fatal(err)
		}
	}
	if v := fake.Views(slacktest.Ben)[0]; strings.Contains(string(v.Blocks), "a line of a result") || strings.Contains(string(v.Blocks), "Send me a file") {
		t.Errorf("somebody else sees it: %s", v.Blocks)
	}
	v := fake.Views(slacktest.Ann)[0]
	if err := fake.PressView(ctx, slacktest.Ann, v.ID, "Send me a file"); err != nil {
		t.Fatal(err)
	}
	if err := fake.Wait(ctx, func() bool { return strings.Contains(string(fake.Views(slacktest.Ann)[0].Blocks), "is a file now") }); err != nil {
		t.Fatal(err)
	}
	found := 0
	if err := fake.Wait(ctx, func() bool { // Slack shares it some time later
		found = 0
		for _, m := range fake.Messages(fake.DMChannel(slacktest.Ann)) {
			for _, f := range m.Files {
				if f.Name == "result-"+c.ID+".txt" && strings.TrimSpace(string(f.Content)) == strings.TrimSpace(text) {
					found++
				}
			}
		}
		return found > 0
	}); err != nil {
		t.Fatal(err)
	}
	if found != 1 {
		t.Errorf("%d files with the result", found)
	}
}

// TestToolsAfterRestart: a line that changes after a restart replaces only its own text and
// keeps the others.
func TestToolsAfterRestart(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	db := databasetest.Open(t)
	b := runBot(t, fake, Options{Store: storeOf(db), Calls: db}, nobody{})
	root, err := fake.Say(slacktest.Ann, slacktest.General, "go")
	if err != nil {
		t.Fatal(err)
	}
	at := store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}
	line := func(id, name string, state store.State) store.Message {
		return store.Message{ID: "tool/" + id, Kind: store.ToolMessage, Tool: &store.ToolLine{Name: name, State: state}}
	}
	first, second := store.NewID(time.Now()), store.NewID(time.Now())
	for _, m := range []store.Message{line(first, "box:roll", store.Done), line(second, "box:note", store.Running)} {
		if at, err = b.Post(t.Context(), at, m); err != nil {
			t.Fatal(err)
		}
	}
	restart(t, b)
	for range 2 {
		if err := b.Update(t.Context(), at, line(second, "box:note", store.Done)); err != nil {
			t.Fatal(err)
		}
	}
	m, _ := fake.Message(root.Channel, at.Message)
	if m.Text != "box:roll: done\nbox:note: done" || !strings.Contains(string(m.Blocks), first) || !strings.Contains(string(m.Blocks), second) {
		t.Errorf("%q, %s", m.Text, m.Blocks)
	}
}

// drawn returns a call with a result of these items, and a thread for it.
func drawn(t *testing.T, fake *slacktest.Server, items string) (bots.Platform, store.Address, store.Message) {
	t.Helper()
	db := databasetest.Open(t)
	b := runBotWith(t, fake, Options{Store: storeOf(db), Calls: db}, nobody{}, fake.AppToken())
	ctx, now := t.Context(), time.Now()
	by := store.Caller{User: botstest.Requester, Name: "ann"}
	c := store.Call{ID: store.NewID(now), Server: "box", Tool: "draw", Args: json.RawMessage(`{}`), By: by.User, State: store.Running, Created: now, Owner: "x"}
	if err := db.Begin(ctx, by, c); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Finish(ctx, by, c.ID, store.Outcome{State: store.Done, Result: &store.Result{Raw: json.RawMessage(`{"content":[` + items + `]}`)}}); err != nil {
		t.Fatal(err)
	}
	root, err := fake.Say(slacktest.Ann, slacktest.General, "go")
	if err != nil {
		t.Fatal(err)
	}
	at := store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}
	return b, at, store.Message{ID: outbox.ImagesOf(c.ID), Kind: store.ImagesMessage, Final: true}
}

// If Slack accepts no files, the thread says that there was an image.
func TestImagesRefused(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b, at, m := drawn(t, fake, `{"type":"image","mimeType":"image/png","data":"`+botstest.Chart+`"}`)
	fake.Fail("files.getUploadURLExternal", slacktest.Fault{Error: "file_uploads_disabled"})
	if _, err := b.Post(t.Context(), at, m); err != nil {
		t.Fatal(err)
	}
	list := fake.Thread(at.Channel, at.Thread)
	if last := list[len(list)-1].Text; !strings.Contains(last, "Image from box:draw") || !strings.Contains(last, "could not be attached") {
		t.Errorf("the thread says %q", last)
	}
	fake.Fail("files.getUploadURLExternal", slacktest.Fault{Error: "internal_error"}) // a temporary failure
	if _, err := b.Post(t.Context(), at, m); err == nil {
		t.Error("what may pass by itself was given up")
	}
}

// A file of a result is shared once, however often its message fails.
func TestFileSharedOnce(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b, at, m := drawn(t, fake, `{"type":"audio","mimeType":"audio/wav","data":"UklGRg=="},{"type":"resource","resource":{"uri":"x:/<@U1>.txt.exe","blob":"TVo="}}`)
	fake.Fail("chat.postMessage", slacktest.Fault{Error: "external_channel_migrating"})
	if _, err := b.Post(t.Context(), at, m); err == nil {
		t.Fatal("what was not posted counts as posted")
	}
	if _, err := b.Post(t.Context(), at, m); err != nil {
		t.Fatal(err)
	}
	var files, said []string
	err := fake.Wait(t.Context(), func() bool { // a file appears a moment later
		files, said = nil, nil
		for _, m := range fake.Thread(at.Channel, at.Thread) {
			for _, f := range m.Files {
				files = append(files, f.Title)
			}
			if m.User == slacktest.Bot && len(m.Files) == 0 {
				said = append(said, m.Text)
			}
		}
		return len(files) >= 2
	})
	slices.Sort(files)
	if err != nil || !slices.Equal(files, []string{"__U1_.txt.exe", "file.wav"}) || len(said) != 1 || !strings.Contains(said[0], "Files from box:draw: file.wav (4 B), __U1_.txt.exe (2 B)") {
		t.Errorf("files %q, said %q, %v", files, said, err)
	}
}
