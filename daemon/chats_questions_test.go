package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/bots/discord/discordtest"
	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// asker adds a server whose tools run by themselves and ask the person: ask for a form,
// open for a page, and key for a secret. Each returns what the person did.
func (s *fixture) asker() {
	s.t.Helper()
	up := mcptest.New(s.t, mcptest.Options{Name: "travel"})
	ends, end := context.WithCancel(context.Background())
	s.t.Cleanup(end) // a handler whose client was killed waits for ever, and the server for it
	for name, asks := range map[string]sdk.ElicitParams{
		"ask": {Message: "Where shall I book?\nOne seat each.", RequestedSchema: json.RawMessage(`{"type":"object","properties":{
			"city":{"type":"string","title":"City","maxLength":20},"seats":{"type":"integer","title":"Seats","default":2,"maximum":9},
			"class":{"type":"string","title":"Class","oneOf":[{"const":"y","title":"Economy"},{"const":"j","title":"Business"}],"default":"y"},
			"extras":{"type":"array","title":"Extras","items":{"type":"string","enum":["meal","bag","wifi"]}},
			"window":{"type":"boolean","title":"At the window"}},"required":["city"]}`)},
		"open": {Mode: "url", Message: "Sign in at the airline.", URL: "https://air.example/in?state=abc", ElicitationID: "e1"},
		"key":  {Message: "Give me the key.", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"api_key":{"type":"string"}}}`)},
	} {
		up.MCP().AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(ends, cancel)()
			answer, err := req.Session.Elicit(ctx, &asks)
			if err != nil {
				return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}}, nil
			}
			content, _ := json.Marshal(answer.Content)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("the person did %s %s", answer.Action, content)}}}, nil
		})
	}
	if _, err := api.AddServer.Call(s.t.Context(), s.Client, api.AddServerRequest{Server: store.Server{Name: "travel", URL: up.HTTP(), Visibility: []string{"all"}, TrustAnnotations: true}}); err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"ask", "open", "key"} {
		s.says.plan(name, plan{tool: "travel:" + name, args: `{}`, then: "That was " + name + "."})
	}
}

// answer opens the dialog of a question and sends it in.
func (c *slackChat) answer(ctx context.Context, who string, m saying, values map[string][]string) error {
	if err := c.Press(ctx, c.id(who), m.raw.(slacktest.Message), "call-edit"); err != nil {
		return err
	}
	if err := c.Wait(ctx, func() bool { return len(c.Views(c.id(who))) == 1 }); err != nil {
		return err
	}
	view := c.Views(c.id(who))[0]
	fields := map[string][]string{}
	for name, v := range values {
		fields["field-"+name] = v
	}
	err := c.Submit(ctx, c.id(who), view.ID, fields)
	if err != nil {
		return errors.Join(err, c.CloseView(ctx, c.id(who), view.ID))
	}
	return nil
}

func (c *discordChat) answer(ctx context.Context, who string, m saying, values map[string][]string) error {
	if err := c.Press(ctx, c.id(who), m.raw.(discordtest.Message), "call:edit *"); err != nil {
		return err
	}
	return c.Submit(ctx, c.id(who), values)
}

// question waits for the card of a question that somebody alone reads.
func (m *meeting) question(who string, known ...string) (card saying) {
	m.t.Helper()
	m.until("a question for "+who, func() bool {
		for _, s := range m.alone(who) {
			if s.call != "" && !slices.Contains(known, s.call) && strings.Contains(s.buttons, "dismiss "+s.call) {
				card = s
				return true
			}
		}
		return false
	})
	return card
}

// settled waits until the card of a question says how it ended and has no buttons that
// decide.
func (m *meeting) settled(who, call, want string) {
	m.t.Helper()
	m.until("the question "+call+" is "+want, func() bool {
		for _, s := range m.alone(who) {
			if s.call == call && strings.Contains(s.text, want) {
				return !strings.Contains(s.buttons, "dismiss "+call)
			}
		}
		return false
	})
}

// What a server asks in a channel, its requester alone reads and answers, in a dialog;
// the answer goes to the server, and the conversation goes on.
func testQuestions(m *meeting) {
	t := m.t
	m.asker()
	at, err := m.mention("ben", "please #ask")
	if err != nil {
		t.Fatal(err)
	}
	asked := m.question("ben")
	for _, want := range []string{"travel asks you", "Where shall I book?", "City", "Don't give it passwords"} {
		if !strings.Contains(asked.text, want) {
			t.Errorf("the card lacks %q: %s", want, asked.text)
		}
	}
	for _, s := range append(m.said(at), append(m.alone("cho"), m.alone("ann")...)...) {
		if strings.Contains(s.text, "Where shall I book") || s.call == asked.call {
			t.Errorf("others read the question: %s", s.text)
		}
	}
	for _, who := range []string{"cho", "ann"} { // Ann is an admin
		if m.surface() == store.OnSlack { // on Discord they don't see the message at all
			m.forge(who, asked, strings.Replace(m.value(asked, "edit"), "edit ", "run ", 1))
			m.forge(who, asked, strings.Replace(m.value(asked, "edit"), "edit ", "cancel ", 1))
		}
	}

	// What doesn't fit is said, and the question still waits.
	wrong := m.answer(t.Context(), "ben", asked, map[string][]string{"city": {"Rome"}, "seats": {"12"}})
	if m.surface() == store.OnDiscord { // which takes a dialog away before it can be refused
		m.told("ben", "must be at most 9")
	} else if refused := (slacktest.Refused{}); !errors.As(wrong, &refused) || !strings.Contains(fmt.Sprint(refused), "at most") {
		t.Errorf("a wrong answer: %v", wrong)
	}
	if err := m.answer(t.Context(), "ben", asked, map[string][]string{"city": {"Rome"}, "extras": {"0", "2"}, "window": {"0"}}); err != nil {
		t.Fatal(err)
	}
	m.settled("ben", asked.call, "nswered by ")
	m.until("the conversation goes on", func() bool { return m.answered(at, "That was ask.") == 1 })
	want := `the person did accept {"city":"Rome","class":"y","extras":["meal","wifi"],"seats":2,"window":true}`
	if read := m.says.heard("ask"); !strings.Contains(strings.ReplaceAll(read, `\"`, `"`), want) {
		t.Errorf("the model read %s", read)
	}
	call, err := api.GetCall.Call(t.Context(), m.Client, api.CallRequest{ID: asked.call, Reason: "the test looks"})
	if err == nil {
		t.Errorf("an admin reads a question for a reason: %+v", call)
	}

	known := []string{asked.call}
	for _, end := range []struct{ verb, did, settled string }{{"cancel", "decline", "eclined by "}, {"dismiss", "cancel", "ancelled by "}} {
		m.says.plan(end.verb, plan{tool: "travel:ask", args: `{}`, then: "That was " + end.verb + "."})
		at, err := m.mention("ben", "please #"+end.verb)
		if err != nil {
			t.Fatal(err)
		}
		q := m.question("ben", known...)
		known = append(known, q.call)
		if err := m.press(t.Context(), "ben", q, end.verb); err != nil {
			t.Fatal(err)
		}
		m.settled("ben", q.call, end.settled)
		m.until("the conversation goes on", func() bool { return m.answered(at, "That was "+end.verb+".") == 1 })
		if read := m.says.heard(end.verb); !strings.Contains(read, "the person did "+end.did) {
			t.Errorf("after %s the model read %s", end.verb, read)
		}
	}

	at, err = m.mention("ben", "please #open")
	if err != nil {
		t.Fatal(err)
	}
	page := m.question("ben", known...)
	if !strings.Contains(page.text, "air.example") || !strings.Contains(strings.ReplaceAll(page.buttons, `\u0026`, "&"), "https://air.example/in?state=abc") {
		t.Errorf("the card of a page: %s\n%s", page.text, page.buttons)
	}
	if err := m.press(t.Context(), "ben", page, "run"); err != nil {
		t.Fatal(err)
	}
	m.settled("ben", page.call, "nswered by ")
	m.until("the conversation goes on", func() bool { return m.answered(at, "That was open.") == 1 })

	at, err = m.mention("ben", "please #key")
	if err != nil {
		t.Fatal(err)
	}
	m.until("a secret is refused", func() bool { return m.answered(at, "That was key.") == 1 })
	if read := m.says.heard("key"); !strings.Contains(read, "nizectl credentials set") {
		t.Errorf("the model read %s", read)
	}
	if n := m.count("question.rejected"); n != 1 {
		t.Errorf("%d events of refused questions", n)
	}
	m.behaved()
}

// A question whose daemon is killed is withdrawn by the next one, its call is lost, and
// the conversation goes on.
func testQuestionKilled(m *meeting) {
	t := m.t
	m.asker()
	at, err := m.mention("ben", "please #ask")
	if err != nil {
		t.Fatal(err)
	}
	asked := m.question("ben")
	m.restart()
	m.settled("ben", asked.call, "ancelled")
	m.until("the conversation goes on", func() bool { return m.answered(at, "That was ask.") == 1 })
}
