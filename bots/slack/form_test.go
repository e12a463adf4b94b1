package slack

import (
	"testing"

	"nize/bots"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
)

type noFiller struct{ bots.Filler }

// A dialog with a forged hidden part is refused without other effects.
func FuzzFilled(f *testing.F) {
	f.Add(`{"command":"set","channel":"C1","was":{"mode":"00000000"}}`, "form:set")
	f.Add(`{"command":"help","channel":"C1"}`, "form:help")
	f.Add(`{"command":"set","channel":"../x","thread":"1"}`, "form:set")
	f.Add(`[]`, "")
	commands := &bots.Commands{}
	commands.Add(bots.Command{Name: "set", Form: noFiller{}}, bots.Command{Name: "help"})
	c := &commander{list: commands}
	f.Fuzz(func(t *testing.T, metadata, callback string) {
		var i incoming.Interaction
		i.View.PrivateMetadata, i.View.CallbackID = metadata, callback
		cmd, asked, _, err := c.readForm(i, people.Person{})
		if err == nil && (cmd.Form == nil || asked.At.Channel != "" && !incoming.IDForm.MatchString(asked.At.Channel)) {
			t.Errorf("%q at %q is taken", cmd.Name, asked.At.Channel)
		}
	})
}
