package view

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/slacktest"
	"nize/bots/slack/wire"
	"nize/store"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n%s", path, got)
	}
}

var testNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func testCard() store.Card {
	return store.Card{
		Call: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Tool: "tracker:create_issue", Title: "Create an issue", Description: "Creates an issue.\nUse it wisely, <!channel>.",
		Server: "tracker", Where: "https://tracker.example/mcp", By: "ann", RunsAs: store.Plain("the team's credential TRACKER"), Why: "you asked for *an issue*",
		Args: json.RawMessage(`{"body":"see <@U0BEN> & https://x.example","labels":["a","b"],"title":"Broken ` + "\u202e" + `door"}`), Warnings: []store.Text{store.Plain("this conversation read untrusted text")},
		Digest: strings.Repeat("ab12", 16), Policy: store.ByRequester, State: store.Pending, Expires: testNow.Add(15 * time.Minute), Always: true,
		CardReason: store.CardReason{Claim: store.Textf("it may destroy something"), Asks: store.Textf("it may change something"), Stops: store.Textf("a standing approval (always)")},
	}
}

// FuzzPress: a button's value is read whatever it is.
func FuzzPress(f *testing.F) {
	f.Add("run 01ARZ3NDEKTSV4RRFFQ69G5FAV abcd")
	f.Fuzz(func(t *testing.T, value string) {
		if p, ok := bots.ReadPress(value); ok && value != p.String() {
			t.Errorf("%q is read as %q", value, p)
		}
	})
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
	together := testCard()
	together.Together, together.Need, together.Yes, together.NotRequester, together.Gone = 2, 2, []string{"ben"}, true, true
	together.Approvers = []store.Approver{{Kind: "group", Names: []string{"ops"}}}
	failed := testCard()
	failed.State, failed.DecidedBy, failed.Outcome, failed.RepeatVerb = store.Failed, "ann", store.Plain("the tracker said no"), store.Retry
	failed.Settled = testNow
	done := testCard()
	done.State, done.DecidedBy, done.Settled, done.Outcome = store.Done, "ann", testNow, store.Plain(`{"issue":12,"url":"https://tracker.example/12"}`)
	elsewhere := testCard()
	elsewhere.Title, elsewhere.By = "Nice\" · decided by \"root", "ann · x"
	elsewhere.In = store.Address{Surface: store.OnSlack, Channel: "C0GENERAL", Thread: "1.2"}
	client := testCard()
	client.Token = "my-ide"
	expired := testCard()
	expired.State, expired.RepeatVerb = store.Expired, store.Again
	ask := testAsk()
	for name, card := range map[string]store.Card{
		"ask": ask, "ask_zh-Hans": ask, "waiting": testCard(), "long": long, "together": together, "failed": failed, "expired": expired, "done": done, "elsewhere": elsewhere, "client": client,
		"together_zh-Hans": together, "together_zh-Hant": together, "failed_zh-Hans": failed, "failed_zh-Hant": failed,
	} {
		_, locale, _ := strings.Cut(name, "_")
		r := bots.Reader{Locale: locale, Now: testNow}
		if name == "elsewhere" {
			r.Link = "https://w.slack.example/archives/C0GENERAL/p12"
		}
		c := RenderCard(card, r, ArgsFile{Name: FileName(card)})
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(c.Blocks); err != nil {
			t.Fatal(err)
		}
		if name != "long" {
			fmt.Fprintf(&out, "---\n%s\n", c.text)
		}
		golden(t, "card_"+name+".golden", out.Bytes())
	}
}

// nasty are what arguments may hold to trick a reader or a chat.
var nasty = []string{
	"<!channel>", "<@U0BEN>", "<!subteam^S1>", "@here", "<https://evil.example|bank>", "https://evil.example", "*bold*", "`code`", "```", "> quote", ":tada:",
	"&lt;!here&gt;", "\u202e", "\u200b", "\u0000", "\x1b[31m", "\u2066", "\U000e0041", "ﾠ", "\\", "\"", "\n", "\r\n", "\t", "日本語", "👩‍👩‍👧", "\ufeff", "state: done", "call: X",
}

// deskOf posts cards as the bot would and reads them as people do.
type deskOf struct {
	t    testing.TB
	fake *slacktest.Server
	wire *wire.Client
}

func newDesk(t testing.TB) *deskOf {
	fake := slacktest.Running(t, slacktest.Options{Unlimited: true})
	o := wire.Options{URL: fake.APIURL(), Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	return &deskOf{t, fake, wire.New(o, store.NewSecret(fake.BotToken()), store.NewSecret(fake.AppToken()))}
}

// check posts a card: Slack must take it, and it must do nothing but be read.
func (d *deskOf) check(card store.Card) {
	c := RenderCard(card, bots.Reader{Now: testNow}, ArgsFile{Name: FileName(card)})
	ts, err := d.wire.Post(d.t.Context(), slacktest.General, slackgo.MsgOptionText(c.text, false), slackgo.MsgOptionBlocks(c.Blocks...))
	if err != nil {
		d.t.Fatalf("Slack refuses the card: %v\nargs %.300q", err, card.Args)
	}
	m, _ := d.fake.Message(slacktest.General, ts)
	e := m.Effects()
	e.Format = slices.DeleteFunc(e.Format, func(f string) bool { return f == "pre" || f == "bold" }) // how arguments and their labels are shown
	if e.Pings() || len(e.Links) > 0 || len(e.Format) > 0 || len(e.Emoji) > 0 || e.Unfurls {
		d.t.Fatalf("the card does more than be read: %+v\nargs %.300q", e, card.Args)
	}
	total := 0
	var shown strings.Builder
	for _, b := range c.Blocks {
		switch b := b.(type) {
		case *slackgo.RichTextBlock:
			for _, e := range b.Elements {
				var spans []slackgo.RichTextSectionElement
				switch e := e.(type) {
				case *slackgo.RichTextPreformatted:
					spans = e.Elements
				case *slackgo.RichTextSection:
					spans = e.Elements
				}
				for _, s := range spans {
					if text, ok := s.(*slackgo.RichTextSectionTextElement); ok { // no date
						total += utf8.RuneCountInString(text.Text)
						shown.WriteString(text.Text)
					}
				}
			}
		case *slackgo.ContextBlock:
			text := b.ContextElements.Elements[0].(*slackgo.TextBlockObject)
			if text.Type != slackgo.PlainTextType {
				d.t.Fatalf("a quiet line is formatted: %q", text.Text)
			}
			total += utf8.RuneCountInString(text.Text)
			shown.WriteString(text.Text)
		case *slackgo.SectionBlock:
			total += utf8.RuneCountInString(b.Text.Text)
			shown.WriteString(b.Text.Text)
		case *slackgo.HeaderBlock:
			total += utf8.RuneCountInString(b.Text.Text)
			shown.WriteString(b.Text.Text + "\n")
		}
	}
	if total > 13_000 {
		d.t.Fatalf("%d characters in all blocks", total)
	}
	if !strings.Contains(buttonsOf(c.Blocks), bots.VerbShow) {
		d.t.Fatal("nothing opens the details")
	}
	p := bots.PartsOf(card, bots.Reader{Now: testNow})
	says := func(what string) bool { return strings.Contains(shown.String(), what) }
	if !Long(card) {
		for _, row := range p.Rows {
			if !says(row.Label+":") || !says(row.Body()) {
				d.t.Fatalf("the card lacks %q: %q", row.Label, row.Body())
			}
		}
		if p.Rows == nil && !says(p.Args) {
			d.t.Fatalf("the arguments are not whole on the card: %.300q", card.Args)
		}
	} else if !says(Digest(card.Args)) || !says(FileName(card)) {
		d.t.Fatal("a card with long arguments does not say where they go on")
	}
	for _, what := range append([]string{p.Headline, p.Name}, p.Warnings...) {
		if utf8.RuneCountInString(what) < maxClaim/2 && !says(what) {
			d.t.Fatalf("the card does not say %.300q", what)
		}
	}
	for _, r := range shown.String() {
		if r != '\n' && r != '\t' && bots.Escape(string(r)) != string(r) {
			d.t.Fatalf("%U stands on the card", r)
		}
	}
	if len(c.text) > 40_000 {
		d.t.Fatalf("%d characters of plain form", len(c.text))
	}
}

func buttonsOf(blocks []slackgo.Block) string {
	raw, err := json.Marshal(blocks[len(blocks)-1])
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// Arguments of 0 to 64 KiB with every nasty character: Slack takes each card,
// nothing pings, and what is shown is what runs.
func TestCardArguments(t *testing.T) {
	d := newDesk(t)
	random := rand.New(rand.NewPCG(7, 7))
	sizes := []int{0, 1, 10, 100, 1000, 2900, 3000, 4900, 5000, 5100, 10_000, 30_000, 60_000}
	for i := range 120 {
		size := sizes[i%len(sizes)]
		var text strings.Builder
		for text.Len() < size {
			text.WriteString(nasty[random.IntN(len(nasty))])
			if random.IntN(3) == 0 {
				text.WriteByte(' ')
			}
		}
		raw, err := json.Marshal(map[string]string{"text": text.String(), nasty[random.IntN(len(nasty))]: "x"})
		if err != nil {
			t.Fatal(err)
		}
		args, err := store.Canonical(raw)
		if err != nil {
			t.Fatal(err)
		}
		card := testCard()
		card.Args = args
		d.check(card)
	}
	edge := testCard()
	for _, field := range []*string{&edge.Description, &edge.Why, &edge.Where, &edge.By, &edge.Title} {
		*field = strings.Repeat(strings.Join(nasty, " "), 60)
	}
	edge.RunsAs, edge.Outcome = store.Plain(edge.Why), store.Plain(edge.Why)
	edge.Warnings = []store.Text{store.Plain(edge.Why), store.Plain(edge.Why)}
	edge.Args = json.RawMessage(`{"t":"` + strings.Repeat("x", 65_000) + `"}`)
	d.check(edge)
}

func FuzzCard(f *testing.F) {
	f.Add("text", "why", "where", "description", "title", 0)
	f.Add("<!channel>\u202e", strings.Repeat("x", 9000), "\x00", "*b*", "a\" · b", 9000)
	d := newDesk(f)
	f.Fuzz(func(t *testing.T, text, why, where, description, title string, pad int) {
		raw, err := json.Marshal(map[string]string{"text": text + strings.Repeat("é", max(0, pad%30_000))})
		if err != nil {
			t.Skip()
		}
		args, err := store.Canonical(raw)
		if err != nil {
			t.Skip()
		}
		card := testCard()
		card.Args, card.Why, card.Where, card.Description, card.Title, card.By = args, why, where, description, title, why
		card.Claim, card.Asks = store.Plain(where), store.Plain(description)
		d := *d
		d.t = t
		d.check(card)
		card.State, card.Outcome, card.DecidedBy = store.Done, store.Plain(text), why
		line := bots.PartsOf(card, bots.Reader{Now: testNow}).Settled.Line()
		if n := strings.Count(line, bots.Between); n > 2 || bots.Escape(line) != line {
			t.Fatalf("what remains of a card has %d parts: %q", n+1, line)
		}
		c := RenderCard(card, bots.Reader{Now: testNow}, ArgsFile{})
		if len(c.Blocks) != 2 || !strings.Contains(buttonsOf(c.Blocks), bots.VerbShow) || len(c.text) > maxEdited {
			t.Fatalf("%d blocks remain of a card", len(c.Blocks))
		}
	})
}

// A form keeps what it does not show and the bytes of what was not touched.
func TestEditForm(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"n":{"type":"number"},"on":{"type":"boolean"},"kind":{"type":"string","enum":["a","b"]}},"required":["title"]}`)
	card := testCard()
	card.Args = json.RawMessage(`{"extra":[1],"kind":"a","n":1e3,"on":true,"title":"x"}`)
	view := EditModal(card, schema, Editing{Call: card.Call}, phrases.For(""))
	if view.Submit == nil || len(view.Blocks.BlockSet) != 5 {
		t.Fatalf("the form has %d blocks", len(view.Blocks.BlockSet))
	}
	w := phrases.For("")
	for text, form := range map[string]bool{"plain\ntext *and* <more>": true, "a\u202eb": false, "zero\u200bwidth": false, "bell\a": false} {
		raw, err := json.Marshal(map[string]string{"title": text})
		if err != nil {
			t.Fatal(err)
		}
		card.Args = raw
		view, err := json.Marshal(EditModal(card, schema, Editing{Call: card.Call}, w))
		if err != nil || strings.Contains(string(view), "field-title") != form || strings.Contains(string(view), "\u202e") || strings.Contains(string(view), "\u200b") {
			t.Errorf("%q is edited with %s", text, view)
		}
	}
	card.Args = json.RawMessage(`{"t":"` + strings.Repeat("x", 4000) + `"}`)
	if view := EditModal(card, nil, Editing{Call: card.Call}, w); view.Submit != nil {
		t.Error("arguments that no dialog holds can't be edited in one")
	}
}

// Pages of a long text together are the text.
func TestPages(t *testing.T) {
	text := strings.Repeat("日本語 line\n", 9000)
	at, seen := Page{Kind: "all", Call: testCard().Call, N: math.MinInt}, "" // as the one behind math.MaxInt: the first
	for range 100 {
		view := PageModal("t", text, at, phrases.For(""))
		if len(view.Blocks.BlockSet) > MaxViewBlocks {
			t.Fatalf("%d blocks", len(view.Blocks.BlockSet))
		}
		for _, b := range view.Blocks.BlockSet {
			if r, ok := b.(*slackgo.RichTextBlock); ok {
				seen += r.Elements[0].(*slackgo.RichTextPreformatted).Elements[0].(*slackgo.RichTextSectionTextElement).Text
			}
		}
		at.N = max(at.N, 0) + 1
		if len(seen) >= len(text) {
			break
		}
	}
	if seen != text {
		t.Errorf("the pages say %d bytes of %d", len(seen), len(text))
	}
}
