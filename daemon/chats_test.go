package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots/chattest"
	"nize/bots/discord/discordtest"
	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// chat is a platform's double, as the tests need it that hold on every platform.
// People are called ann, ben, cho, stranger (whom nize does not serve) and
// otherbot; all but the stranger are in the channel of all.
type chat interface {
	surface() store.Surface
	// connect connects the daemon with it and makes Ann its admin.
	connect(k *killable)
	id(who string) string
	links() (opened, open int)
	mend()
	drop()
	// fail goes wrong with the next request of a kind: 0 begins an answer.
	fail(kind int, f chattest.Fault)
	// over says whether nothing shows any more that an answer is on its way.
	over(at spot) bool
	// events counts what was sent; again sends the nth once more.
	events() int
	again(n int)
	mention(who, text string) (spot, error)
	reply(who string, at spot, text string) error
	// said is what nize says where a mention was answered; alone is what it says
	// to somebody alone, anywhere.
	said(at spot) []saying
	alone(who string) []saying
	// press presses the button of a verb; forge one of that value, as nobody's
	// client would.
	press(ctx context.Context, who string, m saying, verb string) error
	forge(who string, m saying, value string)
	// answer opens the dialog of a question and sends it in.
	answer(ctx context.Context, who string, m saying, values map[string][]string) error
	value(m saying, verb string) string
	// pressResult presses the button that shows the result of a call, and images
	// counts those that stand in a dialog of somebody's, or were told them alone.
	pressResult(ctx context.Context, who string, m saying, call string) error
	images(who string) int
	// pinged is what nize said that notified anybody but who asked.
	pinged() []string
	// mistakes are what the bot did wrong.
	mistakes() []string
}

// spot is where a mention stands and is answered.
type spot struct{ channel, thread, by string }

// saying is a message of nize's.
type saying struct {
	channel, id, text string
	call              string // whose card it is
	buttons           string // as the platform has them
	images            int
	raw               any // the platform's own
}

// chats are the platforms; each test gets a double of its own.
var chats = map[string]func(*testing.T) chat{
	"slack": func(t *testing.T) chat {
		return &slackChat{t: t, Server: slacktest.Running(t, slacktest.Options{Unlimited: true, Patience: time.Minute, RetryAfter: []time.Duration{0, 0, 0}})}
	},
	"discord": func(t *testing.T) chat {
		return &discordChat{t: t, Server: discordtest.Running(t, discordtest.Options{Unlimited: true, Patience: time.Minute})}
	},
}

// claimed waits until a bot is connected, sends its claim as Ann, and waits until
// she is an admin.
func claimed(k *killable, c chat, made api.ConnectedBot, send func(string) error) {
	k.t.Helper()
	k.until("the bot is connected", func() bool {
		list, err := api.ListBots.Call(k.t.Context(), k.Client, api.Empty{})
		_, open := c.links()
		return err == nil && len(list.Items) == 1 && list.Items[0].State == "connected" && open == 1
	})
	if err := send(made.Send); err != nil {
		k.t.Fatal(err)
	}
	k.until("Ann is an admin", func() bool {
		users, err := api.ListUsers.Call(k.t.Context(), k.Client, api.Empty{})
		return err == nil && slices.ContainsFunc(users.Items, func(u store.User) bool {
			return u.Role == store.Admin && strings.Contains(strings.Join(u.Identities, " "), c.id("ann"))
		})
	})
}

// connectBot gives the daemon the tokens of a double at an address.
func connectBot(k *killable, c chat, url, team string, tokens ...string) api.ConnectedBot {
	k.t.Helper()
	name := string(c.surface())
	if _, err := api.PutSetting.Call(k.t.Context(), k.Client, api.PutSettingRequest{Key: name + ".api_url", Value: url}); err != nil {
		k.t.Fatal(err)
	}
	request := api.ConnectBotRequest{Name: name, Team: team}
	for _, token := range tokens {
		request.Tokens = append(request.Tokens, api.NewSecret(token))
	}
	made, err := api.ConnectBot.Call(k.t.Context(), k.Client, request)
	if err != nil {
		k.t.Fatal(err)
	}
	return made
}

// slackChat is Slack, as [chat].
type slackChat struct {
	t *testing.T
	*slacktest.Server
	stamps atomic.Int64
}

func (c *slackChat) surface() store.Surface { return store.OnSlack }

func (c *slackChat) connect(k *killable) {
	made := connectBot(k, c, c.APIURL(), "", c.AppToken(), c.BotToken())
	claimed(k, c, made, func(send string) error {
		return c.Slash(k.t.Context(), slacktest.Ann, slacktest.General, send)
	})
}

func (c *slackChat) id(who string) string { return "U0" + strings.ToUpper(who) }

func (c *slackChat) links() (int, int) { st := c.Stats(); return st.Opened, st.Links }

func (c *slackChat) mend() { c.Mend() }

func (c *slackChat) drop() { c.Drop() }

func (c *slackChat) fail(kind int, f chattest.Fault) {
	c.Fail([]string{"chat.startStream", "chat.appendStream", "chat.stopStream", "agents.sessions.setStatus"}[kind], f)
}

func (c *slackChat) over(at spot) bool {
	return c.Session(at.channel, at.thread).Status == "active" && !slices.ContainsFunc(c.Thread(at.channel, at.thread), func(m slacktest.Message) bool { return m.Stream != nil && m.Stream.Open })
}

func (c *slackChat) events() int { return len(c.Events()) }

func (c *slackChat) again(n int) { c.Repeat(c.Events()[n].ID) }

func (c *slackChat) mention(who, text string) (spot, error) {
	channel := slacktest.General
	if who == "stranger" {
		channel = slacktest.Shared
	}
	m, err := c.Mention(c.id(who), channel, text)
	return spot{m.Channel, m.TS, who}, err
}

func (c *slackChat) reply(who string, at spot, text string) error {
	_, err := c.Reply(c.id(who), slacktest.Message{Channel: at.channel, TS: at.thread}, "<@"+slacktest.Bot+"> "+text)
	return err
}

func (c *slackChat) saying(m slacktest.Message) saying {
	out := saying{channel: m.Channel, id: m.TS, text: m.Text + "\n" + string(m.Blocks), buttons: string(m.Blocks), images: strings.Count(string(m.Blocks), `"slack_file"`), raw: m}
	if _, rest, ok := strings.Cut(m.Text, "\ncall: "); ok {
		out.call, _, _ = strings.Cut(rest, "\n")
	}
	return out
}

func (c *slackChat) said(at spot) (list []saying) {
	for _, m := range c.Thread(at.channel, at.thread) {
		if m.User == slacktest.Bot {
			list = append(list, c.saying(m))
		}
	}
	return list
}

func (c *slackChat) alone(who string) (list []saying) {
	user := c.id(who)
	for _, channel := range []string{slacktest.General, slacktest.Shared} {
		for _, m := range c.Ephemerals(channel, user) {
			list = append(list, c.saying(m))
		}
	}
	for _, m := range c.Messages(c.DMChannel(user)) {
		if m.User == slacktest.Bot {
			list = append(list, c.saying(m))
		}
	}
	return list
}

func (c *slackChat) action(verb string) string {
	if verb == "share" {
		return verb
	}
	return "call-" + verb
}

func (c *slackChat) press(ctx context.Context, who string, m saying, verb string) error {
	return c.Press(ctx, c.id(who), m.raw.(slacktest.Message), c.action(verb))
}

func (c *slackChat) pressResult(ctx context.Context, who string, m saying, call string) error {
	return c.Press(ctx, c.id(who), m.raw.(slacktest.Message), "result:"+call)
}

func (c *slackChat) images(who string) (n int) {
	for _, v := range c.Views(c.id(who)) {
		n += strings.Count(string(v.Blocks), `"slack_file"`)
	}
	for _, m := range c.alone(who) {
		n += m.images
	}
	return n
}

func (c *slackChat) value(m saying, verb string) string {
	return valueOf(c.t, m.raw.(slacktest.Message), c.action(verb))
}

func (c *slackChat) forge(who string, m saying, value string) {
	s := &scene{fake: c.Server}
	s.raw(c.id(who), slacktest.Team, "run", value, m.raw.(slacktest.Message), int(c.stamps.Add(1)))
}

func (c *slackChat) pinged() (list []string) {
	s := &scene{fake: c.Server}
	for _, channel := range []string{slacktest.General, slacktest.Secret, slacktest.Shared} {
		for _, m := range c.Messages(channel) {
			if m.User == slacktest.Bot && m.Effects().Pings() && !s.mentionsAsker(m) {
				list = append(list, m.Text)
			}
		}
	}
	return list
}

func (c *slackChat) mistakes() (list []string) {
	st := c.Stats()
	for _, r := range st.Refused {
		if r.Error != "user_not_in_channel" { // the stranger, who is told in a channel that they share
			list = append(list, r.Method+": "+r.Error)
		}
	}
	if st.Missed > 0 || st.Ignored > 0 || st.Late > 0 || st.TooBig > 0 || len(st.Unknown) > 0 {
		list = append(list, fmt.Sprintf("%d missed, %d sent in spite of a limit, %d late, %d too big, unknown %v", st.Missed, st.Ignored, st.Late, st.TooBig, st.Unknown))
	}
	return list
}

// discordChat is Discord, as [chat].
type discordChat struct {
	t *testing.T
	*discordtest.Server
}

func (c *discordChat) surface() store.Surface { return store.OnDiscord }

func (c *discordChat) connect(k *killable) {
	if _, err := api.PutSetting.Call(k.t.Context(), k.Client, api.PutSettingRequest{Key: "discord.access", Value: "everyone"}); err != nil {
		k.t.Fatal(err)
	}
	made := connectBot(k, c, c.APIURL(), discordtest.Guild, c.BotToken())
	claimed(k, c, made, func(send string) error {
		k.until("the commands are registered", func() bool { return len(c.Commands("")) > 0 })
		return c.Slash(k.t.Context(), discordtest.Ann, discordtest.General, send)
	})
}

func (c *discordChat) id(who string) string {
	return map[string]string{"ann": discordtest.Ann, "ben": discordtest.Ben, "cho": discordtest.Cho, "stranger": discordtest.Stranger, "otherbot": discordtest.OtherBot}[who]
}

func (c *discordChat) links() (int, int) { st := c.Stats(); return st.Opened, st.Links }

func (c *discordChat) mend() { c.Mend() }

func (c *discordChat) drop() { c.Drop() }

func (c *discordChat) fail(kind int, f chattest.Fault) {
	c.Fail([]string{"message.create", "message.edit", "typing", "channel.dm"}[kind], f)
}

func (c *discordChat) over(spot) bool { return true } // typing ends by itself

func (c *discordChat) events() int { return len(c.Events()) }

func (c *discordChat) again(n int) { c.Repeat(c.Events()[n]) }

func (c *discordChat) mention(who, text string) (spot, error) {
	channel := discordtest.General
	if who == "stranger" {
		channel = discordtest.Lobby
	}
	m, err := c.Mention(c.id(who), channel, text)
	return spot{channel, m.ID, who}, err
}

func (c *discordChat) reply(who string, at spot, text string) error {
	_, err := c.Mention(c.id(who), at.thread, text)
	return err
}

func (c *discordChat) saying(m discordtest.Message) saying {
	out := saying{channel: m.Channel, id: m.ID, text: m.Text(), buttons: string(m.Components), raw: m}
	for _, f := range m.Files {
		if http.DetectContentType(f.Content) == "image/png" {
			out.images++
		}
	}
	for _, p := range m.Parts() {
		if words := strings.Fields(strings.TrimPrefix(p.ID, "call:")); strings.HasPrefix(p.ID, "call:") && len(words) > 1 {
			out.call = words[1]
		}
	}
	return out
}

func (c *discordChat) said(at spot) (list []saying) {
	for _, m := range c.Messages(at.thread) {
		if m.Author == discordtest.Bot {
			list = append(list, c.saying(m))
		}
	}
	return list
}

func (c *discordChat) alone(who string) (list []saying) {
	user := c.id(who)
	for _, at := range c.Channels(user) {
		for _, m := range c.Visible(at.ID, user) {
			if m.Author == discordtest.Bot && (m.For == user || at.Type == discordtest.DirectChannel || at.Type == discordtest.PrivateThread) {
				list = append(list, c.saying(m))
			}
		}
	}
	return list
}

func (c *discordChat) button(verb string) string {
	if verb == "share" {
		return "share:*"
	}
	return "call:" + verb + " *"
}

func (c *discordChat) press(ctx context.Context, who string, m saying, verb string) error {
	return c.Press(ctx, c.id(who), m.raw.(discordtest.Message), c.button(verb))
}

func (c *discordChat) pressResult(ctx context.Context, who string, m saying, call string) error {
	return c.Press(ctx, c.id(who), m.raw.(discordtest.Message), "result:"+call)
}

func (c *discordChat) images(who string) (n int) {
	for _, m := range c.alone(who) {
		n += m.images
	}
	return n
}

func (c *discordChat) value(m saying, verb string) string {
	prefix := strings.TrimSuffix(c.button(verb), "*")
	for _, p := range m.raw.(discordtest.Message).Parts() {
		if strings.HasPrefix(p.ID, prefix) {
			return strings.TrimPrefix(p.ID, "call:")
		}
	}
	c.t.Fatalf("no button %s in %s", verb, m.text)
	return ""
}

func (c *discordChat) forge(who string, m saying, value string) {
	if err := c.PressRaw(c.t.Context(), c.id(who), m.raw.(discordtest.Message), "call:"+value); err != nil {
		c.t.Errorf("a forged press: %v", err)
	}
}

func (c *discordChat) pinged() (list []string) {
	for _, at := range c.Channels(discordtest.Bot) {
		for _, m := range c.Messages(at.ID) {
			root, _ := c.Message(at.Parent, at.ID)
			if m.Author == discordtest.Bot && slices.ContainsFunc(m.Pinged, func(id string) bool { return id != root.Author }) {
				list = append(list, m.Content)
			}
		}
	}
	return list
}

func (c *discordChat) mistakes() (list []string) {
	st := c.Stats()
	for _, r := range st.Refused {
		if r.Method != "resume" && !strings.Contains(r.Error, " 50007 ") {
			list = append(list, fmt.Sprintf("%+v", r))
		}
	}
	if st.Missed > 0 || st.Ignored > 0 || st.Silent > 0 || len(st.Unknown) > 0 {
		list = append(list, fmt.Sprintf("%d missed, %d sent in spite of a limit, %d without heartbeats, unknown %v", st.Missed, st.Ignored, st.Silent, st.Unknown))
	}
	return list
}

// meeting is a daemon with a model and a server of our own, on any platform.
type meeting struct {
	*fixture
	chat
}

func newMeeting(t *testing.T, c chat, start func(*testing.T) *killable) *meeting {
	t.Helper()
	m := &meeting{fixture: newFixture(t, start), chat: c}
	c.connect(m.killable)
	return m
}

// ask mentions nize and waits for the card of the call.
func (m *meeting) ask(who, word string) (spot, saying) {
	m.t.Helper()
	at, err := m.mention(who, "please #"+word)
	if err != nil {
		m.t.Fatal(err)
	}
	return at, m.card(at, store.Pending)
}

// card waits for the one card of a conversation, of a call in that state.
func (m *meeting) card(at spot, state store.State) (card saying) {
	m.t.Helper()
	m.until("a card that is "+string(state), func() bool {
		n := 0
		for _, s := range m.said(at) {
			if s.call != "" {
				card = s
				n++
			}
		}
		if n > 1 {
			m.t.Fatalf("%d cards for one call", n)
		}
		if n == 0 {
			return false
		}
		call, err := api.GetCall.Call(m.t.Context(), m.Client, api.CallRequest{ID: card.call, Reason: "the test looks"})
		return err == nil && call.State == state && strings.Contains(card.buttons, "run "+card.call) == (state == store.Pending)
	})
	return card
}

// answered counts nize's messages that say something.
func (m *meeting) answered(at spot, want string) (n int) {
	for _, s := range m.said(at) {
		if strings.Contains(s.text, want) {
			n++
		}
	}
	return n
}

func (m *meeting) told(who, want string) {
	m.t.Helper()
	m.until(who+" is told "+want, func() bool {
		return slices.ContainsFunc(m.alone(who), func(s saying) bool { return strings.Contains(strings.ToLower(s.text), strings.ToLower(want)) })
	})
}

// behaved says that nothing pinged, that the platform refused nothing but what was
// expected, and that the audit holds.
func (m *meeting) behaved(expected ...string) {
	m.t.Helper()
	for _, text := range m.pinged() {
		m.t.Errorf("a message of nize's pings: %.200q", text)
	}
	for _, wrong := range m.mistakes() {
		if !slices.ContainsFunc(expected, func(text string) bool { return strings.Contains(wrong, text) }) {
			m.t.Errorf("the platform refused %s", wrong)
		}
	}
	if v, err := api.CheckAudit(m.t.Context(), m.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		m.t.Errorf("audit %+v, %v", v, err)
	}
}

// TestChats is what holds on every platform: the same tests, each on each. The
// longest are the first, and the others run beside them.
func TestChats(t *testing.T) {
	for _, one := range []struct {
		name  string
		test  func(*meeting)
		start func(*testing.T) *killable
	}{
		{"load", testLoad, inProcess}, {"killed any time", testKilledAnyTime, newKillable}, {"killed", testKilled, newKillable}, {"images", testImages, newKillable},
		{"presses", testPresses, inProcess}, {"swapped tool", testSwappedTool, inProcess}, {"events again", testEventsAgain, inProcess},
		{"hostile text", testHostileText, inProcess}, {"access", testAccess, inProcess}, {"private result", testPrivateResult, inProcess},
		{"signing in", testSigningIn, inProcess}, {"team credential", testTeamCredential, inProcess}, {"connecting", testConnecting, inProcess},
		{"native images", testNativeImages, inProcess}, {"plan", testPlan, inProcess}, {"view links", testViewLinks, inPublic},
		{"questions", testQuestions, inProcess}, {"question killed", testQuestionKilled, newKillable},
	} {
		for platform, open := range chats {
			t.Run(one.name+"/"+platform, func(t *testing.T) {
				t.Parallel()
				one.test(newMeeting(t, open(t), one.start))
			})
		}
	}
}

// restart kills the process and waits until the next one is linked.
func (m *meeting) restart() {
	m.t.Helper()
	before, _ := m.links()
	m.kill()
	m.mend()
	m.start()
	m.until("the bot is back", func() bool { opened, open := m.links(); return opened > before && open == 1 })
}

// saysOnce waits until a thread says each of these, and goes on in it: then none
// of them stands there twice.
func (m *meeting) saysOnce(at spot, want ...string) {
	m.t.Helper()
	for _, text := range want {
		m.until("the thread says "+text, func() bool { return m.answered(at, text) > 0 })
	}
	if err := m.reply(at.by, at, "#after"); err != nil {
		m.t.Fatal(err)
	}
	m.until("it goes on", func() bool { return m.answered(at, "You said after.") > 0 && m.over(at) })
	for _, text := range append(want, "You said after.") {
		if n := m.answered(at, text); n != 1 {
			m.t.Errorf("%q stands there %d times: %+v", text, n, m.said(at))
		}
	}
}

// A process that is killed with a card open, with an answer half said, and with a
// message posted of which it never learned: the next one goes on with the same
// card and the same answer, and says nothing twice.
func testKilled(m *meeting) {
	t := m.t
	at, posted := m.ask("ben", "note")
	m.restart()
	if err := m.press(t.Context(), "ben", posted, "run"); err != nil {
		t.Fatal(err)
	}
	if done := m.card(at, store.Done); done.id != posted.id {
		t.Errorf("the card is at %s, was posted at %s", done.id, posted.id)
	}
	m.saysOnce(at, "That was note.")
	if n := m.runs.Load(); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}

	hold := make(chan struct{})
	m.says.plan("cut", plan{say: []string{"It was going ", "well."}, hold: hold})
	at, err := m.mention("ben", "#cut")
	if err != nil {
		t.Fatal(err)
	}
	hold <- struct{}{}
	m.until("half of it is there", func() bool { return m.answered(at, "It was going") == 1 })
	m.says.plan("cut", plan{say: []string{"It was going ", "well."}})
	m.restart()
	m.saysOnce(at, "It was going well.")

	m.says.plan("lost", plan{say: []string{"Here it is."}})
	m.fail(0, chattest.Fault{Hang: true})
	if at, err = m.mention("ben", "#lost"); err != nil {
		t.Fatal(err)
	}
	m.until("it stands there", func() bool { return m.answered(at, "Here it is.") == 1 })
	m.restart()
	m.saysOnce(at, "Here it is.")
	m.behaved()
}

// imageResult is a result with an image of one point, and with one that is none.
const imageResult = `{"content":[{"type":"text","text":"drawn"},{"type":"image","mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="},` +
	`{"type":"image","mimeType":"image/png","data":"PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4="}]}`

// The images that a tool returns stand in the thread once, also over a kill, and
// are shown, alone, to those who may see the result and press for it.
func testImages(m *meeting) {
	m.up.SetTool(mcptest.Tool{Name: "note", Description: "Write a note down.", Do: func(context.Context, json.RawMessage) json.RawMessage { return json.RawMessage(imageResult) }})
	at, posted := m.ask("ben", "note")
	if err := m.press(m.t.Context(), "ben", posted, "run"); err != nil {
		m.t.Fatal(err)
	}
	inThread := func() (n int) {
		for _, s := range m.said(at) {
			n += s.images
		}
		return n
	}
	m.until("the image is in the thread", func() bool { return inThread() == 1 })
	m.restart()
	m.saysOnce(at, "That was note.", "Image from box:note", "are not shown: 1")
	if n := inThread(); n != 1 {
		m.t.Errorf("the thread shows %d images, want 1: %+v", n, m.said(at))
	}
	for who, want := range map[string]int{"ben": 1, "cho": 0, "ann": 1} {
		for _, s := range m.said(at) {
			if strings.Contains(s.buttons, "result:"+posted.call) {
				if err := m.pressResult(m.t.Context(), who, s, posted.call); err != nil {
					m.t.Fatal(err)
				}
			}
		}
		m.until(fmt.Sprintf("%s sees %d images alone", who, want), func() bool { return m.images(who) == want })
	}
	m.behaved("invalid slack file", "message_not_in_streaming_state") // it looks at it first; done, and nobody learned of it
}

// A process that is killed at any moment, again and again: every message is
// answered once in the end.
func testKilledAnyTime(m *meeting) {
	for key, value := range map[string]string{"limits.user.messages": "0", "limits.user.turns": "0", "budgets.user.daily": "0"} {
		if _, err := api.PutSetting.Call(m.t.Context(), m.Client, api.PutSettingRequest{Key: key, Value: value}); err != nil {
			m.t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(11, 12))
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	want := map[string]spot{}
	for n := range rounds {
		m.fail(random.IntN(4), []chattest.Fault{{Hang: true}, {Status: http.StatusBadGateway, After: true}, {Status: http.StatusInternalServerError, Times: 2}}[random.IntN(3)])
		asked := m.says.asked.Load()
		for i := range 3 {
			word := fmt.Sprintf("r%dx%d", n, i)
			m.says.plan(word, plan{say: []string{"You ", "said ", word + "."}})
			at, err := m.mention([]string{"ann", "ben", "cho"}[i], "#"+word)
			if err != nil {
				m.t.Fatal(err)
			}
			want[word] = at
		}
		moment := time.NewTimer(time.Duration(random.IntN(300)) * time.Millisecond)
		m.until("it is at it", func() bool { return m.says.asked.Load() > asked })
		<-moment.C // any moment will do
		m.restart()
	}
	for word, at := range want {
		m.saysOnce(at, "You said "+word+".")
	}
	m.behaved("message_not_in_streaming_state", "thread has already been created") // done, and nobody learned of it
}

// A hundred presses at once, presses of people who may not and presses of another
// digest: one run, and every refusal is in the audit and said to who pressed, alone.
func testPresses(m *meeting) {
	at, posted := m.ask("ben", "note")
	ctx, t := m.t.Context(), m.t
	if err := m.press(ctx, "cho", posted, "run"); err != nil {
		t.Fatal(err)
	}
	m.told("cho", "ben")
	value := m.value(posted, "run")
	m.forge("ben", posted, value[:len(value)-4]+"0000")
	m.forge("ben", posted, "run 01ARZ3NDEKTSV4RRFFQ69G5FAV "+value[len(value)-12:])
	m.until("the refusals are in the audit", func() bool {
		found := m.pressRefused()
		return found[m.id("cho")] == 1 && found[m.id("ben")] >= 1
	})
	if n := m.runs.Load(); n != 0 {
		t.Fatalf("%d runs by people who may not", n)
	}
	var presses sync.WaitGroup
	for range 100 {
		presses.Go(func() {
			if err := m.press(ctx, "ben", posted, "run"); err != nil && !strings.Contains(err.Error(), "to act on") && !strings.Contains(err.Error(), "nothing to press") {
				t.Errorf("press: %v", err) // none: the card had lost its buttons
			}
		})
	}
	presses.Wait()
	m.card(at, store.Done)
	m.until("the answer", func() bool { return m.answered(at, "That was note.") == 1 })
	if n := m.runs.Load(); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
	m.behaved()
}

// A tool that changes between the card and the press: nothing runs.
func testSwappedTool(m *meeting) {
	at, posted := m.ask("ben", "note")
	m.swapTool()
	m.until("the card says so", func() bool {
		posted = m.card(at, store.Pending)
		return strings.Contains(strings.ToLower(posted.text), "the tool's definition changed")
	})
	if err := m.press(m.t.Context(), "ben", posted, "run"); err != nil {
		m.t.Fatal(err)
	}
	m.card(at, store.Refused)
	if n := m.runs.Load(); n != 0 {
		m.t.Errorf("%d runs of a tool that changed after the card", n)
	}
}

// Every event three times in random order, the link dropped meanwhile: each
// message costs one request to the model and gets one answer.
func testEventsAgain(m *meeting) {
	asked := m.says.asked.Load()
	var at []spot
	for i := range 12 {
		s, err := m.mention([]string{"ann", "ben", "cho"}[i%3], fmt.Sprintf("hello #w%d", i))
		if err != nil {
			m.t.Fatal(err)
		}
		at = append(at, s)
	}
	var order []int
	for n := range m.events() {
		order = append(order, n, n)
	}
	random := rand.New(rand.NewPCG(7, 7))
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for i, n := range order {
		m.again(n)
		if i == len(order)/2 {
			m.drop()
		}
	}
	for i, s := range at {
		m.until("an answer", func() bool { return m.answered(s, fmt.Sprintf("You said w%d.", i)) > 0 })
	}
	last, err := m.mention("ann", "#after") // what came before is worked off
	if err != nil {
		m.t.Fatal(err)
	}
	m.until("an answer", func() bool { return m.answered(last, "You said after.") > 0 })
	for i, s := range at {
		if n := m.answered(s, "You said"); n != 1 {
			m.t.Errorf("message %d has %d answers", i, n)
		}
	}
	if n := m.says.asked.Load() - asked; n != int64(len(at))+1 {
		m.t.Errorf("the model was asked %d times, want %d", n, len(at)+1)
	}
}

// What a model and a tool say pings nobody and breaks out of nothing.
func testHostileText(m *meeting) {
	evil := "@everyone <!channel> <!here> <@" + m.id("cho") + "> <@&5000000000000000001> @here ```\n</b> [x](https://evil.example)"
	m.says.plan("evil", plan{say: []string{"start ", evil, " finish"}})
	at, err := m.mention("ben", "#evil")
	if err != nil {
		m.t.Fatal(err)
	}
	m.until("the answer", func() bool { return m.answered(at, "finish") > 0 })
	m.says.plan("note", plan{tool: "box:note", args: fmt.Sprintf(`{"text":%q}`, evil)})
	at, posted := m.ask("ben", "note")
	if err := m.press(m.t.Context(), "ben", posted, "run"); err != nil {
		m.t.Fatal(err)
	}
	m.card(at, store.Done)
	m.behaved()
}

// Who may not talk to the bot gets no answer and costs no call of the model.
func testAccess(m *meeting) {
	asked := m.says.asked.Load()
	for i := range 3 {
		for _, who := range []string{"stranger", "otherbot"} {
			if _, err := m.mention(who, fmt.Sprintf("hello #outside%d", i)); err != nil {
				m.t.Logf("%s: %v", who, err)
			}
		}
	}
	at, err := m.mention("ben", "#inside")
	if err != nil {
		m.t.Fatal(err)
	}
	m.until("Ben is answered", func() bool { return m.answered(at, "You said inside.") == 1 })
	if n := m.says.asked.Load() - asked; n != 1 {
		m.t.Errorf("the model was asked %d times, want 1", n)
	}
	m.behaved()
}

// What came of a private tool goes to who asked, and is nobody else's to read
// until they share it, once.
func testPrivateResult(m *meeting) {
	m.vault()
	at, err := m.mention("ben", "look into the #vault")
	if err != nil {
		m.t.Fatal(err)
	}
	m.told("ben", "It holds red rubies.")
	public := func() (all string) {
		for _, s := range m.said(at) {
			all += s.text + "\n"
		}
		return all
	}
	m.until("Ben sees the image", func() bool { return m.images("ben") == 1 })
	m.until("the thread says where the answer went", func() bool { return strings.Contains(public(), "private result") })
	if all := public(); strings.Contains(all, "rubies") {
		m.t.Errorf("the thread shows %s", all)
	}
	if slices.ContainsFunc(m.said(at), func(s saying) bool { return s.images > 0 }) {
		m.t.Error("everybody sees the image")
	}
	for _, who := range []string{"ann", "cho"} {
		for _, s := range m.alone(who) {
			if strings.Contains(s.text, "rubies") {
				m.t.Errorf("%s reads %q", who, s.text)
			}
		}
	}
	var offer saying
	m.until("an offer to share", func() bool {
		for _, s := range m.alone("ben") {
			if strings.Contains(strings.ToLower(s.text), "share") {
				offer = s
			}
		}
		return offer.id != ""
	})
	if err := m.press(m.t.Context(), "ben", offer, "share"); err != nil {
		m.t.Fatal(err)
	}
	m.until("the answer is in the thread", func() bool { return m.answered(at, "It holds red rubies.") == 1 })
	m.behaved()
}

// Many conversations at once: each gets its answers, in order, once.
func testLoad(m *meeting) {
	n := 200
	if testing.Short() {
		n = 20
	}
	for key, value := range map[string]string{"limits.user.messages": "0", "limits.user.turns": "0", "budgets.user.daily": "0"} {
		if _, err := api.PutSetting.Call(m.t.Context(), m.Client, api.PutSettingRequest{Key: key, Value: value}); err != nil {
			m.t.Fatal(err)
		}
	}
	var at []spot
	for i := range n {
		s, err := m.mention([]string{"ann", "ben", "cho"}[i%3], fmt.Sprintf("#a%d", i))
		if err != nil {
			m.t.Fatal(err)
		}
		at = append(at, s)
	}
	for i, s := range at {
		m.until("the first answer", func() bool { return m.answered(s, fmt.Sprintf("You said a%d.", i)) == 1 })
		if err := m.reply(s.by, s, fmt.Sprintf("#b%d", i)); err != nil {
			m.t.Fatal(err)
		}
	}
	for i, s := range at {
		m.until("the second answer", func() bool { return m.answered(s, fmt.Sprintf("You said b%d.", i)) == 1 })
		all := ""
		for _, one := range m.said(s) {
			all += one.text
		}
		if first, second := fmt.Sprintf("You said a%d.", i), fmt.Sprintf("You said b%d.", i); strings.Count(all, first) == 0 || strings.Index(all, first) > strings.Index(all, second) || m.answered(s, "You said") != 2 {
			m.t.Errorf("conversation %d says %q", i, all)
		}
	}
	m.behaved()
}
