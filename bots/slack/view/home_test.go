package view

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/slacktest"
	"nize/store"
)

// hostile is a name as nobody should have one.
const hostile = "<!channel> <@U0ANN> *b* \u202e\x00\n`code` "

// fullHome is a Home of somebody who has a lot of everything.
func fullHome(n int, name string) bots.Home {
	h := bots.Home{Usage: strings.Repeat("used ", 2000), Days: 14, Picture: &bots.Picture{Alt: strings.Repeat("line\n", 900), Key: "k"}}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	agents := bots.Field{Name: "chat.agent", Label: name + ".", Value: []string{"agent-7"}, Options: []bots.Option{{Value: "default", Label: "the default"}}}
	for i := range n {
		id := store.NewID(at)
		agents.Options = append(agents.Options, bots.Option{Value: fmt.Sprintf("agent-%d", i), Label: name})
		h.Servers = append(h.Servers, bots.HomeServer{Name: fmt.Sprintf("server-%s-%d", strings.Repeat("x", 48), i), Off: i%3 == 0, Down: i%5 == 0})
		h.Waiting = append(h.Waiting, bots.WaitingCall{Call: id, Tool: "s:" + name, By: name, Until: at.Add(time.Duration(i) * time.Minute)})
		h.Grants = append(h.Grants, store.Grant{ID: id, Tool: "s:" + name, Deny: i%2 == 0})
		h.Tokens = append(h.Tokens, store.Token{Name: fmt.Sprint(name, i), Prefix: "nize_abc", Expires: at})
		if i < 5 {
			h.Recent = append(h.Recent, bots.HomeChat{Title: name, Where: "slack", At: at})
		}
		h.Credentials = append(h.Credentials, bots.HomeCredential{Server: fmt.Sprintf("server-%d", i), Name: name, Connected: i%2 == 0})
	}
	h.Settings = []bots.Field{agents, {Name: "servers.denied", Label: name, Many: true}, {Name: "fixed", Label: name + ".", Hint: name, Fixed: true}}
	for i := range min(n, 60) {
		h.Settings = append(h.Settings, bots.Field{Name: fmt.Sprintf("text-%d", i), Label: "about " + name, Value: []string{name}})
	}
	return h
}

// layOut lays a Home out and says what Slack would refuse of it.
func layOut(t *testing.T, d *Home) (view string, blocks int) {
	t.Helper()
	v := d.View()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := slacktest.CheckView(raw); err != nil {
		t.Errorf("Slack refuses it: %v", err)
	}
	return string(raw), len(v.Blocks.BlockSet)
}

// TestHomeFits: whatever there is, on every page and in every language, Slack
// takes it, and nothing that others named does anything.
func TestHomeFits(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	does := []HomeButton{{"tokens new", phrases.AboutTokens}, {"connect", phrases.AboutConnect}, {"link", phrases.AboutLink}}
	for _, n := range []int{0, 1, 10, 11, 20, 21, 99, 100, 101, 300, 500, 2500} {
		for _, name := range []string{"plain", hostile, strings.Repeat("语", 400), ""} {
			h := fullHome(n, name)
			for _, page := range []int{0, 1, 99, 1000, -4} {
				d := &Home{Data: h, Notice: strings.Repeat(name, 30), Reader: bots.Reader{Locale: "zh-TW", Now: at}, Does: does, Picture: HomeState{File: "F1", Key: "k"},
					Pages: map[string]int{"servers": page, "settings": page, "approvals": page, "tokens": page, "credentials": page, "chats": page},
					Links: map[string]string{}}
				for _, w := range h.Waiting {
					d.Links[w.Call] = "https://example.slack.com/archives/C1/p1"
				}
				view, blocks := layOut(t, d)
				if blocks > 80 {
					t.Errorf("%d of each: %d blocks", n, blocks)
				}
				if strings.Contains(view, `"mrkdwn"`) {
					t.Errorf("%d of each: something is formatted", n)
				}
				if t.Failed() {
					t.Fatalf("%d of each, named %.20q, page %d", n, name, page)
				}
			}
		}
	}
}

// TestHomeChosen: what somebody chose is among a hundred shown of more, and a
// choice that is gone shows as the default.
func TestHomeChosen(t *testing.T) {
	for now, want := range map[string]string{"agent-0": "agent-0", "agent-98": "agent-98", "agent-99": "agent-99", "agent-400": "agent-400", "gone": "default", "": "default"} {
		h := fullHome(500, "x")
		h.Settings[0].Value = []string{now}
		d := &Home{Data: h, Reader: bots.Reader{Now: time.Now()}}
		view, _ := layOut(t, d)
		var got struct {
			Blocks []struct {
				Accessory struct {
					ID      string `json:"action_id"`
					Options []struct {
						Value string `json:"value"`
					} `json:"options"`
					Initial struct {
						Value string `json:"value"`
					} `json:"initial_option"`
				} `json:"accessory"`
			} `json:"blocks"`
		}
		if err := json.Unmarshal([]byte(view), &got); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, b := range got.Blocks {
			if b.Accessory.ID == "home:set:chat.agent" {
				found = true
				if b.Accessory.Initial.Value != want || len(b.Accessory.Options) != 100 {
					t.Errorf("chose %q: shows %q of %d", now, b.Accessory.Initial.Value, len(b.Accessory.Options))
				}
			}
		}
		if !found {
			t.Fatal("no choice of agents")
		}
	}
}

// TestTicked: boxes mean the servers that the Home named, and nothing else.
func TestTicked(t *testing.T) {
	var st HomeState
	for i := range 13 {
		st.Servers = append(st.Servers, fmt.Sprintf("s%d", i))
	}
	chosen := func(values ...string) *incoming.Action {
		a := new(incoming.Action)
		for _, v := range values {
			a.SelectedOptions = append(a.SelectedOptions, slackgo.OptionBlockObject{Value: v})
		}
		return a
	}
	for _, row := range []struct {
		group string
		a     *incoming.Action
		want  string
	}{
		{"1", chosen("s10", "s12"), "servers allow s10,s12; servers deny s11"},
		{"1", chosen(), "servers deny s10,s11,s12"},
		{"1", chosen("s10", "s11", "s12", "other", "s1"), "servers allow s10,s11,s12"},
		{"2", chosen("s1"), ""}, {"-1", chosen("s1"), ""}, {"x", chosen("s1"), ""}, {"", chosen(), ""},
	} {
		if got := strings.Join(st.Ticked(row.group, row.a), "; "); got != row.want {
			t.Errorf("group %s: %q, want %q", row.group, got, row.want)
		}
	}
}

// TestPageOf: a Home carries any number of a page, and what it carries names a
// part of the list.
func TestPageOf(t *testing.T) {
	for size := 1; size < 40; size++ {
		for _, all := range []int{0, 1, size, size + 1, 3*size - 1} {
			for _, page := range []int{0, 1, 2, 3, -1, math.MinInt, math.MaxInt, math.MaxInt / size, math.MaxInt/size + 1, math.MaxInt/size*2 + 1} {
				from, to := PageOf(all, size, page)
				want := page * size
				if page < 0 || page > 2 || want >= all {
					want = 0
				}
				if from != want || to != min(from+size, all) {
					t.Errorf("page %d of %d by %d: %d to %d", page, all, size, from, to)
				}
			}
		}
	}
}

// FuzzHome: no name and no number makes a Home that Slack refuses.
func FuzzHome(f *testing.F) {
	f.Add("name", "notice", 3, 0)
	f.Add(hostile, hostile, 40, 7)
	f.Add("\u202e", "\u202e", 1, 0) // nothing of them is seen
	f.Add("name", "`\u202e`", 1, 0)
	f.Add("name", "notice", 40, math.MaxInt/WaitingPage+1)
	f.Fuzz(func(t *testing.T, name, notice string, n, page int) {
		d := &Home{Data: fullHome(max(n%60, 0), name), Notice: notice, Reader: bots.Reader{Locale: "en", Now: time.Unix(0, 0)},
			Pages: map[string]int{"servers": page, "settings": page, "approvals": page, "tokens": page, "credentials": page, "chats": page}}
		layOut(t, d)
	})
}

// FuzzHomeState: what a Home carries is read whatever it is.
func FuzzHomeState(f *testing.F) {
	f.Add(`{"pages":{"servers":1},"servers":["a"],"file":"F1"}`, "servers:0")
	f.Add(`{"file":"<!here>","pages":null}`, "99999999999999999999")
	f.Add(`{"servers":["a"]}`, "1844674407370955161")
	f.Add(`{"servers":[]}`, "0")
	f.Fuzz(func(t *testing.T, metadata, arg string) {
		st := ReadHomeState(metadata)
		if st.File != "" && !incoming.IDForm.MatchString(st.File) {
			t.Errorf("a file %q", st.File)
		}
		st.Ticked(arg, &incoming.Action{})
	})
}

// The Home names the latest conversations by their titles.
func TestHomeRecent(t *testing.T) {
	at := time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC)
	d := &Home{Data: bots.Home{Picture: &bots.Picture{}, Recent: []bots.HomeChat{{Title: "What time is it in <!channel> Tokyo?", Where: "slack", At: at}}}, Reader: bots.Reader{Zone: time.FixedZone("", 3600), Now: at}}
	view, _ := layOut(t, d)
	if !strings.Contains(view, "Your latest conversations") || !strings.Contains(view, `{"type":"plain_text","text":"• What time is it in \u003c!channel\u003e Tokyo? (slack, 2026-11-22)"`) {
		t.Errorf("got %s", view)
	}
}

// TestOneLine: a text of several lines is shown in one, without escapes for its line ends;
// what could steer the reader stays an escape.
func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"You find tools.\n\nAnd\trun them.\r\n": "You find tools. And run them.",
		"a\u202eb\u200b":                        `a\u202eb\u200b`,
		" \n":                                   "?",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
