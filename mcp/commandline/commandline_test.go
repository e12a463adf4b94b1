package commandline

import (
	"encoding/json"
	"slices"
	"testing"
)

// Each of these begins as a pattern does and is more than one plain command.
func TestNothingSlipsThrough(t *testing.T) {
	lines := []string{
		"git status; rm -rf .", "git status;rm -rf .", "git status && rm -rf .", "git status&&rm -rf .", "git status || rm -rf .", "git status | sh",
		"git status |& sh", "git status & rm -rf .", "git status &", "git status\nrm -rf .", "git status\r\nrm -rf .", "git status\rrm -rf .", "git status $(rm -rf .)",
		"git status `rm -rf .`", "git status \"$(rm -rf .)\"", "git status \"`rm -rf .`\"", "git status <(rm -rf .)", "git status >(rm -rf .)", "git status > /etc/passwd",
		"git status >> ~/.bashrc", "git status 2>/tmp/x", "git status &> x", "git status < x", "git status <<E\nrm\nE", "git status <<< x", "git status >| x", "git status $HOME",
		"git status ${HOME}", "git status ${x:=$(rm)}", "git status $((1+$(rm)))", "git status $'\\n'rm", "git status $\"x\"", "git status * ", "git status ?", "git status [a]",
		"git status {a,b}", "git status @(a)", "git status !(a)", "git status =rm", "git status =(rm)", "git status (rm -rf .)", "git status ; ", "git status %PATH%", "git status ^& rm",
		"git status\x00rm", "git status\u2028rm", "git status \\\nrm", "git status \"unended", "git status 'unended", "git status \\", "git status |", "git status &&",
		"git status; # x", "git status ;; rm", "git status )", "git status } ; rm", "git status\vrm", "git status\frm", "git status 1>&2", "git status &>> x", "git status ${!x}",
		"git status $IFS", "git status ~+$(x)", "! git status", "x=1 git status", "(git status)", "{ git status; }", "if git status; then rm; fi", "time git status", "coproc git status",
		"function f { git status; }", "[[ git status ]]", "", " ", "#git status", "git status # after it",
	}
	for _, line := range lines {
		if IsPlain(line) {
			t.Errorf("%q counts as one plain command", line)
		}
		args, _ := json.Marshal(map[string]string{"command": line}) // a map of texts always encodes
		if Covers(json.RawMessage(`{"command":"git status*"}`), args) {
			t.Errorf("%q is covered", line)
		}
	}
}

func TestPlainCommandsAreCovered(t *testing.T) {
	for _, line := range []string{
		"git status", "git status --short", "git status -s src/a.go", "git status 'a b'", `git status "a b"`, "git status a\\ b", "git status --porcelain=v2", "git status ./x ../y", "git status  -s",
		"git status -- 'a;b'", `git status "a && b"`, "git status é",
	} {
		args, _ := json.Marshal(map[string]string{"command": line, "description": "x"})
		if !Covers(json.RawMessage(`{"command":"git status*"}`), args) {
			t.Errorf("%q is not covered", line)
		}
	}
}

func TestCoversOtherArguments(t *testing.T) {
	for name, c := range map[string]struct {
		pattern, args string
		want          bool
	}{
		"no pattern":               {"", `{"command":"a; b"}`, true},
		"the same text":            {`{"command":"a; b"}`, `{"command":"a; b"}`, true},
		"a star that is the text":  {`{"command":"ls *"}`, `{"command":"ls *"}`, true},
		"no command line":          {`{"path":"/srv/*"}`, `{"path":"/srv/a; b"}`, true},
		"another one's":            {`{"path":"/srv/*"}`, `{"path":"/srv/a","command":"a; b"}`, true},
		"another name":             {`{"cmd":"ls *"}`, `{"cmd":"ls a; b"}`, false},
		"another case":             {`{"Command":"ls *"}`, `{"Command":"ls a; b"}`, false},
		"a list":                   {`{"command":["bash","-c","ls*"]}`, `{"command":["bash","-c","ls; rm"]}`, false},
		"a list that is plain":     {`{"command":["bash","-c","ls*"]}`, `{"command":["bash","-c","ls -l"]}`, true},
		"a shorter list":           {`{"command":["ls","*"]}`, `{"command":["ls"]}`, false},
		"a number":                 {`{"command":"*"}`, `{"command":1}`, false},
		"none":                     {`{"command":"*"}`, `{}`, false},
		"arguments that aren't":    {`{"command":"*"}`, `[]`, false},
		"a pattern that isn't one": {`[]`, `{}`, false},
	} {
		if got := Covers(json.RawMessage(c.pattern), json.RawMessage(c.args)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPatterns(t *testing.T) {
	for line, want := range map[string][]string{
		"git status --short":    {"git status *", "git *"},
		"git -C x status":       {"git *"},
		"ls":                    nil,
		"npm test":              {"npm *"},
		"git status; rm -rf .":  nil,
		"git commit -m 'a b'":   nil,
		"git  status":           nil,
		"cat ./README.md other": {"cat ./README.md *", "cat *"},
	} {
		got := Patterns(line)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestRunsAnything(t *testing.T) {
	for pattern, want := range map[string]bool{
		"git status *": false, "git *": true, "git*": true, "*": true, "bash *": true, "/bin/sh -c *": true, "sudo apt *": true, "npx *": true, "ls *": false, "cat ./*": false,
		"npm test *": false, "python3 *": true, "git status": false, "find . *": true, "make *": true,
	} {
		if got := RunsAnything(pattern); got != want {
			t.Errorf("%q: %v", pattern, got)
		}
	}
}

func FuzzIsPlain(f *testing.F) {
	for _, s := range []string{"git status", "a;b", "a 'b' \"c\"", "a\\ b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if words, _ := plain(line); len(words) > 0 {
			for _, r := range line {
				if r == '`' || r == '\n' || r == 0 {
					t.Errorf("%q is plain", line)
				}
			}
		}
	})
}
