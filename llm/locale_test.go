package llm_test

import (
	"context"
	"errors"
	"testing"

	"nize/llm/llmtest"
	"nize/store"
)

type channelsFunc func(place string) (store.Channel, error)

func (f channelsFunc) GetChannel(_ context.Context, place string) (store.Channel, error) {
	return f(place)
}

// A model gets nize's language in the thread: the channel's, otherwise the owner's, even if
// the channel's settings can't be read.
func TestLocaleOfAThread(t *testing.T) {
	for _, tt := range []struct {
		name    string
		channel string
		room    store.Channel
		err     error
		want    string
	}{
		{"a channel with a language", "C1", store.Channel{Language: "zh-Hant"}, nil, "zh-Hant"},
		{"a channel without one", "C1", store.Channel{}, nil, "de-DE"},
		{"a direct message", "D1", store.Channel{Language: "zh-Hant"}, nil, "de-DE"},
		{"nobody knows", "C1", store.Channel{Language: "zh-Hant"}, errors.New("disk trouble"), "de-DE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, llmtest.Step{Text: "Hello."})
			b.m.thread.Address = store.Address{Surface: store.OnSlack, Team: "T1", Channel: tt.channel}
			b.Channels = channelsFunc(func(place string) (store.Channel, error) {
				if place != "slack:T1:C1" {
					t.Errorf("asked for %q", place)
				}
				return tt.room, tt.err
			})
			b.say(ann, "hi")
			b.work()
			if got := b.script.Requests()[0].Locale; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The line of a call without a result has the text for people instead of the one for the
// model.
func TestLineOfACallWithoutResult(t *testing.T) {
	for state, reason := range map[store.State]store.Text{store.Refused: store.Plain("too risky"), store.Expired: store.Textf("nobody answered in time"), store.Cancelled: store.Textf("its caller left"), store.Lost: {}} {
		b := newBench(t, llmtest.Step{Calls: []store.ToolCall{llmtest.Execute("s:ask", nil)}}, llmtest.Step{Text: "I see."})
		b.say(ann, "go")
		b.work()
		c := b.pendingCall()
		c.Reason = reason
		b.m.put(c)
		b.m.finish(c.ID, state, "")
		b.work()
		var line *store.ToolLine
		for _, p := range b.told {
			if p.Kind == "tool" {
				line = p.Tool
			}
		}
		if line == nil || line.State != state || line.Brief != reason {
			t.Errorf("%s: %+v, want %q", state, line, reason)
		}
	}
}
