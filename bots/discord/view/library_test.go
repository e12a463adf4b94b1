package view

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bwmarrin/discordgo"
)

// TestLibraryOutgoing shows why there are types beside discordgo's: what its types leave out
// of a request or put into it, which Discord needs or refuses.
func TestLibraryOutgoing(t *testing.T) {
	for name, test := range map[string]struct {
		theirs, ours any
		field        string
		wanted       bool // Discord needs the field, or refuses it
	}{
		"an empty list of completions": {
			discordgo.InteractionResponse{Type: discordgo.InteractionApplicationCommandAutocompleteResult, Data: &discordgo.InteractionResponseData{Choices: []*discordgo.ApplicationCommandOptionChoice{}}},
			Complete(nil, ""), `"choices":[]`, true,
		},
		"a select in a dialog": {choice("id", true).SelectMenu, choice("id", true), `"disabled"`, false},
		"the nonce of a post":  {Text("text").MessageSend, Text("text").WithNonce("id"), `"enforce_nonce":true`, true},
	} {
		if has := strings.Contains(marshal(t, test.theirs), test.field); has == test.wanted {
			t.Errorf("%s: discordgo's type is right now; use it", name)
		}
		if ours := marshal(t, test.ours); strings.Contains(ours, test.field) != test.wanted {
			t.Errorf("%s: %s", name, ours)
		}
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
