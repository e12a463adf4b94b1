package view

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/google/go-cmp/cmp"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

var update = flag.Bool("update", false, "write the golden files")

var testNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func testCard() store.Card {
	return store.Card{
		Call: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Tool: "tracker:create_issue", Title: "Create an issue", Description: "Creates an issue.\nUse it wisely, @everyone.",
		Server: "tracker", Where: "https://tracker.example/mcp", By: "ann", RunsAs: store.Plain("the team's credential TRACKER"), Why: "you asked for *an issue*",
		Args:     json.RawMessage(`{"body":"see <@3000> and [here](https://x.example) ` + "```" + ` end","labels":["a","b"],"title":"Broken ` + "\u202e" + `door"}`),
		Warnings: []store.Text{store.Plain("this conversation read untrusted text")},
		Digest:   strings.Repeat("ab12", 16), Policy: store.ByRequester, State: store.Pending, Expires: testNow.Add(15 * time.Minute), Always: true,
		CardReason: store.CardReason{Claim: store.Textf("it may destroy something"), Asks: store.Textf("it may change something"), Stops: store.Textf("a standing approval (always)")},
	}
}

// testAsk is a step of a coding agent, whose own words for it say less than it does.
func testAsk() store.Card {
	c := testCard()
	c.Tool, c.Server, c.Title, c.Where, c.Asked = "claude-code:Bash", "claude-code", "Tidy up", "build-7:/srv/web", true
	c.Args, c.Warnings, c.Description = json.RawMessage(`{"command":"git clean -fdx <!channel> && rm -rf build","description":"Tidy up"}`), nil, "machine: build-7\ndirectory: /srv/web"
	return c
}

// The card as it looks, in each of its states.
func TestCardGolden(t *testing.T) {
	long := testCard()
	long.Args = json.RawMessage(`{"text":"` + strings.Repeat("long ", 4000) + `"}`)
	done := testCard()
	done.State, done.DecidedBy, done.Settled, done.Outcome = store.Done, "ben", testNow, store.Plain("issue *7* made")
	failed := testCard()
	failed.State, failed.RepeatVerb, failed.Outcome = store.Failed, store.Retry, store.Plain("no answer")
	for name, c := range map[string]struct {
		card   store.Card
		locale string
	}{"ask": {testAsk(), "en"}, "waiting": {testCard(), "en"}, "waiting_zh-Hans": {testCard(), "zh-Hans"}, "long": {long, "en"}, "done": {done, "en"}, "failed": {failed, "en"}} {
		m := Card(c.card, bots.Reader{Locale: c.locale, Now: testNow})
		checkMessage(t, name, m)
		got, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", "card_"+name+".json")
		if *update {
			if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != string(got)+"\n" {
			t.Errorf("%s: %v; got %s", name, err, got)
		}
	}
}

// checkMessage holds Discord's bounds, and that nobody is notified.
func checkMessage(t *testing.T, name string, m Message) {
	t.Helper()
	if size(m.Content) > MaxText || len(m.Components) > maxRows || len(m.AllowedMentions.Parse) > 0 || m.AllowedMentions.Parse == nil {
		t.Errorf("%s: %d characters, %d rows, mentions %v", name, size(m.Content), len(m.Components), m.AllowedMentions)
	}
	seen := map[string]bool{}
	for _, row := range m.Components {
		row := row.(discordgo.ActionsRow)
		for _, c := range row.Components {
			id, label := "", ""
			switch c := c.(type) {
			case discordgo.Button:
				id, label = c.CustomID, c.Label
			case discordgo.SelectMenu:
				id, label = c.CustomID, c.Placeholder
			}
			if len(id) > maxCustomID || size(label) > maxButton || seen[id] || len(row.Components) > maxRowButtons {
				t.Errorf("%s: the component %+v", name, c)
			}
			seen[id] = true
		}
	}
}

// FuzzCard: whatever a tool, a server or a model says, a card stays within
// Discord's bounds, shows or names all that a press rests on, and nothing outside
// ends its code or becomes a link, a heading or a mention.
func FuzzCard(f *testing.F) {
	f.Add("tool", "title", `{"a":"b"}`, "warning")
	f.Add("t`ool", "```\n# Run all?\n```", "{\"a\":\"```\\n@everyone <@1> https://x.example\"}", "-# quiet")
	f.Add("中文", strings.Repeat("😀", 900), `{"a":"`+strings.Repeat("`", 1500)+`"}`, strings.Repeat("w\n", 900))
	f.Fuzz(func(t *testing.T, tool, title, args, warning string) {
		card := testCard()
		card.Tool, card.Title, card.Where, card.Why, card.By, card.Server = "s:"+tool, title, title, title, title, tool
		card.Args, card.Warnings = json.RawMessage(args), []store.Text{store.Plain(warning)}
		for _, state := range []store.State{store.Pending, store.Done, store.Failed} {
			card.State = state
			m := Card(card, bots.Reader{Now: testNow})
			checkMessage(t, string(state), m)
			if n := strings.Count(m.Content, "```"); n != 0 && n != 2 {
				t.Errorf("%d fences: %s", n, m.Content)
			}
			for i, line := range strings.Split(m.Content, "\n") {
				if i > 0 && strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") {
					t.Errorf("a heading stands in %s", m.Content)
				}
			}
			head, _, _ := strings.Cut(m.Content, "```")
			for _, bad := range []string{"@everyone", "<@", "](http", "https://x"} {
				if strings.Contains(strings.ReplaceAll(head, `\`+bad[:1], ""), bad) {
					t.Errorf("%q stands in %s", bad, head)
				}
			}
		}
	})
}

// TestSplit: no message of a text is longer than Discord takes, whatever stands in
// it, and code stays code in each.
func TestSplit(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("word ", 3000), strings.Repeat("中", 3000), strings.Repeat("😀", 3000), "```go\n" + strings.Repeat("x := 1\n", 900) + "```\n",
		"| a | b |\n|---|---|\n" + strings.Repeat("| 1 | 2 |\n", 600), strings.Repeat("line\n\n", 900), "-# not quiet",
	} {
		before, pieces := "", Split(text)
		for i, body := range pieces {
			m := Part(before, body, i < len(pieces)-1)
			if checkMessage(t, text[:9], m); m.Content == "" || strings.Count(m.Content, "```")%2 != 0 || strings.HasPrefix(m.Content, quiet) {
				t.Errorf("a part of %q: %q", text[:9], m.Content)
			}
			before += body
		}
		if before != text {
			t.Errorf("the parts of %q are not the text", text[:9])
		}
	}
}

// testPatterns are proposed for an ask, the last with as long a text as there is.
var testPatterns = []store.CardPattern{
	{Args: json.RawMessage(`{"command":"git status -s"}`), Line: "git status -s", Exact: true, Covered: 1, Of: 9},
	{Args: json.RawMessage(`{"command":"git status*"}`), Line: "git status*", Covered: 3, Of: 9},
	{Args: json.RawMessage(`{"command":"git*"}`), Line: "git*", Repository: "/srv/web", Covered: 4, Of: 9, Wide: true, Risk: store.Textf("also push, and hooks of the repository")},
}

// TestPatternsInTheDialog: each pattern that a card proposes is a choice, from narrow to
// wide, with what it would have covered and its warning whole, and is read back.
func TestPatternsInTheDialog(t *testing.T) {
	card := testCard()
	d := AlwaysDialog(card, bots.PressOf(bots.VerbAlways, card), bots.StandingScopes{Conversation: true, Session: true, Patterns: testPatterns}, phrases.For(""))
	var got []discordgo.SelectMenuOption
	for _, c := range d.Components {
		if label, ok := c.(discordgo.Label); ok {
			if c, ok := label.Component.(dialogSelect); ok && c.CustomID == bots.StandingArgs {
				got = c.Options
			}
		}
	}
	want := []discordgo.SelectMenuOption{
		{Label: "git status -s", Value: "line", Description: "1 of 9 in 30 days", Default: true},
		{Label: "git status*", Value: `pattern {"command":"git status*"}`, Description: "3 of 9 in 30 days"},
		{Label: "git* in this repository", Value: `here {"command":"git*"}`, Description: "4 of 9 in 30 days; wide: also push, and hooks of the repository"},
		{Label: "any", Value: "any"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	for value, want := range map[string]store.Decision{
		"line":                              {Line: true},
		`pattern {"command":"git status*"}`: {Pattern: json.RawMessage(`{"command":"git status*"}`)},
		`here {"command":"git*"}`:           {Pattern: json.RawMessage(`{"command":"git*"}`), Here: true},
		"any":                               {},
	} {
		read, err := ReadAlways(map[string][]string{bots.StandingFor: {"conversation"}, bots.StandingArgs: {value}, bots.StandingUntil: {"ever"}}, time.Now())
		want.Always, want.For = true, store.ForConversation
		if diff := cmp.Diff(want, read); diff != "" || err != nil {
			t.Errorf("%s: %v %s", value, err, diff)
		}
	}
}

// TestDialogs: dialogs stay within five fields and an id of a hundred characters,
// and say where they don't fit.
func TestDialogs(t *testing.T) {
	w := phrases.For("")
	card := testCard()
	p := bots.PressOf(bots.VerbAlways, card)
	schema := json.RawMessage(`{"properties":{"title":{"type":"string"},"labels":{"type":"array"}}}`)
	flat := json.RawMessage(`{"properties":{"a":{"type":"string"},"b":{"type":"boolean"},"c":{"type":"string","enum":["x","y"]}}}`)
	simple := card
	simple.Args = json.RawMessage(`{"a":"1","b":true}`)
	for name, d := range map[string]Dialog{
		"always": AlwaysDialog(card, p, bots.StandingScopes{Channel: true, Everyone: true}, w), "never": AlwaysDialog(card, bots.PressOf(bots.VerbNever, card), bots.StandingScopes{}, w),
		"patterns": AlwaysDialog(card, p, bots.StandingScopes{Conversation: true, Session: true, Patterns: testPatterns}, w),
		"json":     EditDialog(card, bots.EditCall(card, schema, EditLimits), p, w), "form": EditDialog(simple, bots.EditCall(simple, flat, EditLimits), p, w), "about": AboutDialog("1", w),
	} {
		if len(d.CustomID) > maxCustomID || size(d.Title) > maxDialogTitle || len(d.Components) > maxDialog || len(d.Components) == 0 {
			t.Errorf("%s: %+v", name, d)
		}
		for _, c := range d.Components {
			if c, ok := c.(discordgo.Label); ok && (size(c.Label) > maxDialogTitle || size(c.Description) > maxHint) {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
	if _, form, ok := ReadEdit(strings.TrimPrefix(EditDialog(simple, bots.EditCall(simple, flat, EditLimits), p, w).CustomID, "edit:")); !ok || form == "" {
		t.Error("the dialog's id is not read back")
	}
	long := card
	long.Args = json.RawMessage(`{"text":"` + strings.Repeat("x", 4000) + `"}`)
	if !bots.EditCall(long, schema, EditLimits).TooLong {
		t.Error("a dialog takes more than Discord does")
	}
	if _, ok := SecretDialog(bots.Prompt{Service: strings.Repeat("s", 90), Name: "KEY"}, w); ok {
		t.Error("an id is longer than Discord takes")
	}
}

// TestLengthsOfTexts: a message holds as many characters as Discord lets it, in
// every script, ends with a clause where there are no spaces, and is never longer.
func TestLengthsOfTexts(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want int
	}{
		"latin":   {strings.Repeat("word ", 640), 3}, // 3,200 characters
		"chinese": {strings.Repeat("这是一个没有空格的句子，后面还有。", 188), 3},
		"emoji":   {strings.Repeat("🙂", 1_600), 2},
		"short":   {strings.Repeat("字", 1_500), 1},
	} {
		pieces := Split(test.text)
		before := ""
		for i, body := range pieces {
			shown := Part(before, body, i < len(pieces)-1).Content
			if n := size(shown); n > MaxText {
				t.Errorf("%s: message %d has %d characters", name, i, n)
			}
			if name == "chinese" && !strings.ContainsAny(shown[len(shown)-3:], "，。") {
				t.Errorf("message %d ends within a clause: %q", i, shown[len(shown)-12:])
			}
			before += body
		}
		if before != test.text || len(pieces) != test.want {
			t.Errorf("%s: %d messages, want %d", name, len(pieces), test.want)
		}
	}
}
