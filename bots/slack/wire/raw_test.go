package wire

import (
	"net/http"
	"testing"

	"nize/store"
)

// To whom the bot token may be shown.
func TestOwns(t *testing.T) {
	at := func(api string) *Raw {
		return newRaw(Options{URL: api}, store.Secret{})
	}
	for address, want := range map[string]bool{
		"https://files.slack.com/files-pri/T-F/a.txt": true, "https://slack.com/x": true, "https://FILES.Slack.com:443/x": true, "https://files.slack-gov.com/x": true,
		"http://files.slack.com/x": false, "https://files.slack.com:8443/x": false, "https://notslack.com/x": false, "https://slack.com.evil.example/x": false,
		"https://user@files.slack.com/x": false, "https://files.slack.com@evil.example/x": false, "https://evil.example/files.slack.com": false,
		"//files.slack.com/x": false, "file:///etc/passwd": false, "": false, "http://127.0.0.1:9/files/F": false, "https:///x": false,
	} {
		req, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			continue
		}
		if got := at("").owns(req.URL); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
	own := at("http://127.0.0.1:9/api/")
	for address, want := range map[string]bool{"http://127.0.0.1:9/files/F": true, "http://127.0.0.1:10/files/F": false, "https://127.0.0.1:9/files/F": false, "https://files.slack.com/x": true} {
		req, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := own.owns(req.URL); got != want {
			t.Errorf("beside a fake %q: %v", address, got)
		}
	}
}
