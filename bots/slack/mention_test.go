package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	slackgo "github.com/slack-go/slack"

	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/slacktest"
)

// Messages that address nize, and those that only look so: code, edits, deletions. This is
// decided from the messages themselves, without app_mention, in which Slack says that nize
// is meant.
func TestMentions(t *testing.T) {
	t.Parallel()
	events := slices.DeleteFunc(slices.Clone(slacktest.Events), func(e string) bool { return e == "app_mention" })
	fake := startFake(t, slacktest.Options{Unlimited: true, Events: events})
	h := newHeard()
	runBot(t, fake, Options{}, h)
	me := "<@" + slacktest.Bot + ">"
	rich := func(element string) json.RawMessage {
		return json.RawMessage(`[{"type":"rich_text","elements":[` + element + `]}]`)
	}
	user := `{"type":"user","user_id":"` + slacktest.Bot + `"}`
	for _, said := range []slacktest.Said{
		{Text: "code", Blocks: rich(`{"type":"rich_text_preformatted","elements":[` + user + `]}`)},
		{Text: "inline code", Blocks: rich(`{"type":"rich_text_section","elements":[{"type":"user","user_id":"` + slacktest.Bot + `","style":{"code":true}}]}`)},
		{Text: "a block", Blocks: rich(`{"type":"rich_text_section","elements":[` + user + `,{"type":"text","text":" x"}]}`)}, // 1
		{Text: me + " me", Subtype: "me_message"}, // 2
		{Text: "nul\x00 " + me + "\x00"},          // 3
		{Text: "odd " + me, Blocks: json.RawMessage(`[{"type":"section","style":7,"text":["x"]},3]`)}, // 4
	} {
		said.User, said.Channel = slacktest.Ann, slacktest.General
		if _, err := fake.Post(said); err != nil {
			t.Fatal(err)
		}
	}
	plain, err := fake.Say(slacktest.Ann, slacktest.General, "nobody is meant")
	if err != nil {
		t.Fatal(err)
	}
	if err := fake.Edit(plain, me+" now you are"); err != nil {
		t.Fatal(err)
	}
	if err := fake.Delete(plain); err != nil {
		t.Fatal(err)
	}
	root, err := fake.Mention(slacktest.Ben, slacktest.General, "last") // 5
	if err != nil {
		t.Fatal(err)
	}
	h.wait(t, 5)
	broadcast := slacktest.Said{User: slacktest.Ben, Channel: slacktest.General, Thread: root.TS, Text: "for all", Subtype: "thread_broadcast"} // 6
	if _, err := fake.Post(broadcast); err != nil {
		t.Fatal(err)
	}
	h.wait(t, 1)
	got := h.texts()
	slices.Sort(got)
	sameLines(t, "heard", got, []string{"a block", "for all", "last", "me", "nul", "odd"})
	if incoming.Mentions(&incoming.Message{Msg: slackgo.Msg{Text: "see `" + me + "` and\n```\n" + me + "\n```"}}, slacktest.Bot) || !incoming.Mentions(&incoming.Message{Msg: slackgo.Msg{Text: "`a` " + me + " `b`"}}, slacktest.Bot) {
		t.Error("code addresses nize, or hides who does")
	}
}

// The longest message that Slack accepts, and one with ten thousand mentions.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	h := newHeard()
	runBot(t, fake, Options{}, h)
	long := strings.Repeat("x", 39_000)
	var crowd strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&crowd, "<@U%07d>", i)
	}
	for _, text := range []string{long, crowd.String()} {
		if _, err := fake.DM(slacktest.Ann, text); err != nil {
			t.Fatal(err)
		}
	}
	h.wait(t, 2)
	for _, got := range h.texts() {
		if got != long && strings.Count(got, "@U") != 10_000 {
			t.Errorf("heard %d bytes", len(got))
		}
	}
	if n := fake.Stats().Calls["users.info"]; n > people.MaxLookups+3 {
		t.Errorf("Slack was asked for %d people", n)
	}
}
