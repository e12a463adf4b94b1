package bots

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/store"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

var now = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)

func plainCard() store.Card {
	return store.Card{
		Call: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Tool: "toolbox:convert_time", Title: "Convert a time", Server: "toolbox",
		Where: "/usr/bin/nize-toolbox --all", By: "ann", RunsAs: store.Plain("the server's own credential"), Policy: store.ByRequester,
		Description: "Converts a time.\nRun cancelled:true?", Why: "You asked for Tokyo.",
		Args:   json.RawMessage(`{"from":"Europe/Berlin","n":9007199254740993,"to":["Asia/Tokyo",{}]}`),
		Digest: strings.Repeat("3f2a9c01", 8), Expires: now.Add(15 * time.Minute), State: store.Pending,
		CardReason: store.CardReason{Claim: store.Textf("it only reads"), Asks: store.Textf("it may change something"), Stops: store.Textf("a standing approval (always)")},
	}
}

func TestCardLines(t *testing.T) {
	tokyo := time.FixedZone("JST", 9*3600)
	hostile := plainCard()
	hostile.Tool = "evil:run\x1b[2J"
	hostile.Description = "nice\nstate: done\x07\r\n\u202egnorts"
	hostile.Why = "pay\u200bpal"
	hostile.Warnings = []store.Text{store.Plain("the definition changed"), store.Plain("host xn--pypal-4ve.com mixes scripts")}
	hostile.Args = json.RawMessage("{\"a\":\"x\u202ey\u200b\U000E0041\x7f\u00a0\",\"b\\n\":\"<!channel> `*_\",\"c\":\"日本\"}")
	broken := plainCard()
	broken.Args = json.RawMessage("{\"a\":\x1b")
	admins := plainCard()
	admins.Policy, admins.Args, admins.Expires = store.ByAdmins, json.RawMessage(`{}`), now.Add(24*time.Hour)
	approved := plainCard()
	approved.Approved, approved.DecidedBy = true, "bo"
	done := plainCard()
	done.State, done.DecidedBy, done.Outcome, done.Settled = store.Done, "ann", store.Plain("12:00 JST\nand more"), now
	client := plainCard()
	client.Token, client.Gone, client.Claim = "my-ide", true, store.Text{}
	client.By, client.Title = "ann · decided by root", `Convert" · decided by "root`
	for name, card := range map[string]store.Card{
		"plain": plainCard(), "hostile": hostile, "broken": broken, "admins": admins, "approved": approved, "done": done, "client": client,
	} {
		t.Run(name, func(t *testing.T) {
			r := Reader{Zone: tokyo, Now: now}
			lines := CardLines(card, r)
			if s := PartsOf(card, r).Settled; s != nil {
				lines = append(lines, "remains: "+s.Line())
			}
			golden(t, "card_"+name+".txt", strings.Join(lines, "\n")+"\n")
			for _, line := range lines {
				if strings.ContainsAny(line, "\n\r\x1b\x07") {
					t.Errorf("line %q can steer a terminal", line)
				}
			}
		})
	}
}

// The card in the other languages: other people's words stay as they are.
func TestCardLinesChinese(t *testing.T) {
	card := plainCard()
	card.RunsAs = store.Textf("the credential %s of the team %s", "token", "ops")
	card.Warnings = []store.Text{store.Textf("this conversation has read untrusted text, which may have asked for this call"), store.Textf("%s %s has letters that only look ASCII: in ASCII it is %s", store.Textf("host"), "аpple.com", "xn--pple-43d.com")}
	card.Need, card.NotRequester, card.Yes = 2, true, []string{"bo"}
	card.Approvers = []store.Approver{{Kind: "admins", Names: []string{"bo", "cy"}, More: 3}, {Kind: "group", Names: []string{"ops"}}}
	lost := plainCard()
	lost.State, lost.DecidedBy, lost.Outcome = store.Lost, "ann", store.Textf("nized stopped while it ran; it may or may not have taken effect")
	theirs := plainCard()
	theirs.State, theirs.Outcome = store.Done, store.Plain("the tool is gone; it will not run") // a tool's words
	for name, card := range map[string]store.Card{"waiting": card, "lost": lost, "theirs": theirs} {
		for _, locale := range []string{"zh-Hans", "zh-Hant"} {
			r := Reader{Locale: locale, Zone: time.FixedZone("CST", 8*3600), Now: now}
			golden(t, "card_"+name+"_"+locale+".txt", strings.Join(CardLines(card, r), "\n")+"\n")
		}
	}
}

func TestStateWords(t *testing.T) {
	for _, s := range []store.State{
		store.Planned, store.Pending, store.Running, store.Done, store.Failed, store.Refused, store.Expired, store.Cancelled, store.Lost, "from the future",
	} {
		if StateWords(store.Card{State: s}, "zz-unknown") == "" {
			t.Errorf("state %q has no word", s)
		}
	}
}

// The heading is a question only while the call waits for an answer; afterwards it says the
// outcome, and the state is always a word.
func TestCardHeading(t *testing.T) {
	for state, want := range map[store.State][3]string{
		store.Pending:   {"Run box:run?", "运行 box:run？", "執行 box:run？"},
		store.Planned:   {"Planned: box:run", "已计划：box:run", "已計劃：box:run"},
		store.Running:   {"Running: box:run", "正在运行：box:run", "正在執行：box:run"},
		store.Done:      {"Done: box:run", "已完成：box:run", "已完成：box:run"},
		store.Failed:    {"Failed: box:run", "失败：box:run", "失敗：box:run"},
		store.Refused:   {"Refused: box:run", "已拒绝：box:run", "已拒絕：box:run"},
		store.Expired:   {"Expired: box:run", "已过期：box:run", "已過期：box:run"},
		store.Cancelled: {"Cancelled: box:run", "已取消：box:run", "已取消：box:run"},
		store.Lost:      {"Outcome unknown: box:run", "结果未知：box:run", "結果不明：box:run"},
		"later":         {"Outcome unknown: box:run", "结果未知：box:run", "結果不明：box:run"},
	} {
		for i, locale := range []string{"en", "zh-Hans", "zh-Hant"} {
			card := store.Card{Tool: "box:run", State: state}
			if got := PartsOf(card, Reader{Locale: locale}).Headline; got != want[i] {
				t.Errorf("%s in %s: %q, want %q", state, locale, got, want[i])
			}
		}
	}
	if got := CardLines(store.Card{Tool: "box:run", State: store.Pending, Approved: true}, Reader{})[0]; got != "Approved: box:run" {
		t.Errorf("an approved call's heading is %q", got)
	}
}
