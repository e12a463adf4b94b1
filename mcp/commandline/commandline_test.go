package commandline

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"nize/store"
)

// Each of these looks like what a pattern covers, and is something else in some shell.
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
		// Prefixes, which other patterns than this would have to cover.
		"GIT_SSH_COMMAND=x git status", "PATH=. git status", "env git status", "command git status", "exec git status", "sudo git status", "xargs git status", "\\git status", "'git' status", "g''it status",
		"git -c core.pager=x status", "git --exec-path=. status", "git  status", "\u00a0git status", "GIT status", "./git status", ". git status", "& git status", "alias git=rm; git status",
		// Another command that begins so.
		"git status-evil", "git statusx", "git status/../x", "git status.exe", "git status\u00a0x", "git status'x'", "git status=x",
		// Lines that a shell other than bash reads as more.
		"git status 'a & calc'", "git status 'a | calc'", `git status '"' "& calc &" '"'`, `git status "a\" & calc & \"b"`, `git status "\$(calc)"`, "git status \\; calc", "git status \\& calc", "git status \\| calc",
		`git status 'a\' ' ; calc ; '`, "git status 'a\u2019; calc; \u2018b'", "git status \"a\u201d; calc; \u201cb\"", "git status --% & calc", "git status <#x#>", "git status \\\" x", "git status \\' x", "git status \\$HOME",
		"git status -O{calc,x}", "git status\u0085rm", "git status $[1]", "git status ~$(rm)", "git status <(:)", "git status >(:)", "git status 3<>x", "git status <<-E\nrm\nE", "git status;:", "git status&:", "git status\n#", "git status $'a'", "git status x\\",
	}
	for _, line := range lines {
		args, _ := json.Marshal(map[string]string{"command": line}) // a map of texts always encodes
		if Covers(json.RawMessage(`{"command":"git status*"}`), args) {
			t.Errorf("%q is covered", line)
		}
	}
}

func TestPlainCommandsAreCovered(t *testing.T) {
	for _, line := range []string{
		"git status", "git status --short", "git status -s src/a.go", "git status 'a b'", `git status "a b"`, "git status a\\ b", "git status --porcelain=v2", "git status ./x ../y", "git status  -s",
		"git status -- 'a;b'", `git status "a && b"`, `git status C:\dir`, "git status\t-s", "git status 'it is $5'", "git status é",
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
		"git status --short":    {"git status --short", "git status*", "git *"},
		"git status":            {"git status", "git status*", "git *"},
		"git -C x status":       {"git -C x status", "git *"},
		"ls":                    {"ls"},
		"npm test":              {"npm test", "npm test*", "npm *"},
		"git status; rm -rf .":  {"git status; rm -rf ."},
		"git commit -m 'a b'":   {"git commit -m 'a b'"},
		"git  status":           {"git  status"},
		"cat ./README.md other": {"cat ./README.md other", "cat ./README.md *", "cat *"},
		"ls *":                  nil,
		"cat <<E\n" + strings.Repeat("x", 400) + "\nE": nil,
		"": nil,
	} {
		got := Patterns(line)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
		for _, pattern := range got {
			p, _ := json.Marshal(map[string]string{"command": pattern}) // texts always encode
			args, _ := json.Marshal(map[string]string{"command": line, "description": "x"})
			if gr := (store.Grant{Pattern: p}); !gr.Matches(args) || !Covers(p, args) {
				t.Errorf("%q does not cover %q", pattern, line)
			}
		}
	}
}

func TestPatternsEndAtWords(t *testing.T) {
	for pattern, lines := range map[string]struct{ yes, no []string }{
		"git*":         {[]string{"git", "git push"}, []string{"github", "git-evil"}},
		"git status*":  {[]string{"git status", "git status -s"}, []string{"git status-evil", "git statusx"}},
		"git add src*": {[]string{"git add src", "git add src/a", "git add srcs"}, nil},
		"cat READ*":    {[]string{"cat README.md"}, nil},
		"./bin/*":      {[]string{"./bin/x"}, nil},
		"git -*":       {[]string{"git -C x status"}, nil},
		"*":            {[]string{"rm x"}, []string{"rm x; ls"}},
	} {
		for want, list := range map[bool][]string{true: lines.yes, false: lines.no} {
			for _, line := range list {
				p, _ := json.Marshal(map[string]string{"command": pattern}) // texts always encode
				args, _ := json.Marshal(map[string]string{"command": line})
				if got := (store.Grant{Pattern: p}).Matches(args) && Covers(p, args); got != want {
					t.Errorf("%q covers %q: %t", pattern, line, got)
				}
			}
		}
	}
}

func TestRiskOf(t *testing.T) {
	for pattern, want := range map[string]store.Text{
		"git status *": {}, "git *": gitAll, "git*": gitAll, "*": anyProgram, "bash *": runsCode, "/bin/sh -c *": runsCode, "sudo apt *": runsCode, "npx *": runsCode, "ls *": {}, "cat ./*": {},
		"npm test *": scripts, "npm *": scripts, "npm ls*": {}, "python3.12 *": runsCode, "git status": {}, "find . *": finds, "find *": finds, "make *": recipes, "./scripts/*": anyProgram, "git grep*": gitRuns,
		"git commit*": gitHooks, "git -*": gitAll, "git diff*": writes, "rm *": changes, "curl *": sends, "C:\\Windows\\cmd.EXE *": runsCode, "docker ps*": {}, "docker run*": elsewhere, "env *": runsCode, "xargs *": runsCode,
	} {
		if got := RiskOf(pattern); got.String() != want.String() {
			t.Errorf("%q: %q", pattern, got)
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
