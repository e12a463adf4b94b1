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
