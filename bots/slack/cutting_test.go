package slack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
	"nize/bots/slack/view"
	"nize/store"
)

// A long answer is streamed in messages that are complete by themselves, and a restart in
// between splits it in the same places.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b := runBot(t, fake, Options{}, nobody{})
	root, err := fake.Say(slacktest.Ann, slacktest.General, "go")
	if err != nil {
		t.Fatal(err)
	}
	text := sample()
	at := store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}
	m := store.Message{ID: "t/1", Kind: store.TextMessage, For: &store.Asker{Identity: "slack:" + slacktest.Team + ":" + slacktest.Ann, At: time.Now()}}
	for n := 500; at.Message == "" || !m.Final; n += 731 {
		m.Text, m.Final = text[:min(n, len(text))], n >= len(text)
		if at.Message == "" {
			at, err = b.Post(t.Context(), at, m)
		} else {
			err = b.Update(t.Context(), at, m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, msg := range fake.Thread(root.Channel, root.TS)[1:] {
		got = append(got, msg.Text)
	}
	before := ""
	for i, piece := range view.Split(text) {
		if want := view.Dress(before, piece, before+piece != text); i >= len(got) || got[i] != want {
			t.Fatalf("message %d of %d is not what it should be", i, len(got))
		}
		before += piece
	}
}

// A press on Slack's Stop ends the stream before nize receives the event: the rest of the
// text goes into that message, and no new one begins.
func TestStoppedStream(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b := runBot(t, fake, Options{}, nobody{})
	root, err := fake.Say(slacktest.Ann, slacktest.General, "go")
	if err != nil {
		t.Fatal(err)
	}
	m := store.Message{ID: "t/1", Kind: store.TextMessage, Text: "one ", For: &store.Asker{Identity: "slack:" + slacktest.Team + ":" + slacktest.Ann, At: time.Now()}}
	at, err := b.Post(t.Context(), store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}, m)
	if err != nil {
		t.Fatal(err)
	}
	fake.EndStreams()
	for _, text := range []string{"one two ", "one two three"} {
		m.Text, m.Final = text, text == "one two three"
		if err := b.Update(t.Context(), at, m); err != nil {
			t.Fatal(err)
		}
	}
	list := fake.Thread(root.Channel, root.TS)
	if len(list) != 2 || list[1].Text != "one two three" {
		t.Errorf("the thread is %+v", list)
	}
}

// undressed returns the text in the thread without what makes each message complete by
// itself.
func undressed(fake *slacktest.Server, root slacktest.Message, text string) string {
	var shown []string
	for _, m := range fake.Thread(root.Channel, root.TS) {
		if m.User == slacktest.Bot {
			shown = append(shown, m.Text)
		}
	}
	return undress("", shown, text)
}

// undress reads messages as a continuation of said. A text may continue with what would
// close a code block, so both readings are tried.
func undress(said string, shown []string, text string) string {
	if len(shown) == 0 {
		return said
	}
	left := text[min(len(said), len(text)):]
	lead := strings.TrimSuffix(view.Dress(said, left, false), left)
	body := strings.TrimPrefix(shown[0], lead)
	same := partsAt(body, left)
	for n := same; n >= max(same-10, 0); n-- {
		if view.TailOf(said+body[:n]) == body[n:] || n == len(body) {
			if got := undress(said+body[:n], shown[1:], text); got == text {
				return got
			}
		}
	}
	return undress(said+body, shown[1:], text)
}

// sample returns an answer of over 30,000 characters with constructs that a split may go
// through.
func sample() string {
	var b strings.Builder
	b.WriteString("# Report\n\nSome *words*, 1 < 2.\n\n| name | size |\n|---|--:|\n")
	for i := range 500 {
		fmt.Fprintf(&b, "| row %d | %d |\n", i, i*i)
	}
	b.WriteString("\nNow the code:\n\n```go\n")
	for i := range 400 {
		fmt.Fprintf(&b, "func f%d(x int) int { return x*%d /* *not bold* _x_ */ }\n", i, i)
	}
	b.WriteString("```\n\n")
	for b.Len() < 40_000 {
		b.WriteString("One long line without an end, and then another word of it ")
	}
	return b.String() + "\n\nThe end."
}

func partsAt(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
