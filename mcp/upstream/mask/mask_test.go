package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

const secret = `hunter2/"&<é>+ horse`

func known(values ...string) *Mask {
	m := &Mask{}
	m.Add(values...)
	return m
}

// TestForms: a secret is found in every form in which a program repeats it,
// wherever it stands.
func TestForms(t *testing.T) {
	m := known(secret)
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	inner := strings.Trim(string(quoted), `"`)
	forms := map[string]string{
		"itself": secret, "query": url.QueryEscape(secret), "path": url.PathEscape(secret), "small digits": strings.ToLower(url.QueryEscape(secret)),
		"encodeURIComponent": percent(secret), "json": inner, "json, slashes": strings.ReplaceAll(inner, "/", `\/`), "json, ASCII": strings.ReplaceAll(inner, "é", `\u00e9`),
	}
	for name, form := range forms {
		for _, before := range []string{"", "x", "Bearer ", "日本"} {
			if got, want := m.Text(before+form+"y"), before+Dots+"y"; got != want {
				t.Errorf("%s after %q: %q", name, before, got)
			}
		}
	}
	for before := range 4 {
		for after := range 4 {
			for name, enc := range map[string]*base64.Encoding{"std": base64.StdEncoding, "raw": base64.RawStdEncoding, "url": base64.URLEncoding, "raw url": base64.RawURLEncoding} {
				long := strings.Repeat("u", before) + secret + strings.Repeat(":", after)
				got := m.Text(enc.EncodeToString([]byte(long)))
				head, tail, ok := strings.Cut(got, Dots)
				if !ok || len(head) > (8*before+5)/6 || len(strings.TrimRight(tail, "=")) > (8*after+5)/6+1 {
					t.Errorf("%s with %d before and %d after: %q", name, before, after, got)
				}
			}
		}
	}
	if got := m.Text("nothing of it: hunter2, horse"); got != "nothing of it: hunter2, horse" {
		t.Errorf("got %q", got)
	}
}

func TestJSON(t *testing.T) {
	m := known("s3cr3t/value", "9876543210123", `quo"ted\secret`)
	for in, want := range map[string]string{
		`{"a":"no","b":[1,2.50]}`:                                      `{"a":"no","b":[1,2.50]}`,
		`{"a": "x s3cr3t/value\n", "s3cr3t/value":1.0}`:                `{"a": "x ••••\n", "••••":1.0}`,
		`{"a":"\ud83d\ude00\u0073\u00333cr\u0033t\/value\u00e9"}`:      `{"a":"\ud83d\ude00\u0073\u00333cr\u0033t\/value\u00e9"}`,
		`{"a":"\ud83d\ude00\u0073\u0033cr\u0033t\/value\u00e9"}`:       `{"a":"\ud83d\ude00••••\u00e9"}`,
		`{"a":9876543210123,"b":-9876543210123.5,"c":98765}`:           `{"a":"••••","b":"••••","c":98765}`,
		`{"text":"{\"a\":\"quo\\\"ted\\\\secret\"}"}`:                  `{"text":"{\"a\":\"••••\"}"}`,
		`["quo\"ted\\secret","s3cr3t/valueczNjcjN0L3ZhbHVl","\uZZZZ"]`: `["••••","••••••••","\uZZZZ"]`,
		`broken "s3cr3t/value`:                                         `broken "••••`,
	} {
		got, masked := m.JSON(json.RawMessage(in))
		if string(got) != want || masked != (in != want) {
			t.Errorf("%s\n became %s\n want   %s (%v)", in, got, want, masked)
		}
		if json.Valid([]byte(in)) != json.Valid(got) {
			t.Errorf("%s became %s", in, got)
		}
	}
}

// TestCounts: what can't be told from ordinary text stays.
func TestCounts(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "true": false, "localhost": false, "Password": false, "hunter2": false, "hunter22": true, "aaaaaaaaaaaa": false,
		"20261122": false, "9876543210": true, "correct horse": true, "production": false, "sk-1234567890": true,
	} {
		if got := Counts(value); got != want {
			t.Errorf("%q: %v", value, got)
		}
		if got := known(value).Text("x" + value + "y"); value != "" && (got == "x"+value+"y") == want {
			t.Errorf("%q is shown as %q", value, got)
		}
	}
}

// TestSecretsInAValue: a header, an address and a key hold more than one.
func TestSecretsInAValue(t *testing.T) {
	line := strings.Repeat("MIIEvQIBADANBg", 4)
	m := known("Bearer abcdef-123456", "Basic "+base64.StdEncoding.EncodeToString([]byte("ann:open-sesame")), "postgres://ann:pass%2Fword1@db/x",
		"-----BEGIN PRIVATE KEY-----\n"+line+"\n-----END PRIVATE KEY-----\n", `{"type":"service_account","private_key_id":"","client_secret":"deep-secret-1"}`)
	for _, text := range []string{"abcdef-123456", "ann:open-sesame", "open-sesame", "pass/word1", "pass%2Fword1", line, "deep-secret-1"} {
		if got := m.Text("<" + text + ">"); got != "<"+Dots+">" {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	for _, text := range []string{"-----BEGIN PRIVATE KEY-----", "service_account", "postgres://bob@db/x"} {
		if got := m.Text(text); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

func TestError(t *testing.T) {
	m := known("s3cr3t-value")
	err := m.Error(errors.Join(io.ErrUnexpectedEOF, errors.New("echo s3cr3t-value")))
	if strings.Contains(err.Error(), "s3cr3t") || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if m.Error(io.EOF) != io.EOF || m.Error(nil) != nil {
		t.Error("an error without a secret is another one")
	}
}

// FuzzMask: no form stands in what comes out, what is JSON stays JSON, and what
// holds no secret stays as it is.
func FuzzMask(f *testing.F) {
	f.Add("s3cr3t/value", `{"a":"\u0073\u0033cr3t\/value","n":9876543210}`)
	f.Add("9876543210", `[9876543210,-1e5,"\`)
	f.Add("aaaaaaaab", "aaaaaaaaaaaaaaaab")
	f.Fuzz(func(t *testing.T, value, doc string) {
		m := known(value)
		if text := m.Text(doc); Counts(strings.TrimSpace(value)) && strings.Contains(text, strings.TrimSpace(value)) {
			t.Errorf("%q is left in %q", value, text)
		}
		out, masked := m.JSON(json.RawMessage(doc))
		if !masked && string(out) != doc {
			t.Errorf("%q became %q", doc, out)
		}
		if json.Valid([]byte(doc)) != json.Valid(out) && json.Valid([]byte(doc)) {
			t.Errorf("%q became %q", doc, out)
		}
		if utf8.ValidString(value) && Counts(strings.TrimSpace(value)) {
			raw, err := json.Marshal(map[string]string{"a": "x" + strings.TrimSpace(value) + "y"})
			if err != nil {
				t.Fatal(err)
			}
			var back map[string]string
			out, masked := m.JSON(raw)
			if err := json.Unmarshal(out, &back); err != nil || !masked || !strings.Contains(back["a"], Dots) {
				t.Errorf("%s became %s: %v", raw, out, err)
			}
		}
	})
}

// BenchmarkJSON is a result of 10 MB; "hostile" is all beginnings of a secret.
func BenchmarkJSON(b *testing.B) {
	long := "abababab" + strings.Repeat("ab", 2000) + "c" // the worst: it is its own beginning everywhere
	for name, of := range map[string]struct{ secret, text string }{
		"none": {"", "The quick brown fox. "}, "prose": {"s3cr3t/value", "The quick brown fox. "}, "escapes": {"s3cr3t/value", `The \"quick\" brown\nfox. `},
		"echoes": {"s3cr3t/value", "x s3cr3t/value "}, "hostile": {long, "abababab"},
	} {
		b.Run(name, func(b *testing.B) {
			m := known(of.secret)
			raw := append(append([]byte(`{"a":"`), bytes.Repeat([]byte(of.text), 10_000_000/len(of.text))...), `"}`...)
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				m.JSON(raw)
			}
		})
	}
}
