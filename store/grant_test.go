package store

import "testing"

func TestMatchArgs(t *testing.T) {
	for _, c := range []struct {
		pattern, args string
		fits          bool
	}{
		{``, `{"a":1}`, true},
		{`{"path":"/srv/docs/*"}`, `{"path":"/srv/docs/a.txt","n":1}`, true},
		{`{"path":"/srv/docs/*"}`, `{"path":"/srv/docs/../../etc/shadow"}`, false},
		{`{"path":"/srv/docs/*"}`, `{"path":"/srv/docs/%2e%2E/x"}`, false},
		{`{"path":"/srv/docs/*"}`, `{"path":"/srv/docs/a..b"}`, true},
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
		if got := MatchArgs([]byte(c.pattern), []byte(c.args)); got != c.fits {
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
		fit := MatchArgs(p, []byte(args))
		if c, err := Canonical([]byte(args)); fit && err != nil {
			t.Errorf("%q fits %s", args, p)
		} else if err == nil && string(c) == string(p) && !fit && !climbs(pattern) {
			t.Errorf("%s does not fit itself", p)
		}
	})
}
