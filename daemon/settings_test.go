package daemon_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
)

// colour is a setting that only this test has: a definition, and no line more.
var colour = store.Key{Name: "test.colour", Category: store.AboutChat, Label: store.Keyed("Colour of the test"), Kind: store.KindEnum, Default: "blue", Choices: []string{"blue", "green"}, User: true, Help: store.Keyed("of nothing")}

func init() {
	i, _ := slices.BinarySearchFunc(store.Keys, colour.Name, func(k store.Key, name string) int { return strings.Compare(k.Name, name) })
	store.Keys = slices.Insert(slices.Clone(store.Keys), i, colour)
}

// A new setting of people's own is listed over HTTP, stands on the Home and in the
// dialogs, and is a word in chats, by its definition alone.
func TestSettingsAreDefinitions(t *testing.T) {
	s := newScene(t)
	s.homeOf(slacktest.Ben)
	ben := s.userOf(slacktest.Ben)

	s.shows(slacktest.Ben, "Colour of the test", "home:set:test.colour", "the default (blue)", "Max tool-call steps per message: 10", "Enable MCP tool calling")
	s.touch(slacktest.Ben, "home:set:test.colour", "green")
	s.until("test.colour is green", func() bool { return s.setting(ben.ID, colour.Name) == "green" })

	made, err := api.CreateToken.Call(t.Context(), s.Client, api.CreateTokenRequest{Name: "web", User: ben.ID, Audience: "api"})
	if err != nil {
		t.Fatal(err)
	}
	status, err := api.GetStatus.Call(t.Context(), s.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body string) (list api.List[api.OwnSetting]) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+status.Listen+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+made.Secret.Reveal())
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept-Language", "zh-TW")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s, %v", method, path, resp.Status, err)
		}
		return list
	}
	find := func(list api.List[api.OwnSetting], name string) api.OwnSetting {
		i := slices.IndexFunc(list.Items, func(o api.OwnSetting) bool { return o.Name == name })
		if i < 0 {
			t.Fatalf("%s is not listed", name)
		}
		return list.Items[i]
	}
	list := ask("GET", "/api/settings", "")
	if o := find(list, colour.Name); o.Value != "green" || o.Own == nil || *o.Own != "green" || o.System != "blue" || !o.MayChange || o.Display != store.ShowSelect || o.Scope != "user" {
		t.Errorf("%s: %+v", colour.Name, o)
	}
	if o := find(list, "agent.tools.enabled"); o.Label.String() != "啟用 MCP 工具呼叫" || o.CategoryLabel.String() != "助手" {
		t.Errorf("its label is %q of %q", o.Label, o.CategoryLabel)
	}
	ask("PUT", "/api/settings/test.colour", `{"value":"blue"}`)
	s.homeOf(slacktest.Ben)
	s.shows(slacktest.Ben, `"value":"blue"`)

	// What is the person's own holds in their next turn, within the system's.
	s.says.plan("loop", plan{tool: "discover_tools", args: `{"query":"a note"}`, then: "found"})
	turn := func(word, want string) string {
		t.Helper()
		m, err := s.fake.DM(slacktest.Ben, "#"+word)
		if err != nil {
			t.Fatal(err)
		}
		s.until("an answer to "+word, func() bool { return s.answers(m, want) == 1 })
		return s.says.prompt(word)
	}
	ask("PUT", "/api/settings/agent.tools.systemPrompt", `{"value":"Tools are Ben's."}`)
	ask("PUT", "/api/settings/agent.tools.maxSteps", `{"value":"1"}`)
	if p := turn("loop", "after 1 steps"); !strings.Contains(p, "Tools are Ben's.") {
		t.Errorf("the prompt is %q", p)
	}
	ask("DELETE", "/api/settings/agent.tools.maxSteps", "")
	ask("PUT", "/api/settings/agent.tools.enabled", `{"value":"false"}`)
	if p := turn("off", "You said off."); strings.Contains(p, "Tools are Ben's.") {
		t.Errorf("without tools the prompt is %q", p)
	}
	ask("DELETE", "/api/settings/agent.tools.enabled", "")
	if _, err := api.PutSetting.Call(t.Context(), s.Client, api.PutSettingRequest{Key: "agent.tools.enabled", Value: "false"}); err != nil {
		t.Fatal(err)
	}
	ask("PUT", "/api/settings/agent.tools.enabled", `{"value":"true"}`)
	if o := find(ask("GET", "/api/settings", ""), "agent.tools.enabled"); o.Value != "false" || !o.Bounded {
		t.Errorf("beyond the system's: %+v", o)
	}
	s.homeOf(slacktest.Ben)
	s.shows(slacktest.Ben, "An admin set this for everybody.")

	// What is written is changed in the dialog that the Home opens.
	home, _ := s.fake.Home(slacktest.Ben)
	if err := s.fake.PressView(t.Context(), slacktest.Ben, home.ID, "words:home-agent.tools.maxSteps"); err != nil {
		t.Fatal(err)
	}
	s.until("a dialog", func() bool { return len(s.fake.Views(slacktest.Ben)) == 1 })
	view := s.fake.Views(slacktest.Ben)[0]
	for _, want := range []string{"field-test.colour", "Colour of the test", "field-agent.tools.systemPrompt", `"multiline":true`} {
		if !strings.Contains(string(view.Blocks), want) {
			t.Errorf("the dialog lacks %s: %s", want, view.Blocks)
		}
	}
	var refused slacktest.Refused
	if err := s.fake.Submit(t.Context(), slacktest.Ben, view.ID, map[string][]string{"field-agent.tools.maxSteps": {"many"}}); !errors.As(err, &refused) || !strings.Contains(refused["field-agent.tools.maxSteps"], "a whole number from 1 to 100") {
		t.Errorf("a value that is none: %v", err)
	}
	if err := s.fake.Submit(t.Context(), slacktest.Ben, view.ID, map[string][]string{"field-agent.tools.maxSteps": {"3"}, "field-test.colour": {"default"}}); err != nil {
		t.Fatal(err)
	}
	s.shows(slacktest.Ben, "agent.tools.maxSteps is 3 for you now.", "Max tool-call steps per message: 3")
	if got := s.setting(ben.ID, colour.Name); got != "blue" {
		t.Errorf("%s is %q", colour.Name, got)
	}
}
