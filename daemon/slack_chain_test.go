package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// press presses a button of a card.
func (s *scene) press(user string, m slacktest.Message, verb string) {
	s.t.Helper()
	press := func() error { return s.fake.Press(s.t.Context(), user, m, "call-"+verb) }
	if strings.Contains(string(m.Blocks), `"value":"`+verb+" ") && !strings.Contains(string(m.Blocks), "call-"+verb) { // it stands in the menu
		press = func() error { return s.fake.Choose(s.t.Context(), user, m, "call-menu", verb+" *") }
	}
	if err := press(); err != nil {
		s.t.Fatalf("%s presses %s: %v", user, verb, err)
	}
}

// cardOf is the card of one call among these messages, once it is so.
func (s *scene) cardOf(call, state string, list func() []slacktest.Message) (found slacktest.Message) {
	s.t.Helper()
	s.until("the card of "+call+" is "+state, func() bool {
		for _, m := range list() {
			if strings.Contains(m.Text, "\ncall: "+call) && isIn(m.Text, state) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func (s *scene) thread(root slacktest.Message) func() []slacktest.Message {
	return func() []slacktest.Message { return s.fake.Thread(root.Channel, root.Root()) }
}

func (s *scene) private(user string) func() []slacktest.Message {
	return func() []slacktest.Message { return s.fake.Messages(s.fake.DMChannel(user)) }
}

// next is the call that waits besides those that are known.
func (s *scene) next(known ...string) (id string) {
	s.t.Helper()
	s.until("another call waits", func() bool {
		for _, w := range s.waits() {
			if !slices.Contains(known, w) {
				id = w
				return true
			}
		}
		return false
	})
	return id
}

// ran are the arguments of each run.
func (s *scene) ran() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.args {
		list = append(list, string(a))
	}
	return list
}

// oneResult says that the model read exactly one result, which holds the text.
func (s *scene) oneResult(word, text string) {
	s.t.Helper()
	s.until("the model reads "+text, func() bool { return strings.Contains(s.says.heard(word), text) })
	if heard := s.says.heard(word); strings.Count(heard, "tool: ") != 1 {
		s.t.Errorf("the model read %s", heard)
	}
}

// Two edits by two people of a call that needs two: each starts the votes anew
// with its editor's, and the model gets one result, of the last.
func TestSlackEdits(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.approvers("2 of requester,admins")
	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "please #note")
	if err != nil {
		t.Fatal(err)
	}
	first := s.next()
	s.press(slacktest.Ben, s.cardOf(first, "waiting for approval", s.thread(root)), "edit")
	var wrong slacktest.Refused // beside the field, where what was typed still stands
	if err := s.dialog(slacktest.Ben, map[string][]string{"json": {`{"text":"two","text":"three"}`}}); !errors.As(err, &wrong) || !strings.Contains(wrong["json"], "duplicate") {
		t.Fatal(err)
	}
	s.press(slacktest.Ben, s.cardOf(first, "waiting for approval", s.thread(root)), "edit")
	if err := s.dialog(slacktest.Ben, map[string][]string{"json": {`{"text":"second"}`}}); err != nil {
		t.Fatal(err)
	}
	second := s.next(first)
	old := s.cardOf(first, "cancelled", s.thread(root))
	if strings.Contains(string(old.Blocks), "call-run") {
		t.Error("the card that was edited has buttons")
	}
	saysYes := func(call, who string) {
		t.Helper()
		s.until("the edit counts as a yes", func() bool {
			return strings.Contains(s.cardOf(call, "waiting for approval", s.thread(root)).Text, "approved by: "+who+" (1 of 2)")
		})
	}
	saysYes(second, "ben")
	s.press(slacktest.Ann, s.cardOf(second, "waiting for approval", s.private(slacktest.Ann)), "edit")
	if err := s.dialog(slacktest.Ann, map[string][]string{"json": {`{"text":"third"}`}}); err != nil {
		t.Fatal(err)
	}
	third := s.next(first, second)
	saysYes(third, "ann")
	c := s.cardOf(third, "waiting for approval", s.thread(root))
	s.cardOf(third, "waiting for approval", s.private(slacktest.Ann)) // one that is decided before it came never comes
	if s.runs.Load() != 0 {
		t.Errorf("after the second edit: %d runs", s.runs.Load())
	}
	s.raw(slacktest.Ben, slacktest.Team, "run", "run "+second+" 0000000000000000", s.cardOf(second, "cancelled", s.thread(root)), 7) // a press of before
	s.press(slacktest.Ben, c, "run")
	s.cardOf(third, "done", s.thread(root))
	s.cardOf(third, "done", s.private(slacktest.Ann))
	s.oneResult("note", "noted")
	if got := s.ran(); !slices.Equal(got, []string{`{"text":"third"}`}) {
		t.Errorf("ran with %q", got)
	}
	s.wellBehaved()
}

// Retry after a failure: the model, which had answered, reads the new result in
// the old one's place.
func TestSlackRetry(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.up.SetTool(mcptest.Tool{Name: "note", Description: "Write a note down.", Do: func(context.Context, json.RawMessage) json.RawMessage {
		if s.runs.Add(1) == 1 {
			return json.RawMessage(`{"content":[{"type":"text","text":"no paper"}],"isError":true}`)
		}
		return json.RawMessage(`{"content":[{"type":"text","text":"noted"}]}`)
	}})
	root, posted := s.ask(slacktest.Ben, "note")
	s.press(slacktest.Ben, posted, "run")
	s.until("the model tells of the failure", func() bool { return strings.Contains(s.says.heard("note"), "no paper") })
	s.until("the turn has ended", func() bool { return s.answers(root, "That was note.") == 1 })
	failed := s.cardOf(callOf(posted), "failed", s.thread(root))
	for range 3 {
		if err := s.fake.Press(t.Context(), slacktest.Ben, failed, "call-retry"); err != nil && !strings.Contains(err.Error(), "to act on") {
			t.Fatal(err)
		}
	}
	s.oneResult("note", "noted")
	s.until("it answers again", func() bool { return s.answers(root, "That was note.") == 2 })
	if n := s.runs.Load(); n != 2 {
		t.Errorf("%d runs", n)
	}
	s.wellBehaved()
}

// waiting waits until a thread shows that it waits for people: the cards that were
// shown before are noted by then.
func (s *scene) waiting(root slacktest.Message) {
	s.t.Helper()
	s.until("the session is suspended", func() bool { return s.fake.Session(root.Channel, root.Root()).Status == "suspended" })
}

// callOf is the call that a card is about.
func callOf(m slacktest.Message) string {
	_, rest, _ := strings.Cut(m.Text, "\ncall: ")
	id, _, _ := strings.Cut(rest, "\n")
	return id
}

// Run all runs each call of the step once, but none that was edited meanwhile.
func TestSlackRunAll(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	three := plan{tool: "box:note", args: `{"n":1}`, with: []plan{{tool: "box:note", args: `{"n":2}`}, {tool: "box:note", args: `{"n":3}`}}}
	s.says.plan("three", three)
	asks := func() (slacktest.Message, []string) {
		root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "please #three")
		if err != nil {
			t.Fatal(err)
		}
		s.until("three calls wait", func() bool { return len(s.waits()) == 3 })
		return root, s.waits()
	}
	root, ids := asks()
	for _, id := range ids {
		s.cardOf(id, "waiting for approval", s.thread(root))
	}
	s.waiting(root) // a card counts as read once it is noted where it stands
	var all slacktest.Message
	s.until("run all on a card", func() bool {
		for _, m := range s.thread(root)() {
			if strings.Contains(string(m.Blocks), "Run all 3") {
				all = m
				return true
			}
		}
		return false
	})
	var presses sync.WaitGroup
	for range 20 {
		presses.Go(func() {
			if err := s.fake.Press(t.Context(), slacktest.Ben, all, "call-runall"); err != nil && !strings.Contains(err.Error(), "to act on") {
				t.Error(err)
			}
		})
	}
	presses.Wait()
	for _, id := range ids {
		s.cardOf(id, "done", s.thread(root))
	}
	got := s.ran()
	slices.Sort(got)
	if !slices.Equal(got, []string{`{"n":1}`, `{"n":2}`, `{"n":3}`}) {
		t.Fatalf("ran with %q", got)
	}

	s.approvers("admins")
	root, ids = asks()
	copies := map[string]slacktest.Message{}
	offers := func(id, label string) {
		t.Helper()
		s.until(label+" on a copy", func() bool {
			m, _ := s.fake.Message(copies[id].Channel, copies[id].TS)
			return strings.Contains(string(m.Blocks), label)
		})
	}
	for _, id := range ids {
		copies[id] = s.cardOf(id, "waiting for approval", s.private(slacktest.Ann))
		offers(id, "Run all 3")
	}
	s.press(slacktest.Ben, s.cardOf(ids[0], "waiting for approval", s.thread(root)), "edit")
	if err := s.dialog(slacktest.Ben, map[string][]string{"json": {`{"n":9}`}}); err != nil {
		t.Fatal(err)
	}
	edited := s.next(ids...)
	for _, id := range ids[1:] {
		offers(id, "Run all 2") // what was edited is noted
	}
	s.press(slacktest.Ann, copies[ids[1]], "runall")
	for _, id := range ids[1:] {
		s.cardOf(id, "done", s.thread(root))
	}
	s.cardOf(edited, "waiting for approval", s.thread(root))
	if got := s.waits(); !slices.Equal(got, []string{edited}) || slices.Contains(s.ran(), `{"n":9}`) || s.runs.Load() != 5 {
		t.Errorf("%v wait; ran with %q", got, s.ran())
	}
	s.wellBehaved()
}

// What read untrusted text asks from then on, also in the mode that asks for
// nothing, and says why; other conversations don't.
func TestSlackTaint(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	yes := true
	if _, err := api.PatchServer.Call(t.Context(), s.Client, api.PatchServerRequest{Name: "box", UntrustedOutput: &yes}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.PutSetting.Call(t.Context(), s.Client, api.PutSettingRequest{Key: "approvals.mode", Value: "none"}); err != nil {
		t.Fatal(err)
	}
	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "please #note")
	if err != nil {
		t.Fatal(err)
	}
	s.until("it runs unasked", func() bool { return s.answers(root, "That was note.") == 1 })
	if _, err := s.fake.Reply(slacktest.Ben, root, "<@"+slacktest.Bot+"> again #note"); err != nil {
		t.Fatal(err)
	}
	m := s.cardOf(s.next(), "waiting for approval", s.thread(root))
	if !strings.Contains(m.Text, "warning: this conversation has read untrusted text") || strings.Contains(string(m.Blocks), "always ") || s.runs.Load() != 1 {
		t.Errorf("%d runs; the card is %s", s.runs.Load(), m.Text)
	}
	other, err := s.fake.Mention(slacktest.Cho, slacktest.General, "please #note")
	if err != nil {
		t.Fatal(err)
	}
	s.until("elsewhere it runs unasked", func() bool { return s.answers(other, "That was note.") == 1 })
}

// tokenOf makes a token of somebody on Slack for an MCP client.
func (s *scene) tokenOf(user string) string {
	s.t.Helper()
	users, err := api.ListUsers.Call(s.t.Context(), s.Client, api.Empty{})
	if err != nil {
		s.t.Fatal(err)
	}
	i := slices.IndexFunc(users.Items, func(u store.User) bool { return strings.Contains(strings.Join(u.Identities, " "), user) })
	if i < 0 {
		s.t.Fatalf("%s is no user", user)
	}
	made, err := api.CreateToken.Call(s.t.Context(), s.Client, api.CreateTokenRequest{Name: "client", User: users.Items[i].ID})
	if err != nil {
		s.t.Fatal(err)
	}
	return made.Secret.Reveal()
}

// A call of an MCP client is a card with its person: the same call joins it,
// one press answers both; when the caller leaves it is cancelled, and the card
// says so.
func TestSlackClientCalls(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	hello, err := s.fake.Mention(slacktest.Ben, slacktest.General, "#hello")
	if err != nil {
		t.Fatal(err)
	}
	s.until("Ben is known", func() bool { return s.answers(hello, "You said hello.") == 1 })
	token := s.tokenOf(slacktest.Ben)
	results := make(chan string, 3)
	call := func(args string) { results <- s.execute(token, "box:note", args) }
	go call(`{"a":1,"b":2}`)
	id := s.next()
	joined := make(chan struct{})
	var once sync.Once
	go func() { // the same call
		results <- s.executeTold(token, "box:note", `{"b":2,"a":1}`, func(line string) {
			if strings.Contains(line, "waiting for approval") {
				once.Do(func() { close(joined) })
			}
		})
	}()
	select {
	case <-joined:
	case got := <-results:
		t.Fatalf("a call ended before it was decided: %s", got)
	}
	posted := s.cardOf(id, "waiting for approval", s.private(slacktest.Ben))
	s.press(slacktest.Ben, posted, "run")
	for range 2 {
		if got := <-results; !strings.Contains(got, "noted") {
			t.Errorf("the client got %s", got)
		}
	}
	s.cardOf(id, "done", s.private(slacktest.Ben))
	if n := s.runs.Load(); n != 1 {
		t.Errorf("%d runs", n)
	}

	ctx, leave := context.WithCancel(t.Context())
	status, err := api.GetStatus.Call(ctx, s.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:note","params":{"c":3}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+status.Listen+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "execute_tool"} {
		req.Header.Set(name, value)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // it is cut off
			resp.Body.Close()
		}
	}()
	id = s.next()
	s.cardOf(id, "waiting for approval", s.private(slacktest.Ben))
	leave()
	<-gone
	if m := s.cardOf(id, "cancelled", s.private(slacktest.Ben)); !strings.Contains(m.Text, "its caller left") {
		t.Errorf("the card says %s", m.Text)
	}
}

// A hundred presses of every kind and from everywhere at once: one decision, at
// most one run, and the card, the audit and the record say the same.
func TestSlackMixedPresses(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.approvers("requester,admins")
	for round := range 4 {
		before := s.runs.Load()
		root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "please #note")
		if err != nil {
			t.Fatal(err)
		}
		id := s.next()
		posted := s.cardOf(id, "waiting for approval", s.thread(root))
		private := s.cardOf(id, "waiting for approval", s.private(slacktest.Ann))
		value := strings.TrimPrefix(valueOf(t, posted, "call-run"), "run ")
		kinds := []func(n int){
			func(n int) { s.raw(slacktest.Ben, slacktest.Team, "run", "run "+value, posted, 1000*round+n) },
			func(n int) { s.raw(slacktest.Ben, slacktest.Team, "cancel", "cancel "+value, posted, 1000*round+n) },
			func(n int) { s.raw(slacktest.Ann, slacktest.Team, "run", "run "+value, private, 1000*round+n) },
			func(n int) { s.raw(slacktest.Ann, slacktest.Team, "runall", "runall "+value, private, 1000*round+n) },
			func(n int) { s.raw(slacktest.Cho, slacktest.Team, "run", "run "+value, posted, 1000*round+n) },
			func(int) { s.slash(slacktest.Ben, "/nize approve "+id) },
			func(int) { s.slash(slacktest.Ben, "/nize deny "+id) },
			func(int) {
				_, _ = api.DecideCall.Call(t.Context(), s.Client, api.DecideCallRequest{ID: id, Verb: store.Approve})
			}, // one of all is taken
			func(int) {
				_, _ = api.DecideCall.Call(t.Context(), s.Client, api.DecideCallRequest{ID: id, Verb: store.Deny, Always: round == 3, Reason: "no"})
			},
			func(int) {
				_, _ = api.DecideCall.Call(t.Context(), s.Client, api.DecideCallRequest{ID: id, Verb: store.Edit, Args: json.RawMessage(`{"text":"hello"}`)})
			},
		}
		var all sync.WaitGroup
		for n := range 100 {
			all.Go(func() { kinds[(n+round)%len(kinds)](n) })
		}
		all.Wait()
		s.settled("done" + string(rune('a'+round)))
		var first, last store.Card
		s.until("the call has ended", func() bool {
			if first, err = api.GetApproval.Call(t.Context(), s.Client, api.CallRequest{ID: id}); err == nil && first.Successor != "" {
				last, err = api.GetApproval.Call(t.Context(), s.Client, api.CallRequest{ID: first.Successor})
			} else {
				last = first
			}
			return err == nil && last.State.Final()
		})
		runs := s.runs.Load() - before
		if want := map[store.State]int64{store.Done: 1}[last.State]; runs != want {
			t.Errorf("the call is %s after %d runs", last.State, runs)
		}
		s.cardOf(last.Call, bots(last.State), s.thread(root))
		s.cardOf(id, bots(first.State), s.private(slacktest.Ann)) // what an edit made may have run before a copy of it was due
	}
	s.until("each refusal of Cho's is in the audit", func() bool { return s.pressRefused()[slacktest.Cho] == 40 })
	if v, err := api.CheckAudit(t.Context(), s.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		t.Errorf("audit %+v, %v", v, err)
	}
}

// bots is the state as a card says it.
func bots(s store.State) string { return strings.Split(s.Word().String(), " ")[0] }
