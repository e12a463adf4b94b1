package store

import (
	"strings"
	"testing"
)

func TestMatchArgs(t *testing.T) {
	for _, c := range []struct {
		pattern, args string
		fits          bool
	}{
		{``, `{"a":1}`, true},
		{`{"path":"/srv/docs/*"}`, `{"path":"/srv/docs/a.txt","n":1}`, true},
		{`{"path":"/srv/docs/*"}`, `{"path":"/srv/docs/../../etc/shadow"}`, false},
		{`{"path":"/srv/docs/*"}`, `{"path":"/srv/docs/%2e%2E/x"}`, false},
		{`{"command":"go test *"}`, `{"command":"go test ./..."}`, true},
		{`{"command":"go test *"}`, `{"command":"go test ./.../../../x"}`, false},
		{`{"command":"go test *"}`, `{"command":"go test ./....x"}`, false},
		{`{"path":"/srv/docs/*"}`, `{"path":"/srv/docs/a..b"}`, true},
		{`{"path":"/srv/docs/*"}`, `{"path":"/srv/docs/100%/a%20b"}`, true},
		{`{"path":"/srv/docs/.*"}`, `{"path":"/srv/docs/.hidden"}`, true},
		{`{"path":"/srv/docs/.*"}`, `{"path":"/srv/docs/../etc/shadow"}`, false}, // the star is in the middle of a part
		{`{"path":"..\\docs\\*"}`, `{"path":"..\\docs\\a"}`, true},               // what the pattern itself says is meant
		{`{"url":"https://a.example/v1/*"}`, `{"url":"https://a.example/v1/..%2fadmin"}`, false},
		{`{"url":"https://a.example/v1/*"}`, `{"url":"https://a.example/v1/%252e%252e%252fadmin"}`, false},
		{`{"url":"https://a.example/v1/*"}`, `{"url":"https://a.example/v1/..;x/admin"}`, false},
		{`{"url":"https://a.example/v1/%2*"}`, `{"url":"https://a.example/v1/%2e./admin"}`, false},
		{`{"path":"*"}`, `{"path":"` + "%" + strings.Repeat("25", 1<<15) + `"}`, false}, // at once
		{`{"path":"/srv/docs/*"}`, `{"path":["/srv/docs/a"]}`, false},
		{`{"path":"/srv/docs/*"}`, `{}`, false},
		{`{"n":1}`, `{"n":1}`, true},
		{`{"n":1}`, `{"n":1.0}`, false},
		{`{"n":9007199254740993}`, `{"n":9007199254740992}`, false},
		{`{"a":{"b":null}}`, `{"a":{"b":null,"c":2}}`, true},
		{`{"a":[1,"x*"]}`, `{"a":[1,"xyz"]}`, true},
		{`{"a":[1]}`, `{"a":[1,2]}`, false},
		{`{"a":true}`, `{"a":false}`, false},
		{`{"a":1}`, `{"a":1,"a":2}`, false}, // no canonical form
		{`{"a":`, `{"a":1}`, false},
	} {
		if got := matchArgs([]byte(c.pattern), []byte(c.args)); got != c.fits {
			t.Errorf("%s and %s: %v", c.pattern, c.args, got)
		}
	}
}

func FuzzMatchArgs(f *testing.F) {
	f.Add(`{"path":"/srv/*"}`, `{"path":"/srv/a"}`)
	f.Add(`{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`)
	f.Fuzz(func(t *testing.T, pattern, args string) {
		p, err := CheckPattern([]byte(pattern))
		if err != nil || len(p) == 0 {
			return
		}
		fit := matchArgs(p, []byte(args))
		if c, err := Canonical([]byte(args)); fit && err != nil {
			t.Errorf("%q fits %s", args, p)
		} else if err == nil && string(c) == string(p) && !fit && !strings.Contains(string(p), "..") && !strings.Contains(string(p), "%") {
			t.Errorf("%s does not fit itself", p)
		}
	})
}
