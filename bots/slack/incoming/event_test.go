package incoming

import "testing"

// What separates nize's name from what it is told is no part of that.
func TestReadName(t *testing.T) {
	for text, want := range map[string]string{
		"<@U0>: help":                 "help",
		"<@U0>, usage":                "usage",
		" <@U0|nize> ; stop":          "stop",
		"<@U0>，帮助":                    "帮助",
		"<@U0>:":                      "",
		"<@U0> :) fine":               ":) fine",
		"<@U0> :wave:":                ":wave:",
		"<@U0>,5 is half":             ",5 is half",
		": <@U0>, help":               ": , help",
		"<@U1>, help":                 "@U1, help",
		"hey <@U0>, what is the time": "hey , what is the time",
	} {
		if got := ReadText(text, "U0", func(id string) string { return id }); got != want {
			t.Errorf("%q reads %q, want %q", text, got, want)
		}
	}
}

// No payload ends the process or opens a way around the checks.
// A view without inputs has an empty list where others have an object.
func TestNoInputs(t *testing.T) {
	const view = `{"id":"V1","type":"home","private_metadata":"m","hash":"1.2","state":{"values":[]}}`
	e, err := DecodeEvent([]byte(`{"type":"event_callback","team_id":"T0FAKE","event_id":"Ev1","event":{"type":"app_home_opened","user":"U0ANN","channel":"D0ANN","tab":"home","view":` + view + `}}`))
	if err != nil || e.Home.ID != "V1" || len(e.Home.State.Values) != 0 {
		t.Errorf("an event: %v, %+v", err, e.Home)
	}
	i, err := DecodeInteraction([]byte(`{"type":"block_actions","user":{"id":"U0ANN"},"team":{"id":"T0FAKE"},"actions":[{"action_id":"a","block_id":"b"}],"view":` + view + `}`))
	if err != nil || i.View.PrivateMetadata != "m" {
		t.Errorf("a press: %v, %+v", err, i.View)
	}
	if _, err := DecodeInteraction([]byte(`{"type":"view_submission","user":{"id":"U0ANN"},"team":{"id":"T0FAKE"},"view":{"state":{"values":[{"a":1}]}}}`)); err == nil {
		t.Error("a list that is not empty is taken")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"envelope_id":"e","type":"events_api","payload":{"type":"event_callback","team_id":"T1","event_id":"Ev1","event":{"type":"message","user":"U1","channel":"C1","ts":"1.2","text":"<@U0> hi <http://x|y> <!here>","blocks":[{"type":"rich_text","elements":[{"elements":[{"type":"user","user_id":"U2"}]}]}]}}}`))
	f.Add([]byte(`{"type":"block_actions","user":{"id":"U1","team_id":"T1"},"actions":[{"action_id":"call-run","block_id":"b","value":"run 01ARZ3NDEKTSV4RRFFQ69G5FAV abcd"}],"view":{"state":{"values":{"a":{"b":{"value":null,"selected_option":{"value":"x"}}}}}}}`))
	f.Add([]byte(`{"command":"/nize","text":"help","user_id":"U1","team_id":"T1","channel_id":"C1"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if e, err := DecodeEvent(raw); err == nil && Used[e.Type] {
			for _, id := range []string{e.User, e.Channel, e.BotID} {
				if id != "" && !IDForm.MatchString(id) {
					t.Errorf("id %q", id)
				}
			}
			Mentions(&e.Message, "U0")
			Others(&e.Message, "U0")
			Title(ReadText(e.Text, "U0", func(id string) string { return id }))
		}
		if i, err := DecodeInteraction(raw); err == nil {
			for _, block := range i.View.State.Values {
				for _, f := range block {
					_ = Typed(f)
				}
			}
		}
		_, _ = DecodeCommand(raw)
	})
}

func FuzzBlocks(f *testing.F) {
	f.Add([]byte(`[{"type":"section","text":{"type":"mrkdwn","text":"a <@U1>"},"fields":[{"type":"plain_text","text":"b"}]},{"type":"actions","elements":[{"type":"button","style":"primary","text":{"type":"plain_text","text":"Go"}}]}]`))
	f.Add([]byte(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"x","style":{"code":true}},{"type":"user","user_id":"U1"}]}]}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if text := blockText(raw, "", func(id string) string { return id }); len(text) > maxBlockText {
			t.Errorf("%d bytes of blocks", len(text))
		}
		blockMentions(raw)
	})
}
