package commands

import (
	"strings"
	"testing"

	"nize/bots"
	"nize/daemon/hooks"
	"nize/store"
)

func wordsOf(claimable bool) *bots.Commands {
	commands := &bots.Commands{}
	commands.Add(bots.CoreCommands(commands, bots.Core{Claimable: func(store.Surface) bool { return claimable }})...)
	commands.Add((&Commands{Keys: store.Keys}).List()...)
	commands.Add((*hooks.Hooks)(nil).Module().Commands...)
	return commands
}

// The first word is a command only if the rest parses for it; what is
// not is for the model, but for a slip, which costs no call of it.
func TestWordsOrSentences(t *testing.T) {
	const id, code, claim = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "ABCD-EFGH-JKLM", "ABCDEFGHIJKL2"
	// What it is after a mention, and what after /nize: the name of a command,
	// ?name where one is suggested, or "" for the model.
	for text, want := range map[string][2]string{
		"usage":                            {"usage", "usage"},
		"Usage 30d":                        {"usage", "usage"},
		"usage 30":                         {"usage", "usage"},
		"usage of our API is high, why?":   {"", ""},
		"usage 99":                         {"", "usage"},
		"usgae":                            {"?usage", "?usage"},
		"usgae of the API":                 {"", "?usage"},
		"hello":                            {"", ""},
		"stop":                             {"stop", "stop"},
		"stop please!":                     {"stop", "stop"},
		"stop the server X":                {"", ""},
		"stop it now or I cry":             {"", ""},
		"mute":                             {"mute", "mute"},
		"mute the alarm":                   {"", ""},
		"unmute":                           {"unmute", "unmute"},
		"approve":                          {"approve", "approve"},
		"approve " + id:                    {"approve", "approve"},
		"approve " + strings.ToLower(id):   {"approve", "approve"},
		"approve it":                       {"", "approve"},
		"approve the request of Ben":       {"", ""},
		"deny " + id:                       {"deny", "deny"},
		"deny access to the wiki":          {"", ""},
		"claim " + claim:                   {"claim", "claim"},
		"claim " + claim + " thanks a lot": {"claim", "claim"},
		"claim that the earth is flat":     {"", ""},
		"link":                             {"link", "link"},
		"link " + code:                     {"link", "link"},
		"link " + code + " confirm":        {"link", "link"},
		"link " + code + " please join us": {"link", "link"},
		"link me to docs":                  {"", ""},
		"link what":                        {"", "link"},
		"help":                             {"help", "help"},
		"help me with the tax form":        {"", ""},
		"help me":                          {"", ""},
		"hlep":                             {"?help", "?help"},
		"ask help me":                      {"ask", "ask"},
		"tools weather":                    {"tools", "tools"},
		"tools":                            {"tools", "tools"},
		"servers":                          {"servers", "servers"},
		"servers deny box":                 {"servers", "servers"},
		"servers deny box,toolbox,a-b":     {"servers", "servers"},
		"servers default":                  {"servers", "servers"},
		"servers deny us everything":       {"", ""},
		"servers are down":                 {"", "servers"},
		"servers in Oslo are down":         {"", ""},
		"agent ops":                        {"agent", "agent"},
		"agent orange is a poison":         {"", ""},
		"model fast":                       {"model", "model"},
		"streaming off":                    {"streaming", "streaming"},
		"streaming is slow today":          {"", ""},
		"model the data":                   {"", ""},
		"approvals":                        {"approvals", "approvals"},
		"approvals take too long":          {"", ""},
		"settings":                         {"settings", "settings"},
		"settings language zh-Hant":        {"settings", "settings"},
		"settings language":                {"settings", "settings"},
		"settings langauge en":             {"", "settings"},
		"settings revoke " + id:            {"settings", "settings"},
		"settings of the printer are lost": {"", ""},
		"settings language of the printer": {"", ""},
		"settings agent.tools.systemPrompt Be terse": {"settings", "settings"},
		"channel":                    {"channel", "channel"},
		"channel mode all":           {"channel", "channel"},
		"channel 4 has the news on":  {"", ""},
		"connect":                    {"connect", "connect"},
		"connect me with Ben":        {"", ""},
		"credentials":                {"credentials", "credentials"},
		"credentials connect github": {"credentials", "credentials"},
		"credentials connect github my secret is x": {"credentials", "credentials"},
		"credentials are overrated in this field":   {"", ""},
		"tokens":                         {"tokens", "tokens"},
		"tokens revoke chat":             {"tokens", "tokens"},
		"tokens new laptop":              {"tokens", "tokens"},
		"tokens in the parser are wrong": {"", ""},
		"hooks":                          {"hooks", "hooks"},
		"hooks off few":                  {"hooks", "hooks"},
		"hooks remove few":               {"hooks", "hooks"},
		`hooks add few rate-limit toolbox {"calls": 5, "per": "1h"}`: {"hooks", "hooks"},
		"hooks add few rate_limit":                                   {"hooks", "hooks"},
		"hooks add few rate-limt":                                    {"", "hooks"},
		"hooks of React are hard to learn":                           {"", ""},
		"hooks are hard":                                             {"", "hooks"},
		"privacy":                                                    {"privacy", "privacy"},
		"privacy matters to us":                                      {"", ""},
		"forget":                                                     {"forget", "forget"},
		"forget what I said before":                                  {"", ""},
		// As people write and copy them.
		"stop!":                      {"stop", "stop"},
		"Stop.":                      {"stop", "stop"},
		"stop, please":               {"stop", "stop"},
		"help?":                      {"?help", "?help"},
		"what?":                      {"", ""},
		"`usage`":                    {"usage", "usage"},
		"`link " + code + "`":        {"link", "link"},
		"`usage` of `link`":          {"", ""},
		"approve `" + id + "`":       {"approve", "approve"},
		"approve: " + id:             {"approve", "approve"},
		"deny " + id + ".":           {"deny", "deny"},
		"/nize help":                 {"help", "help"},
		"/nize claim " + claim:       {"claim", "claim"},
		"stop: the server X is down": {"", ""},
		"":                           {"", ""},
		"用量":                         {"", ""},
	} {
		for i, loose := range []bool{true, false} {
			cmd, _, near, ok := wordsOf(true).Find(store.Caller{}, text, loose)
			got := cmd.Name
			if !ok && near != "" {
				got = "?" + near
			}
			if got != want[i] {
				t.Errorf("%q, after a mention %v: %q, want %q", text, loose, got, want[i])
			}
		}
	}
}

// One word of help says more about one command; what goes on after it is a question.
func TestHelpOfOne(t *testing.T) {
	c, a := wordsOf(false), bots.Asked{By: store.Caller{Role: store.Member}, Locale: "en"}
	for text, want := range map[string]string{
		"help usage": "`usage [DAYS]`: ", "help stop": "`stop`: ", "help": "Ask me anything", "help me with usage": "", "help whatever": "",
	} {
		cmd, words, _, ok := c.Find(a.By, text, true)
		if ok != (want != "") {
			t.Errorf("%q is a command: %v", text, ok)
		}
		if !ok {
			continue
		}
		a.Words = words
		if answer, err := c.Run(t.Context(), cmd, a); err != nil || !strings.HasPrefix(answer.Text, want) {
			t.Errorf("%q says %q, %v", text, answer.Text, err)
		}
	}
}

// Help is what the person may do where they ask.
func TestHelpHere(t *testing.T) {
	place := func(channel, thread string) bots.Asked {
		return bots.Asked{By: store.Caller{Role: store.Member}, At: store.Address{Surface: store.OnSlack, Channel: channel}, Thread: thread, Locale: "en"}
	}
	admin := place("C1", "")
	admin.By.Role = store.Admin
	for name, row := range map[string]struct {
		commands *bots.Commands
		a        bots.Asked
		has      []string
		lacks    []string
	}{
		"a thread":          {wordsOf(false), place("C1", "t"), []string{"`stop`", "`mute`", "`forget`", "`channel`", "`usage`"}, []string{"`claim", "In my threads"}},
		"a channel":         {wordsOf(false), place("C1", ""), []string{"`channel`", "`stop`", "In my threads, you can also write `mute`, `unmute`, `forget`"}, []string{"`claim"}},
		"a DM":              {wordsOf(false), place("D1", ""), []string{"`usage`", "`stop`", "In my threads"}, []string{"`channel`"}},
		"nobody steers":     {wordsOf(true), place("D1", ""), []string{"`claim`"}, nil},
		"an admin is there": {wordsOf(true), admin, []string{"`channel`"}, []string{"`claim"}},
		"in Chinese, a DM":  {wordsOf(false), bots.Asked{Locale: "zh-CN", At: store.Address{Surface: store.OnSlack, Channel: "D1"}}, []string{"在我的消息列中"}, []string{"In my threads"}},
		"no place (a Home)": {wordsOf(false), place("", ""), []string{"`agent`"}, []string{"`channel`"}},
	} {
		text := row.commands.Help(row.a)
		if n := strings.Count(text, "\n") + 1; n > 8 {
			t.Errorf("%s: %d lines\n%s", name, n, text)
		}
		for _, part := range row.has {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q is not in\n%s", name, part, text)
			}
		}
		for _, part := range row.lacks {
			if strings.Contains(text, part) {
				t.Errorf("%s: %q is in\n%s", name, part, text)
			}
		}
	}
}
