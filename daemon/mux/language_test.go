package mux

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"nize/store"
)

// shout is a language.
type shout struct{}

func (shout) Text(t store.Text) string { return t.String() + "!" }
func (shout) Problem(err error) string { return err.Error() + "!" }

// An answer stands in the language that its request asks for, and what it was
// made of stays English.
func TestInLanguage(t *testing.T) {
	denied, limit := store.Textf("denied by %s", "Ann"), store.Textf("[The answer reached its length limit.]")
	answer := struct {
		Call  *store.Call
		Cards []store.Card
		Turns map[string]store.Turn
		Any   any
		none  store.Text
	}{
		&store.Call{Reason: denied, Args: json.RawMessage(`{}`)}, []store.Card{{Warnings: []store.Text{denied}}},
		map[string]store.Turn{"a": {Role: store.FromNize, Text: denied.String(), Said: denied}, "b": {Role: store.FromModel, Text: "So.", Said: limit}}, denied, denied,
	}
	got := inLanguage(answer, shout{}).(struct {
		Call  *store.Call
		Cards []store.Card
		Turns map[string]store.Turn
		Any   any
		none  store.Text
	})
	for _, text := range []string{got.Call.Reason.String(), got.Cards[0].Warnings[0].String(), got.Any.(store.Text).String()} {
		if text != "denied by Ann!" {
			t.Errorf("got %q", text)
		}
	}
	if a, b := got.Turns["a"].Text, got.Turns["b"].Text; a != "denied by Ann!" || b != "So." {
		t.Errorf("got the turns %q and %q", a, b)
	}
	if answer.Call.Reason != denied || answer.Cards[0].Warnings[0] != denied || string(got.Call.Args) != "{}" {
		t.Errorf("the answer itself became %+v", answer)
	}
}

func TestSpeaker(t *testing.T) {
	var asked string
	m := &Mux{opt: Options{Speak: func(locale string) Speaker { asked = locale; return shout{} }}}
	for header, want := range map[string]string{"zh_TW.UTF-8": "zh_TW.UTF-8", "zh-TW,zh;q=0.9": "zh-TW", "zh;q=1": "zh", "": ""} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Language", header)
		asked = ""
		if s := m.speaker(r); asked != want || (s != nil) != (want != "") {
			t.Errorf("%q asks for %q, want %q", header, asked, want)
		}
	}
}
