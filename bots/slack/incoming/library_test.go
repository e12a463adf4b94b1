package incoming

import (
	"encoding/json"
	"testing"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
)

// TestLibrary has the payloads that slack-go refuses, or loses text of, and that nize reads:
// the reason for each member that nize decodes itself. When a case fails because the library
// reads it, that member can go.
func TestLibrary(t *testing.T) {
	t.Parallel()
	event := func(inner string) string {
		return `{"type":"event_callback","team_id":"T1","event_id":"Ev1","context_team_id":"T2","event":` + inner + `}`
	}
	message := func(more string) string {
		return event(`{"type":"message","channel_type":"channel","user":"U1","channel":"C1","ts":"1.2","text":"hi",` + more + `}`)
	}
	const home = `{"type":"app_home_opened","user":"U1","channel":"D1","tab":"home","view":{"id":"V1","type":"home","private_metadata":"m",`
	for name, payload := range map[string]string{
		"an element of another type": message(`"blocks":[{"type":"actions","elements":[{"type":"dial","action_id":"a"}]}]`),
		"a null among the blocks":    message(`"blocks":[null,7]`),
		"fields that are no list":    message(`"blocks":[{"type":"section","fields":{"type":"plain_text","text":"f"}}]`),
		"a table that is none":       message(`"blocks":[{"type":"table","rows":[{"cells":[]}]}]`),
		"blocks of an attachment":    message(`"attachments":[{"blocks":[{"type":"input","element":{"type":"dial"}}]}]`),
		"a time of an attachment":    message(`"attachments":[{"ts":"today"}]`),
		"a file's time":              message(`"files":[{"id":"F1","created":"today"}]`),
		"a file's size":              message(`"files":[{"id":"F1","size":"12"}]`),
		"a member of another type":   message(`"metadata":{"event_payload":[]}`),
		"a profile of another type":  event(`{"type":"user_change","user":{"id":"U1","deleted":true,"profile":{"fields":[]}}}`),
		"a view without inputs":      event(home + `"state":{"values":[]}}}`),
		"a block of a view":          event(home + `"blocks":[{"type":"input","element":{"type":"dial"}}]}}`),
		"an edit of another type":    event(`{"type":"message","channel":"C1","ts":"1.2","user":"U1","text":"hi","edited":"no"}`),
	} {
		if _, err := slackevents.ParseEvent([]byte(payload), slackevents.OptionNoVerifyToken()); err == nil {
			t.Errorf("%s: slack-go reads it", name)
		}
		e, err := DecodeEvent([]byte(payload))
		if err != nil || e.User != "U1" || e.Through != "" && e.Through != "T2" {
			t.Errorf("%s: %v, %+v", name, err, e)
		}
	}
	for name, payload := range map[string]string{
		"a message pressed on":  `{"type":"message_action","callback_id":"c","user":{"id":"U1"},"team":{"id":"T1"},"message":{"ts":"1.2","text":"hi","blocks":[{"type":"actions","elements":[{"type":"dial"}]}]}}`,
		"a view without inputs": `{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"actions":[{"action_id":"a","block_id":"b"}],"view":{"id":"V1","state":{"values":[]}}}`,
		"unused members":        `{"type":"block_actions","token":7,"enterprise":[],"user":{"id":"U1","name":7},"team":{"id":"T1","domain":[]},"container":{"is_ephemeral":"no"},"message":{"ts":"1.2","text":"hi"},"actions":[null,{"action_id":"a","block_id":"b","value":"v","text":"Run","initial_option":[],"selected_date_time":"now"}]}`,
		"an input's text":       `{"type":"view_submission","user":{"id":"U1"},"team":{"id":"T1"},"response_urls":{},"view":{"id":"V1","submit":7,"state":{"values":{"b":{"a":{"value":"v","selected_option":{"text":"V","value":"v"},"rich_text_value":{"elements":7}}}}}}}`,
		"a block of a view":     `{"type":"view_submission","user":{"id":"U1"},"team":{"id":"T1"},"view":{"id":"V1","blocks":[{"type":"input","element":{"type":"dial"}}]}}`,
	} {
		var theirs slackgo.InteractionCallback
		if json.Unmarshal([]byte(payload), &theirs) == nil {
			t.Errorf("%s: slack-go reads it", name)
		}
		if i, err := DecodeInteraction([]byte(payload)); err != nil || i.User.ID != "U1" || i.Message.Text == "" && i.View.ID == "" {
			t.Errorf("%s: %v, %+v", name, err, i)
		}
	}
	i, err := DecodeInteraction([]byte(`{"type":"block_actions","user":{"id":"U1","name":7},"team":{"id":"T1"},"actions":[null,{"action_id":"a","block_id":"b","value":"v","text":7,"selected_option":{"text":7,"value":"w"}}],"view":{"title":7,"state":{"values":{"b":{"a":{"text":7,"value":"typed"}}}}}}`))
	if err != nil || len(i.Actions()) != 1 || i.Actions()[0].Value != "v" || i.Actions()[0].SelectedOption.Value != "w" || Typed(i.View.State.Values["b"]["a"]) != "typed" {
		t.Errorf("%v, %+v", err, i)
	}
	const command = `{"command":"/nize","text":"help","user_id":"U1","team_id":"T1","channel_id":"C1","team_domain":7,"enterprise_name":[]}`
	if json.Unmarshal([]byte(command), new(slackgo.SlashCommand)) == nil {
		t.Error("slack-go reads the command")
	}
	if c, err := DecodeCommand([]byte(command)); err != nil || c.Text != "help" || c.ChannelID != "C1" {
		t.Errorf("%v, %+v", err, c)
	}
	stopped, err := DecodeEvent([]byte(event(`{"type":"agent_session_stopped","user":"U1","channel":"C1","thread_ts":"1.2","event_ts":7}`)))
	if err != nil || stopped.User != "U1" || stopped.ThreadTimestamp != "1.2" {
		t.Errorf("%v, %+v", err, stopped)
	}
	// Of a type that it doesn't know, the library keeps the JSON only.
	const unknown = `[{"type":"callout","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"mind the gap"}]}]}]`
	var blocks slackgo.Blocks
	if err := json.Unmarshal([]byte(unknown), &blocks); err != nil {
		t.Fatal(err)
	}
	if _, ok := blocks.BlockSet[0].(*slackgo.UnknownBlock); !ok {
		t.Errorf("slack-go reads a callout as %T", blocks.BlockSet[0])
	}
	if text := blockText(json.RawMessage(unknown), "", nil); text != "mind the gap" {
		t.Errorf("its text is %q", text)
	}
}

// TestChosen: what a person chose or typed is never read as another answer.
func TestChosen(t *testing.T) {
	t.Parallel()
	const press = `{"type":"block_actions","token":7,"user":{"id":"U1"},"team":{"id":"T1"},"actions":[{"text":7,"action_id":"a","block_id":"b",`
	const dialog = `{"type":"view_submission","token":7,"user":{"id":"U1"},"team":{"id":"T1"},"view":{"title":7,"state":{"values":`
	for _, payload := range []string{
		press + `"value":7}]}`, press + `"value":"v"},7]}`, press + `"selected_option":"x"}]}`, press + `"selected_option":{"value":7}}]}`, press + `"selected_options":[{"value":[]}]}]}`, press + `"action_ts":7}]}`,
		dialog + `{"b":{"a":{"text":7,"value":7}}}}}}`, dialog + `{"b":{"a":7}}}}}`, dialog + `{"b":7}}}}`, dialog + `7}}}`, dialog + `[{}]}}}`, dialog + `{"b":{"a":{"selected_options":[7]}}}}}}`,
		`{"type":"view_submission","user":{"id":"U1"},"team":{"id":"T1"},"view":{"state":7}}`, `{"type":"view_submission","user":{"id":"U1"},"team":{"id":"T1"},"view":7}`,
		`{"type":"block_actions","user":{"id":7},"team":{"id":"T1"},"actions":[]}`,
	} {
		if i, err := DecodeInteraction([]byte(payload)); err == nil {
			t.Errorf("%s is %+v", payload, i)
		}
	}
	if c, err := DecodeCommand([]byte(`{"command":"/nize","text":7,"user_id":"U1","team_id":"T1","channel_id":"C1"}`)); err == nil {
		t.Errorf("a command is %+v", c)
	}
}
