package discord

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/botstest"
	"nize/bots/chattest"
	"nize/bots/discord/discordtest"
	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/store"
	"nize/store/database/databasetest"
)

// keeper is a [bots.Keeper] of a person with some of everything.
type keeper struct{ put chan string }

func (k keeper) Home(context.Context, bots.Asked) (bots.Home, error) {
	return bots.Home{
		Agents: []bots.Choice{{Name: "helper"}, {Name: "writer"}}, Servers: []bots.HomeServer{{Name: "box"}, {Name: "tracker", Off: true}},
	}, nil
}

func (k keeper) Bring(context.Context, store.Caller, string) error { return store.ErrNotFound }

func (k keeper) PutSecret(_ context.Context, by store.Caller, p bots.Prompt, secret store.Secret) error {
	if secret.Reveal() == "wrong" {
		return store.Errorf("%w key", store.ErrInvalid)
	}
	k.put <- by.Identity + " " + p.Service + "/" + p.Name + " " + secret.Reveal()
	return nil
}

// form is a command's dialog with a choice and a text field.
type form struct{ filled chan map[string][]string }

func (f form) Form(context.Context, bots.Asked) (*bots.Form, error) {
	return &bots.Form{Title: "The place", About: "About it.", Fields: []bots.Field{
		{Name: "mode", Label: "mode", Value: []string{"all"}, Options: []bots.Option{{Value: "all", Label: "All"}, {Value: "none", Label: "None"}}},
		{Name: "who", Label: "who", Hint: "names", Value: []string{"ann"}},
	}}, nil
}

func (f form) Check(_ context.Context, _ bots.Asked, values map[string][]string) map[string]string {
	if slices.Contains(values["who"], "nobody") {
		return map[string]string{"who": "nobody is no one"}
	}
	return nil
}

func (f form) Fill(_ context.Context, _ bots.Asked, values map[string][]string) (bots.Answer, error) {
	f.filled <- values
	return bots.Said("It is changed."), nil
}

// newCommands returns commands of each kind.
func newCommands(f form) *bots.Commands {
	list := &bots.Commands{}
	any := func(string) bool { return true }
	list.Add(
		bots.Command{Name: "ask", Args: "QUESTION", About: phrases.AboutAsk, Fits: any, Run: func(ctx context.Context, a bots.Asked) (bots.Answer, error) {
			return bots.Answer{}, a.Say(ctx, a.Words)
		}},
		bots.Command{Name: "agent", Args: "[NAME]", About: phrases.AboutAgent, Fits: any, Most: 1, Run: func(_ context.Context, a bots.Asked) (bots.Answer, error) {
			return bots.Answer{Text: "agent is " + a.Words, Buttons: []bots.Button{{Label: phrases.ButtonConnect, Words: "connect now"}}}, nil
		}},
		bots.Command{Name: "connect", About: phrases.AboutConnect, Fits: any, Run: func(_ context.Context, a bots.Asked) (bots.Answer, error) {
			return bots.Answer{Text: "no dialog here", Prompt: &bots.Prompt{Service: "box", Name: "KEY"}}, nil
		}},
		bots.Command{Name: "servers", Args: "[allow|deny NAME]", About: phrases.AboutServers, Fits: any, Most: 2, Run: func(context.Context, bots.Asked) (bots.Answer, error) { return bots.Said("servers"), nil }},
		bots.Command{Name: "channel", Args: "[NAME VALUE]", About: phrases.AboutChannel, Fits: any, Form: f, Run: func(context.Context, bots.Asked) (bots.Answer, error) { return bots.Said("as words"), nil }},
	)
	return list
}

// alone waits for an ephemeral message to a user.
func (s *scene) alone(channel, user, text string) {
	s.t.Helper()
	s.wait(text, func() bool {
		return slices.ContainsFunc(s.fake.Ephemerals(channel, user), func(m discordtest.Message) bool { return strings.Contains(m.Content, text) })
	})
}

// TestCommands: /nize has a subcommand for each word in the reader's language, completes
// names, opens dialogs, and replies to its author only.
func TestCommands(t *testing.T) {
	t.Parallel()
	f, k := form{make(chan map[string][]string, 1)}, keeper{make(chan string, 1)}
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{Commands: newCommands(f), Keeper: k})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s.wait("the commands", func() bool { return len(s.fake.Commands("")) == 2 })
	if list := s.fake.Commands(""); len(list[0].Options) != 5 || list[0].Options[1].Descriptions["zh-CN"] == "" || len(s.fake.Commands(discordtest.Guild)) > 0 {
		t.Errorf("the commands: %+v", list)
	}
	for line, want := range map[string]string{"/nize agent wri": "writer", "/nize servers ": "deny box", "/nize servers all": "allow tracker"} {
		choices, err := s.fake.Complete(ctx, discordtest.Ben, discordtest.General, line)
		if err != nil || len(choices) == 0 || choices[0].Name != want {
			t.Errorf("%s is completed with %+v, %v", line, choices, err)
		}
	}
	must(s.fake.Slash(ctx, discordtest.Ben, discordtest.General, "/nize agent helper"))
	s.alone(discordtest.General, discordtest.Ben, "agent is helper")
	must(s.fake.Press(ctx, discordtest.Ben, s.fake.Ephemerals(discordtest.General, discordtest.Ben)[0], "Connect"))
	if d, ok := s.fake.Dialog(discordtest.Ben); !ok || d.CustomID != "secret:box/KEY" {
		t.Fatalf("the dialog: %+v, %v", d, ok)
	}
	must(s.fake.Submit(ctx, discordtest.Ben, map[string][]string{"secret": {"wrong"}}))
	s.alone(discordtest.General, discordtest.Ben, "invalid key")
	must(s.fake.Slash(ctx, discordtest.Ben, discordtest.General, "/nize connect"))
	must(s.fake.Submit(ctx, discordtest.Ben, map[string][]string{"secret": {"sk-typed"}}))
	if got := <-k.put; got != "discord:"+discordtest.Ben+" box/KEY sk-typed" {
		t.Errorf("it kept %q", got)
	}
	items, err := s.db.Pending(ctx)
	must(err)
	for _, item := range items {
		if strings.Contains(string(item.Payload), "sk-typed") {
			t.Error("the key stands in the inbox")
		}
	}

	must(s.fake.Slash(ctx, discordtest.Ben, discordtest.General, "/nize channel"))
	must(s.fake.Submit(ctx, discordtest.Ben, map[string][]string{"who": {"nobody"}}))
	s.alone(discordtest.General, discordtest.Ben, "who: nobody is no one")
	must(s.fake.Slash(ctx, discordtest.Ben, discordtest.General, "/nize channel"))
	must(s.fake.Submit(ctx, discordtest.Ben, map[string][]string{"mode": {"none"}}))
	if got := <-f.filled; len(got) != 1 || !slices.Equal(got["mode"], []string{"none"}) {
		t.Errorf("it filled in %v", got)
	}
	s.alone(discordtest.General, discordtest.Ben, "It is changed.")

	// The question of a command is posted, and answered below.
	must(s.fake.Slash(ctx, discordtest.Ben, discordtest.General, "/nize ask say by-command"))
	var root string
	s.wait("the question", func() bool {
		for _, m := range s.fake.Messages(discordtest.General) {
			if strings.Contains(m.Content, "Ben Roth asks") {
				root = m.ID
			}
		}
		return root != ""
	})
	s.sees(root, "by-command")

	// A question about a message.
	m, err := s.fake.Say(discordtest.Ann, discordtest.General, "the numbers are 4 and 2")
	must(err)
	must(s.fake.Menu(ctx, discordtest.Ben, m, "Ask nize about this"))
	must(s.fake.Submit(ctx, discordtest.Ben, map[string][]string{"about": {"say about-it"}}))
	s.wait("the answer", func() bool { return s.agent.Said("say about-it") == 1 })
	list, err := s.db.ListThreads(ctx, "", 1)
	must(err)
	turns, err := s.db.Turns(ctx, list[0].ID)
	must(err)
	_ = turns
	if st := s.fake.Stats(); len(st.Refused)+len(st.Unknown)+st.Missed > 0 {
		t.Errorf("Discord counts %+v", st)
	}
}

// settings are a form of seven fields, more than a Discord dialog has, with a list that
// exceeds Discord's limit.
type settings struct {
	form
	now *atomic.Int64 // current values of the fields
}

func (f settings) Form(context.Context, bots.Asked) (*bots.Form, error) {
	var servers []bots.Option
	for n := range 40 {
		servers = append(servers, bots.Option{Value: fmt.Sprint("s", n), Label: fmt.Sprint("s", n)})
	}
	out := &bots.Form{Title: "This channel", About: "What holds here."}
	for n := range 5 {
		out.Fields = append(out.Fields, bots.Field{Name: fmt.Sprint("f", n), Label: fmt.Sprint("f", n), Value: []string{fmt.Sprint(f.now.Load())}})
	}
	few := []bots.Option{{Value: "a", Label: "a"}, {Value: "b", Label: "b"}, {Value: "c", Label: "c"}}
	out.Fields = append(out.Fields, bots.Field{Name: "few", Label: "few", Value: []string{"a", "c"}, Options: few, Many: true},
		bots.Field{Name: "servers", Label: "servers", Value: []string{"s1", "s39"}, Options: servers, Many: true})
	return out, nil
}

// TestManySettings: a form with more fields than a dialog has is offered in several, with a
// note; only the fields that its author changed are set, even if a list exceeds Discord's
// limit and another person changed other fields in the meantime.
func TestManySettings(t *testing.T) {
	t.Parallel()
	f := settings{form{make(chan map[string][]string, 1)}, &atomic.Int64{}}
	commands := &bots.Commands{}
	commands.Add(bots.Command{Name: "channel", Args: "[NAME VALUE]", About: phrases.AboutChannel, Form: f, Run: func(context.Context, bots.Asked) (bots.Answer, error) { return bots.Said("as words"), nil }})
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{Commands: commands})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s.wait("the commands", func() bool { return len(s.fake.Commands("")) > 0 })
	must(s.fake.Slash(ctx, discordtest.Ben, discordtest.General, "/nize channel"))
	s.alone(discordtest.General, discordtest.Ben, "has room for 5 settings at most")
	menu := s.fake.Ephemerals(discordtest.General, discordtest.Ben)[0]
	if got := menu.Buttons(); !slices.Equal(got, []string{"f0, f1, f2, f3", "f4, few, servers"}) {
		t.Fatalf("it offers %q", got)
	}
	for page, change := range []map[string][]string{{"f1": {"7"}}, {"servers": {"s2, s39"}}, {"few": {"b"}}, {"few": {}}} {
		must(s.fake.Press(ctx, discordtest.Ben, menu, menu.Buttons()[min(page, 1)]))
		f.now.Add(1) // another person changes the others
		must(s.fake.Submit(ctx, discordtest.Ben, change))
		got := <-f.filled
		for name, want := range change {
			if len(got) != 1 || !slices.Equal(got[name], want) {
				t.Errorf("of %v it filled in %v", change, got)
			}
		}
	}
	must(s.fake.Press(ctx, discordtest.Ben, menu, menu.Buttons()[1]))
	must(s.fake.Submit(ctx, discordtest.Ben, nil))
	select {
	case got := <-f.filled:
		t.Errorf("of nothing it filled in %v", got)
	default:
	}
	if st := s.fake.Stats(); len(st.Refused)+len(st.Unknown)+st.Missed > 0 {
		t.Errorf("Discord counts %+v", st)
	}
}

// TestGuildCommands: with discord.commands set to guild, the commands are registered in the
// guild and the global ones removed; otherwise the other way round.
func TestGuildCommands(t *testing.T) {
	t.Parallel()
	fake := startFake(t, discordtest.Options{Unlimited: true})
	s := &scene{t: t, db: databasetest.Open(t), fake: fake}
	s.gate = &botstest.Gateway{Calls: s.db, Now: time.Now}
	t.Cleanup(s.gate.Close)
	config := everyone(fake)
	s.o = Options{Calls: s.db, Approver: s.gate, Config: config, Commands: newCommands(form{})}
	for _, where := range []string{"everywhere", "guild", "everywhere"} {
		config["discord.commands"] = where
		s.start()
		here, gone := discordtest.Guild, ""
		if where != "guild" {
			here, gone = gone, here
		}
		s.wait("the commands", func() bool { return len(fake.Commands(here)) == 2 && len(fake.Commands(gone)) == 0 })
		if c := fake.Commands(here)[1]; c.Names["zh-CN"] == "" || c.Names["zh-TW"] == "" || c.Name != "Ask nize about this" {
			t.Errorf("the command on a message: %+v", c)
		}
		s.stop()
	}
}

// TestFiles: the files of a message are read, and downloaded only from Discord.
func TestFiles(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	_, err := s.fake.Post(discordtest.Said{User: discordtest.Ann, Channel: s.fake.DMChannel(discordtest.Ann), Text: "say read", Files: []discordtest.File{{Name: "a.txt", Content: []byte("four two")}}})
	if err != nil {
		t.Fatal(err)
	}
	s.sees(s.fake.DMChannel(discordtest.Ann), "read")
	l := s.Current()
	if l.attached.hasFiles(parsed(t, "https://evil.example/a.txt")) || l.attached.hasFiles(parsed(t, "http://cdn.discordapp.com/a.txt")) || !l.attached.hasFiles(parsed(t, "https://cdn.discordapp.com/a.txt")) {
		t.Error("files are fetched from elsewhere")
	}
}

// TestFilesSent: arguments too long for a card are attached to it completely; if Discord
// accepts no files, the thread says that there was an image.
func TestFilesSent(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	args := `{"text":"` + strings.Repeat("word ", 380) + `"}`
	m := s.mention(discordtest.Ann, "call toolbox:chart "+args)
	find := func(ok func(discordtest.Message) bool) (found discordtest.Message) {
		s.wait("the message", func() bool {
			i := slices.IndexFunc(s.fake.Messages(m.ID), ok)
			if i >= 0 {
				found = s.fake.Messages(m.ID)[i]
			}
			return i >= 0
		})
		return found
	}
	if f := find(func(m discordtest.Message) bool { return len(m.Files) > 0 }).Files[0]; string(f.Content) != args {
		t.Errorf("the file %s holds %d bytes, want %d", f.Name, len(f.Content), len(args))
	}
	card := find(func(m discordtest.Message) bool { return strings.Contains(string(m.Components), `"call:run`) })
	s.fake.Fail("message.create", chattest.Fault{Status: 403, Error: "50013"})
	if err := s.fake.Press(t.Context(), discordtest.Ann, card, "call:run *"); err != nil {
		t.Fatal(err)
	}
	s.sees(m.ID, "could not be attached")
	s.sees(m.ID, "toolbox:chart is done")
}

// TestDeaf: a link without heartbeat acknowledgements is closed and resumed.
func TestDeaf(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true, Heartbeat: 500 * time.Millisecond}, Options{})
	s.fake.Freeze()
	s.wait("a resume", func() bool { return s.fake.Stats().Resumed > 0 })
	s.sees(s.mention(discordtest.Ann, "say still-here").ID, "still-here")
}

// TestPostOnce: a post whose response was lost is made once.
func TestPostOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	s.fake.Fail("message.create", chattest.Fault{Status: 502, After: true, Times: 2})
	m := s.mention(discordtest.Ann, "say only-once")
	s.sees(m.ID, "only-once")
	if got := s.texts(m.ID); len(got) != 1 {
		t.Errorf("it stands there as %q", got)
	}
}

// TestCheck: problems of a token or a guild are explained, with where to fix them.
func TestCheck(t *testing.T) {
	t.Parallel()
	fake := startFake(t, discordtest.Options{Unlimited: true, Public: true, NoContent: true, NoMembers: true})
	b := New(Options{Store: storeOf(nil), Config: everyone(fake), Commands: &bots.Commands{}, testOnlyWait: short})
	for _, c := range []struct{ token, guild, want string }{
		{"nonsense", discordtest.Guild, "Reset Token"}, {"a.b.c", discordtest.Guild, "Reset Token"}, {fake.BotToken(), "", "--guild ID"}, {fake.BotToken(), "2999", "oauth2/authorize"},
	} {
		_, err := b.Check(t.Context(), bots.Connection{Tokens: []store.Secret{store.NewSecret(c.token)}, Team: c.guild})
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), fake.BotToken()) {
			t.Errorf("%q in %q: %v", c.token, c.guild, err)
		}
	}
	got, err := b.Check(t.Context(), bots.Connection{Tokens: []store.Secret{store.NewSecret(fake.BotToken())}, Team: discordtest.Guild})
	if err != nil || len(got.Advice) != 3 || got.Account.Mode != Mentions || got.Account.TeamName == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func parsed(t *testing.T, address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A rendered result also says which of its files are omitted.
func TestFilesBesideAView(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	ctx, now := t.Context(), time.Now()
	by := store.Caller{User: "ben"}
	c := store.Call{ID: store.NewID(now), Server: "box", Tool: "draw", Args: json.RawMessage(`{}`), By: by.User, State: store.Running, Created: now, Owner: "x"}
	if err := s.db.Begin(ctx, by, c); err != nil {
		t.Fatal(err)
	}
	result := store.Result{View: json.RawMessage(`{"title":"Drawn"}`), Raw: json.RawMessage(`{"content":[{"type":"resource","resource":{"uri":"f:/a.pdf","blob":"AAEC"}},{"type":"resource","resource":{"uri":"f:/huge.bin","blob":"` + base64.StdEncoding.EncodeToString(make([]byte, 9<<20)) + `"}}]}`)}
	if _, err := s.db.Finish(ctx, by, c.ID, store.Outcome{State: store.Done, Result: &result}); err != nil {
		t.Fatal(err)
	}
	at := store.Address{Surface: store.OnDiscord, Team: discordtest.Guild, Channel: discordtest.General}
	if _, err := s.Post(ctx, at, store.Message{ID: outbox.ImagesOf(c.ID), Kind: store.ImagesMessage, Final: true}); err != nil {
		t.Fatal(err)
	}
	list := s.fake.Messages(discordtest.General)
	m := list[len(list)-1]
	if len(m.Files) != 1 || m.Files[0].Name != "a.pdf" || !strings.Contains(string(m.Embeds), "Drawn") || !strings.Contains(m.Content, "huge.bin (9.4 MB)") {
		t.Errorf("%d files, %s, %q", len(m.Files), m.Embeds, m.Content)
	}
}

// sharing is a handler that records what is shared.
type sharing struct {
	bots.Handler
	shared chan string
}

func (h sharing) Share(_ context.Context, by store.Caller, thread string, n int) error {
	h.shared <- fmt.Sprint(by.Identity, " ", thread, " ", n)
	return nil
}

// TestPrivate: private messages are posted in the person's direct channel, below a line
// that names the original thread, and are shared from there.
func TestPrivate(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	ctx := t.Context()
	m := s.mention(discordtest.Ben, "say openly")
	s.sees(m.ID, "openly")
	ben, err := s.db.FindUser(ctx, "discord:"+discordtest.Ben)
	if err != nil {
		t.Fatal(err)
	}
	in := store.Address{Surface: store.OnDiscord, Team: discordtest.Guild, Channel: discordtest.General, Thread: m.ID}
	to, err := s.PrivateThread(ctx, ben, in)
	if err != nil || s.Shared(to) || !s.Shared(in) {
		t.Fatalf("the private place is %+v, %v", to, err)
	}
	thread := store.NewID(time.Now())
	for _, m := range []store.Message{
		{ID: thread + "/3", Kind: store.TextMessage, Text: "the secret", Only: ben.ID, Final: true},
		{ID: "share/3", Kind: store.NoticeMessage, Only: ben.ID, Final: true, Share: &store.Share{Thread: thread, N: 3, In: in}},
	} {
		if _, err := s.Post(ctx, to, m); err != nil {
			t.Fatal(err)
		}
	}
	dm := s.fake.DMChannel(discordtest.Ben)
	s.sees(dm, "is only for you")
	s.sees(dm, "<#"+m.ID+">")
	s.sees(dm, "the secret")
	if said := strings.Join(s.texts(m.ID), "\n"); strings.Contains(said, "secret") {
		t.Errorf("others read %q", said)
	}
	h := sharing{s.Current().presses.Handler, make(chan string, 1)}
	s.Current().presses.Handler = h
	list := s.fake.Messages(dm)
	if err := s.fake.Press(ctx, discordtest.Ben, list[len(list)-1], "Share here"); err != nil {
		t.Fatal(err)
	}
	if got := <-h.shared; got != fmt.Sprint("discord:", discordtest.Ben, " ", thread, " 3") {
		t.Errorf("shared is %q", got)
	}
	stranger, err := s.db.AddUser(ctx, store.System, store.User{Name: "x", Role: store.Member, Identities: []string{"discord:" + discordtest.Stranger}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PrivateThread(ctx, stranger, in); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("somebody outside the guild is reached: %v", err)
	}
}

// TestMasked: a pasted key is masked before anything is stored, and its author is told in
// private.
func TestMasked(t *testing.T) {
	t.Parallel()
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	const key = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	m := s.mention(discordtest.Ben, "say my key is "+key)
	s.sees(m.ID, "my key is")
	s.sees(s.fake.DMChannel(discordtest.Ben), "masked it")
	if said := strings.Join(s.texts(m.ID), "\n"); strings.Contains(said, key) {
		t.Errorf("it says %q", said)
	}
}
