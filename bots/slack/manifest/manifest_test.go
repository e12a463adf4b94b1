package manifest_test

import (
	"bytes"
	"testing"

	"nize/bots/slack/manifest"
	"nize/bots/slack/slacktest"
)

// TestManifests: Slack takes both, and they ask for the same.
func TestManifests(t *testing.T) {
	socket, err := slacktest.FromManifest(manifest.JSON)
	if err != nil {
		t.Error(err)
	}
	text := manifest.HTTP("https://nize.example.com")
	http, err := slacktest.FromManifest(text)
	if err != nil {
		t.Error(err)
	}
	if len(http.Scopes) != len(socket.Scopes) || len(http.Events) != len(socket.Events) {
		t.Errorf("over HTTP it asks for %d scopes and %d events, else for %d and %d", len(http.Scopes), len(http.Events), len(socket.Scopes), len(socket.Events))
	}
	for _, path := range []string{"events", "interactions", "commands"} {
		if !bytes.Contains(text, []byte(`"https://nize.example.com/slack/`+path+`"`)) {
			t.Errorf("%s has no address", path)
		}
	}
}
