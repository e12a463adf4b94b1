package store

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"512MiB": 512 << 20, "2GiB": 2 << 30, "64KiB": 64 << 10, "1000": 1000, "0": 0} {
		got, err := ParseSize(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %d %q, %v", text, got, got, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "512MB", "9999999999GiB", "lots"} {
		if _, err := ParseSize(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"60/1m": {60, Duration(time.Minute)}, "10/s": {10, Duration(time.Second)}, "5/1d": {5, Duration(24 * time.Hour)}, "7/90s": {7, Duration(90 * time.Second)}, "": {}, "0": {},
	} {
		got, err := ParseRate(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if again, err := ParseRate(got.String()); err != nil || again != want {
			t.Errorf("%s is written %s, which is read as %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"60", "0/1m", "-1/1m", "60/", "60/soon", "60/1ms", "20000/1m", "/1m"} {
		if _, err := ParseRate(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got := (Rate{60, Duration(time.Hour)}).String(); got != "60/1h" {
		t.Errorf("got %s", got)
	}
}

func TestServerLimitsInJSON(t *testing.T) {
	in := Server{Name: "x", KeepAlive: true, IdleTimeout: Duration(time.Minute), MemoryLimit: 512 << 20, RateLimit: Rate{60, Duration(time.Minute)}, Origin: Origin{File: "/etc/mcp.json", Sealed: []string{"KEY"}}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Server
	if err := json.Unmarshal(b, &out); err != nil || out.MemoryLimit != in.MemoryLimit || out.RateLimit != in.RateLimit || out.Origin.File != in.Origin.File {
		t.Errorf("%s is read as %+v, %v", b, out, err)
	}
	if b, err = json.Marshal(Server{Name: "x"}); err != nil || string(b) != `{"name":"x","transport":"","created":"0001-01-01T00:00:00Z","revision":0}` {
		t.Errorf("a server without any: %s, %v", b, err)
	}
}

func TestSecretValue(t *testing.T) {
	for _, test := range []struct {
		name, value string
		want        bool
	}{
		{"GITHUB_TOKEN", "abc", true}, {"X-Api-Key", "abc", true}, {"apiKey", "abc", true}, {"SIGNING_KEY", "abc", true}, {"Authorization", "Bearer x", true},
		{"NOTE", "ghp_0123456789abcdefghij", true}, {"DATABASE_URL", "postgres://u:p@h/db", true},
		{"DATABASE_URL", "postgres://h/db", false}, {"MAX_TOKENS", "4096", false}, {"TOKEN_FILE", "/run/token", false}, {"SECRET", "", false}, {"USE_TOKEN", "true", false}, {"PATH", "/bin", false},
	} {
		if got := SecretValue(test.name, test.value); got != test.want {
			t.Errorf("SecretValue(%q, %q) = %v", test.name, test.value, got)
		}
	}
}
