package question

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"nize/mcp/taskwire"
	"nize/store"
)

func asking(properties string) taskwire.Elicit {
	return taskwire.Elicit{Mode: "form", Message: "Say it.", Schema: json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)}
}

// TestRead: what a server may ask, and what is refused.
func TestRead(t *testing.T) {
	page := func(url string) taskwire.Elicit { return taskwire.Elicit{Mode: "url", Message: "Open it.", URL: url} }
	said := asking(`"answer":{"type":"string"}`)
	said.Message = "Enter your GitHub password"
	for _, one := range []struct {
		name    string
		e       taskwire.Elicit
		refused string // a part of why; "" is asked
	}{
		{"defaults", asking(`"a":{"type":"string","default":"x"},"b":{"type":"integer","default":3},"c":{"type":"boolean"}`), ""},
		{"choices", asking(`"a":{"type":"string","enum":["x","y"]},"b":{"type":"string","oneOf":[{"const":"x","title":"X"}]},"c":{"type":"array","items":{"type":"string","enum":["x"]}},"d":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}}`), ""},
		{"a text or nothing", asking(`"a":{"type":["string","null"]}`), ""},
		{"an issue's key", asking(`"issue_key":{"type":"string"},"key":{"type":"string"}`), ""},
		{"a number of tokens", asking(`"max_tokens":{"type":"integer"}`), ""},
		{"to reset a password", asking(`"reset_password":{"type":"boolean"}`), ""},
		{"nested", asking(`"a":{"type":"object"}`), "no form"},
		{"a list of lists", asking(`"a":{"type":"array","items":{"type":"array"}}`), "no form"},
		{"no schema", taskwire.Elicit{Mode: "form", Message: "m"}, "no form"},
		{"a schema of texts", taskwire.Elicit{Mode: "form", Message: "m", Schema: json.RawMessage(`{"type":"string"}`)}, "no form"},
		{"format", asking(`"a":{"type":"string","format":"password"}`), "secret"},
		{"a list of such", asking(`"a":{"type":"array","items":{"type":"string","format":"password"}}`), "secret"},
		{"write only", asking(`"a":{"type":"string","writeOnly":true}`), "secret"},
		{"name", asking(`"password":{"type":"string"}`), "secret"},
		{"camel case", asking(`"githubAccessToken":{"type":"string"}`), "secret"},
		{"kebab case", asking(`"api-key":{"type":"string"}`), "secret"},
		{"title", asking(`"value":{"type":"string","title":"API key"}`), "secret"},
		{"description", asking(`"value":{"type":"string","description":"Your private key"}`), "secret"},
		{"one time", asking(`"otp":{"type":"string"}`), "secret"},
		{"message", said, "secret"},
		{"a page", page("https://example.com/authorize?x=1"), ""},
		{"a page here", page("http://127.0.0.1:8080/x"), ""},
		{"an open page", page("http://example.com/"), "https"},
		{"a script", page("javascript:alert(1)"), "address"},
		{"a user", page("https://bank.example@evil.example/"), "user name"},
		{"a letter that looks like another", page("https://ex\u0430mple.com/"), "characters"},
		{"no page", page(""), "address"},
		{"relative", page("/x"), "address"},
	} {
		q, _, err := Read(one.e)
		var refused *store.CallError
		switch {
		case one.refused == "" && (err != nil || q.Message != one.e.Message):
			t.Errorf("%s: %v", one.name, err)
		case one.refused != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), one.refused)):
			t.Errorf("%s: %v, want %q", one.name, err, one.refused)
		}
	}
}

// TestDefaults: a form opens with the defaults that have the type of their field.
func TestDefaults(t *testing.T) {
	for properties, want := range map[string]string{
		`"a":{"type":"string","default":"x"},"b":{"type":"integer","default":3},"c":{"type":"boolean","default":false}`:  `{"a":"x","b":3,"c":false}`,
		`"a":{"type":"string","default":3},"b":{"type":"integer","default":2.5},"c":{"type":"boolean","default":"true"}`: `{}`,
		`"a":{"type":"string","default":null},"b":{"type":"string"},"d":{"type":"number","default":2.5}`:                 `{"d":2.5}`,
		`"a":{"type":"array","items":{"enum":["x","y"]},"default":["y"]},"b":{"type":"string","default":["x"]}`:          `{"a":["y"]}`,
	} {
		_, got, err := Read(asking(properties))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", properties, got, err, want)
		}
	}
}

// TestCheck: which answers fit.
func TestCheck(t *testing.T) {
	q := store.Question{Schema: asking(`"name":{"type":"string","maxLength":5},"mail":{"type":"string","format":"email"},"day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},"page":{"type":"string","format":"uri"},"many":{"type":"array","items":{"type":"string","enum":["x","y"]},"maxItems":1}`).Schema}
	for answer, ok := range map[string]bool{
		`{}`: true, `{"name":"Ann"}`: true, `{"name":"longer"}`: false, `{"name":5}`: false, `{"other":1}`: false, `[]`: false, `null`: false,
		`{"mail":"a@b.example"}`: true, `{"mail":"a"}`: false, `{"day":"2026-11-27"}`: true, `{"day":"27.11."}`: false,
		`{"at":"2026-11-27T15:04:00Z"}`: true, `{"at":"now"}`: false, `{"page":"https://x.example/"}`: true, `{"page":"x"}`: false,
		`{"many":["x"]}`: true, `{"many":["z"]}`: false, `{"many":["x","y"]}`: false,
	} {
		if err := Check(q, json.RawMessage(answer)); (err == nil) != ok {
			t.Errorf("%s: %v", answer, err)
		}
	}
	page := store.Question{URL: "https://example.com/"}
	if Check(page, json.RawMessage(`{}`)) != nil || Check(page, json.RawMessage(`{"a":1}`)) == nil {
		t.Error("an address is answered without values")
	}
}

// FuzzRead: whatever a server sends is asked or refused.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","default":"x"}}}}`))
	f.Add([]byte(`{"mode":"url","message":"m","url":"https://example.com/"}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		e, err := taskwire.ReadElicit(params)
		if err != nil {
			return
		}
		q, _, err := Read(e)
		if err == nil {
			_ = Check(q, json.RawMessage(`{}`))
			_ = Check(q, params)
		}
	})
}
