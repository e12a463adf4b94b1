package page_test

import (
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"nize/bots/chattest/page"
	"nize/bots/discord/discordtest"
	discordpage "nize/bots/discord/discordtest/page"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the page draws of a channel, a thread and a card, and what people do.
func TestPicture(t *testing.T) {
	fake := discordtest.Running(t, discordtest.Options{})
	p := discordpage.Platform{Server: fake}
	do := func(d page.Deed) (page.Done, error) { return p.Do(t.Context(), d) }
	if _, err := do(page.Deed{Do: "say", User: discordtest.Ann, Channel: discordtest.General, Text: "@nize hello"}); err != nil {
		t.Fatal(err)
	}
	root := fake.Messages(discordtest.General)[0]
	if root.Content != "<@"+discordtest.Bot+"> hello" {
		t.Errorf("said %q", root.Content)
	}
	thread, err := fake.BeginThread(discordtest.Ann, root, "hello")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := do(page.Deed{Do: "say", User: discordtest.Ben, Channel: discordtest.General, Thread: thread.ID, Text: "and **me**"}); err != nil {
		t.Fatal(err)
	}
	got := p.Picture(discordtest.Ben, discordtest.General, thread.ID)
	if len(got.Messages) != 1 || got.Messages[0].Replies != 1 || got.Messages[0].Thread != thread.ID || len(got.Thread) != 2 || got.Session.Title != "hello" {
		t.Errorf("Ben sees %+v", got)
	}
	if raw := string(got.Thread[1].Blocks); !strings.Contains(raw, `"type":"markdown","text":"and **me**"`) {
		t.Errorf("the reply is drawn as %s", raw)
	}
	if got := p.Picture(discordtest.Stranger, discordtest.General, thread.ID); len(got.Messages)+len(got.Thread) > 0 {
		t.Errorf("a stranger sees %+v", got)
	}
	for _, row := range []struct {
		deed page.Deed
		says string
	}{
		{page.Deed{Do: "say", Text: " "}, "nothing to say"},
		{page.Deed{Do: "say", User: discordtest.Ann, Channel: discordtest.General, Text: "/nize help"}, "no such command"},
		{page.Deed{Do: "press", User: discordtest.Ann, Channel: discordtest.General, TS: root.ID, Action: "c/x"}, "nothing to press"},
		{page.Deed{Do: "submit", User: discordtest.Ann}, "no open dialog"},
		{page.Deed{Do: "fly"}, "nobody can do"},
	} {
		if _, err := do(row.deed); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%+v: %v, want %q", row.deed, err, row.says)
		}
	}
	files := []page.Attachment{{Name: "a.gif", Content: []byte("GIF89a")}, {Name: "a.txt", Content: []byte("hello")}}
	if _, err := do(page.Deed{Do: "say", User: discordtest.Ben, Channel: discordtest.General, Text: "look", Files: files}); err != nil {
		t.Fatal(err)
	}
	shown := p.Picture(discordtest.Ben, discordtest.General, "").Messages[1].Files
	if len(shown) != 2 || shown[0].ID == "" || shown[0].Text != "" || shown[1].ID != "" || shown[1].Text != "hello" {
		t.Errorf("of files, an image is shown and a text is read: %+v", shown)
	}
	if content, ok := p.Content(shown[0].ID); !ok || string(content) != "GIF89a" {
		t.Errorf("the image is %q, %v", content, ok)
	}
	if done, err := do(page.Deed{Do: "dm", User: discordtest.Ben}); err != nil || done.Channel != fake.DMChannel(discordtest.Ben) {
		t.Errorf("the direct conversation: %+v, %v", done, err)
	}
}

// A message with components of both kinds is drawn as texts, lines, buttons and
// selects.
func TestComponents(t *testing.T) {
	m := discordtest.Message{Content: "card", Components: json.RawMessage(`[{"type":17,"components":[{"type":10,"content":"# Run?"},{"type":14},
		{"type":1,"components":[{"type":2,"style":3,"custom_id":"run/1","label":"Run"},{"type":2,"style":4,"custom_id":"no","label":"Cancel"},{"type":2,"style":5,"url":"https://a.example/","label":"Open"},{"type":2,"style":1,"custom_id":"x","label":"Gone","disabled":true}]},
		{"type":1,"components":[{"type":3,"custom_id":"pick","placeholder":"Which","options":[{"label":"A","value":"a"}]}]}]}]`)}
	got := string(discordpage.Blocks(m))
	want := `[{"type":"markdown","text":"card"},{"type":"markdown","text":"# Run?"},{"type":"divider"},` +
		`{"type":"actions","block_id":"c","elements":[{"type":"button","action_id":"run/1","text":{"type":"plain_text","text":"Run"},"style":"primary"},{"type":"button","action_id":"no","text":{"type":"plain_text","text":"Cancel"},"style":"danger"},{"type":"link_button","text":{"type":"plain_text","text":"Open"},"url":"https://a.example/"}]},` +
		`{"type":"markdown","text":"*Gone*"},` +
		`{"type":"actions","block_id":"c","elements":[{"type":"static_select","action_id":"pick","options":[{"text":{"type":"plain_text","text":"A"},"value":"a"}],"placeholder":{"type":"plain_text","text":"Which"}}]}]`
	if got != want {
		t.Errorf("drawn as\n%s\nwant\n%s", got, want)
	}
}
