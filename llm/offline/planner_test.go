package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/llm"
	"nize/store"
)

// tool is a tool of a fake server.
type tool struct {
	id, about, schema string
	ask               bool
}

var toolbox = []tool{
	// From nize-toolbox, shortened.
	{"toolbox:current_time", "Tells what time and date it is now in a city, country or time zone. Answers questions such as \"What time is it in Tokyo?\" and \"What is today's date?\".",
		`{"type":"object","properties":{"place":{"type":"string","maxLength":100,"description":"City, country, IANA zone or UTC offset. UTC if left out."}},"additionalProperties":false}`, false},
	{"toolbox:convert_time", "Converts a clock time or date and time from one place to another, daylight saving included. Example: 3 pm in New York, in Berlin.",
		`{"type":"object","properties":{"time":{"type":"string","description":"Time to convert: 15:04, 3 pm, 2026-01-31 15:04, RFC 3339 or now."},"from":{"type":"string","description":"Where that time holds. UTC if left out."},"to":{"type":"string","description":"Where to convert it to."}},"required":["time","to"]}`, false},
	{"toolbox:time_difference", "Tells how many hours two places are apart, and the time in both. Example: how far is Tokyo ahead of London?",
		`{"type":"object","properties":{"from":{"type":"string"},"to":{"type":"string"},"date":{"type":"string"}},"required":["from","to"]}`, false},
	{"toolbox:convert_units", "Converts a measurement between units of length, mass, temperature, volume, area, speed. Example: 26.2 miles in km, 98.6 °F in °C.",
		`{"type":"object","properties":{"value":{"type":"number"},"from":{"type":"string","description":"Unit of the value"},"to":{"type":"string","description":"Unit to convert to"}},"required":["value","from","to"]}`, false},
	{"toolbox:roll_dice", "Rolls dice and adds them up. Example: 2d6+3, d20, 4d6kh3.", `{"type":"object","properties":{"dice":{"type":"string","minLength":1,"description":"What to roll, in dice notation: 2d6+3"}},"required":["dice"]}`, false},
	{"toolbox:note_add", "Writes a note into the notebook on this computer and returns its id. Add a note: a list, an idea, a decision.",
		`{"type":"object","properties":{"text":{"type":"string","description":"The note itself"},"title":{"type":"string","description":"Title; the first line of the text if left out"},"tags":{"type":"array","items":{"type":"string"}}},"required":["text"]}`, true},
	{"toolbox:note_list", "Lists all the notes of the notebook, the newest first, with ids and titles.", `{"type":"object","properties":{"tag":{"type":"string"},"limit":{"type":"integer"}}}`, false},
	{"toolbox:calculate", "Computes an arithmetic expression, exactly where the result is a finite decimal. Calculate.", `{"type":"object","properties":{"expression":{"type":"string","description":"Expression, e.g. (19.99 * 3 + 4.50) * 1.081"}},"required":["expression"]}`, false},
	{"toolbox:text_stats", "Counts the characters, bytes, words, lines, sentences and paragraphs of a text and estimates the reading time.", `{"type":"object","properties":{"text":{"type":"string","description":"The text"}},"required":["text"]}`, false},
	{"forms:register", "Register a new member of the club.", `{"type":"object","properties":{"title":{"type":"string"},"text":{"type":"string"}},"required":["title","text"]}`, true},
	{"toolbox:random_number", "A random whole number between min and max.", `{"type":"object","properties":{"min":{"type":"integer"},"max":{"type":"integer"}},"required":["min","max"]}`, false},
	{"web:fetch", "Fetch a web page by its URL.", `{"type":"object","properties":{"url":{"type":"string","format":"uri"},"max_length":{"type":"integer"},"raw":{"type":"boolean"}},"required":["url"]}`, false},
	{"mail:send", "Send an e-mail to somebody.", `{"type":"object","properties":{"email":{"type":"string","format":"email"},"subject":{"type":"string"},"body":{"type":"string"}},"required":["email","subject","body"]}`, true},
}

// chat plays a conversation with the planner and the toolbox.
type chat struct {
	t      *testing.T
	turns  []store.Turn
	runs   []string
	tools  []tool
	out    string     // result of the next execution; "" is "ok"
	said   store.Text // with out, if it is not a result
	ended  store.State
	unmade bool
}

var functions = []store.Function{{Name: discoverTools}, {Name: toolSchema}, {Name: llm.ExecuteTool}, {Name: listDomains}}

// say adds a message and returns the answer.
func (c *chat) say(text string) string {
	c.t.Helper()
	c.turns = append(c.turns, store.Turn{N: len(c.turns), Role: store.FromUser, Text: text, At: time.Date(2026, 11, 21, 23, 30, 0, 0, time.UTC)})
	for range 8 {
		var streamed string
		req := llm.Request{Turns: slices.Clone(c.turns), Functions: functions, Context: "Local time of the person: … (Asia/Tokyo)"}
		reply, err := New(nil).Generate(c.t.Context(), req, func(d llm.Delta) { streamed += d.Text })
		if err != nil {
			c.t.Fatal(err)
		}
		if streamed != reply.Text {
			c.t.Errorf("streamed %q, said %q", streamed, reply.Text)
		}
		turn := store.Turn{N: len(c.turns), Role: store.FromModel, Text: reply.Text, Opaque: reply.Opaque, Calls: reply.Calls}
		for i := range turn.Calls {
			turn.Calls[i].ID = fmt.Sprintf("c%d-%d", turn.N, i)
		}
		c.turns = append(c.turns, turn)
		if len(turn.Calls) == 0 {
			return reply.Text
		}
		for _, call := range turn.Calls {
			c.turns = append(c.turns, store.Turn{N: len(c.turns), Role: store.FromTool, CallID: call.ID, Text: llm.Frame(c.serve(call)), Said: c.said, Ended: c.ended, Unmade: c.unmade})
		}
	}
	c.t.Fatalf("no answer to %q", text)
	return ""
}

// serve is the gateway.
func (c *chat) serve(call store.ToolCall) string {
	var args struct {
		Query  string          `json:"query"`
		Min    *float64        `json:"min_similarity"`
		ToolID string          `json:"tool_id"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal([]byte(call.Args), &args); err != nil {
		c.t.Fatal(err)
	}
	find := func() tool {
		i := slices.IndexFunc(c.tools, func(t tool) bool { return t.id == args.ToolID })
		return c.tools[i]
	}
	switch call.Name {
	case discoverTools:
		var hits []found
		for _, t := range c.tools {
			score := overlap(args.Query, t)
			if score > 0 || args.Min != nil {
				hits = append(hits, found{ID: t.id, Description: t.about, Score: score})
			}
		}
		slices.SortStableFunc(hits, func(a, b found) int { return int((b.Score - a.Score) * 1000) })
		return toJSON(struct {
			Tools []found `json:"tools"`
		}{hits[:min(len(hits), 5)]})
	case toolSchema:
		t := find()
		return toJSON(described{ID: t.id, Name: strings.SplitN(t.id, ":", 2)[1], Description: t.about, InputSchema: json.RawMessage(t.schema), NeedsApproval: t.ask})
	case listDomains:
		return `{"domains":[{"id":"toolbox","description":"everyday tools","tool_count":9}]}`
	}
	params, err := store.Canonical(args.Params)
	if err != nil {
		c.t.Fatal(err)
	}
	c.runs = append(c.runs, find().id+" "+string(params))
	if c.out != "" {
		return c.out
	}
	return "ok"
}

func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// overlap is a simple search: the share of words that the tool contains.
func overlap(query string, t tool) float64 {
	words := func(s string) []string { return strings.FieldsFunc(strings.ToLower(s), notWord) }
	var have []string
	for _, w := range words(t.id + " " + t.about) {
		have = append(have, stem(w))
	}
	n, hits := 0, 0
	for _, w := range words(query) {
		if filler[stem(w)] || len(w) < 3 && w != "is" {
			continue
		}
		n++
		if slices.Contains(have, stem(w)) {
			hits++
		}
	}
	return float64(hits) / float64(max(n, 1))
}

func newChat(t *testing.T) *chat { return &chat{t: t, tools: toolbox} }

func TestOneMessage(t *testing.T) {
	tests := []struct{ text, want string }{
		{"What time is it in Tokyo?", `toolbox:current_time {"place":"Tokyo"}`},
		{"what's the current time in new york now", `toolbox:current_time {"place":"new york"}`},
		{"convert 5 miles to kilometres", `toolbox:convert_units {"from":"miles","to":"kilometres","value":5}`},
		{"Convert -40 °C into °F, please.", `toolbox:convert_units {"from":"°C","to":"°F","value":-40}`},
		{"convert 1,250.5 pounds in kg", `toolbox:convert_units {"from":"pounds","to":"kg","value":1250.5}`},
		{"convert units: how many feet are 3 metres?", `toolbox:convert_units {"from":"metres","to":"feet","value":3}`},
		{"roll 2d6", `toolbox:roll_dice {"dice":"2d6"}`},
		{"Roll a D20!", `toolbox:roll_dice {"dice":"1d20"}`},
		{"add a note titled shopping: milk and eggs", `toolbox:note_add {"text":"milk and eggs","title":"shopping"}`},
		{"Add a note called “Dentist” with the text Tuesday 9:30, second floor", `toolbox:note_add {"text":"Tuesday 9:30, second floor","title":"Dentist"}`},
		{"what is 17*23?", `toolbox:calculate {"expression":"17*23"}`},
		{"1,250 / 5", `toolbox:calculate {"expression":"1250 / 5"}`},
		{"calculate (2 + 3) × 4 - 1", `toolbox:calculate {"expression":"(2 + 3) * 4 - 1"}`},
		{"calculate 12 divided by 5 plus 1", `toolbox:calculate {"expression":"12/5+1"}`},
		{"convert 3pm from London to New York", `toolbox:convert_time {"from":"London","time":"15:00","to":"New York"}`},
		{"convert time 9:05 in Berlin to Tokyo", `toolbox:convert_time {"from":"Berlin","time":"09:05","to":"Tokyo"}`},
		{"What time is it in Tokyo when it is 3pm in London?", `toolbox:convert_time {"from":"London","time":"15:00","to":"Tokyo"}`},
		{"what is the time difference from London to Tokyo", `toolbox:time_difference {"from":"London","to":"Tokyo"}`},
		{"add a note: buy milk", `toolbox:note_add {"text":"buy milk"}`},
		{"count the words of this text: one two three", `toolbox:text_stats {"text":"one two three"}`},
		{"count the words in hello wide world", `toolbox:text_stats {"text":"hello wide world"}`},
		{"count the characters of \"a b\"", `toolbox:text_stats {"text":"a b"}`},
		{"a random number between 5 and 10", `toolbox:random_number {"max":10,"min":5}`},
		{"fetch the page https://example.com/a?b=c, raw, max length 500", `web:fetch {"max_length":500,"raw":true,"url":"https://example.com/a?b=c"}`},
		{"list all notes", `toolbox:note_list {}`},
		{`send an e-mail to a.b@example.com with subject Hello and body: see you`, `mail:send {"body":"see you","email":"a.b@example.com","subject":"Hello"}`},
	}
	for _, tt := range tests {
		c := newChat(t)
		answer := c.say(tt.text)
		if got := strings.Join(c.runs, "; "); got != tt.want {
			t.Errorf("%q:\n got %s\nwant %s\nsaid %s", tt.text, got, tt.want, answer)
		}
	}
}

// Requests in words other than the tool's: calculations, and the order of a question.
func TestOtherWords(t *testing.T) {
	sums := map[string]string{
		"17 percent of 2340": "17/100*2340", "What is 17% of 2,340?": "17/100*2340", "how much is 20% off 49.90": "49.90-49.90*20/100", "add 19% to $250": "250+250*19/100",
		"250 plus 19%": "250+250*19/100", "take 10% off 80": "80-80*10/100", "80 minus 10%": "80-80*10/100", "square root of 144": "sqrt(144)", "the cube root of 27": "cbrt(27)",
		"12 squared": "12^2", "2 cubed": "2^3", "2 to the power of 10": "2^10", "5 factorial": "5!", "factorial of 5": "5!", "half of 86": "86/2", "what's a third of 99?": "99/3",
		"a quarter of 8": "8/4", "double 21": "2*21", "multiply 6 by 7": "6*7", "divide 9 by 4": "9/4", "subtract 3 from 10": "10-3", "difference between 9 and 4": "9-4",
		"average of 3, 8 and 10": "(3+8+10)/3", "What is the sum of 12, 7, and 30?": "12+7+30", "add 2 and 3": "2+3", "the product of 2 and 3 and 4": "2*3*4",
	}
	want := map[string]string{
		"how many grams in a pound?": `toolbox:convert_units {"from":"pound","to":"grams","value":1}`, "time difference between Tokyo and London": `toolbox:time_difference {"from":"Tokyo","to":"London"}`,
		"how far is Tokyo ahead of London?": `toolbox:time_difference {"from":"London","to":"Tokyo"}`, "remember to call Bob": `toolbox:note_add {"text":"call Bob"}`, "show my notes": "toolbox:note_list {}",
		"what time is it": "toolbox:current_time {}",
	}
	for text, sum := range sums {
		want[text] = `toolbox:calculate {"expression":"` + sum + `"}`
	}
	for text, want := range want {
		c := newChat(t)
		answer := c.say(text)
		if got := strings.Join(c.runs, "; "); got != want {
			t.Errorf("%q:\n got %s\nwant %s\nsaid %s", text, got, want, answer)
		}
	}
}

// A tool that shares at most a common word with the message is not proposed.
func TestHonestNo(t *testing.T) {
	for _, text := range []string{
		"generate a password", "what's the weather in Paris", "translate hello to French", "write a poem about spring", "reverse the word hello", "who is the president of France",
		"book a flight to Rome", "tell me a joke", "is 17 prime", "summarise the news", "send a fax to the bank",
	} {
		c := newChat(t)
		for i := range c.tools { // like a search that always finds something
			c.tools = slices.Clone(c.tools)
			c.tools[i].about += " text"
		}
		if answer := c.say(text); len(c.runs) > 0 || !strings.Contains(answer, "I found no tool for “"+text+"” here.") {
			t.Errorf("%q: ran %q, said %s", text, c.runs, answer)
		}
	}
}

// The demo suggests four requests; each works.
func TestDemo(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("..", "..", "scripts", "demo"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^\techo "#   (.+)"$`).FindAllSubmatch(script, -1)
	if len(named) != 4 {
		t.Fatalf("the demo names %d things to try", len(named))
	}
	for _, m := range named {
		c := newChat(t)
		if answer := c.say(string(m[1])); len(c.runs) != 1 {
			t.Errorf("%s: ran %q, said %s", m[1], c.runs, answer)
		}
	}
}

func TestAsksForWhatIsMissing(t *testing.T) {
	c := newChat(t)
	first := c.say("register a new member")
	if !strings.Contains(first, "**title**") || !strings.HasPrefix(first, introduction.String()) || len(c.runs) != 0 {
		t.Errorf("said %q, ran %v", first, c.runs)
	}
	second := c.say("Groceries.")
	if !strings.Contains(second, "**text**") || strings.Contains(second, introduction.String()) {
		t.Errorf("said %q", second)
	}
	c.say("milk, eggs and what is left of the bread?")
	if d := cmp.Diff(c.runs, []string{`forms:register {"text":"milk, eggs and what is left of the bread?","title":"Groceries"}`}); d != "" {
		t.Error(d)
	}

	c = newChat(t)
	c.say("convert 5 miles please")
	if got := c.say("never mind"); got != nothingDone.String() {
		t.Errorf("said %q", got)
	}
	c.say("convert 5 miles please")
	c.say("to kilometres")
	if d := cmp.Diff(c.runs, []string{`toolbox:convert_units {"from":"miles","to":"kilometres","value":5}`}); d != "" {
		t.Error(d)
	}
	c.say("convert units")
	c.say("What time is it in Tokyo?") // not a number: a new request
	if got := c.runs[len(c.runs)-1]; got != `toolbox:current_time {"place":"Tokyo"}` {
		t.Errorf("ran %s", got)
	}
}

func TestTalk(t *testing.T) {
	for text, want := range map[string]string{
		"hello!": greeting.String(), "Good morning": greeting.String(), "thanks a lot": welcome.String(), "never mind": nothingDone.String(),
		"what can you do?": "**toolbox** (9)", "which tools are there?": "**toolbox** (9)",
		"which tool can convert units?":    "`toolbox:convert_units`",
		"Is there a tool to count words?":  "`toolbox:text_stats`",
		"knit me a qwertz xyzzy":           "I found no tool for “knit me a qwertz xyzzy” here. The nearest are:",
		strings.Repeat("very long ", 1000): tooLong.String(),
	} {
		c := newChat(t)
		if got := c.say(text); !strings.Contains(got, want) || len(c.runs) != 0 || !strings.HasPrefix(got, introduction.String()) {
			t.Errorf("%.50q: said %q, ran %v", text, got, c.runs)
		}
	}
	c := &chat{t: t}
	if got := c.say("roll 2d6"); !strings.HasSuffix(got, "I found no tool for “roll 2d6” here.") {
		t.Errorf("said %q", got)
	}
}

func TestOutcomes(t *testing.T) {
	for result, want := range map[string]string{
		"8.05 km":        "8.05 km\n\n(from `toolbox:roll_dice`)",
		"line\nline":     "```\nline\nline\n```",
		"has ```\nfence": "````\nhas ```\nfence\n````",
		"(no output)":    "returned nothing",
	} {
		c := newChat(t)
		c.out = result
		if got := c.say("roll 2d6"); !strings.Contains(got, want) {
			t.Errorf("%q: said %q", result, got)
		}
	}
	for _, row := range []struct {
		ended store.State
		said  store.Text
		want  string
	}{
		{store.Expired, store.Text{}, "was not run: nobody approved it in time."},
		{store.Refused, store.Text{}, "was not run, because it was refused."},
		{store.Refused, store.Plain("policy says no"), "it was refused: policy says no."},
		{store.Failed, store.Textf("no answer within 30s"), "failed: no answer within 30s."},
		{store.Done, store.Plain("bad dice"), "reported an error: bad dice."},
		{store.Lost, store.Plain("x:y did not answer within 1s: the outcome is unknown; check before you run it again"), "ended without a result: x:y did not answer within 1s: the outcome is unknown; check before you run it again."},
		{store.Lost, store.Text{}, "it is unknown whether it took effect. Please check"},
		{store.Planned, store.Textf("tool %s not found", "x"), "was not run: tool x not found."}, // the form stored by older versions
	} {
		c := newChat(t)
		c.ended, c.said = row.ended, row.said
		if got := c.say("roll 2d6"); !strings.Contains(got, row.want) {
			t.Errorf("%s %q: said %q", row.ended, row.said, got)
		}
	}
	unmade := newChat(t)
	unmade.ended, unmade.said, unmade.unmade = store.Failed, store.Textf("tool %s not found", "x"), true
	if got := unmade.say("roll 2d6"); !strings.Contains(got, "was not run: tool x not found.") {
		t.Errorf("never made: said %q", got)
	}
	c := newChat(t)
	c.out = strings.Repeat("x", 9000)
	if got := c.say("roll 2d6"); len(got) > 2500 || !strings.Contains(got, "are left out") {
		t.Errorf("%d bytes shown", len(got))
	}
}

// A tool that needs approval is proposed in words.
func TestProposal(t *testing.T) {
	c := newChat(t)
	c.say("add a note titled a: b")
	var said bool
	for _, turn := range c.turns {
		said = said || strings.Contains(turn.Text, "needs a yes first")
	}
	if !said {
		t.Error("the proposal has no words")
	}
}

func TestWithoutTools(t *testing.T) {
	turns := []store.Turn{{Role: store.FromUser, Text: "roll 2d6"}}
	reply, err := New(nil).Generate(t.Context(), llm.Request{Turns: turns}, nil)
	if err != nil || !strings.HasSuffix(reply.Text, noTools.String()) {
		t.Errorf("got %+v, %v", reply, err)
	}
	reply, err = New(nil).Generate(t.Context(), llm.Request{Turns: turns, Functions: functions, NoCalls: true}, nil)
	if err != nil || len(reply.Calls) > 0 || reply.Text == "" {
		t.Errorf("got %+v, %v", reply, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(nil).Generate(ctx, llm.Request{Turns: turns}, nil); err == nil {
		t.Error("a cancelled round gave no error")
	}
}

func TestSchemas(t *testing.T) {
	schema := `{"$defs":{"unit":{"type":"string","enum":["metric","imperial_us"]},"r":{"$ref":"#/$defs/r"}},
	 "properties":{"unit":{"$ref":"#/$defs/unit"},"fromCity":{"type":["null","string"]},"when":{"anyOf":[{"type":"null"},{"type":"string","format":"date"}]},
	 "loop":{"$ref":"#/$defs/r"},"any":true,"tags":{"type":"array","items":{"type":"string"}},"n":{"type":"integer","default":3}},"required":["unit","n","ghost"]}`
	var got []string
	for _, p := range readParams(json.RawMessage(schema)) {
		got = append(got, fmt.Sprintf("%s %s %v %v %s", p.name, p.kind, p.required, p.enum, p.format))
	}
	want := []string{"unit string true [metric imperial_us] ", "n integer true [] ", "ghost string true [] ",
		"any string false [] ", "fromCity string false [] ", "loop string false [] ", "tags array false [] ", "when string false [] date"}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("-got +want:\n%s", d)
	}
	r := &request{text: "show it in imperial US units, from Paris, tomorrow", at: time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)}
	f := fillArguments(readParams(json.RawMessage(schema)), r, "")
	if d := cmp.Diff(string(f.raw()), `{"fromCity":"Paris","n":3,"unit":"imperial_us","when":"2027-01-01"}`); d != "" {
		t.Error(d)
	}
	if len(f.missing) != 1 || f.missing[0].name != "ghost" {
		t.Errorf("missing %+v", f.missing)
	}
}

func FuzzFill(f *testing.F) {
	for _, tool := range toolbox {
		f.Add(tool.schema, "convert 5 miles from “A” to b: c 3pm 2d6 x@y.de /tmp/x")
	}
	f.Add(`{"properties":{"a":{"type":"array","items":{"type":"number"}},"b(":{"type":"object"}},"required":["a","b("]}`, "1, 2 and -3 b(={}")
	f.Fuzz(func(t *testing.T, schema, text string) {
		if len(text) > maxMessage {
			return
		}
		arguments := fillArguments(readParams(json.RawMessage(schema)), &request{text: text}, "some tool")
		if !json.Valid(arguments.raw()) {
			t.Errorf("not JSON: %s", arguments.raw())
		}
		for name, v := range arguments.args {
			if !json.Valid(v) {
				t.Errorf("%q is not JSON: %s", name, v)
			}
		}
		turns := []store.Turn{{Role: store.FromUser, Text: text}}
		if _, err := New(nil).Generate(t.Context(), llm.Request{Turns: turns, Functions: functions}, nil); err != nil {
			t.Error(err)
		}
	})
}
