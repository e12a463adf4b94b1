package incoming

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bwmarrin/discordgo"
	"github.com/google/go-cmp/cmp"
)

// The payloads that discordgo refuses as a whole, with a message of Ben's in each.
const (
	future  = `{"type":99,"custom_id":"later"}`
	row     = `{"type":1,"components":[{"type":2,"style":2,"label":"Run","custom_id":"call:run"},` + future + `]}`
	author  = `"author":{"id":"2000","username":"ben"}`
	message = `{"id":"10","channel_id":"20",` + author + `,"type":0,"content":"hello","components":`
	dialog  = `{"id":"30","application_id":"40","type":5,"token":"t","channel_id":"20","user":{"id":"2000","username":"ben"},"data":{"custom_id":"form","components":`
)

// TestLibraryIncoming shows why payloads are prepared before discordgo decodes them: it
// returns nothing of a message or an interaction that has a component it doesn't know, and
// nothing of a dialog that it encoded itself.
func TestLibraryIncoming(t *testing.T) {
	for name, raw := range map[string]string{
		"a message":                    message + `[` + row + `,` + future + `]}`,
		"in a container":               message + `[` + row + `,{"type":17,"components":[` + future + `]}]}`,
		"beside a section":             message + `[` + row + `,{"type":9,"components":[],"accessory":` + future + `}]}`,
		"a message that it replies to": message + `[` + row + `],"referenced_message":` + message + `[` + future + `]}}`,
		"null":                         message + `[` + row + `,null]}`,
	} {
		var theirs discordgo.Message
		if json.Unmarshal([]byte(raw), &theirs) == nil || theirs.Content != "" {
			t.Errorf("%s: discordgo decodes it now; decode with it alone", name)
		}
		m, err := DecodeMessage([]byte(raw))
		if err != nil || m.Content != "hello" || len(m.Components) == 0 {
			t.Errorf("%s: %+v %v", name, m, err)
			continue
		}
		if got := m.Components[0].(*discordgo.ActionsRow).Components; len(got) != 1 || got[0].(*discordgo.Button).CustomID != "call:run" {
			t.Errorf("%s: components %+v", name, got)
		}
	}
	submitted := dialog + `[{"type":18,"component":{"type":4,"custom_id":"a","value":"one"}},{"type":18,"component":` + future + `},{"type":18,"component":{"type":3,"custom_id":"b","values":["x","y"]}}]}}`
	var theirs discordgo.Interaction
	if json.Unmarshal([]byte(submitted), &theirs) == nil || theirs.Data != nil {
		t.Error("discordgo decodes the dialog now; decode with it alone")
	}
	want := map[string][]string{"a": {"one"}, "b": {"x", "y"}}
	i, err := DecodeInteraction([]byte(submitted))
	if diff := cmp.Diff(want, i.Fields()); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
	if raw, err := json.Marshal(i.Interaction); err != nil || strings.Contains(string(raw), "one") {
		t.Errorf("discordgo encodes a dialog's fields now: %s %v", raw, err)
	}
	raw, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	again, err := DecodeInteraction(raw)
	if diff := cmp.Diff(want, again.Fields()); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestRefused: what nize can't use is refused, however much of it discordgo decodes.
func TestRefused(t *testing.T) {
	for _, raw := range []string{
		`null`, `[]`, `{}`, `7`, `{"id":"10","channel_id":"20","content":"no author"}`, `{"id":"../10","channel_id":"20",` + author + `}`, `{"id":"10","channel_id":7,` + author + `}`,
		strings.Replace(message, `"id":"10"`, `"id":"10","guild_id":"x"`, 1) + `[]}`,
	} {
		if m, err := DecodeMessage([]byte(raw)); err == nil {
			t.Errorf("a message: %s is %+v", raw, m)
		}
	}
	for _, raw := range []string{
		`null`, `[]`, `{}`, dialog + `[]}`, strings.Replace(dialog, `"t"`, `"../t"`, 1) + `[]}}`, strings.Replace(dialog, `"user"`, `"nobody"`, 1) + `[]}}`,
		strings.Replace(dialog, `"form"`, `"`+strings.Repeat("f", 101)+`"`, 1) + `[]}}`,
	} {
		if i, err := DecodeInteraction([]byte(raw)); err == nil {
			t.Errorf("an interaction: %s is %+v", raw, i)
		}
	}
}

// TestStoredBefore: items that nize stored while it had its own types are decoded: they have
// no types of a dialog's components.
func TestStoredBefore(t *testing.T) {
	i, err := DecodeInteraction([]byte(`{"id":"30","application_id":"40","type":5,"token":"t","guild_id":"50","channel_id":"20","channel":{"id":"20","type":11,"parent_id":"21"},` +
		`"member":{"user":{"id":"2000","username":"ben"},"roles":["60"]},"message":{"id":"70","channel_id":"20"},"data":{"custom_id":"edit:x","components":[{},` +
		`{"component":{"custom_id":"a","value":"one"}},{"component":{"custom_id":"b","values":["x"]}},{"component":{"custom_id":"c"}},{"components":[{"custom_id":"d","value":"two"}]}]},"nize_masked":true}`))
	want := map[string][]string{"a": {"one"}, "b": {"x"}, "c": {""}, "d": {"two"}}
	if diff := cmp.Diff(want, i.Fields()); diff != "" || err != nil || !i.Masked || i.User.ID != "2000" || i.MessageID() != "70" || i.In.ParentID != "21" || i.CustomID() != "edit:x" {
		t.Errorf("%+v %v %s", i, err, diff)
	}
	m, err := DecodeMessage([]byte(`{"id":"10","channel_id":"20","guild_id":"50","author":{"id":"2000","username":"ben","global_name":"Ben"},"type":19,"content":"see","mentions":[{"id":"1","username":"nize"}],` +
		`"attachments":[{"id":"80","filename":"a.txt","size":3,"url":"https://cdn.example/a"}],"components":[],"embeds":[{"title":"T","footer":{}}],"referenced_message":{"id":"9","channel_id":"20","author":{"id":"1","username":"nize"},"type":0,"content":"before"},"nize_masked":true}`))
	if err != nil || !m.Masked || !m.Addresses("1") || m.Reply().Content != "before" || m.Attachments[0].Filename != "a.txt" || NameOf(m.Author) != "Ben" || m.Embeds[0].Title != "T" {
		t.Errorf("%+v %v", m, err)
	}
}

// TestStored: what is stored of a message or an interaction is masked, and has none of the
// fields that nize doesn't use, in which people may have written a key too.
func TestStored(t *testing.T) {
	const key = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	m, err := DecodeMessage([]byte(`{"id":"10","channel_id":"20",` + author + `,"content":"my ` + key + `","embeds":[{"description":"` + key + `","fields":[{"name":"n","value":"` + key + `"}],"author":{"name":"` + key + `"}}],` +
		`"referenced_message":{"id":"9","channel_id":"20",` + author + `,"content":"` + key + `","embeds":[{"title":"` + key + `"}]},"message_snapshots":[{"message":{"content":"` + key + `"}}],"poll":{"question":{"text":"` + key + `"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	m.Mask()
	i, err := DecodeInteraction([]byte(dialog + `[{"type":18,"component":{"type":4,"custom_id":"a","value":"` + key + `"}}]},"message":` + message + `[{"type":10,"content":"` + key + `"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	i.Mask()
	c, err := DecodeInteraction([]byte(`{"id":"30","application_id":"40","type":2,"token":"t","channel_id":"20","user":{"id":"2000"},"data":{"name":"nize","type":1,"options":[null,{"name":"ask","type":1,"options":[null,{"name":"words","type":3,"value":"` + key + `"}]}],` +
		`"resolved":{"messages":{"10":` + message + `[]}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	c.Mask()
	for _, v := range []any{m, i, c} {
		raw, err := json.Marshal(v)
		if err != nil || strings.Contains(string(raw), key) || strings.Contains(string(raw), "hello") || !strings.Contains(string(raw), `"nize_masked":true`) {
			t.Errorf("stored: %s %v", raw, err)
		}
	}
	if c.Line() == "" || strings.Contains(c.Line(), key) {
		t.Errorf("the command is %q", c.Line())
	}
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte(message + `[` + row + `]}`))
	f.Add([]byte(`{"id":"1","channel_id":"2","author":{"id":"3"},"mentions":[null],"attachments":[null],"embeds":[null],"components":[null],"referenced_message":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := DecodeMessage(raw)
		if err != nil {
			return
		}
		m.Mask()
		m.Quoted("1", func(id string) string { return id })
		if reply := m.Reply(); reply != nil {
			reply.Quoted("1", func(id string) string { return id })
		}
		stored, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeMessage(stored); err != nil || again.Content != m.Content || again.Masked != m.Masked {
			t.Errorf("%+v is stored as %s: %v", m, stored, err)
		}
	})
}

func FuzzInteraction(f *testing.F) {
	f.Add([]byte(dialog + `[{"type":18,"component":{"type":4,"custom_id":"a","value":"one"}}]}}`))
	f.Add([]byte(`{"id":"30","application_id":"40","type":2,"token":"t","channel_id":"20","member":{"user":{"id":"2000"}},"channel":{"recipients":[null]},"data":{"options":[null,{"options":[null,{"value":7}]}]}}`))
	f.Add([]byte(`{"id":"30","application_id":"40","type":3,"token":"t","channel_id":"20","user":{"id":"2000"},"message":{"id":"5"},"data":{"custom_id":"a","values":["x"]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		i, err := DecodeInteraction(raw)
		if err != nil {
			return
		}
		i.Mask()
		i.Typing()
		stored, err := json.Marshal(i)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeInteraction(stored)
		if err != nil || again.Line() != i.Line() || again.CustomID() != i.CustomID() || len(again.Fields()) != len(i.Fields()) {
			t.Errorf("%+v is stored as %s: %v", i, stored, err)
		}
	})
}

func FuzzGuild(f *testing.F) {
	f.Add([]byte(`{"id":"1","roles":[null],"channels":[null,{"id":"2","permission_overwrites":[null]}],"threads":[null]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		g, err := DecodeGuild(raw)
		for _, c := range g.Channels {
			if err == nil && (c == nil || len(c.PermissionOverwrites) > 0 && c.PermissionOverwrites[0] == nil) {
				t.Errorf("%s: %+v", raw, g)
			}
		}
	})
}

// TestUnusedFields: a field that nize doesn't use may be of any JSON type. discordgo refuses
// the whole payload because of one.
func TestUnusedFields(t *testing.T) {
	const odd = `"flags":"x","poll":7,"timestamp":"","member":{"permissions":"","joined_at":7,"user":{"id":"2000","username":"ben","flags":"x"}},"entitlements":{},"app_permissions":null,"context":"x","authorizing_integration_owners":[],`
	const other = `{` + odd + `"id":"10","channel_id":"20",` + author + `,"content":"hello","embeds":[{"title":"T","color":"red"}],"components":[` + row + `]}`
	for name, c := range map[string]struct {
		raw    string
		into   any
		decode func([]byte) (string, error)
	}{
		"a message": {strings.Replace(other, `"embeds"`, `"referenced_message":`+other+`,"embeds"`, 1), new(discordgo.Message), func(raw []byte) (string, error) {
			m, err := DecodeMessage(raw)
			if err != nil || len(m.Components) != 1 || m.Reply() == nil || m.Embeds[0].Title != "T" {
				return "", err
			}
			return m.Author.ID + m.Content + m.Reply().Content, nil
		}},
		"a press": {`{` + odd + `"id":"30","application_id":"40","type":3,"token":"t","guild_id":"50","channel_id":"20","channel":{"id":"20","type":11,"parent_id":"21","thread_metadata":7},"message":` + other + `,"data":{"custom_id":"call:run","component_type":3,"values":["x"],"resolved":[]}}`, new(discordgo.Interaction), func(raw []byte) (string, error) {
			i, err := DecodeInteraction(raw)
			if err != nil || i.In.ParentID != "21" || i.MessageID() != "10" {
				return "", err
			}
			return i.User.ID + i.CustomID() + i.Chosen(), nil
		}},
		"a guild": {`{` + odd + `"id":"50","owner_id":"2000","afk_timeout":"x","roles":[{"id":"60","permissions":"8","color":"red"}],"channels":[{"id":"20","topic":7,"permission_overwrites":[{"id":"60","type":0,"allow":"1","deny":"2","x":1}]}],"threads":[{"id":"21","parent_id":"20","thread_metadata":7}]}`, new(discordgo.Guild), func(raw []byte) (string, error) {
			g, err := DecodeGuild(raw)
			if err != nil || g.Roles[0].Permissions != 8 || g.Channels[0].PermissionOverwrites[0].Deny != 2 {
				return "", err
			}
			return g.OwnerID + g.Channels[0].ID + g.Threads[0].ParentID, nil
		}},
		"a leaver": {`{` + odd + `"guild_id":"50","joined_at":7,"user":{"id":"2000","flags":"x"}}`, new(discordgo.Member), func(raw []byte) (string, error) {
			guild, user, err := DecodeLeaver(raw)
			return user + guild, err
		}},
	} {
		if json.Unmarshal([]byte(c.raw), c.into) == nil {
			t.Errorf("%s: discordgo decodes it now", name)
		}
		want := map[string]string{"a message": "2000hellohello", "a press": "2000call:runx", "a guild": "20002020", "a leaver": "200050"}[name]
		if got, err := c.decode([]byte(c.raw)); got != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// What nize does use is still refused.
	for _, raw := range []string{strings.Replace(other, `"hello"`, `7`, 1), strings.Replace(other, `"author":{`, `"author":{"bot":"no",`, 1)} {
		if m, err := DecodeMessage([]byte(raw)); err == nil {
			t.Errorf("a message: %s is %+v", raw, m)
		}
	}
}
