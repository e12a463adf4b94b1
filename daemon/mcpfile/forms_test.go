package mcpfile

import (
	"fmt"
	"strings"
	"testing"
)

// TestFormsOfServers: each way in which each client writes a server, with what must
// be refused, in one line: how it is reached, or why it is not, and what is advised.
func TestFormsOfServers(t *testing.T) {
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"TOKEN": "tok", "HOME": "/home/a"}[name]
		return v, ok
	}
	const url = `"url":"https://a.example/mcp"`
	for _, c := range []struct{ client, text, want string }{
		{"zed", `{"context_servers":{"a":{"source":"custom","command":"x","args":["y"],"env":{"K":"v"}}}}`, "stdio x y"},
		{"zed, older", `{"context_servers":{"a":{"command":{"path":"npx","args":["-y","x"],"env":{"K":"v"}},"settings":{}}}}`, "stdio npx -y x"},
		{"zed, off", `{"context_servers":{"a":{"enabled":false,"command":"x","env":null}}}`, "stdio x; disabled"},
		{"zed, remote", `{"context_servers":{"a":{` + url + `,"headers":{"Authorization":"Bearer ${TOKEN}"}}}}`, "http https://a.example/mcp; sealed Authorization"},
		{"zed, an extension", `{"context_servers":{"a":{"source":"extension","enabled":true,"settings":{}}}}`, "refused: which only Zed can start"},
		{"zed, no command", `{"context_servers":{"a":{"settings":{"k":1}}}}`, "refused: which only Zed can start"},
		{"zed, comments", "// mine\n{\"context_servers\":{\"a\":{\"command\":\"x\",},},}", "stdio x"},

		{"codex", "[mcp_servers.a]\ncommand='x'\nargs=['y']\nenv={A='b'}\nenv_vars=['TOKEN']\n", "stdio x y; sealed TOKEN"},
		{"codex, a quoted name", "[mcp_servers.\"a b\"]\ncommand='x'\n", "stdio x"},
		{"codex, a part in quotes", "['mcp_servers'.'a.b']\ncommand='x'\n", "stdio x"},
		{"codex, dotted", "mcp_servers.a.command='x'\nmcp_servers.a.args=['1']\n", "stdio x 1"},
		{"codex, inline", "[mcp_servers]\na={url='https://a.example/mcp',bearer_token_env_var='TOKEN'}\n", "http https://a.example/mcp; sealed Authorization"},
		{"codex, scopes", "[mcp_servers.a]\nurl='https://a.example/mcp'\nscopes=['r','w']\noauth_resource='https://a.example'\n", "http https://a.example/mcp; login a --scope r --scope w"},
		{"codex, a client", "[mcp_servers.a]\nurl='https://a.example/mcp'\nscopes=['r']\n[mcp_servers.a.oauth]\nclient_id='cid'\n", "http https://a.example/mcp; login a --client-id cid --scope r"},
		{"codex, off", "[mcp_servers.a]\ncommand='x'\nenabled=false\n", "stdio x; disabled"},
		{"codex, no variable", "[mcp_servers.a]\nurl='https://a.example/mcp'\nbearer_token_env_var='NONE'\n", "refused: the variable NONE is not set"},
		{"codex, nize's key", "[mcp_servers.a]\ncommand='x'\nenv_vars=['NIZE_MASTER_KEY']\n", "refused: nize's own"},

		{"opencode", `{"mcp":{"a":{"type":"local","command":["npx","-y","x"],"environment":{"A":"{env:TOKEN}"}}}}`, "stdio npx -y x; sealed A"},
		{"opencode, off", `{"mcp":{"a":{"type":"local","command":["x"],"enabled":false}}}`, "stdio x; disabled"},
		{"opencode, remote", `{"mcp":{"a":{"type":"remote",` + url + `,"oauth":false,"headers":{"Authorization":"Bearer {env:TOKEN}"}}}}`, "http https://a.example/mcp; sealed Authorization"},
		{"opencode, a client", `{"mcp":{"a":{"type":"remote",` + url + `,"oauth":{"clientId":"cid","scope":"a b"}}}}`, "http https://a.example/mcp; login a --client-id cid --scope a --scope b"},
		{"opencode, only off", `{"mcp":{"a":{"enabled":false}}}`, "refused: it only turns a server on or off that another file describes"},
		{"opencode, only on", `{"$schema":"https://opencode.ai/config.json","mcp":{"a":{"enabled":true}}}`, "refused: it only turns a server on or off that another file describes"},
		{"opencode, off beside another", `{"mcp":{"a":{"enabled":false},"b":{"type":"local","command":["x"]}}}`, "refused: it only turns a server on or off that another file describes"},
		{"opencode, with comments", "{\n// not here\n\"mcp\":{\"a\":{\"enabled\":false,},},\n}", "refused: it only turns a server on or off that another file describes"},
		{"cline, only off", `{"mcpServers":{"a":{"disabled":true}}}`, "refused: it only turns a server on or off that another file describes"},
		{"opencode, a file", `{"mcp":{"a":{"type":"remote",` + url + `,"headers":{"X":"{file:~/.k}"}}}}`, "refused: the content of a file"},
		{"opencode, no command", `{"mcp":{"b":{"type":"local","command":["x"]},"a":{"type":"local","command":[]}}}`, "refused: command is not a list of texts"},

		{"windsurf", `{"mcpServers":{"a":{"serverUrl":"https://a.example/mcp","headers":{"X":"${env:TOKEN}"}}}}`, "http https://a.example/mcp; sealed X"},
		{"windsurf, spelled otherwise", `{"mcpServers":{"a":{"serverURL":"https://a.example/mcp"}}}`, "http https://a.example/mcp"},
		{"windsurf, SSE", `{"mcpServers":{"a":{"serverUrl":"https://a.example/sse","disabledTools":["x"]}}}`, "sse https://a.example/sse"},
		{"windsurf, off", `{"mcpServers":{"a":{"command":"x","disabled":true,"alwaysAllow":["a"]}}}`, "stdio x; disabled"},
		{"windsurf, both", `{"mcpServers":{"a":{"command":"x","serverUrl":"https://a.example/mcp"}}}`, "refused: both a command and a url"},
		{"windsurf, a file", `{"mcpServers":{"a":{"command":"x","env":{"K":"${file:/etc/k}"}}}}`, "refused: the content of a file"},

		{"kiro", `{"mcpServers":{"a":{"command":"uvx","args":["x"],"env":{"L":"E"},"disabled":false,"autoApprove":["x"]}}}`, "stdio uvx x"},
		{"kiro, powers", `{"mcpServers":{},"powers":{"mcpServers":{"a":{"command":"x"}}}}`, "stdio x"},
		{"kiro, remote", `{"mcpServers":{"a":{` + url + `,"headers":{"Authorization":"Bearer ${TOKEN}"}}}}`, "http https://a.example/mcp; sealed Authorization"},
		{"kiro, a client", `{"mcpServers":{"a":{` + url + `,"oauth":{"clientId":"c","redirectUri":"http://127.0.0.1:7/cb","oauthScopes":["r"]}}}}`, "http https://a.example/mcp; login a --client-id c --scope r"},
		{"kiro, off", `{"mcpServers":{"a":{"command":"x","disabled":true}}}`, "stdio x; disabled"},
		{"kiro, neither", `{"mcpServers":{"a":{"autoApprove":[]}}}`, "refused: neither a command nor a url"},

		{"roo", `{"mcpServers":{"a":{"type":"streamable-http",` + url + `,"timeout":60}}}`, "http https://a.example/mcp"},
		{"roo, SSE", `{"mcpServers":{"a":{"type":"sse","url":"https://a.example/x"}}}`, "sse https://a.example/x"},
		{"roo, on Windows", `{"mcpServers":{"a":{"command":"cmd","args":["/c","npx","x"]}}}`, "stdio npx x"},
		{"roo, cmd.exe", `{"mcpServers":{"a":{"command":"CMD.EXE","args":["/C","uvx"]}}}`, "stdio uvx"},
		{"roo, a folder", `{"mcpServers":{"a":{"command":"x","args":["${workspaceFolder}/a"]}}}`, "refused: the folder that an editor has open"},
		{"roo, an odd type", `{"mcpServers":{"a":{"type":"carrier-pigeon",` + url + `}}}`, "refused: none of stdio, http, sse"},

		{"librechat", "mcpServers:\n  a:\n    type: streamable-http\n    url: https://a.example/mcp\n    headers:\n      Authorization: Bearer ${TOKEN}\n", "http https://a.example/mcp; sealed Authorization"},
		{"librechat, a merge", "x: &x\n  command: x\nmcpServers:\n  a:\n    <<: *x\n    args: [y]\n", "stdio x y"},
		{"librechat, a user's value", "mcpServers:\n  a:\n    command: x\n    env: {K: '{{MY}}'}\n    customUserVars:\n      MY: {title: Key}\n", "stdio x; sealed K"},
		{"librechat, a client", "mcpServers:\n  a:\n    url: https://a.example/mcp\n    oauth:\n      client_id: cid\n      scope: r\n", "http https://a.example/mcp; login a --client-id cid --scope r"},
		{"librechat, its user", "mcpServers:\n  a:\n    url: https://a.example/mcp\n    headers: {X: '{{LIBRECHAT_USER_ID}}'}\n", "refused: the user of LibreChat"},
		{"librechat, a websocket", "mcpServers:\n  a:\n    type: websocket\n    url: wss://a.example\n", "refused: none of stdio, http, sse"},

		{"a plain map", `{"a":{"command":"x"},"b":{` + url + `}}`, "stdio x"},
		{"a plain map, remote", `{"a":{"type":"http",` + url + `}}`, "http https://a.example/mcp"},
		{"a plain map, a schema", `{"$schema":"https://s.example","a":{"command":"x"}}`, "stdio x"},
		{"a plain map, a broken one", `{"a":{"command":"x","args":"y"},"b":{"command":"x"}}`, "refused: args is not a list of texts"},
		{"a list", `{"mcpServers":[{"name":"a","command":"x"}]}`, "stdio x"},
		{"a map in mcp", `{"mcp":{"mcpServers":{"a":{"command":"x"}}}}`, "stdio x"},

		{"an input in a header", `{"inputs":[{"id":"k","description":"Key"}],"servers":{"a":{` + url + `,"headers":{"Authorization":"Basic ${input:k}"}}}}`, "http https://a.example/mcp; sealed Authorization"},
		{"two inputs in one", `{"servers":{"a":{` + url + `,"headers":{"X":"a ${input:k} b ${input:z}"}}}}`, "http https://a.example/mcp; sealed X"},
		{"an input in a variable", `{"servers":{"a":{"command":"x","env":{"K":"pre-${input:k}"}}}}`, "stdio x; sealed K"},
		{"an input in an argument", `{"servers":{"a":{"command":"x","args":["--k=${input:k}"]}}}`, "refused: only in a variable or a header"},
		{"an input in an address", `{"servers":{"a":{"url":"https://a.example/${input:k}"}}}`, "refused: give it to the server in headers"},
		{"a command's output", `{"servers":{"a":{"command":"x","env":{"K":"${command:ext.get}"}}}}`, "refused: what a command of an editor returns"},
		{"a setting", `{"servers":{"a":{"command":"x","args":["${config:a.b}"]}}}`, "refused: a setting of an editor"},
	} {
		f, err := Read([]byte(c.text), Options{Env: env})
		if err != nil {
			t.Errorf("%s: %v", c.client, err)
			continue
		}
		e := f.Entries[0]
		for _, other := range f.Entries { // one bad entry takes no other along
			if strings.HasPrefix(other.Key, "a") {
				e = other
			} else if other.Err != nil {
				t.Errorf("%s: %s: %v", c.client, other.Key, other.Err)
			}
		}
		got := fmt.Sprint(e.Server.Transport, " ", e.Server.Where())
		for _, name := range []string{"Authorization", "A", "K", "X", "TOKEN"} {
			if e.Server.Headers[name].SecretKey+e.Server.Env[name].SecretKey != "" {
				got += "; sealed " + name
			}
		}
		if e.Server.Disabled {
			got += "; disabled"
		}
		if _, login, ok := strings.Cut(e.Login, "servers login "); ok {
			got += "; login " + login
		}
		reason, refused := strings.CutPrefix(c.want, "refused: ")
		switch {
		case refused && (e.Err == nil || !strings.Contains(e.Err.Error(), reason)):
			t.Errorf("%s: error %v, want %s", c.client, e.Err, reason)
		case !refused && (e.Err != nil || got != c.want):
			t.Errorf("%s: %s, %v; want %s", c.client, got, e.Err, c.want)
		}
	}
}

// TestLimitsOfServers: a time limit counts if it says its unit, and a number of calls at
// once in either spelling.
func TestLimitsOfServers(t *testing.T) {
	for fields, want := range map[string]string{
		`"timeout":"30s"`:                          "30s 0",
		`"timeout":"2m","max_concurrency":3`:       "2m0s 3",
		`"timeout":" 1h ","maxConcurrency":1`:      "1h0m0s 1",
		`"timeout":60`:                             "0s 0; timeout is left out",
		`"timeout":60000`:                          "0s 0; timeout is left out",
		`"timeout":"60"`:                           "0s 0; timeout is left out",
		`"timeout":"soon"`:                         "0s 0; timeout is left out",
		`"timeout":"-30s"`:                         "0s 0; timeout is left out",
		`"timeout":null`:                           "0s 0; timeout is left out",
		`"timeout":{"seconds":1}`:                  "0s 0; timeout is left out",
		`"max_concurrency":null`:                   "0s 0",
		`"max_concurrency":"3"`:                    "refused: max_concurrency is not a whole number",
		`"max_concurrency":1.5,"timeout":"1s"`:     "refused: max_concurrency is not a whole number",
		`"tool_timeout_sec":5,"max_concurrency":2`: "0s 2; tool_timeout_sec is left out",
	} {
		file, err := Read([]byte(`{"mcpServers":{"a":{"command":"x",`+fields+`}}}`), Options{})
		if err != nil || len(file.Entries) != 1 {
			t.Fatalf("%s: %v", fields, err)
		}
		e := file.Entries[0]
		got := fmt.Sprintf("%s %d", e.Server.Timeout, e.Server.MaxConcurrency)
		for _, note := range e.Notes {
			before, _, _ := strings.Cut(note, ":")
			got += "; " + before
		}
		reason, refused := strings.CutPrefix(want, "refused: ")
		switch {
		case refused && (e.Err == nil || !strings.Contains(e.Err.Error(), reason)):
			t.Errorf("%s: error %v, want %s", fields, e.Err, reason)
		case !refused && (e.Err != nil || got != want):
			t.Errorf("%s: %s, %v; want %s", fields, got, e.Err, want)
		}
	}
}
