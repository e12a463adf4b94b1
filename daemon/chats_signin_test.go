package daemon_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"nize/bots/discord/discordtest"
	"nize/bots/slack/slacktest"
	"nize/daemon/api"
)

// slash sends a command of somebody's where everybody is.
func slash(t *testing.T, c chat, who, line string) {
	t.Helper()
	err := error(nil)
	switch c := c.(type) {
	case *slackChat:
		err = c.Slash(t.Context(), c.id(who), slacktest.General, line)
	case *discordChat:
		err = c.Slash(t.Context(), c.id(who), discordtest.General, line)
	}
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
}

// pressWords presses one of the buttons of an answer of a command.
func pressWords(t *testing.T, c chat, who string, m saying, nth int, label string) error {
	t.Helper()
	switch c := c.(type) {
	case *slackChat:
		return c.Press(t.Context(), c.id(who), m.raw.(slacktest.Message), []string{"words:0", "words:1"}[nth])
	case *discordChat:
		return c.Press(t.Context(), c.id(who), m.raw.(discordtest.Message), label)
	}
	return nil
}

var sixDigits = regexp.MustCompile(`[^0-9]([0-9]{6})[^0-9]`)

// Somebody signs in to a client, and a browser in, with what nize tells them alone.
func testSigningIn(m *meeting) {
	t := m.t
	heard := func(who, text string) (found saying) {
		t.Helper()
		m.until(who+" reads "+text, func() bool {
			list := m.alone(who)
			i := slices.IndexFunc(list, func(s saying) bool { return strings.Contains(s.text, text) })
			if i >= 0 {
				found = list[i]
			}
			return i >= 0
		})
		return found
	}
	b := browserAt(t, m.Client)
	redirect := "http://127.0.0.1:4567/callback"
	client := b.register("Editor", redirect)

	// Who asks, from where and for what, to that person alone; a press gives the
	// number, and the page takes it.
	path, p := b.open(authorizeURL(client, redirect))
	slash(t, m.chat, "ann", "/nize login "+codeOf(p))
	ask := heard("ann", "wants to use nize as you")
	for _, want := range []string{"Editor", "unverified name", "127.0.0.1:4567", "find and run every tool that you may use", "Asked from 127.0.0.1", "Confirm", "Not me"} {
		if !strings.Contains(ask.text+ask.buttons, want) {
			t.Errorf("the answer lacks %q: %s", want, ask.text)
		}
	}
	if err := pressWords(t, m.chat, "ann", ask, 0, "Confirm"); err != nil {
		t.Fatal(err)
	}
	number := sixDigits.FindStringSubmatch(heard("ann", "into the page").text)
	if number == nil {
		t.Fatal("no number")
	}
	// Another account can't have it, too.
	slash(t, m.chat, "ben", "/nize login "+codeOf(p)+" confirm")
	heard("ben", "confirmed before")
	for _, one := range m.alone("ben") {
		if strings.Contains(one.text, number[1]) {
			t.Errorf("Ben reads Ann's number: %s", one.text)
		}
	}
	done := b.post(path, inJSON, `{"number":"`+number[1]+`"}`)
	if done.status != 200 || !strings.Contains(done.body, "code=") {
		t.Fatalf("the number: %d %s", done.status, done.body)
	}
	// Where others read it, a code is not taken.
	_, p = b.open(authorizeURL(client, redirect))
	if _, err := m.mention("ben", "login "+codeOf(p)); err != nil {
		t.Fatal(err)
	}
	heard("ben", "Others could read that code")

	// Not me: nobody comes in, and it is an incident.
	slash(t, m.chat, "ben", "/nize login "+codeOf(p))
	if err := pressWords(t, m.chat, "ben", heard("ben", "wants to use nize as you"), 1, "Not me"); err != nil {
		t.Fatal(err)
	}
	heard("ben", "Denied.")
	slash(t, m.chat, "ben", "/nize login "+codeOf(p)+" confirm")
	heard("ben", "its page has ended")

	// A browser: its person is told when it is signed in.
	shown := b.get(b.get("/login").location)
	slash(t, m.chat, "ben", "/nize login "+codeOf(shown))
	if err := pressWords(t, m.chat, "ben", heard("ben", "A browser wants to be signed in as you"), 0, "Confirm"); err != nil {
		t.Fatal(err)
	}
	number = sixDigits.FindStringSubmatch(heard("ben", "into the page").text)
	id := regexp.MustCompile(`/oauth/requests/[A-Za-z0-9_-]+`).FindString(shown.body)
	if got := b.post(id, form, "form="+formOf(shown)+"&number="+number[1]); got.status >= 400 {
		t.Fatalf("the browser's number: %d %s", got.status, got.body)
	}
	told := heard("ben", "A browser is signed in to nize as you")
	if !strings.Contains(told.text, "from 127.0.0.1") {
		t.Errorf("the notice: %s", told.text)
	}
	list, err := api.ListLogins.Call(t.Context(), m.Client, api.ListTokensRequest{})
	if err != nil || len(list.Items) != 1 || !strings.Contains(told.text, "nizectl login revoke "+list.Items[0].ID) {
		t.Errorf("login list %+v %v; the notice %s", list.Items, err, told.text)
	}
	if wrong := m.mistakes(); len(wrong) > 0 {
		t.Errorf("mistakes: %v", wrong)
	}
}
