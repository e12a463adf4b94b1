package bots

import (
	"testing"

	"nize/bots/phrases"
	"nize/store"
)

// TestLookupWords: people see discover_tools as a search.
func TestLookupWords(t *testing.T) {
	for _, test := range []struct {
		locale string
		line   store.ToolLine
		want   string
	}{
		{"", store.ToolLine{Name: "discover_tools", State: store.Running, Brief: store.Plain("weather in <Paris>")}, "Search for tools… – weather in <Paris>"},
		{"", store.ToolLine{Name: "discover_tools", State: store.Done, Brief: store.Plain("box:weather")}, "Search for tools: box:weather"},
		{"zh-CN", store.ToolLine{Name: "discover_tools", State: store.Done, Brief: store.Textf("nothing")}, "查找工具: 没有结果"},
		{"zh-TW", store.ToolLine{Name: "get_tool_schema", State: store.Failed}, "檢視工具用法: 失敗"},
	} {
		words := phrases.For(test.locale)
		title, ok := Lookup(test.line.Name, words)
		if got := LookupWords(test.line, title, words); !ok || got != test.want {
			t.Errorf("%+v is %q, want %q", test.line, got, test.want)
		}
	}
	if _, ok := Lookup("box:discover_tools", phrases.For("")); ok {
		t.Error("a tool of a server's is no lookup of ours")
	}
}

// TestLineState: only a running call is shown as being called.
func TestLineState(t *testing.T) {
	calling := phrases.ToolCalling.Text()
	for _, state := range []store.State{store.Planned, store.Pending, store.Done, store.Failed, store.Refused, store.Expired, store.Cancelled, store.Lost, "x"} {
		if LineState(state) == calling {
			t.Errorf("%s is shown as being called", state)
		}
	}
	if LineState(store.Running) != calling {
		t.Error("what runs is not shown as being called")
	}
}

// TestTooMany: the refusal of too many messages, in words.
func TestTooMany(t *testing.T) {
	err := &TooManyError{20, "5m", "4m1s"}
	for locale, want := range map[string]string{
		"":      "You sent 20 messages within 5 minutes, which is the limit for one person. This one was not accepted; try again in 4 minutes 1 second.",
		"zh-CN": "你在 5 分钟内已发送 20 条消息，达到每人上限。这条消息未被处理；4 分钟 1 秒后可继续发送。",
	} {
		if got := err.Words(phrases.For(locale)); got != want {
			t.Errorf("%s: %q, want %q", locale, got, want)
		}
	}
}

// TestFullMessage: a message about tools is full by its tools, not by lookups.
func TestFullMessage(t *testing.T) {
	messages := ToolMessages[struct{}]{Most: 2}
	put := func(id, name string) *ToolMessage[struct{}] {
		m := messages.Find("t", "")
		m.Set(t.Context(), nil, id, store.ToolLine{Name: name, State: store.Done})
		return m
	}
	first := put("tool/1", "box:a")
	for _, id := range []string{"tool/2", "tool/3"} {
		if put(id, "discover_tools") != first {
			t.Errorf("%s begins a message", id)
		}
	}
	if put("tool/4", "box:b") != first || put("tool/5", "box:c") == first {
		t.Error("the third tool, and only that, begins a message")
	}
}
