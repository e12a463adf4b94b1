package incoming

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"nize/store"
)

func TestMask(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	const key = "ghp_abcdefghijklmnop1234"
	file := `{"id":"F1","name":"` + key + `","url_private":"https://files/x?t=xoxe-123456789012","permalink":"https://x/` + key + `"}`
	payload := `{"type":"event_callback","event_id":"E1","team_id":"T1","n":12345678901234567890,"event":{"type":"message","user":"U1","channel":"C1","ts":"1.2","text":"<hi> ` + key + ` & more",` +
		`"blocks":[{"elements":[{"type":"link","url":"https://x/` + key + `"}]}],"files":[` + file + `],"attachments":[{"files":[` + file + `]}]},` +
		`"private_metadata":"{\"text\":\"-----BEGIN PRIVATE KEY-----\\nabc\",\"thread\":\"1.2\"}"}`
	got := string(Mask(json.RawMessage(payload), "x "+key, log))
	if n := strings.Count(got, "ghp_"); n != 2 { // of the files' addresses
		t.Errorf("%d keys are left in %s", n, got)
	}
	for _, want := range []string{"xoxe-123456789012", `"n":12345678901234567890`, "<hi> ", `"nize_masked":true`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	var doc struct {
		Metadata string `json:"private_metadata"`
	}
	var inner struct{ Text, Thread string }
	if err := json.Unmarshal([]byte(got), &doc); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(doc.Metadata), &inner); err != nil || inner.Thread != "1.2" || strings.Contains(inner.Text, "abc") {
		t.Errorf("metadata %q: %v", doc.Metadata, err)
	}
	if e, err := DecodeEvent([]byte(got)); err != nil || !e.Masked || strings.Contains(e.Text, "ghp_") {
		t.Errorf("%+v, %v", e, err)
	}
	// Another's key is masked, and no news for the author.
	if got := string(Mask(json.RawMessage(payload), "hello", log)); !strings.Contains(got, `"nize_masked":false`) {
		t.Errorf("%s", got)
	}
	clean := json.RawMessage(`{"a":"hello"}`)
	if got := Mask(clean, "hello", log); string(got) != string(clean) {
		t.Errorf("%s", got)
	}
}

// TestMaskWhatSlackParts: Slack writes / as \/ and parts a line where it makes
// a link or where its looks change, also within a key.
func TestMaskWhatSlackParts(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	section := func(elements string) string {
		return `{"event":{"text":"hi","blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[` + elements + `]}]}]}}`
	}
	for name, payload := range map[string]string{
		"escaped":        `{"event":{"text":"postgres:\/\/app:hunter2@db.example.com\/app"}}`,
		"a header":       `{"event":{"text":"Bearer\nhunter2hunter2"}}`,
		"a link in it":   section(`{"type":"text","text":"postgres://app:"},{"type":"link","url":"mailto:hunter2@db.example.com","text":"hunter2@db.example.com"},{"type":"text","text":"/app"}`),
		"half bold":      section(`{"type":"text","text":"ghp_abcdefghijklmnop1234"},{"type":"text","text":"hunter2","style":{"bold":true}},{"type":"user","user_id":"U7"}`),
		"in two parts":   section(`{"type":"text","text":"AKIAIOSF"},{"type":"text","text":"ODNN7hunter2","style":{"italic":true}},{"type":"text","text":" AKIAIOSF"},{"type":"text","text":"ODNN7EXAMPLEhunter2","style":{"bold":true}}`),
		"in a metadata":  `{"view":{"private_metadata":"{\"q\":\"postgres:\\/\\/app:hunter2@db\"}"}}`,
		"in an envelope": `{"event":{"files":[{"title":"x https:\/\/bob:hunter2@x.example","url_private":"https:\/\/files"}]}}`,
	} {
		if name == "in two parts" { // an access key's id has no small letters
			payload = strings.ReplaceAll(strings.ReplaceAll(payload, "ODNN7hunter2", "no"), "EXAMPLEhunter2", "EXAMPLE")
		}
		got := string(Mask(json.RawMessage(payload), "hi", log))
		if strings.Contains(got, "hunter2") || strings.Contains(got, "ODNN7EXAMPLE") || !strings.Contains(got, maskedField) {
			t.Errorf("%s: %s", name, got)
		}
		if name == "half bold" && !strings.Contains(got, `"U7"`) {
			t.Errorf("the mention is gone: %s", got)
		}
	}
	plain := json.RawMessage(section(`{"type":"text","text":"see "},{"type":"link","url":"https://bob@x.example"},{"type":"text","text":" please"}`))
	if got := Mask(plain, "hi", log); string(got) != string(plain) {
		t.Errorf("%s", got)
	}
}

func FuzzMask(f *testing.F) {
	log := slog.New(slog.DiscardHandler)
	f.Add(`{"text":"ghp_abcdefghijklmnop1234"}`)
	f.Add(`{"private_metadata":"{\"a\":[1,\"sk-abcdefghijklmnop1234\"]}","files":[{"url_private":"sk-abcdefghijklmnop1234"}]}`)
	f.Add(`[1,"sk-abcdefghijklmnop1234"]`)
	f.Fuzz(func(t *testing.T, payload string) {
		got := Mask(json.RawMessage(payload), payload, log)
		if json.Valid([]byte(payload)) != json.Valid(got) {
			t.Fatalf("%q becomes %q", payload, got)
		}
		var doc struct{ Text string }
		if json.Unmarshal(got, &doc) == nil && got != nil && !strings.Contains(payload, "url_private") && store.LooksSecret(doc.Text) && strings.HasPrefix(strings.TrimSpace(payload), "{") && strings.Contains(payload, `"text"`) && store.LooksSecret(payload) {
			t.Fatalf("a key is left: %q", got)
		}
	})
}
