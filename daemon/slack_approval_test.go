package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// approvers sets who approves calls of the server.
func (s *scene) approvers(p string) {
	s.t.Helper()
	policy := store.Policy(p)
	if _, err := api.PatchServer.Call(s.t.Context(), s.Client, api.PatchServerRequest{Name: "box", Approvers: &policy}); err != nil {
		s.t.Fatal(err)
	}
}

// waits are the ids of the calls that wait.
func (s *scene) waits() (ids []string) {
	s.t.Helper()
	list, err := api.ListApprovals.Call(s.t.Context(), s.Client, api.Empty{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range list.Items {
		ids = append(ids, c.Call)
	}
	return ids
}

// slash says a command in General.
func (s *scene) slash(user, line string) {
	s.t.Helper()
	if err := s.fake.Slash(s.t.Context(), user, slacktest.General, line); err != nil {
		s.t.Fatal(err)
	}
}

// told waits for what only that person reads, in General or in private.
func (s *scene) told(user, text string) (found slacktest.Message) {
	s.t.Helper()
	s.until(user+" is told "+text, func() bool {
		for _, m := range append(s.fake.Ephemerals(slacktest.General, user), s.fake.Messages(s.fake.DMChannel(user))...) {
			if strings.Contains(m.Text, text) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// Without its button a call is decided once its whole card was posted where
// that person reads it, and no sooner.
func TestSlackWordNeedsCard(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	hold := make(chan struct{})
	s.says.plan("held", plan{tool: "box:note", args: `{"text":"hello"}`, hold: hold})
	asked, err := s.fake.Mention(slacktest.Ben, slacktest.General, "please #held")
	if err != nil {
		t.Fatal(err)
	}
	s.until("the model is asked", func() bool { return s.says.asked.Load() > 0 })
	if err := s.fake.Leave(slacktest.Bot, slacktest.General); err != nil { // nothing can be posted there
		t.Fatal(err)
	}
	close(hold)
	s.until("the call waits", func() bool { return len(s.waits()) == 1 })
	id := s.waits()[0]
	s.told(slacktest.Ben, "no longer in that channel") // the card was refused there
	for _, word := range []string{"approve ", "deny "} {
		s.slash(slacktest.Ben, "/nize "+word+id)
	}
	s.until("neither word counts", func() bool { return s.reads(slacktest.Ben, "have not read the card") == 2 }) // the no would count later
	if got := s.waits(); len(got) != 1 || s.runs.Load() != 0 {
		t.Fatalf("decided without a card: %v, %d runs", got, s.runs.Load())
	}
	if err := s.fake.Join(slacktest.Bot, slacktest.General); err != nil {
		t.Fatal(err)
	}
	s.until("Ben's word counts", func() bool { // it brings the card, and counts once it is noted where that stands
		s.slash(slacktest.Ben, "/nize approve "+id)
		return s.runs.Load() == 1
	})
	card(s.killable, s.fake, asked, "done")

	// Who decides and reads it nowhere gets the card in private first.
	s.approvers("channel")
	asked, _ = s.ask(slacktest.Ben, "note")
	id = s.waits()[0]
	if _, err := s.fake.DM(slacktest.Cho, "approve "+id); err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Cho, "你还没有看过此调用的卡片")
	private := s.told(slacktest.Cho, "box:note？")
	if s.runs.Load() != 1 || !strings.Contains(string(private.Blocks), "call-run") {
		t.Fatalf("%d runs; the copy is %s", s.runs.Load(), private.Blocks)
	}
	s.until("Cho's word counts", func() bool { // once it is noted that the copy stands there
		if _, err := s.fake.DM(slacktest.Cho, "approve "+id); err != nil {
			t.Fatal(err)
		}
		return s.runs.Load() == 2
	})
	card(s.killable, s.fake, asked, "done")
	s.until("the copy tells the end", func() bool {
		m, _ := s.fake.Message(private.Channel, private.TS)
		return strings.Contains(m.Text, "状态：")
	})
	if n := s.runs.Load(); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
}

// A button with another call's id, in a channel where that call has no card:
// nobody decides with it, not even who may, and nobody learns of the call.
func TestSlackForgedButton(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	asked, err := s.fake.Mention(slacktest.Ann, slacktest.Secret, "please #note")
	if err != nil {
		t.Fatal(err)
	}
	posted := card(s.killable, s.fake, asked, "waiting for approval")
	var buttons []string
	verbs := []string{"run", "cancel", "always", "never", "runall", "edit", "show"}
	value := strings.TrimPrefix(valueOf(t, posted, "call-run"), "run ")
	for _, verb := range verbs {
		buttons = append(buttons, fmt.Sprintf(`{"type":"button","action_id":"call-%s","value":"%s %s","text":{"type":"plain_text","text":"%s"}}`, verb, verb, value, verb))
	}
	forged, err := s.fake.Post(slacktest.Said{User: slacktest.Bot, Channel: slacktest.General, Text: "press me",
		Blocks: json.RawMessage(`[{"type":"actions","elements":[` + strings.Join(buttons, ",") + `]}]`)})
	if err != nil {
		t.Fatal(err)
	}
	people := []string{slacktest.Cho, slacktest.Ben, slacktest.Ann}
	for _, user := range people {
		for _, verb := range verbs {
			if err := s.fake.Press(t.Context(), user, forged, "call-"+verb); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.until("the refusals are in the audit", func() bool {
		found := s.pressRefused()
		return found[slacktest.Cho] == 5 && found[slacktest.Ben] == 5 && found[slacktest.Ann] == 5
	})
	s.settled("later")
	for _, user := range people {
		if list := s.fake.Views(user); len(list) != 0 {
			t.Errorf("%s has a dialog of the call: %s", user, list[0].Blocks)
		}
	}
	for _, m := range s.fake.Ephemerals(slacktest.General, slacktest.Cho) {
		if strings.Contains(m.Text, "ann") || strings.Contains(m.Text, "box") {
			t.Errorf("Cho learns of the call: %q", m.Text)
		}
	}
	card(s.killable, s.fake, asked, "waiting for approval")
	if n := s.runs.Load(); n != 0 {
		t.Errorf("%d runs", n)
	}
}

// copyOf is the copy of the one card in somebody's conversation with nize, once
// it is so.
func (s *scene) copyOf(user, state string) (found slacktest.Message) {
	s.t.Helper()
	s.until(user+" has a copy that is "+state, func() bool {
		n := 0
		for _, m := range s.fake.Messages(s.fake.DMChannel(user)) {
			if strings.Contains(string(m.Blocks), "box:note") && len(m.Files) == 0 {
				found = m
				n++
			}
		}
		return n == 1 && (state == "" || strings.Contains(found.Text, "\nstate: "+state))
	})
	return found
}

// Who approves has the whole of long arguments in private, too: as a file, named
// on the copy, and behind its button; and their press counts.
func TestSlackCopies(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.approvers("admins")
	long := `{"text":"` + strings.Repeat("0123456789 ", 1000) + `"}`
	s.says.plan("long", plan{tool: "box:note", args: long})
	asked, posted := s.ask(slacktest.Ben, "long")
	files := func(list []slacktest.Message) (files []slacktest.File) {
		for _, m := range list {
			files = append(files, m.Files...)
		}
		return files
	}
	copied := s.copyOf(slacktest.Ann, "waiting for approval")
	private := s.fake.DMChannel(slacktest.Ann)
	for where, all := range map[string]func() []slacktest.Message{
		"the thread": func() []slacktest.Message { return s.fake.Thread(asked.Channel, asked.Root()) },
		"private":    func() []slacktest.Message { return s.fake.Messages(private) },
	} {
		s.until("a file in "+where, func() bool { return len(files(all())) > 0 })
		if list := files(all()); len(list) != 1 || string(list[0].Content) != long || !strings.Contains(string(copied.Blocks), list[0].Name) {
			t.Errorf("in %s are %d files: %.100q", where, len(list), list[0].Content)
		}
	}
	for _, m := range []slacktest.Message{posted, copied} {
		if !strings.Contains(string(m.Blocks), "call-menu") || !strings.Contains(string(m.Blocks), `before you answer`) || !strings.Contains(string(m.Blocks), `"type":"date"`) {
			t.Errorf("the card is %s", m.Blocks)
		}
	}
	if err := s.fake.Choose(t.Context(), slacktest.Ann, copied, "call-menu", "show *"); err != nil {
		t.Fatal(err)
	}
	s.until("the whole in a dialog", func() bool { return len(s.fake.Views(slacktest.Ann)) == 1 })
	if err := s.fake.Press(t.Context(), slacktest.Ann, copied, "call-run"); err != nil {
		t.Fatal(err)
	}
	card(s.killable, s.fake, asked, "done")
	s.copyOf(slacktest.Ann, "done")
	if n := len(files(s.fake.Messages(private))); n != 1 || s.runs.Load() != 1 || string(s.args[0]) != long {
		t.Errorf("%d files, %d runs with %.100q", n, s.runs.Load(), s.args)
	}
	s.wellBehaved()
}

// dialog waits for a person's dialog and sends it in.
func (s *scene) dialog(user string, values map[string][]string) error {
	s.t.Helper()
	s.until("a dialog", func() bool { return len(s.fake.Views(user)) == 1 })
	err := s.fake.Submit(s.t.Context(), user, s.fake.Views(user)[0].ID, values)
	if err != nil {
		s.fake.CloseView(s.t.Context(), user, s.fake.Views(user)[0].ID)
	}
	return err
}

// A standing answer is given in a dialog, for whose calls, with which arguments
// and for how long; it is the yes, too; and it is refused for what its giver may
// not say.
func TestSlackAlways(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	press := s.press
	asked, posted := s.ask(slacktest.Ben, "note")
	press(slacktest.Cho, posted, "always")
	if err := s.dialog(slacktest.Cho, nil); err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Cho, "你不能审批此调用")
	press(slacktest.Ben, posted, "always")
	if err := s.dialog(slacktest.Ben, map[string][]string{"for": {"everywhere"}}); err == nil {
		t.Error("a member is offered everywhere")
	}
	press(slacktest.Ben, posted, "always")
	if err := s.dialog(slacktest.Ben, map[string][]string{"pattern": {"text = x"}}); err == nil {
		t.Error("a pattern that is none is taken")
	}
	press(slacktest.Ben, posted, "always")
	if err := s.dialog(slacktest.Ben, map[string][]string{"for": {"channel"}}); err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Ben, "admins can give a standing answer for it")
	if grants, err := api.ListGrants.Call(t.Context(), s.Client, api.ListGrantsRequest{}); err != nil || len(grants.Items) != 0 || s.runs.Load() != 0 {
		t.Fatalf("%+v, %v, %d runs", grants.Items, err, s.runs.Load())
	}
	press(slacktest.Ben, posted, "always") // and the dialog stays open while somebody else says no
	_, second := s.ask(slacktest.Ben, "note")
	s.until("a dialog", func() bool { return len(s.fake.Views(slacktest.Ben)) == 1 })
	s.fake.CloseView(t.Context(), slacktest.Ben, s.fake.Views(slacktest.Ben)[0].ID)
	press(slacktest.Ben, second, "always")
	if _, err := api.DecideCall.Call(t.Context(), s.Client, api.DecideCallRequest{ID: callOf(second), Verb: store.Deny}); err != nil {
		t.Fatal(err)
	}
	if err := s.dialog(slacktest.Ben, nil); err != nil {
		t.Fatal(err)
	}
	s.told(slacktest.Ben, " is declined by root")
	press(slacktest.Ben, posted, "always")
	if err := s.dialog(slacktest.Ben, map[string][]string{"pattern": {`{"text":"hell*"}`}, "until": {"8h"}}); err != nil {
		t.Fatal(err)
	}
	card(s.killable, s.fake, asked, "done")
	s.told(slacktest.Ben, "Saved: box:note: always allowed · mine · ")
	s.says.plan("more", plan{tool: "box:note", args: `{"text":"hello again"}`})
	if _, err := s.fake.Mention(slacktest.Ben, slacktest.General, "#more"); err != nil {
		t.Fatal(err)
	}
	s.until("it runs without asking", func() bool { return s.runs.Load() == 2 })
	s.says.plan("other", plan{tool: "box:note", args: `{"text":"other"}`})
	_, other := s.ask(slacktest.Ben, "other")
	s.slash(slacktest.Ben, "/nize settings show")
	listed := s.told(slacktest.Ben, "`settings revoke ID` revokes one")
	if !strings.Contains(listed.Text, `box:note, only with {"text":"hell*"}, until 2`) {
		t.Errorf("listed as %s", listed.Text)
	}
	press(slacktest.Ben, other, "never")
	if err := s.dialog(slacktest.Ben, map[string][]string{"until": {"1d"}}); err != nil {
		t.Fatal(err)
	}
	s.until("it is denied", func() bool { return len(s.waits()) == 0 })
	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "#note")
	if err != nil {
		t.Fatal(err)
	}
	s.until("the model is told that there is no such tool", func() bool { return s.answers(root, "That was note.") == 1 })
	if n := s.runs.Load(); n != 2 {
		t.Errorf("%d runs after it was denied for good", n)
	}
	s.wellBehaved()
}

// The last who could approve is switched off in Slack while the card waits: the
// call is refused, and everybody is told why; the model is not told that a
// person said no.
func TestSlackNobodyLeft(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	hello, err := s.fake.Mention(slacktest.Cho, slacktest.General, "#hello")
	if err != nil {
		t.Fatal(err)
	}
	s.until("Cho is known", func() bool { return s.answers(hello, "You said hello.") == 1 })
	users, err := api.ListUsers.Call(t.Context(), s.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users.Items {
		if strings.Contains(strings.Join(u.Identities, " "), slacktest.Cho) {
			s.approvers("user:" + u.ID)
		}
	}
	asked, _ := s.ask(slacktest.Ben, "note")
	s.copyOf(slacktest.Cho, "") // in Chinese
	if err := s.fake.Deactivate(slacktest.Cho); err != nil {
		t.Fatal(err)
	}
	m := card(s.killable, s.fake, asked, "refused")
	if !strings.Contains(m.Text, "nobody can approve it now") {
		t.Errorf("the card says %s", m.Text)
	}
	s.oneResult("note", "The call was refused and not run")
}

// Copies stand after the plug was pulled: one of each, with one file, and their
// buttons work.
func TestSlackCopiesKilled(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{
		{Name: "note", Description: "Write a note down.", Do: func(context.Context, json.RawMessage) json.RawMessage {
			runs.Add(1)
			return json.RawMessage(`{"content":[{"type":"text","text":"noted"}]}`)
		}},
	}})
	s := &scene{fixture: &fixture{killable: newKillable(t), says: newSpeaker(t), up: up}}
	if _, err := api.AddServer.Call(t.Context(), s.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP(), Visibility: []string{"all"}, Approvers: store.ByAdmins}}); err != nil {
		t.Fatal(err)
	}
	s.says.use(t, s.Client)
	s.fake = onSlack(t, s.killable)
	s.says.plan("long", plan{tool: "box:note", args: `{"text":"` + strings.Repeat("0123456789 ", 1000) + `"}`})
	asked, _ := s.ask(slacktest.Ben, "long")
	copied := s.copyOf(slacktest.Ann, "waiting for approval")
	s.restart(s.fake)
	if err := s.fake.Press(t.Context(), slacktest.Ann, copied, "call-run"); err != nil {
		t.Fatal(err)
	}
	card(s.killable, s.fake, asked, "done")
	if m := s.copyOf(slacktest.Ann, "done"); m.TS != copied.TS {
		t.Error("a second copy")
	}
	n := 0
	s.until("both files are shared", func() bool { // a share comes after the answer to it
		n = 0
		for _, m := range append(s.fake.Messages(s.fake.DMChannel(slacktest.Ann)), s.fake.Thread(asked.Channel, asked.Root())...) {
			n += len(m.Files)
		}
		return n >= 2
	})
	if n != 2 || runs.Load() != 1 {
		t.Errorf("%d files, %d runs", n, runs.Load())
	}
}
