package store

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNearest(t *testing.T) {
	names := []string{"approvals.mode", "approvals.list", "github", "gitlab", "box"}
	for name, want := range map[string]string{
		"approvals.mod": "approvals.mode", "aprovals.mode": "approvals.mode", "Github": "github", "gitbuh": "github", "box": "box", "bxo": "box",
		"retention": "", "": "", "x": "", "git": "github", "mode": "approvals.mode", "zzzzzz": "", "gitlba": "gitlab",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if got := Nearest("a", nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}

func TestUnknown(t *testing.T) {
	err := Unknown("server", "gitbuh", []string{"github"})
	if !errors.Is(err, ErrNotFound) || err.Error() != `server "gitbuh" not found; did you mean github?` {
		t.Errorf("got %v", err)
	}
	if err := Unknown("server", "zzz", []string{"github"}); err.Error() != `server "zzz" not found` {
		t.Errorf("got %v", err)
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("gitbuh", "github\ngitlab")
	f.Add("é€", "e€\n\xff")
	f.Fuzz(func(t *testing.T, name, list string) {
		if len(name)+len(list) > 500 {
			return
		}
		names := strings.Split(list, "\n")
		got := Nearest(name, names)
		if got != "" && !slices.Contains(names, got) {
			t.Fatalf("%q is none of %q", got, names)
		}
		if d := distance(name, list); d != distance(list, name) || (d == 0) != (string([]rune(name)) == string([]rune(list))) {
			t.Fatalf("distance %q, %q: %d", name, list, d)
		}
	})
}

func TestKeys(t *testing.T) {
	if !slices.IsSortedFunc(Keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("Keys are not sorted; FindKey needs that")
	}
	names := map[string]bool{}
	for _, k := range Keys {
		if got, err := FindKey(k.Name); err != nil || got.Name != k.Name {
			t.Errorf("%s is not found: %v", k.Name, err)
		}
		if got, err := k.Check(k.Default); err != nil || got != k.Default {
			t.Errorf("%s: its default %q does not pass: %q, %v", k.Name, k.Default, got, err)
		}
		if k.Help == (Text{}) || k.Label == (Text{}) || !slices.ContainsFunc(Categories, func(c CategoryName) bool { return c.ID == k.Category }) {
			t.Errorf("%s lacks its help, its label or a category that is known: %+v", k.Name, k)
		}
		if names[k.Name] {
			t.Errorf("%s is listed twice", k.Name)
		}
		names[k.Name] = true
		if least, most := k.Range(); (k.Display() == ShowNumber) != (least != "" && most != "") && k.Kind != KindDuration {
			t.Errorf("%s is shown as %s and goes from %q to %q", k.Name, k.Display(), least, most)
		}
	}
	if _, err := FindKey("approvals.mod"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "approvals.mode") {
		t.Errorf("a slip: %v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		key, in, want string // want "" is refused
	}{
		{"agent.tools.enabled", "1", "true"}, {"agent.tools.enabled", "F", "false"}, {"agent.tools.enabled", "yes", "true"}, {"agent.tools.enabled", "Off", "false"}, {"agent.tools.enabled", "maybe", ""}, {"agent.tools.enabled", "", ""},
		{"agent.tools.maxSteps", "7", "7"}, {"agent.tools.maxSteps", "+7", "7"}, {"agent.tools.maxSteps", "0", ""}, {"agent.tools.maxSteps", "101", ""},
		{"agent.tools.maxSteps", "7.5", ""}, {"agent.tools.maxSteps", "9223372036854775808", ""}, {"agent.tools.maxSteps", " 7", ""},
		{"index.fusion", "0.5", "0.5"}, {"index.fusion", "1e-3", "0.001"}, {"index.fusion", "1.1", ""}, {"index.fusion", "NaN", ""}, {"index.fusion", "-0.1", ""}, {"index.fusion", "Inf", ""},
		{"drain.grace", "15s", "15s"}, {"drain.grace", "0s", ""}, {"drain.grace", "601s", ""}, {"drain.grace", "-15s", ""}, {"drain.grace", "15", ""},
		{"retention.audit", "400d", "400d"}, {"retention.audit", "1.5d", "1.5d"}, {"retention.audit", "23h", ""}, {"retention.audit", "NaNd", ""}, {"retention.audit", "1e9d", ""}, {"retention.audit", "-2d", ""},
		{"approvals.mode", "auto", "auto"}, {"approvals.mode", "Auto", ""}, {"approvals.mode", "", ""},
		{"approvals.list", " a:* , ,b:c,", "a:*,b:c"},
		{"embed.model", "main/embed", "main/embed"}, {"embed.model", strings.Repeat("x", 64<<10+1), ""},
	} {
		k, err := FindKey(test.key)
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.Check(test.in)
		if test.want == "" {
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.key) {
				t.Errorf("%s = %.30q: got %q, %v", test.key, test.in, got, err)
			}
			continue
		}
		if err != nil || got != test.want {
			t.Errorf("%s = %q: got %q, %v, want %q", test.key, test.in, got, err, test.want)
		}
		if again, err := k.Check(got); err != nil || again != got {
			t.Errorf("%s: the normal form %q becomes %q, %v", test.key, got, again, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("15m")
	f.Add("1.5d")
	f.Add("NaNd")
	f.Add("0x1p3")
	f.Fuzz(func(t *testing.T, value string) {
		for _, k := range Keys {
			got, err := k.Check(value)
			if err != nil {
				continue
			}
			if again, err := k.Check(got); err != nil || again != got {
				t.Fatalf("%s = %q becomes %q, then %q, %v", k.Name, value, got, again, err)
			}
			c := Defaults{k.Name: got}
			if k.Kind == KindDuration && GetSpan(c, "", k.Name) < 0 || k.Kind == KindInt && float64(GetInt(c, "", k.Name)) < k.Min {
				t.Fatalf("%s = %q is out of its bounds", k.Name, value)
			}
		}
	})
}

func TestDefaults(t *testing.T) {
	c := Defaults{"approvals.list": "a,b"}
	if GetInt(c, "", "agent.tools.maxSteps") != 10 || !GetBool(c, "", "agent.tools.enabled") || GetSpan(c, "", "retention.audit") != 400*24*time.Hour ||
		GetFloat(c, "", "index.fusion") != 0.9 || len(GetList(c, "", "approvals.list")) != 2 || GetList(Defaults{}, "", "approvals.list") != nil {
		t.Error("a default is read wrongly")
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown key is a programmer's mistake")
		}
	}()
	c.Get("", "no.such.key")
}

func TestMatchTool(t *testing.T) {
	for _, test := range []struct {
		pattern, id string
		want        bool
	}{
		{"*", "github:create", true}, {"*", "native:web-scrape", false}, {"*", "agent:helper", false},
		{"github:*", "github:create", true}, {"github:*", "github2:create", false}, {"github:*", "github:", true},
		{"github:create_*", "github:create_issue", true}, {"github:create_*", "github:delete", false},
		{"github:create", "github:create", true}, {"github:create", "github:create_issue", false},
		{"native:*", "native:web-scrape", true}, {"native:web-scrape", "native:web-scrape", true}, {"agent:*", "agent:x", true},
		{"git*", "github:create", false}, // a pattern of servers is none
		{"", "", true}, {"", "a:b", false}, {"**", "a:b", false}, {"a:b:*", "a:b:c", true},
	} {
		if got := MatchTool(test.pattern, test.id); got != test.want {
			t.Errorf("%q, %q: got %v", test.pattern, test.id, got)
		}
	}
	if MatchAny(nil, "a:b") || !MatchAny([]string{"x:*", "a:*"}, "a:b") {
		t.Error("MatchAny")
	}
}

func TestNewID(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	seen := map[string]bool{}
	for range 1000 {
		id := NewID(now)
		if !ValidID(id) || seen[id] {
			t.Fatalf("%q is not valid, or came twice", id)
		}
		seen[id] = true
		if later := NewID(now.Add(time.Millisecond)); later <= id {
			t.Fatalf("%s is not before %s", id, later)
		}
	}
	// github.com/ulid/spec: the time is the first ten characters.
	if got := NewID(time.UnixMilli(1469918176385))[:10]; got != "01ARYZ6S41" {
		t.Errorf("got %s", got)
	}
	for _, bad := range []string{"", "01ARYZ6S41", strings.Repeat("0", 25) + "U", strings.Repeat("0", 25) + "i", strings.Repeat("0", 25) + "/", strings.Repeat("0", 27)} {
		if ValidID(bad) {
			t.Errorf("%q is no id", bad)
		}
	}
}

func TestTokenState(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, test := range []struct {
		name string
		tok  Token
		want string
	}{
		{"active", Token{Expires: now.Add(1)}, "active"},
		{"at its end", Token{Expires: now}, "expired"},
		{"in grace", Token{Expires: now.Add(time.Hour), Revoked: now.Add(1)}, "active"},
		{"revoked", Token{Expires: now.Add(time.Hour), Revoked: now}, "revoked"},
		{"both", Token{Expires: now, Revoked: now}, "revoked"},
		{"nothing set", Token{}, "expired"},
	} {
		if got := test.tok.State(now); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestNewToken(t *testing.T) {
	secret, parts := NewToken(time.Now())
	text := secret.Reveal()
	hash, err := ReadToken(text)
	if err != nil || hash != parts.Hash || !strings.HasPrefix(text, parts.Prefix) || !LooksSecret(text) || !ValidID(parts.ID) {
		t.Fatalf("%v", err)
	}
	for i := len("nize_"); i < len(text); i++ { // every slip of the keyboard shows
		slip := []byte(text)
		slip[i] = 'a' + (slip[i]-'a'+1)%26
		if _, err := ReadToken(string(slip)); err == nil {
			t.Errorf("place %d may be mistyped", i)
		}
	}
	if _, err := ReadToken(text[:len(text)-1]); err == nil {
		t.Error("it may be cut")
	}
}

func FuzzReadToken(f *testing.F) {
	f.Add("nize_abc")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ReadToken(text); err == nil && !strings.HasPrefix(text, "nize_") {
			t.Fatalf("%q is a token", text)
		}
	})
}

func TestValueJSON(t *testing.T) {
	for _, v := range []Value{{Text: "plain"}, {Text: ""}, {SecretKey: "NAME"}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got Value
		if err := json.Unmarshal(b, &got); err != nil || got != v {
			t.Errorf("%s became %+v, %v", b, got, err)
		}
	}
	for _, bad := range []string{`1`, `{}`, `[]`, `null`, `{"secret_key":""}`} {
		var got Value
		if err := json.Unmarshal([]byte(bad), &got); err == nil && bad != `null` {
			t.Errorf("%s became %+v", bad, got)
		}
	}
}

func TestCheckSlug(t *testing.T) {
	for _, good := range []string{"a", "0", "git-hub", strings.Repeat("a", 63)} {
		if err := CheckSlug(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "-a", "A", "a_b", "a:b", "a\n", "native", "agent", "nize", strings.Repeat("a", 64), "é"} {
		if err := CheckSlug(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q passes: %v", bad, err)
		}
	}
}

func TestResultText(t *testing.T) {
	for _, test := range []struct {
		name string
		r    *Result
		want string
	}{
		{"none", nil, ""},
		{"our error", &Result{Error: &CallError{Message: Plain("no")}}, "no"},
		{"text", &Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`)}, "a\nb"},
		{"shown", &Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"a"}]}`), Shown: json.RawMessage(`{"content":[{"type":"text","text":"s"}]}`)}, "s"},
		{"image", &Result{Raw: json.RawMessage(`{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}`)}, "[image image/png, 3 bytes]"},
		{"only structured", &Result{Raw: json.RawMessage(`{"structuredContent":{"a":1}}`)}, `{"a":1}`},
		{"no JSON", &Result{Raw: json.RawMessage(`oops`)}, "oops"},
	} {
		if got := test.r.Text(); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestTurnOutcome: a tool's turn tells how a call without a record ended, in the form of
// older versions, too; nothing that is stored is still running.
func TestTurnOutcome(t *testing.T) {
	why := Textf("tool %q not found", "box:x")
	for _, test := range []struct {
		turn Turn
		want State
	}{
		{Turn{}, Done},
		{Turn{Ended: Done, Said: why}, Done}, // the tool reported an error
		{Turn{Ended: Failed, Said: why, Unmade: true}, Failed},
		{Turn{Ended: Failed, Said: why}, Failed},
		{Turn{Ended: Refused}, Refused},
		{Turn{Ended: Lost}, Lost},
		{Turn{Ended: Planned, Said: why}, Failed}, // as versions before Unmade stored it
		{Turn{Ended: Planned}, Failed},
		{Turn{Said: why}, Failed},
		{Turn{Ended: Running}, Done},
	} {
		if got := test.turn.Outcome(); got != test.want {
			t.Errorf("%+v: %s, want %s", test.turn, got, test.want)
		}
	}
}

func TestStateFinal(t *testing.T) {
	for s, want := range map[State]bool{Planned: false, Pending: false, Running: false, Done: true, Failed: true, Refused: true, Expired: true, Cancelled: true, Lost: true, "x": false} {
		if s.Final() != want {
			t.Errorf("%s: %v", s, s.Final())
		}
	}
	if Lost.Word().String() != "outcome unknown" || Done.Word().String() != "done" {
		t.Error("Word")
	}
	var err error = &CallError{Code: CodeRefused, Message: Plain("no")}
	if !errors.Is(err, ErrRefused) || errors.Is(err, ErrExpired) {
		t.Error("CallError.Is")
	}
}
