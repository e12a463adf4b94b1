package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"nize/bots/chattest/page"
	"nize/bots/slack/slacktest"
)

// slacks are the pretended Slacks of the scripts, by their directory.
var slacks sync.Map

// scriptSlack starts a pretended Slack and keeps its API's address.
func scriptSlack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: slack VAR")
	}
	fake := slacktest.New(slacktest.Options{Unlimited: true, Patience: time.Minute})
	ts.Check(fake.Start(nil))
	ts.Defer(fake.Close)
	slacks.Store(ts.Getenv("WORK"), fake)
	ts.Setenv(args[0], fake.APIURL())
	ts.Setenv("TOKENS", fake.AppToken()+"\n"+fake.BotToken()+"\n")
}

func slackOf(ts *testscript.TestScript) *slacktest.Server {
	fake, ok := slacks.Load(ts.Getenv("WORK"))
	if !ok {
		ts.Fatalf("this script has no slack")
	}
	return fake.(*slacktest.Server)
}

// scriptSlash sends a /nize command as Ann and waits for an answer that she
// alone reads and that holds the text.
func scriptSlash(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: slash LINE ANSWER")
	}
	fake := slackOf(ts)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ts.Check(fake.Slash(ctx, slacktest.Ann, slacktest.General, args[0]))
	said := func() bool {
		return slices.ContainsFunc(fake.Ephemerals(slacktest.General, slacktest.Ann), func(m slacktest.Message) bool { return strings.Contains(m.Text, args[1]) })
	}
	if err := fake.Wait(ctx, said); err != nil {
		ts.Fatalf("%q was not answered with %q: %v", args[0], args[1], fake.Ephemerals(slacktest.General, slacktest.Ann))
	}
}

// scriptSSay mentions the app in a channel and waits for an answer in the thread.
func scriptSSay(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 && len(args) != 3 {
		ts.Fatalf("usage: ssay LINE ANSWER [FILE]")
	}
	said := slacktest.Said{User: slacktest.Ann, Channel: slacktest.General, Text: "<@" + slacktest.Bot + "> " + args[0]}
	if len(args) == 3 {
		said.Files = []slacktest.File{{Name: args[2], Content: []byte(ts.ReadFile(args[2]))}}
	}
	fake := slackOf(ts)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err := fake.Post(said)
	ts.Check(err)
	answered := func() bool {
		in := slices.Concat(fake.Thread(slacktest.General, m.TS), fake.Ephemerals(slacktest.General, slacktest.Ann), fake.Messages(fake.DMChannel(slacktest.Ann)))
		return slices.ContainsFunc(in, func(m slacktest.Message) bool { return strings.Contains(m.Text+string(m.Blocks), args[1]) })
	}
	if err := fake.Wait(ctx, answered); err != nil {
		ts.Fatalf("%q was not answered with %q: %v", args[0], args[1], fake.Thread(slacktest.General, m.TS))
	}
}

// scriptTokens writes the pretended Slack's tokens to a file, one a line.
func scriptTokens(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: tokens FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(ts.Getenv("TOKENS")), 0o600))
}

// scriptUserGroup makes a user group on the pretended Slack, or replaces it.
func scriptUserGroup(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: usergroup ID HANDLE USER…")
	}
	slackOf(ts).AddGroup(slacktest.UserGroup{ID: args[0], Handle: args[1], Name: args[1], Users: args[2:]})
}

// scriptPretend sends a line on the page of nizectl dev, whose --json is in a file.
func scriptPretend(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: pretend FILE USER CHANNEL LINE")
	}
	var made struct {
		Page string `json:"page"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &made))
	at, key, _ := strings.Cut(made.Page, "/#")
	deed, err := json.Marshal(page.Deed{Do: "say", User: args[1], Channel: args[2], Text: args[3]})
	ts.Check(err)
	untilEvery(ts, 100*time.Millisecond, args[3]+" is sent", func(ctx context.Context) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/dev/act", bytes.NewReader(deed))
		ts.Check(err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Key", key)
		res, err := http.DefaultClient.Do(req)
		ts.Check(err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		ts.Check(err)
		if bytes.Contains(b, []byte("no such command here")) { // the bot registers its commands after it connected
			return false
		}
		if res.StatusCode != http.StatusOK || bytes.Contains(b, []byte(`"error"`)) {
			ts.Fatalf("%q was not sent: %s, %s", args[3], res.Status, b)
		}
		return true
	})
}
