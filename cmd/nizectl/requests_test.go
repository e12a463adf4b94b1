package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

// pending is a card that waits.
var pending = store.Card{Call: "01A", Tool: "toolbox:roll", Server: "toolbox", Where: "/bin/nize-toolbox", By: "ada", RunsAs: store.Plain("nobody"),
	Why: "because \x1b[2J", Args: []byte(`{"dice":"2d6","note":"\u001b]0;x","n":9007199254740993}`), Digest: strings.Repeat("ab12", 16),
	Policy: store.ByRequester, State: store.Pending, Expires: now.Add(900e9), Description: "Roll\ndice"}

// TestRequests is the table of what each command line asks of the daemon.
func TestRequests(t *testing.T) {
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "key")
	if err := os.WriteFile(keyFile, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args  string // split at spaces; ␣ stands for a space within a word
		stdin string
		want  []string // requests that change something, in order
		gets  []string // or those that read
		fails error    // what the daemon says to it
		code  int
		errs  string // in standard error
	}{
		// servers
		{args: "servers add shell -- /bin/sh", want: []string{`POST /v1/servers {"server":{"name":"shell","transport":"stdio","command":"/bin/sh","created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: "servers add files -- /bin/sh -y @scope/server-files /srv/docs --flag -- x",
			want: []string{`POST /v1/servers {"server":{"name":"files","transport":"stdio","command":"/bin/sh","args":["-y","@scope/server-files","/srv/docs","--flag","--","x"],"created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: `servers add tracker --url https://mcp.example.com/mcp --header Authorization={"secret_key":"TRACKER"}`,
			want: []string{`POST /v1/servers {"server":{"name":"tracker","transport":"http","url":"https://mcp.example.com/mcp","headers":{"Authorization":{"secret_key":"TRACKER"}},"created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: "servers add old --url http://127.0.0.1:1/sse --transport sse --header Accept-Language=en,de",
			want: []string{`POST /v1/servers {"server":{"name":"old","transport":"sse","url":"http://127.0.0.1:1/sse","headers":{"Accept-Language":"en,de"},"created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: "servers add all --cwd /tmp --env A=1,2 --env B= --env MAX_TOKENS=4096 --env TOKEN_FILE=/run/t --description a␣b --domain d --timeout 1d --max-concurrency 2 --approval always --trust-annotations --untrusted-output --private --accept-new --allow x --allow y,z --force -- /bin/sh",
			want: []string{`POST /v1/servers {"server":{"name":"all","transport":"stdio","command":"/bin/sh","cwd":"/tmp","env":{"A":"1,2","B":"","MAX_TOKENS":"4096","TOKEN_FILE":"/run/t"},"description":"a b","domain":"d","timeout":"24h0m0s","max_concurrency":2,"approval":"always","trust_annotations":true,"untrusted_output":true,"private":true,"accept_new":true,"allowed_tools":["x","y,z"],"created":"0001-01-01T00:00:00Z","revision":0},"force":true}`}},
		{args: "servers add gh --env-secret GH_TOKEN --env-secret OTHER -- /bin/sh", stdin: "one\r\ntwo\nthree\n", want: []string{
			`PUT /v1/credentials {"scope":"system","service":"gh","name":"GH_TOKEN","secret":"one"}`,
			`PUT /v1/credentials {"scope":"system","service":"gh","name":"OTHER","secret":"two"}`,
			`POST /v1/servers {"server":{"name":"gh","transport":"stdio","command":"/bin/sh","env":{"GH_TOKEN":{"secret_key":"GH_TOKEN"},"OTHER":{"secret_key":"OTHER"}},"created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: "servers add web --url https://x.example --header-secret X-Api-Key", stdin: "k", want: []string{
			`PUT /v1/credentials {"scope":"system","service":"web","name":"X-Api-Key","secret":"k"}`,
			`POST /v1/servers {"server":{"name":"web","transport":"http","url":"https://x.example","headers":{"X-Api-Key":{"secret_key":"X-Api-Key"}},"created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: "servers add toolbox --env-secret T -- /bin/sh", stdin: "k", code: 5, errs: "already exists"}, // and its credential is not touched
		{args: "servers add gh --env-secret T -- /bin/sh", stdin: "", code: 2, errs: "is empty"},
		{args: "servers add toolbox -- /bin/sh", want: []string{`POST /v1/servers {"server":{"name":"toolbox","transport":"stdio","command":"/bin/sh","created":"0001-01-01T00:00:00Z","revision":0}}`}, fails: fmt.Errorf("server toolbox %w", store.ErrExists), code: 5, errs: "already exists"},
		{args: "servers add x", code: 2, errs: "needs a command after -- or --url"},
		{args: "servers add x --url https://x.example -- /bin/sh", code: 2, errs: "not both"},
		{args: "servers add far http://127.0.0.1:1/mcp", want: []string{`POST /v1/servers {"server":{"name":"far","transport":"http","url":"http://127.0.0.1:1/mcp","created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: "servers add far HTTPS://mcp.example.com/mcp", want: []string{`POST /v1/servers {"server":{"name":"far","transport":"http","url":"HTTPS://mcp.example.com/mcp","created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: "servers add --transport http far https://mcp.example.com/mcp", want: []string{`POST /v1/servers {"server":{"name":"far","transport":"http","url":"https://mcp.example.com/mcp","created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: "servers add far --transport sse http://127.0.0.1:1/sse", want: []string{`POST /v1/servers {"server":{"name":"far","transport":"sse","url":"http://127.0.0.1:1/sse","created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: "servers add far -- http://127.0.0.1:1/mcp", want: []string{`POST /v1/servers {"server":{"name":"far","transport":"http","url":"http://127.0.0.1:1/mcp","created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: "servers add far https://mcp.example.com", want: []string{`POST /v1/servers {"server":{"name":"far","transport":"http","url":"https://mcp.example.com","created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: "servers add far http://[::1]:3000/mcp/?x=1", want: []string{`POST /v1/servers {"server":{"name":"far","transport":"http","url":"http://[::1]:3000/mcp/?x=1","created":"0001-01-01T00:00:00Z","revision":0}}`}},
		{args: "servers add far --url http://127.0.0.1:1/mcp http://127.0.0.1:2/mcp", code: 2, errs: "not both"},
		{args: "servers add http://127.0.0.1:1/mcp far", code: 2, errs: "the name comes first: nizectl servers add NAME http://127.0.0.1:1/mcp"},
		{args: "servers add http://127.0.0.1:1/mcp", code: 2, errs: "the name comes first"},
		{args: "servers add far http://127.0.0.1:1/mcp more", code: 2, errs: "a URL takes no arguments"},
		{args: "servers add far ws://127.0.0.1:1/mcp", code: 2, errs: "with http:// or https://"},
		{args: "servers add far localhost:3000/mcp", code: 2, errs: "with http:// or https://"},
		{args: "servers add far 127.0.0.1:3000", code: 2, errs: "with http:// or https://"},
		{args: "servers add far https://u:p@mcp.example.com", code: 2, errs: "--header-secret"},
		{args: "servers add far http://", code: 2, errs: "http or https"},
		{args: "servers add BAD -- /bin/sh", code: 2, errs: "use 1 to 63"},
		{args: "servers add native -- /bin/sh", code: 2, errs: "reserved"},
		{args: "servers add x --url ftp://x.example", code: 2, errs: "http or https"},
		{args: "servers add x --url https://u:p@x.example", code: 2, errs: "--header-secret"},
		{args: "servers add x --url https://x.example?api_key=abcdef", code: 2, errs: "--header-secret"},
		{args: "servers add x --url https://x.example --transport stdio", code: 2, errs: "does not fit"},
		{args: "servers add x --transport http -- /bin/sh", code: 2, errs: "needs --url"},
		{args: "servers add x --url https://x.example --header Authorization=Bearer␣abc", code: 2, errs: "use --header-secret Authorization"},
		{args: "servers add x --env GITHUB_TOKEN=abc -- /bin/sh", code: 2, errs: "use --env-secret GITHUB_TOKEN"},
		{args: "servers add x --env SIGNING_KEY=abc -- /bin/sh", code: 2, errs: "use --env-secret SIGNING_KEY"},
		{args: "servers add x --env NOTE=ghp_0123456789abcdefghij -- /bin/sh", code: 2, errs: "use --env-secret NOTE"},
		{args: "servers add x --env-secret T=abc -- /bin/sh", code: 2, errs: "takes only a name"},
		{args: "servers add x --env 1X=a -- /bin/sh", code: 2, errs: "no name"},
		{args: "servers add x --env X -- /bin/sh", code: 2, errs: "want K=V"},
		{args: "servers add x --env X=1 --env X=2 -- /bin/sh", code: 2, errs: "twice"},
		{args: "servers add x --header X=1 -- /bin/sh", code: 2, errs: "use --env"},
		{args: "servers add x --url https://x.example --env X=1", code: 2, errs: "use --header"},
		{args: "servers add x -- /bin/sh --token sk-0123456789abcdefghij", code: 2, errs: "word 3"},
		{args: "servers add x --timeout soon -- /bin/sh", code: 2, errs: "--timeout soon"},
		{args: "servers add x --approval maybe -- /bin/sh", code: 2, errs: "auto, always or never"},
		{args: "servers add x --max-concurrency 0 -- /bin/sh", code: 2, errs: "1 to 1000"},
		{args: "servers edit toolbox --timeout 5s --allow x", want: []string{`PATCH /v1/servers/toolbox {"timeout":"5s","allowed_tools":["x"]}`}},
		{args: "servers edit toolbox --trust-annotations=false --description=", want: []string{`PATCH /v1/servers/toolbox {"description":"","trust_annotations":false}`}},
		{args: "servers edit toolbox", code: 2, errs: "something to change"},
		{args: "servers share toolbox --with all --with user:01U", want: []string{`PATCH /v1/servers/toolbox {"visibility":["all","user:01U"]}`}},
		{args: "servers share toolbox --with nobody", want: []string{`PATCH /v1/servers/toolbox {"visibility":[]}`}},
		{args: "servers share toolbox --with ops", code: 2, errs: "want all, group:G, user:U"},
		{args: "servers share toolbox", code: 2, errs: "--with"},
		{args: "servers enable toolbox", want: []string{`PATCH /v1/servers/toolbox {"disabled":false}`}},
		{args: "servers disable toolbox", want: []string{`PATCH /v1/servers/toolbox {"disabled":true}`}},
		{args: "servers test toolbox", want: []string{"POST /v1/servers/toolbox/test"}},
		{args: "servers restart toolbox", want: []string{"POST /v1/servers/toolbox/restart"}},
		{args: "servers remove toolbox --yes", want: []string{"DELETE /v1/servers/toolbox"}},
		{args: "servers remove toolbox", code: 2, errs: "use --yes"},
		{args: "servers remove tolbox --yes", want: []string{"DELETE /v1/servers/tolbox"}, fails: store.Unknown("server", "tolbox", []string{"toolbox"}), code: 4, errs: "did you mean toolbox?"},
		{args: "servers logs toolbox --follow", gets: []string{"GET /v1/servers/toolbox/logs?follow=1"}},
		{args: "servers show a/b", gets: []string{"GET /v1/servers/a%2Fb", "GET /v1/servers"}, fails: fmt.Errorf("server %w", store.ErrNotFound), code: 4, errs: "not found"},

		// tools
		{args: "tools search convert␣a␣time --explain", gets: []string{"GET /v1/tools/search?explain=1&q=convert+a+time"}},
		{args: "tools search convert␣a␣time -n 3 --min 0.2 --domain time", gets: []string{"GET /v1/tools/search?domain=time&min=0.2&q=convert+a+time&top_k=3"}},
		{args: "tools search x --top-k 51", code: 2, errs: "1 to 50"},
		{args: "tools search x --min 2", code: 2, errs: "0 to 1"},
		{args: "tools search a b", code: 2, errs: "one argument too many"},
		{args: "tools list --server toolbox", gets: []string{"GET /v1/tools?server=toolbox"}},
		{args: "tools show toolbox.convert_time", gets: []string{"GET /v1/tools/toolbox:convert_time"}},
		{args: "tools domains time", gets: []string{"GET /v1/domains/time", "GET /v1/domains/time?cursor=2"}},
		{args: `tools call toolbox:convert_time --args {"n":9007199254740993,"b":1}`, want: []string{`POST /v1/tools/toolbox:convert_time/call {"args":{"n":9007199254740993,"b":1},"follow":"dgrfgbt3myo0"}`}},
		{args: "tools call toolbox:convert_time", want: []string{`POST /v1/tools/toolbox:convert_time/call {"args":{},"follow":"dgrfgbt3myo0"}`}},
		{args: "tools call toolbox:convert_time --args -", stdin: `{"a":1}`, want: []string{`POST /v1/tools/toolbox:convert_time/call {"args":{"a":1},"follow":"dgrfgbt3myo0"}`}},
		{args: `tools call toolbox:convert_time --args {"a":`, code: 2, errs: "--args: invalid JSON"},
		{args: `tools call toolbox:convert_time --args {"a":1,"a":2}`, code: 2, errs: "duplicate key"},
		{args: `tools call toolbox:convert_time --args [1]`, code: 2, errs: "want a JSON object"},
		{args: "tools call toolbox:convert_time --args @/none/x", code: 2, errs: "--args"},
		{args: "tools call toolbox:convert_tim", want: []string{`POST /v1/tools/toolbox:convert_tim/call {"args":{},"follow":"dgrfgbt3myo0"}`}, fails: store.Unknown("tool", "toolbox:convert_tim", []string{"toolbox:convert_time"}), code: 4, errs: "did you mean toolbox:convert_time?"},
		{args: "reindex --server toolbox --full", want: []string{`POST /v1/reindex {"server":"toolbox","full":true}`}, code: 1, errs: "aborted the reindex"}, // without a summary

		// tokens
		{args: "tokens create claude-desktop", want: []string{`POST /v1/tokens {"name":"claude-desktop"}`}},
		{args: "tokens create c --user u --expires 30d --scope tools:a:* --scope expose:all --overwrite",
			want: []string{`POST /v1/tokens {"name":"c","user":"u","expires":"720h0m0s","scopes":["tools:a:*","expose:all"],"overwrite":true}`}},
		{args: "tokens create c --expires never", code: 2, errs: "--expires never"},
		{args: "tokens create c --expires 0s", code: 2, errs: "--expires"},
		{args: "tokens rotate have --grace 10m", want: []string{`POST /v1/tokens/have/rotate {"grace":"10m0s"}`}},
		{args: "tokens revoke have --yes", want: []string{"DELETE /v1/tokens/have"}},
		{args: "tokens revoke --all --user u --yes", want: []string{"DELETE /v1/tokens?all=1&user=u"}},
		{args: "tokens revoke --all", code: 2, errs: "use --yes"},
		{args: "tokens revoke", code: 2, errs: "NAME or --all"},
		{args: "tokens revoke have --all --yes", code: 2, errs: "not both"},

		// credentials, providers, models, agents
		{args: "credentials set tracker TRACKER --host mcp.example.com", stdin: "-----BEGIN-----\nabc\n-----END-----\n",
			want: []string{`PUT /v1/credentials {"scope":"","service":"tracker","name":"TRACKER","host":"mcp.example.com","secret":"-----BEGIN-----\nabc\n-----END-----"}`}},
		{args: "credentials set tracker T --scope user --owner 01U", stdin: "x", want: []string{`PUT /v1/credentials {"scope":"user","owner":"01U","service":"tracker","name":"T","secret":"x"}`}},
		{args: "credentials set tracker T --scope user", stdin: "x", want: []string{`PUT /v1/credentials {"scope":"user","service":"tracker","name":"T","secret":"x"}`}},
		{args: "credentials set tracker T --scope team", stdin: "x", code: 2, errs: "--owner"},
		{args: "credentials set tracker T --owner u", stdin: "x", code: 2, errs: "--scope"},
		{args: "credentials set tracker T --scope everyone", stdin: "x", code: 2, errs: "--scope everyone"},
		{args: "credentials set tracker T", stdin: "\n", code: 2, errs: "is empty"},
		{args: "credentials set tracker T hunter2", code: 2, errs: "too many"},
		{args: "credentials set tracker T", stdin: strings.Repeat("x", command.MaxSecret+1), code: 2, errs: "over 64 KiB"},
		{args: "credentials remove tracker T --yes", want: []string{"DELETE /v1/credentials?name=T&service=tracker"}, fails: fmt.Errorf("credential %w", store.ErrNotFound), code: 4},
		{args: "providers add openai", stdin: "sk-key\n", want: []string{`POST /v1/providers {"name":"openai","kind":"openai","key":"sk-key","try":true}`}},
		{args: "providers add work --kind openai-compatible --base-url http://127.0.0.1:1/v1 --key-file " + strings.ReplaceAll(keyFile, " ", "␣"),
			want: []string{`POST /v1/providers {"name":"work","kind":"openai-compatible","base_url":"http://127.0.0.1:1/v1","key":"from-a-file","try":true}`}},
		{args: "providers add ollama", stdin: "not read", want: []string{`POST /v1/providers {"name":"ollama","kind":"ollama","key":"","try":true}`}},
		{args: "providers add local --kind openai-compatible --base-url http://127.0.0.1:1 --no-key", want: []string{`POST /v1/providers {"name":"local","kind":"openai-compatible","base_url":"http://127.0.0.1:1","key":"","try":true}`}},
		{args: "providers add box --base-url http://127.0.0.1:1", stdin: "\n", want: []string{`POST /v1/providers {"name":"box","base_url":"http://127.0.0.1:1","key":"","try":true}`}},
		{args: "providers add box --base-url http://127.0.0.1:1", want: []string{`POST /v1/providers {"name":"box","base_url":"http://127.0.0.1:1","key":"","try":true}`}},
		{args: "providers add box --base-url http://127.0.0.1:1 --force", stdin: "k\n", want: []string{`POST /v1/providers {"name":"box","base_url":"http://127.0.0.1:1","key":"k"}`}, errs: "stored untried"},
		{args: "providers add gemini", stdin: "\n", code: 2, errs: "is empty"},
		{args: "providers add opnai", code: 2, errs: "did you mean openai?"},
		{args: "providers add work", code: 2, errs: "add --base-url URL, or --kind"},
		{args: "providers add azure", stdin: "k", code: 2, errs: "--base-url"},
		{args: "providers add openai", stdin: "two words\n", code: 2, errs: "not a key"},
		{args: "providers add sk-0123456789abcdefghij", code: 2, errs: "looks like a key"},
		{args: "providers add openai --no-key --key-file x", code: 2, errs: "not both"},
		{args: "providers enable have", want: []string{"POST /v1/providers/have/enable"}},
		{args: "providers disable have", want: []string{"POST /v1/providers/have/disable"}},
		{args: "providers test have", want: []string{"POST /v1/providers/have/test"}, code: 1, errs: "401 from the service; give it a new key"},
		{args: "providers remove have --yes", want: []string{"DELETE /v1/providers/have"}},
		{args: "models set smart openai/gpt-x", want: []string{`PUT /v1/models/smart {"target":"openai/gpt-x"}`}},
		{args: "models set smart openai/gpt-x --force", want: []string{`PUT /v1/models/smart {"target":"openai/gpt-x","force":true}`}},
		{args: "models list --provider have", want: []string{"POST /v1/providers/have/test"}, code: 1, errs: "does not list its models: 401"},
		{args: "models set smart gpt", code: 2, errs: "write PROVIDER/MODEL"},
		{args: "models default have", want: []string{"POST /v1/models/have/default"}},
		{args: "models default hav", want: []string{"POST /v1/models/hav/default"}, fails: store.Unknown("model name", "hav", []string{"have"}), code: 4, errs: "did you mean have?"},
		{args: "models fallback have a/b c/d/e", want: []string{`PUT /v1/models/have/fallbacks {"fallbacks":["a/b","c/d/e"]}`}},
		{args: "models fallback have", want: []string{`PUT /v1/models/have/fallbacks {"fallbacks":[]}`}},
		{args: "models remove have --yes", want: []string{"DELETE /v1/models/have"}},
		{args: "agents set main --model smart --max-steps 3 --temperature 0.5 --allow a:* --approval all",
			want: []string{`PUT /v1/agents/main {"id":"main","model":"smart","system_prompt":"be kind","temperature":0.5,"allowed_tools":["a:*"],"max_steps":3,"approval":"all","default":true,"created":"0001-01-01T00:00:00Z"}`}},
		{args: "agents set new --name N --system-prompt - --default", stdin: "be brief", want: []string{`PUT /v1/agents/new {"id":"new","name":"N","system_prompt":"be brief","default":true,"created":"0001-01-01T00:00:00Z"}`}},
		{args: "agents set main --temperature hot", code: 2, errs: "0 to 2"},
		{args: "agents set main --max-steps -1", code: 2, errs: "0 or more"},
		{args: "agents set main --approval sometimes", code: 2, errs: "whitelist"},
		{args: "agents default main", want: []string{`PUT /v1/agents/main {"id":"main","system_prompt":"be kind","default":true,"created":"0001-01-01T00:00:00Z"}`}},
		{args: "agents default man", code: 4, errs: "did you mean main?"},
		{args: "agents remove main --yes", want: []string{"DELETE /v1/agents/main"}},

		// approvals
		{args: "approvals approve 01A", want: []string{`POST /v1/approvals/01A {"verb":"approve","digest":"` + pending.Digest + `"}`}},
		{args: "approvals approve 01A --digest ab12ab12 --always", want: []string{`POST /v1/approvals/01A {"verb":"approve","digest":"` + pending.Digest + `","always":true,"exact":true}`}},
		{args: "approvals approve 01A --digest ab12ab12 --always --any --for conversation", want: []string{`POST /v1/approvals/01A {"verb":"approve","digest":"` + pending.Digest + `","always":true,"for":"conversation"}`}},
		{args: "approvals deny 01A --digest ab12ab12 --always", want: []string{`POST /v1/approvals/01A {"verb":"deny","digest":"` + pending.Digest + `","always":true}`}},
		{args: "approvals grants list", gets: []string{"GET /v1/grants?user=%2A", "GET /v1/users"}},
		{args: "approvals approve 01A --digest ffffffff", code: 5, errs: "another digest"},
		{args: "approvals approve 01A --digest ab", code: 2, errs: "at least 8"},
		{args: "approvals deny 01A --reason too␣risky", want: []string{`POST /v1/approvals/01A {"verb":"deny","digest":"` + pending.Digest + `","reason":"too risky"}`}},
		{args: "approvals approve 01B", want: []string{`POST /v1/approvals/01B {"verb":"approve","digest":"` + pending.Digest + `"}`}, code: 5, errs: "already decided"},
		{args: "approvals approve nope", fails: fmt.Errorf("call %w", store.ErrNotFound), code: 4, errs: "not found"},
		{args: "approvals grants revoke 01G", want: []string{"DELETE /v1/grants/01G"}},
		{args: "approvals grants list --user u", gets: []string{"GET /v1/grants?user=u", "GET /v1/users"}},

		// usage, audit, config
		{args: "usage", gets: []string{"GET /v1/usage?by=day&since=2026-01-30T12%3A00%3A00Z&zone=UTC"}},
		{args: "usage --since 2026-02-01T00:00:00Z --by model", gets: []string{"GET /v1/usage?by=model&since=2026-02-01T00%3A00%3A00Z&zone=UTC"}},
		{args: "usage --by conversation --user mia", gets: []string{"GET /v1/usage?by=conversation&since=2026-01-30T12%3A00%3A00Z&top=40&user=mia&zone=UTC"}},
		{args: "usage --by conversation --top 0 --since", code: 2, errs: "needs a value"},
		{args: "usage --chart --json", code: 2, errs: "--chart is for people"},
		{args: "usage --top -1", code: 2, errs: "--top -1"},
		{args: "models price x", code: 2, errs: "write PROVIDER/MODEL"},
		{args: "models price a/b --in 1", code: 2, errs: "needs --in and --out"},
		{args: "models price a/b --unset --in 1", code: 2, errs: "not both"},
		{args: "models price a/b/c --in 1 --out 2 --cached 0.5", want: []string{`PUT /v1/prices/a%2Fb%2Fc {"in":1,"out":2,"cached":0.5}`}},
		{args: "models price a/b --unset", want: []string{"DELETE /v1/prices/a%2Fb"}},
		{args: "usage --by week", code: 2, errs: "--by week"},
		{args: "usage --since yesterday", code: 2, errs: "--since yesterday"},
		{args: "usage --csv --json", code: 2, errs: "not both"},
		{args: "audit -n 5 --since 1h --user u --tool toolbox.* --outcome done --kind call", gets: []string{"GET /v1/audit?kind=call&limit=5&outcome=done&since=2026-03-01T11%3A00%3A00Z&tool=toolbox%3A%2A&user=u"}},
		{args: "audit --follow", gets: []string{"GET /v1/audit?follow=1"}},
		{args: "audit --outcome pending", code: 2, errs: "--outcome pending"},
		{args: "audit --until 1h --server toolbox --surface mcp --before 12", gets: []string{"GET /v1/audit?before=12&server=toolbox&surface=mcp&until=2026-03-01T11%3A00%3A00Z"}},
		{args: "audit --surface moon", code: 2, errs: "--surface moon: want one of cli"},
		{args: "audit --since 1h --until 2h", code: 2, errs: "nothing can be between"},
		{args: "audit --before 0", code: 2, errs: "--before 0"},
		{args: "audit --follow --before 9", code: 2, errs: "combined with --before"},
		{args: "audit --follow --until 1h", code: 2, errs: "combined with --before"},
		{args: "audit verify", gets: []string{"GET /v1/audit/verify"}},
		{args: "audit verify --since-checkpoint", gets: []string{"GET /v1/audit/verify?since_checkpoint=1"}},
		{args: "audit verify --key aa", code: 2, errs: "name it with --file"},
		{args: "audit verify --file x --since-checkpoint", code: 2, errs: "give one of them"},
		{args: "audit verify --file /nonexistent", code: 1, errs: "opening the export"},
		{args: "audit export --user u --kind call", gets: []string{"GET /v1/audit/export?kind=call&user=u"}},
		{args: "audit export a b", code: 2, errs: "export"},
		{args: "audit verfy", code: 2, errs: "did you mean"},
		{args: "config set agent.tools.maxSteps 6", want: []string{`PUT /v1/config/agent.tools.maxSteps {"value":"6"}`}},
		{args: "config set agent.tools.maxSteps 6 --user u", want: []string{`PUT /v1/config/agent.tools.maxSteps {"value":"6","user":"u"}`}},
		{args: "config set agent.tools.maxSteps many", want: []string{`PUT /v1/config/agent.tools.maxSteps {"value":"many"}`}, fails: fmt.Errorf("%w value: want a number from 1 to 100", store.ErrInvalid), code: 2, errs: "from 1 to 100"},
		{args: "config set agent.tool.maxSteps 6", want: []string{`PUT /v1/config/agent.tool.maxSteps {"value":"6"}`}, fails: store.Unknown("setting", "agent.tool.maxSteps", []string{"agent.tools.maxSteps"}), code: 4, errs: "did you mean agent.tools.maxSteps?"},
		{args: "config set agent.tools.systemPrompt -", stdin: "two\nlines\n", want: []string{`PUT /v1/config/agent.tools.systemPrompt {"value":"two\nlines"}`}},
		{args: "config unset agent.tools.maxSteps", want: []string{"DELETE /v1/config/agent.tools.maxSteps"}},
		{args: "config explain agent.tools.maxStep", fails: store.Unknown("setting", "agent.tools.maxStep", []string{"agent.tools.maxSteps"}), code: 4, errs: "did you mean agent.tools.maxSteps?"},
		{args: "config get agent.tools.maxStep", fails: store.Unknown("setting", "agent.tools.maxStep", []string{"agent.tools.maxSteps"}), code: 4, errs: "did you mean agent.tools.maxSteps?"},
	} {
		t.Run(test.args, func(t *testing.T) {
			d := newDouble(t)
			answerBy(d, api.GetApproval, func(req api.CallRequest) (store.Card, error) {
				card := pending
				card.Call = req.ID
				if req.ID == "01B" {
					card.State = store.Done
				}
				return card, nil
			})
			answerBy(d, api.DecideCall, func(req api.DecideCallRequest) (call store.Call, err error) {
				if req.ID == "01B" {
					err = fmt.Errorf("call 01B was %w by bob", store.ErrDecided)
				}
				return call, err
			})
			answer(d, api.ListAgents, api.List[store.Agent]{Items: []store.Agent{{ID: "main", Default: true, SystemPrompt: "be kind"}}})
			answerBy(d, api.GetServer, func(req api.ServerRequest) (api.ServerView, error) {
				if req.Name != "toolbox" {
					return api.ServerView{}, fmt.Errorf("server %w", store.ErrNotFound)
				}
				return api.ServerView{Server: store.Server{Name: "toolbox"}}, nil
			})
			answerBy(d, api.BrowseDomain, func(req api.BrowseDomainRequest) (api.DomainTools, error) {
				return api.DomainTools{NextCursor: map[string]string{"": "2"}[req.Cursor]}, nil
			})
			answer(d, api.TestProvider, api.ProviderTest{Error: "401 from the service", Hint: "give it a new key with nizectl providers add openai"})
			answer(d, api.TestServer, api.Probe{OK: true})
			answer(d, api.ListCredentials, api.List[store.Credential]{})
			answer(d, api.CallTool, store.Call{State: store.Done, Result: text("14:00 in Lisbon", false)})
			answerLines(d, api.VerifyAudit, api.VerifyLine{Result: &api.Verified{OK: true}})
			d.trail(t)
			d.fails = test.fails
			got := d.nizectl(surroundings{stdin: test.stdin}, words(test.args)...)
			if got.code != test.code || !strings.Contains(got.err, test.errs) {
				t.Errorf("exit %d, %q; want %d and %q", got.code, got.err, test.code, test.errs)
			}
			if test.code != 0 && strings.Count(got.err, "\n") != 1 {
				t.Errorf("an error is one line, not %q", got.err)
			}
			if test.gets != nil {
				if diff := cmp.Diff(d.gets(), test.gets); diff != "" {
					t.Errorf("requests (-got +want):\n%s", diff)
				}
			} else if diff := cmp.Diff(d.changes(), test.want); diff != "" {
				t.Errorf("requests (-got +want):\n%s", diff)
			}
		})
	}
}

func words(s string) []string {
	list := strings.Fields(s)
	for i, w := range list {
		list[i] = strings.ReplaceAll(w, "␣", " ")
	}
	return list
}

// TestFailedAddLeavesNothing checks that a registration that failed takes its
// new credentials with it, and no others.
func TestFailedAddLeavesNothing(t *testing.T) {
	d := newDouble(t)
	refuse(d, api.GetServer, fmt.Errorf("server %w", store.ErrNotFound))
	answer(d, api.ListCredentials, api.List[store.Credential]{Items: []store.Credential{{CredentialKey: store.CredentialKey{Scope: "system", Service: "gh", Name: "OLD"}}}})
	refuse(d, api.AddServer, fmt.Errorf("server gh is %w", api.ErrUnavailable))
	got := d.nizectl(surroundings{stdin: "new\nnewer\n"}, "servers", "add", "gh", "--env-secret", "NEW", "--env-secret", "OLD", "--", "/bin/sh")
	if got.code != 1 || !strings.Contains(got.err, "unavailable") {
		t.Errorf("exit %d, %q", got.code, got.err)
	}
	if did := d.changes(); len(did) != 4 || !slices.Equal(did[3:], []string{"DELETE /v1/credentials?name=NEW&scope=system&service=gh"}) {
		t.Errorf("asked: %q", did)
	}
	answer(d, api.AddServer, api.ServerView{Unreachable: true})
	got = d.nizectl(surroundings{stdin: "new\n"}, "servers", "add", "gh", "--force", "--env-secret", "NEW", "--", "/bin/sh")
	if got.code != 0 || !strings.Contains(got.err, "can't be reached") || len(d.changes()) != 2 {
		t.Errorf("exit %d, %q", got.code, got.err)
	}
}

// TestSecretsAreAskedForWithoutEcho checks the prompt on a terminal.
func TestSecretsAreAskedForWithoutEcho(t *testing.T) {
	d := newDouble(t)
	got := d.nizectl(surroundings{tty: true, hidden: "hunter2", stdin: "not this"}, "credentials", "set", "s", "N")
	if got.code != 0 || strings.Contains(got.err+got.out, "hunter2") || !strings.Contains(got.err, "(not shown): ") {
		t.Errorf("%+v", got)
	}
	if did := d.changes(); len(did) != 1 || !strings.Contains(did[0], `"secret":"hunter2"`) {
		t.Errorf("%q", did)
	}
	if got := d.nizectl(surroundings{tty: true, hidden: ""}, "providers", "add", "openai"); got.code != 2 {
		t.Errorf("%+v", got)
	}
}

// TestDestructiveCommandsAsk checks the question on a terminal.
func TestDestructiveCommandsAsk(t *testing.T) {
	d := newDouble(t)
	for answer, code := range map[string]int{"n\n": 1, "\n": 1, "": 1, "y\n": 0} {
		got := d.nizectl(surroundings{tty: true, stdin: answer}, "servers", "remove", "toolbox")
		if got.code != code || !strings.Contains(got.err, "Remove the server toolbox and its tools? Credentials that it has stay sealed. [y/N]") {
			t.Errorf("%q: %+v", answer, got)
		}
		if did := d.changes(); (did == nil) != (code == 1) {
			t.Errorf("%q: asked %q", answer, did)
		}
	}
}

// TestApproveShowsTheCardFirst checks that on a terminal nobody approves what
// they have not seen.
func TestApproveShowsTheCardFirst(t *testing.T) {
	d := newDouble(t)
	answer(d, api.GetApproval, pending)
	got := d.nizectl(surroundings{tty: true, stdin: "n\n"}, "approvals", "approve", "01A")
	if got.code != 1 || d.changes() != nil || !strings.Contains(got.out, "9007199254740993") {
		t.Errorf("%+v", got)
	}
	got = d.nizectl(surroundings{tty: true, stdin: "y\n"}, "approvals", "approve", "01A")
	if got.code != 0 || len(d.changes()) != 1 {
		t.Errorf("%+v", got)
	}
}
