package store

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRedact(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"by name", `{"password":"x","API_KEY":"x","apiKey":"x","accessToken":"x","Authorization":"x","user.secret":"x"}`,
			`{"API_KEY":"••••","Authorization":"••••","accessToken":"••••","apiKey":"••••","password":"••••","user.secret":"••••"}`},
		{"not by half a name", `{"secretary":"Ann","tokenizer":"bpe","monkey":"x","author":"y"}`, `{"author":"y","monkey":"x","secretary":"Ann","tokenizer":"bpe"}`},
		{"below a name", `{"credentials":{"user":"a","list":["b",{"c":"d"}]}}`, `{"credentials":{"list":["••••",{"c":"••••"}],"user":"••••"}}`},
		{"a number", `{"password":12345678,"max_tokens":500,"n":5}`, `{"max_tokens":500,"n":5,"password":"••••"}`},
		{"by form", `["ghp_0123456789abcdefXY","see xoxb-1234567890-abc here","Bearer abcdef123456789","bEARER abcdef123456789","AKIA0123456789ABCDEF"]`,
			`["••••","see •••• here","••••","••••","••••"]`},
		{"a key block", `"x -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- y"`, `"x •••• y"`},
		{"a key block that was cut", `"-----BEGIN PRIVATE KEY-----\nabc"`, `"••••"`},
		{"as the name of a field", `{"ghp_0123456789abcdefXY":1}`, `{"••••":1}`},
		{"numbers as written", `{"n":9007199254740993}`, `{"n":9007199254740993}`},
		{"no JSON", `password sk-0123456789abcdefgh`, `"password ••••"`},
		{"nothing to hide", `{"a":"<b>"}`, `{"a":"<b>"}`},
	} {
		if got := string(Redact(json.RawMessage(test.in), 1000)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add([]byte(`{"token":"a","x":["ghp_0123456789abcdefXY"]}`), 40)
	f.Add([]byte("\xff\xfe nize_0123456789abcdefgh"), 7)
	f.Add([]byte(`{"a":"é€😀é€😀"}`), 9)
	f.Fuzz(func(t *testing.T, raw []byte, limit int) {
		limit &= 0xfff
		got := Redact(raw, limit)
		if !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("not JSON: %q", got)
		}
		var text string
		if json.Unmarshal(got, &text) == nil && len(text) > limit+len("… (cut)")+3*len(raw) {
			t.Fatalf("%d bytes, the limit is %d", len(text), limit)
		}
	})
}

func TestRedactLimit(t *testing.T) {
	got := Redact(json.RawMessage(`{"a":"`+strings.Repeat("é", 5000)+`"}`), 1001)
	var text string
	if err := json.Unmarshal(got, &text); err != nil || len(text) > 1001+len("… (cut)") || !strings.HasSuffix(text, "(cut)") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// TestSecretPrints: no way of printing shows what is inside.
func TestSecretPrints(t *testing.T) {
	s := NewSecret("hunter2")
	type holder struct {
		S Secret
		u Secret // fmt asks no method of it
		P *Secret
		M map[string]Secret
		L []Secret
	}
	h := holder{s, s, &s, map[string]Secret{"k": s}, []Secret{s}}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %v", "%10.3s", "%p"} {
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", &s)
		fmt.Fprintf(&out, verb+"\n", h)
	}
	fmt.Fprint(&out, s, h, fmt.Errorf("with %v", s))
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	if b, err = json.Marshal(map[Secret]int{s: 1}); err == nil {
		out.Write(b)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("m", "s", s, "p", &s, "h", h, slog.Group("g", "s", s))
	}
	for _, form := range []string{"hunter2", "68756e74657232", "68756E74657232", "104 117 110"} {
		if strings.Contains(out.String(), form) {
			t.Errorf("it is shown: %s", out.String())
		}
	}
	if s.Reveal() != "hunter2" || s.IsZero() || !(Secret{}).IsZero() {
		t.Error("Reveal or IsZero")
	}
	var in struct{ Key Secret }
	if err := json.Unmarshal([]byte(`{"Key":"k"}`), &in); err != nil || in.Key.Reveal() != "k" {
		t.Errorf("a request cannot carry one in: %v", err)
	}
	// A provider or credential cannot be marshalled with its secret.
	b, err = json.Marshal([]any{Provider{Key: s}, Credential{Secret: s}, Token{Hash: [32]byte{1, 2, 3}}})
	if err != nil || strings.Contains(string(b), "hunter2") || strings.Contains(string(b), "[1,2,3") {
		t.Errorf("%s, %v", b, err)
	}
}

// A key that was there before may stay; any other may not.
func TestAddsSecret(t *testing.T) {
	const a, b = "sk-abcdefghijklmnop1234", "ghp_abcdefghijklmnop1234"
	for _, test := range []struct {
		text, known string
		want        bool
	}{
		{"", "", false}, {"hello", a, false}, {a, "", true}, {"x " + a, "y " + a, false}, {a + " " + b, a, true},
		{a + "5", a, true}, {a, a + "5", false}, {"-----BEGIN PRIVATE KEY-----\nabc", "-----BEGIN PRIVATE KEY-----", true},
		{"https://me:hunter22@host/", "", true}, {"https://you:hunter22@other/", "https://me:hunter22@host/", false}, {"https://me:<password>@host/", "", false},
		{"API_KEY=abcdefgh12345678", "", true}, {"API_KEY=abcdefgh12345678 x", "api_key=abcdefgh12345678", false},
	} {
		if got := AddsSecret(test.text, test.known); got != test.want {
			t.Errorf("%q with %q: %v", test.text, test.known, got)
		}
	}
}
