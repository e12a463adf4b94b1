package slacktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"nize/bots/slack/slacktest"
)

func TestAMentionIsTwoEvents(t *testing.T) {
	a := start(t, slacktest.Options{})
	a.dial()
	must[slacktest.Message](t)(a.fake.Mention(slacktest.Ann, slacktest.General, "hello"))
	a.until("both events", func() bool { return a.fake.Stats().Acked == 2 })
	got := a.events()
	slices.Sort(got)
	if want := []string{"app_mention", "message"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if ids := a.fake.Events(); ids[0].ID == ids[1].ID {
		t.Error("the two events have one id")
	}
	must[slacktest.Message](t)(a.fake.Post(slacktest.Said{User: slacktest.Ben, Channel: slacktest.General, Text: "who?",
		Blocks: json.RawMessage(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"U0NIZE"}]}]}]`)}))
	a.until("a mention within blocks alone", func() bool { return len(a.events()) == 4 })
	must[slacktest.Message](t)(a.fake.Say(slacktest.Ann, slacktest.Random, "<@U0NIZE> you are not in here"))
	if n := len(a.fake.Events()); n != 4 {
		t.Errorf("%d events: the bot hears of a channel that it is not in", n)
	}
}

func TestUnacknowledgedEventsComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startPiped(t, slacktest.Options{})
		a.ack = func(frame) (string, bool) { return "", false }
		a.dial()
		must[slacktest.Message](t)(a.fake.DM(slacktest.Ann, "hello"))
		time.Sleep(3*time.Second + 3*time.Second + time.Minute + 3*time.Second + 5*time.Minute + 4*time.Second)
		synctest.Wait()
		got := a.got("events_api")
		var tries []int
		for _, f := range got {
			tries = append(tries, f.Attempt)
			if string(f.Payload) != string(got[0].Payload) {
				t.Error("a repeated event has another payload")
			}
		}
		if want := []int{0, 1, 2, 3}; !slices.Equal(tries, want) || got[1].Retry != "timeout" {
			t.Errorf("attempts %v with reason %q, want %v with timeout", tries, got[1].Retry, want)
		}
		if st := a.fake.Stats(); st.Missed != 4 || st.Dropped != 1 || st.Acked != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestWhatALostLinkOwedGoesToTheNext(t *testing.T) {
	a := start(t, slacktest.Options{})
	silent := true
	a.ack = func(frame) (string, bool) { return "", !silent }
	a.dial()
	must[slacktest.Message](t)(a.fake.DM(slacktest.Ann, "hello"))
	a.until("the event", func() bool { return a.fake.Stats().Sent == 1 })
	a.fake.Drop()
	a.until("the end of the link", func() bool { return a.fake.Stats().Links == 0 })
	a.reader.Wait()
	silent = false
	a.dial()
	a.until("the event, again", func() bool { return a.fake.Stats().Acked == 1 })
	if got := a.got("events_api"); got[len(got)-1].Attempt != 1 {
		t.Errorf("attempt %d", got[len(got)-1].Attempt)
	}
	a.fake.Disconnect("refresh_requested")
	a.until("the end of the link", func() bool { return a.fake.Stats().Links == 0 })
	a.reader.Wait()
	if got := a.got("disconnect"); len(got) != 1 || got[0].Reason != "refresh_requested" {
		t.Errorf("got %+v", got)
	}
}

func TestATicketIsGoodOnce(t *testing.T) {
	a := start(t, slacktest.Options{})
	a.dial()
	at := a.good("apps.connections.open").URL
	for i, want := range []bool{true, false} {
		ws, _, err := a.dialer.DialContext(within(t), at, nil)
		if (err == nil) != want {
			t.Errorf("use %d: %v", i+1, err)
		}
		if ws != nil {
			ws.Close()
		}
	}
	a.until("one link", func() bool { return a.fake.Stats().Links == 1 })
}

func TestRepeat(t *testing.T) {
	a := start(t, slacktest.Options{Seed: 3})
	a.dial()
	for range 5 {
		must[slacktest.Message](t)(a.fake.DM(slacktest.Ann, "hello"))
	}
	a.until("five events", func() bool { return a.fake.Stats().Acked == 5 })
	a.fake.Repeat()
	a.until("five more", func() bool { return a.fake.Stats().Acked == 10 })
	got := a.got("events_api")
	ids := func(list []frame) (out []string) {
		for _, f := range list {
			var in struct {
				ID string `json:"event_id"`
			}
			if err := json.Unmarshal(f.Payload, &in); err != nil {
				t.Fatal(err)
			}
			out = append(out, in.ID)
		}
		return out
	}
	first, again := ids(got[:5]), ids(got[5:])
	if slices.Equal(first, again) {
		t.Error("the repetition is in order")
	}
	slices.Sort(again)
	if !slices.Equal(first, again) {
		t.Errorf("sent %q, then %q", first, again)
	}
}

// card is a message with a button, for the tests that press.
func (a *app) card(channel string) slacktest.Message {
	ts := a.good("chat.postMessage", "channel", channel, "text", "card", "blocks", "["+actions("["+button(`,"action_id":"yes","value":"call-1"`)+"]")+"]").TS
	m, _ := a.fake.Message(channel, ts)
	return m
}

type block struct {
	Type     string `json:"type"`
	Trigger  string `json:"trigger_id"`
	Response string `json:"response_url"`
	Actions  []struct {
		ID    string `json:"action_id"`
		Value string `json:"value"`
	} `json:"actions"`
	View struct {
		State struct {
			Values map[string]map[string]struct {
				Value string `json:"value"`
			} `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

func (a *app) last() block {
	a.t.Helper()
	var b block
	list := a.got("interactive")
	if err := json.Unmarshal(list[len(list)-1].Payload, &b); err != nil {
		a.t.Fatal(err)
	}
	return b
}

func TestPressesAndDialogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startPiped(t, slacktest.Options{})
		a.dial()
		m := a.card(slacktest.General)
		if err := a.fake.Press(within(t), slacktest.Ann, m, "yes"); err != nil {
			t.Fatal(err)
		}
		got := a.last()
		if got.Type != "block_actions" || got.Actions[0].ID != "yes" || got.Actions[0].Value != "call-1" {
			t.Errorf("pressed %+v", got)
		}
		view := `{"type":"modal","title":{"type":"plain_text","text":"T"},"submit":{"type":"plain_text","text":"S"},"blocks":[{"type":"input","block_id":"b","label":{"type":"plain_text","text":"L"},"element":{"type":"plain_text_input","action_id":"i","initial_value":"as it was"}}]}`
		v := a.good("views.open", "trigger_id", got.Trigger, "view", view).View
		a.bad("exchanged_trigger_id", "views.open", "trigger_id", got.Trigger, "view", view)
		a.bad("hash_conflict", "views.update", "view_id", v.ID, "hash", "old", "view", view)
		a.good("views.update", "view_id", v.ID, "hash", v.Hash, "view", view)
		a.bad("invalid_trigger_id", "views.push", "trigger_id", "made up", "view", view)

		if err := a.fake.Submit(within(t), slacktest.Ann, v.ID, map[string][]string{"i": {""}}); err == nil {
			t.Error("an empty input was submitted")
		}
		a.ack = func(frame) (string, bool) { return `{"response_action":"errors","errors":{"b":"no good"}}`, true }
		err := a.fake.Submit(within(t), slacktest.Ann, v.ID, map[string][]string{"i": {"changed"}})
		var refused slacktest.Refused
		if !errors.As(err, &refused) || refused["b"] != "no good" || a.last().View.State.Values["b"]["i"].Value != "changed" {
			t.Errorf("got %v, submitted %+v", err, a.last().View)
		}
		if list := a.fake.Views(slacktest.Ann); len(list) != 1 || list[0].Errors["b"] == "" {
			t.Errorf("the open dialogs are %+v", list)
		}
		a.ack = nil
		if err := a.fake.Submit(within(t), slacktest.Ann, v.ID, nil); err != nil || len(a.fake.Views(slacktest.Ann)) != 0 {
			t.Errorf("submitting: %v; %d dialogs are open", err, len(a.fake.Views(slacktest.Ann)))
		}

		if err := a.fake.Press(within(t), slacktest.Ben, m, "Go"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3*time.Second + time.Millisecond)
		a.bad("expired_trigger_id", "views.open", "trigger_id", a.last().Trigger, "view", view)

		a.ack = func(frame) (string, bool) { return "", false }
		if err := a.fake.Press(context.Background(), slacktest.Ann, m, "yes"); !errors.Is(err, slacktest.ErrNotAcked) {
			t.Errorf("nobody acknowledged: %v", err)
		}
		if err := a.fake.Press(within(t), slacktest.Stranger, m, "yes"); err == nil {
			t.Error("somebody outside of the channel pressed")
		}
	})
}

func TestResponseURLs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startPiped(t, slacktest.Options{Unlimited: true})
		a.dial()
		m := a.card(slacktest.General)
		post := func(body string) string {
			resp, err := a.http.Post(a.last().Response, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			raw, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(raw))
		}
		press := func() {
			if err := a.fake.Press(within(t), slacktest.Ann, m, "yes"); err != nil {
				t.Fatal(err)
			}
		}
		press()
		for range 5 {
			if got := post(`{"text":"only you"}`); got != "ok" {
				t.Errorf("got %s", got)
			}
		}
		if got := post(`{"text":"once more"}`); got != "used_url" {
			t.Errorf("the sixth use: %s", got)
		}
		if n := len(a.fake.Ephemerals(slacktest.General, slacktest.Ann)); n != 5 {
			t.Errorf("Ann sees %d", n)
		}
		press()
		if got := post(`{"text":"new","replace_original":true}`); got != "ok" {
			t.Errorf("got %s", got)
		}
		if m, _ := a.fake.Message(m.Channel, m.TS); m.Text != "new" || m.Blocks != nil {
			t.Errorf("the original reads %q %s", m.Text, m.Blocks)
		}
		time.Sleep(30*time.Minute + time.Second)
		if got := post(`{"text":"late"}`); got != "expired_url" {
			t.Errorf("after half an hour: %s", got)
		}
	})
}

func TestCommandsAndHome(t *testing.T) {
	a := start(t, slacktest.Options{})
	if err := a.fake.Slash(within(t), slacktest.Ann, slacktest.General, "/nize help"); !errors.Is(err, slacktest.ErrNotAcked) {
		t.Errorf("a command that nobody hears: %v", err)
	}
	a.ack = func(f frame) (string, bool) {
		if f.Type == "slash_commands" {
			return `{"text":"help yourself"}`, true
		}
		return "", true
	}
	a.dial()
	if err := a.fake.Slash(within(t), slacktest.Ann, slacktest.General, "/nize help"); err != nil {
		t.Fatal(err)
	}
	if got := a.fake.Ephemerals(slacktest.General, slacktest.Ann); len(got) != 1 || got[0].Text != "help yourself" {
		t.Errorf("got %+v", got)
	}
	a.fake.OpenHome(slacktest.Ann)
	a.until("app_home_opened", func() bool { return slices.Contains(a.events(), "app_home_opened") })
	a.good("views.publish", "user_id", slacktest.Ann, "view", `{"type":"home","blocks":[`+actions("["+button(`,"action_id":"h"`)+"]")+`]}`)
	v, ok := a.fake.Home(slacktest.Ann)
	if !ok {
		t.Fatal("no home")
	}
	if err := a.fake.PressView(within(t), slacktest.Ann, v.ID, "h"); err != nil {
		t.Error(err)
	}
	if err := a.fake.PressView(within(t), slacktest.Ben, v.ID, "h"); err == nil {
		t.Error("Ben pressed in Ann's home")
	}
	big := `{"text":"` + x(20_480) + `"}`
	a.mu.Lock()
	a.ack = func(frame) (string, bool) { return big, true }
	a.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = a.fake.Wait(ctx, func() bool { return a.fake.Stats().TooBig == 1 })
		cancel()
	}()
	if err := a.fake.Slash(ctx, slacktest.Ann, slacktest.General, "/nize big"); !errors.Is(err, context.Canceled) {
		t.Errorf("an answer of 20 kB: %v", err)
	}
}

func TestManyLinks(t *testing.T) {
	a := start(t, slacktest.Options{Seed: 7})
	var mu sync.Mutex
	got := map[int]int{} // events by link
	var reasons []string
	refused := make(chan struct{}) // closed when the link that is too many has ended
	var readers sync.WaitGroup
	var links []*websocket.Conn
	t.Cleanup(func() {
		for _, ws := range links {
			ws.Close()
		}
		readers.Wait()
	})
	for i := range 11 {
		ws, _, err := a.dialer.DialContext(within(t), a.good("apps.connections.open").URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, ws)
		readers.Go(func() {
			for {
				var f frame
				if ws.ReadJSON(&f) != nil {
					if i == 10 {
						close(refused)
					}
					return
				}
				mu.Lock()
				if f.Type == "disconnect" {
					reasons = append(reasons, f.Reason)
				}
				if f.Envelope != "" {
					got[i]++
					_ = ws.WriteJSON(map[string]string{"envelope_id": f.Envelope}) // the fake may have closed it
				}
				mu.Unlock()
			}
		})
		a.until("a link", func() bool { return a.fake.Stats().Links == min(i+1, 10) })
	}
	for range 40 {
		must[slacktest.Message](t)(a.fake.DM(slacktest.Ann, "x"))
	}
	a.until("all", func() bool { return a.fake.Stats().Acked == 40 })
	select {
	case <-refused: // its reader may be slower than the others
	case <-within(t).Done():
		t.Error("the eleventh link does not end")
	}
	mu.Lock()
	defer mu.Unlock()
	total := 0
	for _, n := range got {
		total += n
	}
	if total != 40 || len(got) < 5 || !slices.Equal(reasons, []string{"too_many_websockets"}) {
		t.Errorf("%d events over %d links, ended for %q", total, len(got), reasons)
	}
}

func TestStrangeFrames(t *testing.T) {
	a := start(t, slacktest.Options{})
	a.dial()
	a.fake.SendRaw([]byte(`{"type":"from_the_future","payload":{}}`))
	for _, out := range []string{`not json`, `{"envelope_id":"never sent"}`, `{}`} {
		if err := a.ws.WriteMessage(1, []byte(out)); err != nil {
			t.Fatal(err)
		}
	}
	a.until("three strange ones", func() bool { return a.fake.Stats().Strange == 3 })
	must[slacktest.Message](t)(a.fake.DM(slacktest.Ann, "still there?"))
	a.until("the event", func() bool { return a.fake.Stats().Acked == 1 })
	if got := a.got("from_the_future"); len(got) != 1 {
		t.Errorf("%d raw frames came", len(got))
	}
	if st := a.fake.Stats(); st.MeanAck() <= 0 || st.MaxAck < st.MeanAck() {
		t.Errorf("acknowledged in %v, at most %v", st.MeanAck(), st.MaxAck)
	}
}
