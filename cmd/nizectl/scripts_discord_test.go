package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"nize/bots/discord/discordtest"
)

// discords are the pretended Discords of the scripts that run, by their directory.
var discords sync.Map

// scriptDiscord starts a pretended Discord and puts its address into a variable and
// its token into TOKEN.
func scriptDiscord(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: discord VAR")
	}
	fake := discordtest.New(discordtest.Options{Unlimited: true, Public: true, NoMembers: true, Patience: time.Minute})
	ts.Check(fake.Start(nil))
	ts.Defer(fake.Close)
	discords.Store(ts.Getenv("WORK"), fake)
	ts.Setenv(args[0], fake.APIURL())
	ts.Setenv("TOKENS", fake.BotToken()+"\n")
	ts.Setenv("GUILD", discordtest.Guild)
	ts.Setenv("APP", discordtest.App)
}

func discordOf(ts *testscript.TestScript) *discordtest.Server {
	fake, ok := discords.Load(ts.Getenv("WORK"))
	if !ok {
		ts.Fatalf("this script has no discord")
	}
	return fake.(*discordtest.Server)
}

// scriptDSlash gives a /nize command in the channel as somebody, and waits for an
// answer that they alone read and that holds the text.
func scriptDSlash(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: dslash WHO LINE ANSWER")
	}
	fake, who := discordOf(ts), map[string]string{"ann": discordtest.Ann, "ben": discordtest.Ben}[args[0]]
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ts.Check(fake.Wait(ctx, func() bool { return len(fake.Commands("")) > 0 }))
	ts.Check(fake.Slash(ctx, who, discordtest.General, args[1]))
	var said string
	err := fake.Wait(ctx, func() bool {
		said = ""
		for _, m := range fake.Ephemerals(discordtest.General, who) {
			said += m.Text() + "\n"
		}
		return strings.Contains(said, args[2])
	})
	if err != nil {
		ts.Fatalf("%s reads %q, want %q", args[0], said, args[2])
	}
}

// scriptDSay mentions nize in the channel and waits for a text in the thread below.
func scriptDSay(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 && len(args) != 4 {
		ts.Fatalf("usage: dsay WHO LINE ANSWER [FILE]")
	}
	fake, who := discordOf(ts), map[string]string{"ann": discordtest.Ann, "ben": discordtest.Ben}[args[0]]
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	written := discordtest.Said{User: who, Channel: discordtest.General, Text: "<@" + discordtest.Bot + "> " + args[1]}
	if len(args) == 4 {
		written.Files = []discordtest.File{{Name: args[3], Content: []byte(ts.ReadFile(args[3]))}}
	}
	m, err := fake.Post(written)
	ts.Check(err)
	var said string
	err = fake.Wait(ctx, func() bool {
		said = ""
		for _, in := range append(fake.Messages(m.ID), fake.Messages(fake.DMChannel(who))...) {
			said += in.Text() + "\n"
		}
		return strings.Contains(said, args[2])
	})
	if err != nil {
		ts.Fatalf("%s reads %q, want %q", args[0], said, args[2])
	}
}

// scriptDPress presses a button of the newest card in a thread of the channel.
func scriptDPress(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: dpress WHO BUTTON")
	}
	fake, who := discordOf(ts), map[string]string{"ann": discordtest.Ann, "ben": discordtest.Ben}[args[0]]
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var at *discordtest.Message
	ts.Check(fake.Wait(ctx, func() bool {
		at = nil
		for _, c := range fake.Channels(who) {
			for _, m := range fake.Messages(c.ID) {
				for _, label := range m.Buttons() {
					if label == args[1] {
						at = &m
					}
				}
			}
		}
		return at != nil
	}))
	ts.Check(fake.Press(ctx, who, *at, args[1]))
}

// scriptDShown waits for a text in the channel itself.
func scriptDShown(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: dshown TEXT")
	}
	fake := discordOf(ts)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var said string
	err := fake.Wait(ctx, func() bool {
		said = ""
		for _, m := range fake.Messages(discordtest.General) {
			said += m.Text() + "\n"
		}
		return strings.Contains(said, args[0])
	})
	if err != nil {
		ts.Fatalf("the channel shows %q, want %q", said, args[0])
	}
}
