package offline

import (
	"strings"
	"testing"

	"nize/llm"
	"nize/store"
)

// TestOfferedTools plays a round in which tools are offered by their own names.
func TestOfferedTools(t *testing.T) {
	functions := []store.Function{
		{Name: "calculate", Description: "Computes an arithmetic expression.", Schema: []byte(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`)},
		{Name: "roll_dice", Description: "Rolls dice.", Schema: []byte(`{"type":"object","properties":{"dice":{"type":"string"}},"required":["dice"]}`)},
		{Name: "weather", Description: "The weather of a city.", Schema: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)},
	}
	ask := func(turns ...store.Turn) llm.Reply {
		t.Helper()
		reply, err := New(nil).Generate(t.Context(), llm.Request{Functions: functions, Turns: turns}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	says := func(text string) store.Turn { return store.Turn{Role: store.FromUser, Text: text} }
	for text, want := range map[string]store.ToolCall{
		"What is 17*23?":          {Name: "calculate", Args: `{"expression":"17*23"}`},
		"Roll 2d6":                {Name: "roll_dice", Args: `{"dice":"2d6"}`},
		"What time is it?":        {},
		"Which tools are there?":  {},
		"weather":                 {}, // it asks for the city
		"Translate this to Latin": {},
	} {
		reply := ask(says(text))
		var got store.ToolCall
		if len(reply.Calls) > 0 {
			got = reply.Calls[0]
		}
		if got != want || want.Name == "" && reply.Text == "" {
			t.Errorf("%s: %+v, want %+v", text, reply, want)
		}
	}
	asked := ask(says("weather"))
	supplied := ask(says("weather"), store.Turn{Role: store.FromModel, Text: asked.Text, Opaque: asked.Opaque}, says("Oslo"))
	if len(supplied.Calls) != 1 || supplied.Calls[0].Args != `{"city":"Oslo"}` {
		t.Errorf("what was asked for is not used: %+v", supplied)
	}
	done := ask(says("Roll 2d6"), store.Turn{Role: store.FromModel, Calls: []store.ToolCall{{ID: "1", Name: "roll_dice"}}},
		store.Turn{Role: store.FromTool, CallID: "1", Text: llm.Frame("7")})
	if len(done.Calls) > 0 || !strings.Contains(done.Text, "7\n") {
		t.Errorf("the result is not shown: %+v", done)
	}
}
