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

// A wildcard doesn't stand for an option that runs another program than the pattern's, or
// writes a file that it names; what the pattern itself spells out, it covers.
func TestOptionsDoNotEscape(t *testing.T) {
	for pattern, lines := range map[string]struct{ yes, no []string }{
		"git *": {
			[]string{"git push", "git -C sub status", "git --no-pager log -p", "git commit -c HEAD", "git switch -c x", "git fetch origin", "git stash list", "git log -S x", "git rebase main", "git add -u", "git push -u origin main", "git clone https://example.com/x.git"},
			[]string{
				"git -c core.pager=x log", "git -c alias.x=!sh x", "git -c 'core.sshCommand=sh -c id' fetch", "git --config-env=core.pager=X log", "git --config-env core.pager=X log", "git --exec-path=. status", "git --exec-path . status", "git -p log", "git --paginate log",
				"git --git-dir=/tmp/e/.git status", "git --git-dir /tmp/e status", "git --work-tree=/ checkout .", "git --no-pager -c core.pager=x log", "git -C . -c core.fsmonitor=x status", "git --bare status",
				"git fetch --upload-pack=x origin", "git fetch --upload-pack x", "git fetch --upload-p=x", "git clone -u x y", "git clone -ux y", "git clone -c core.fsmonitor=x y", "git clone --config=a=b y", "git clone --template=/tmp/t y", "git init --template=/tmp/t", "git ls-remote --upload-pack=x .", "git ls-remote --exec=x .",
				"git push --receive-pack=x", "git push --exec=x", "git grep -Ox y", "git grep -O y", "git grep --open-files-in-pager=x y", "git grep --open=x y", "git rebase -x id", "git rebase --exec id", "git rebase --exe id", "git rebase -ix id", "git rebase -sx main", "git merge -s x", "git merge --strategy=x", "git pull -s x",
				"git log --ext-diff", "git log --output=x", "git diff --output x", "git diff --out=x", "git show --textconv", "git archive -o x HEAD", "git archive --remote=ext::x HEAD", "git archive --exec=x HEAD", "git format-patch -o / HEAD", "git fetch ext::sh", "git clone 'ext::sh -c id' x", "git remote add x ext::sh", "git fetch fd::3",
				"git config alias.x !sh", "git config core.pager x", "git bisect run x", "git submodule foreach x", "git submodule update", "git difftool -x x", "git mergetool", "git filter-branch --tree-filter x", "git send-email x", "git x", "git help -w x", "git hook run x", "git maintenance start", "git daemon", "git instaweb", "git p4", "git credential fill", "git remote-ext x", "git bundle create /tmp/x HEAD", "git --x", "git var GIT_EDITOR", "git upload-pack .", "git shell",
			},
		},
		"git -c core.pager=less *": {[]string{"git -c core.pager=less log"}, []string{"git -c core.pager=less -c core.pager=x log", "git -c core.pager=less x"}},
		"git fetch*":               {[]string{"git fetch", "git fetch --all -p"}, []string{"git fetch --upload-pack=x .", "git fetch ext::x"}},
		"git grep*":                {[]string{"git grep -n x"}, []string{"git grep -Oid x", "git grep -nOid x", "git grep --open-files-in-pager x"}},
		"git log*":                 {[]string{"git log --oneline -5"}, []string{"git log --output=.bashrc", "git log --outpu x"}},
		"find *":                   {[]string{"find . -name x -type f", "find . -newer x"}, []string{"find . -exec rm x", "find . -execdir x", "find . -ok x", "find . -okdir x", "find . -delete", "find . -fprint x", "find . -fprintf x y", "find . -fls x"}},
		"find . -exec grep*":       {[]string{"find . -exec grep x"}, []string{"find . -exec grep x -delete", "find . -exec grep x -exec rm y"}},
		"tar *":                    {[]string{"tar xzf a.tgz", "tar -tvf a"}, []string{"tar xf a --to-command=x", "tar xf a --to-c=x", "tar xf a --to-command x", "tar cf a --checkpoint=1 --checkpoint-action=exec=x", "tar -I x -xf a", "tar -xIx -f a", "tar xIf x a", "tar --use-compress-program=x -xf a", "tar cf a --rsh-command=x b", "tar -F x -cf a b", "tar --info-script=x -cf a"}},
		"ssh *":                    {[]string{"ssh host ls -o"}, []string{"ssh -o ProxyCommand=x h", "ssh -oProxyCommand=x h", "ssh -4o ProxyCommand=x h", "ssh -F x h", "ssh -S x h", "ssh -I x h"}},
		"scp *":                    {[]string{"scp a h:b"}, []string{"scp -S x a h:b", "scp -o ProxyCommand=x a h:b", "scp -F x a h:b"}},
		"rsync *":                  {[]string{"rsync -a x y"}, []string{"rsync -e x a b", "rsync -ae x a b", "rsync --rsh=x a b", "rsync --rsync-path=x a b"}},
		"sort *":                   {[]string{"sort -n x"}, []string{"sort --compress-program=x y", "sort -o x y", "sort -nox y", "sort --outp=x y"}},
		"rg *":                     {[]string{"rg -n x"}, []string{"rg --pre x y", "rg --pre=x y", "rg --hostname-bin=x y"}},
		"fd *":                     {[]string{"fd x"}, []string{"fd -x rm", "fd -X rm", "fd --exec rm", "fdfind"}},
		"go *":                     {[]string{"go test ./mcp", "go vet -v x", "go build x"}, []string{"go test -exec x y", "go test --exec=x y", "go build -toolexec x y", "go vet -vettool=x", "go run x", "go generate", "go env -w GOFLAGS=x", "go build -o /bin/x", "go build -overlay=x", "go build -ldflags=-extld=x", "go install x"}},
		"make *":                   {[]string{"make test", "make -j 4 test"}, []string{"make SHELL=x", "make CC=x test", "make -f /tmp/x", "make -C / x", "make --eval=x", "make -kf x"}},
		"curl *":                   {[]string{"curl -s x"}, []string{"curl -K x", "curl -sKx", "curl --config x"}},
		"npm *":                    {[]string{"npm test", "npm run build"}, []string{"npm exec x", "npm x y", "npm --script-shell=x test", "npm test --script-shell x", "npm config set x y", "npm run build --node-options=x"}},
		"python3 *":                {[]string{"python3 x.py -c y"}, []string{"python3 -c x", "python3 -m x", "python3 -Bc x"}},
		"python3.12 *":             {nil, []string{"python3.12 -c x"}},
		"node *":                   {[]string{"node x.js -e"}, []string{"node -e x", "node --eval=x", "node -r x y.js", "node --import=x y.js"}},
		"man *":                    {[]string{"man ls"}, []string{"man -P x ls", "man --pager=x ls", "man -Hx ls"}},
		"split *":                  {nil, []string{"split --filter=x y"}},
		"gcc *":                    {[]string{"gcc -c x.c"}, []string{"gcc -wrapper x y.c", "gcc -fplugin=x y.c", "gcc -B/tmp y.c", "gcc -specs=x y.c"}},
		"/usr/bin/git *":           {[]string{"/usr/bin/git log"}, []string{"/usr/bin/git -c core.pager=x log"}},
		"*":                        {[]string{"ls -l", "rm x"}, []string{"git -c core.pager=x log", "find . -exec x"}},
	} {
		for want, list := range map[bool][]string{true: lines.yes, false: lines.no} {
			for _, line := range list {
				if got := covered(t, pattern, map[string]any{"command": line}); got != want {
					t.Errorf("%q covers %q: %t", pattern, line, got)
				}
			}
		}
	}
}

// covered reports whether a pattern of a command line covers arguments.
func covered(t *testing.T, pattern string, arguments map[string]any) bool {
	t.Helper()
	p, err := json.Marshal(map[string]string{"command": pattern})
	if err != nil {
		t.Fatal(err)
	}
	args, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return (store.Grant{Pattern: p}).Matches(args) && Covers(p, args)
}

// Arguments beside the command line, which the pattern does not name, change what runs.
func TestArgumentsBesideTheLine(t *testing.T) {
	for _, more := range []map[string]any{
		{}, {"description": "x"}, {"timeout": 1000}, {"run_in_background": true}, {"workdir": "x"}, {"env": nil}, {"env": map[string]any{}}, {"dangerouslyDisableSandbox": false}, {"args": []any{}}, {"input": ""},
	} {
		more["command"] = "git status -s"
		if !covered(t, "git status*", more) {
			t.Errorf("%v is not covered", more)
		}
	}
	for _, more := range []map[string]any{
		{"env": map[string]any{"GIT_SSH_COMMAND": "x"}}, {"environment": []any{"PATH=."}}, {"env_vars": "A=b"}, {"shell": "/tmp/x"}, {"Shell": "x"}, {"executable": "x"}, {"args": []any{"; rm"}}, {"argv": []any{"x"}}, {"cmd": "rm x"}, {"script": "rm x"}, {"Command": "rm x"},
		{"commands": []any{"rm x"}}, {"stdin": "x"}, {"input": "x"}, {"user": "root"}, {"run-as": "root"}, {"sudo": true}, {"dangerouslyDisableSandbox": true}, {"dangerously_disable_sandbox": true}, {"sandbox_permissions": "require_escalated"}, {"with_escalated_permissions": true},
	} {
		more["command"] = "git status -s"
		if covered(t, "git status*", more) {
			t.Errorf("%v is covered", more)
		}
		if covered(t, "git status -s", more) {
			t.Errorf("%v is covered by the line itself", more)
		}
		args, err := json.Marshal(more)
		if err != nil {
			t.Fatal(err)
		}
		if list := PatternsOf(nil, args); len(list) > 0 {
			t.Errorf("for %v there is proposed %+v", more, list)
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
		"git status --short":      {"git status --short", "git status*", "git *"},
		"git status":              {"git status", "git status*", "git *"},
		"git -C x status":         {"git -C x status", "git *"},
		"ls":                      {"ls"},
		"npm test":                {"npm test", "npm test*", "npm *"},
		"git status; rm -rf .":    {"git status; rm -rf ."},
		"git commit -m 'a b'":     {"git commit -m 'a b'"},
		"git  status":             {"git  status"},
		"cat ./README.md other":   {"cat ./README.md other", "cat ./README.md *", "cat *"},
		"ls *":                    nil,
		"sudo apt update":         {"sudo apt update"},
		"bash -c ls":              {"bash -c ls"},
		"env A=b git status":      {"env A=b git status"},
		"timeout 5 git status":    {"timeout 5 git status"},
		"find . -exec rm x":       {"find . -exec rm x"},
		"git -c core.pager=x log": {"git -c core.pager=x log"},
		"go run .":                {"go run .", "go run*"},
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
		"npm test *": scripts, "npm *": scripts, "npm ls*": {}, "python3.12 *": runsCode, "git status": {}, "find . *": {}, "find *": {}, "make *": recipes, "./scripts/*": anyProgram, "git grep*": {}, "git push*": gitPush,
		"git commit*": gitHooks, "git -*": gitAll, "git diff*": {}, "rm *": anyFile, "curl *": sends, "C:\\Windows\\cmd.EXE *": runsCode, "docker ps*": {}, "docker run*": elsewhere, "env *": runsCode, "xargs *": runsCode,
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
