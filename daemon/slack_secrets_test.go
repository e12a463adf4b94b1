package daemon_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
)

// A key that somebody pastes, in a message, a command or a dialog, is not in
// the database, nor said to the model, nor repeated by nize; only they are told.
func TestSlackPastedSecrets(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	const key = "sk-abcdefghijklmnop1234"
	const pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabcdef"
	stored := func() bool {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(s.dir, "nize.db"))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(b, []byte("abcdefghijklmnop")) || bytes.Contains(b, []byte("MIIEowIBAAK"))
	}
	masked := func() (n int) {
		for _, m := range s.fake.Ephemerals(slacktest.General, slacktest.Ben) {
			if strings.Contains(m.Text, "secret key") {
				n++
			}
		}
		return n
	}

	root, err := s.fake.Mention(slacktest.Ben, slacktest.General, "my key is "+key+" for #one")
	if err != nil {
		t.Fatal(err)
	}
	s.until("an answer", func() bool { return s.answers(root, "You said one.") == 1 })
	if read := s.says.heard("one"); strings.Contains(read, key) || !strings.Contains(read, "my key is") {
		t.Errorf("the model read %s", read)
	}
	s.until("Ben is told", func() bool { return masked() == 1 })
	if n := s.answers(root, "secret key"); n != 0 {
		t.Error("the thread is told of the key")
	}
	s.reply(slacktest.Cho, root, "<@"+slacktest.Bot+"> #two\n"+pem)
	s.until("an answer", func() bool { return s.answers(root, "You said two.") == 1 })
	s.told(slacktest.Cho, "密钥")

	s.slash(slacktest.Ben, "/nize ask what is "+key+" in #three")
	s.until("the question is answered", func() bool {
		for _, m := range s.fake.Messages(slacktest.General) {
			if strings.Contains(m.Text, "asks: what is") {
				if strings.Contains(m.Text+string(m.Blocks), key) {
					t.Fatalf("nize repeats the key: %s", m.Text)
				}
				return s.answers(m, "You said three.") == 1
			}
		}
		return false
	})
	s.until("Ben is told again", func() bool { return masked() == 2 })

	if err := s.fake.Shortcut(ctx, slacktest.Ben, root, "ask_about_message"); err != nil {
		t.Fatal(err)
	}
	s.until("the dialog", func() bool { return len(s.fake.Views(slacktest.Ben)) == 1 })
	view := s.fake.Views(slacktest.Ben)[0]
	if err := s.fake.Submit(ctx, slacktest.Ben, view.ID, map[string][]string{"question": {"and " + key + "? #four"}}); err != nil {
		t.Fatal(err)
	}
	s.until("the question is answered", func() bool { return s.answers(root, "You said four.") == 1 })
	s.until("Ben is told a third time", func() bool { return masked() == 3 })
	if stored() {
		t.Error("a key is in the database")
	}
	s.wellBehaved()
}

// A key in the dialog that edits a call, or that gives a standing answer, is
// refused at its field: nothing of it is stored, no call is made, and the dialog
// stays open. One that the call held before may stay.
func TestSlackKeysInDialogs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const key, other = "sk-abcdefghijklmnop1234", "ghp_mnopqrstuvwxyz1234"
	s.says.plan("known", plan{tool: "box:note", args: `{"text":"with ` + other + `","more":"` + other + `"}`})
	_, posted := s.ask(slacktest.Ben, "known")
	call := s.next()
	refused := func(verb string, values map[string][]string) {
		t.Helper()
		s.press(slacktest.Ben, posted, verb)
		s.until("a dialog", func() bool { return len(s.fake.Views(slacktest.Ben)) == 1 })
		view := s.fake.Views(slacktest.Ben)[0].ID
		if err := s.fake.Submit(t.Context(), slacktest.Ben, view, values); err == nil {
			t.Fatalf("%s: a key is taken", verb)
		}
		errors := s.fake.Views(slacktest.Ben)[0].Errors
		for block := range values {
			if !strings.Contains(errors[block], "This looks like a key") {
				t.Errorf("%s says %v", verb, errors)
			}
		}
		s.fake.CloseView(t.Context(), slacktest.Ben, view)
	}
	refused("edit", map[string][]string{"json": {`{"text":"` + key + `","more":"` + other + `"}`}})
	refused("edit", map[string][]string{"json": {`{"text":"-----BEGIN PRIVATE KEY-----\nabcdefghijklmnop"}`}})
	refused("always", map[string][]string{"pattern": {`{"text":"` + key + `"}`}})
	if got := s.waits(); len(got) != 1 || got[0] != call || s.runs.Load() != 0 {
		t.Fatalf("%v wait, %d runs", got, s.runs.Load())
	}
	s.press(slacktest.Ben, posted, "edit")
	if err := s.dialog(slacktest.Ben, map[string][]string{"json": {`{"text":"now without","more":"` + other + `"}`}}); err != nil {
		t.Fatal(err)
	}
	s.until("the edited call runs", func() bool { return s.runs.Load() == 1 })
	if got := s.ran(); !strings.Contains(got[0], "now without") || !strings.Contains(got[0], other) {
		t.Errorf("it ran with %s", got[0])
	}
	b, err := os.ReadFile(filepath.Join(s.dir, "nize.db"))
	if err != nil || bytes.Contains(b, []byte("abcdefghijklmnop")) {
		t.Errorf("a key is in the database: %v", err)
	}
	s.wellBehaved()
}
