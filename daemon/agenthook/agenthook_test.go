package agenthook

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"nize/daemon/api"
)

const (
	claude = `{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls","description":"look"},"tool_use_id":"t1"}`
	asks   = `{"session_id":"s","cwd":"/w","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"ls"}}`
	shell  = `{"conversation_id":"s","hook_event_name":"beforeShellExecution","command":"ls","workspace_roots":["/w"]}`
	gemini = `{"session_id":"s","cwd":"/w","hook_event_name":"BeforeTool","tool_name":"run_shell_command","tool_input":{"command":"ls"}}`
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		client, event, tool, args, title, cwd, session string
	}{
		{"claude-code", claude, "Bash", `{"command":"ls","description":"look"}`, "look", "/w", "s"},
		{"claude-code", "\ufeff" + asks, "Bash", `{"command":"ls"}`, "", "/w", "s"},
		{"claude-code", `{"hook_event_name":"PreToolUse","tool_name":"mcp__x__y","tool_input":null}`, "mcp__x__y", `{}`, "", "", ""},
		{"codex", claude, "Bash", `{"command":"ls","description":"look"}`, "look", "/w", "s"},
		{"cursor", shell, "Shell", `{"command":"ls"}`, "", "/w", "s"},
		{"cursor", `{"hook_event_name":"beforeMCPExecution","tool_name":"q","tool_input":"{\"a\":1}"}`, "MCP:q", `{"a":1}`, "", "", ""},
		{"cursor", `{"hook_event_name":"beforeMCPExecution","tool_name":"q","tool_input":{"a":1}}`, "MCP:q", `{"a":1}`, "", "", ""},
		{"cursor", `{"hook_event_name":"preToolUse","tool_name":"Write","tool_input":{"a":1}}`, "Write", `{"a":1}`, "", "", ""},
		{"gemini-cli", gemini, "run_shell_command", `{"command":"ls"}`, "", "/w", "s"},
	} {
		client, _ := Find(c.client)
		e, err := client.Read([]byte(c.event))
		if err != nil || e.Tool != c.tool || string(e.Args) != c.args || e.Title != c.title || e.Cwd != c.cwd || e.Session != c.session {
			t.Errorf("%s: %s: %+v %s, %v", c.client, c.event, e, e.Args, err)
		}
	}
}

// What can't be read is never passed over: only events that are about no step are.
func TestReadRefuses(t *testing.T) {
	for _, client := range Clients {
		for _, raw := range []string{"", "x", "[]", "null", "{}", `{"hook_event_name":""}`, `{"tool_name":"Bash"}`, `{"hook_event_name":7}`} {
			if e, err := client.Read([]byte(raw)); err == nil || errors.Is(err, ErrOther) {
				t.Errorf("%s: %q: %+v, %v", client.Name, raw, e, err)
			}
		}
		if _, err := client.Read([]byte(`{"hook_event_name":"Stop"}`)); !errors.Is(err, ErrOther) {
			t.Errorf("%s: another event: %v", client.Name, err)
		}
	}
	for client, raw := range map[string]string{"claude-code": `{"hook_event_name":"PreToolUse"}`, "cursor": `{"hook_event_name":"beforeMCPExecution"}`, "gemini-cli": `{"hook_event_name":"BeforeTool"}`} {
		c, _ := Find(client)
		if e, err := c.Read([]byte(raw)); err == nil || errors.Is(err, ErrOther) {
			t.Errorf("%s without a tool: %+v, %v", client, e, err)
		}
	}
}

func TestAnswer(t *testing.T) {
	yes, no, ask := Decision{Verdict: Allow, Reason: "fine"}, Decision{Verdict: Deny, Reason: "not today"}, Decision{Verdict: Ask, Reason: "gone"}
	edited := Decision{Verdict: Allow, Reason: "fine", Args: json.RawMessage(`{"command":"pwd"}`)}
	for _, c := range []struct {
		client, event string
		d             Decision
		want          string
	}{
		{"claude-code", claude, yes, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"fine"}}`},
		{"claude-code", claude, edited, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"fine","updatedInput":{"command":"pwd"}}}`},
		{"claude-code", claude, no, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not today"}}`},
		{"claude-code", claude, ask, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"gone"}}`},
		{"claude-code", asks, edited, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedInput":{"command":"pwd"}}}}`},
		{"claude-code", asks, no, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"not today"}}}`},
		{"claude-code", asks, ask, ``},
		{"codex", claude, yes, ``},
		{"codex", claude, no, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not today"}}`},
		{"codex", claude, edited, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"it was approved with other arguments, which Codex can't be given; run it with these instead: {\"command\":\"pwd\"}"}}`},
		{"codex", claude, ask, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"nize could not decide, and Codex has no prompt at this point: gone"}}`},
		{"codex", asks, yes, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`},
		{"codex", asks, ask, ``},
		{"cursor", shell, yes, `{"permission":"allow","user_message":"fine","agent_message":"fine"}`},
		{"cursor", shell, edited, `{"permission":"deny","user_message":"it was approved with other arguments, which Cursor can't be given; run it with these instead: {\"command\":\"pwd\"}","agent_message":"it was approved with other arguments, which Cursor can't be given; run it with these instead: {\"command\":\"pwd\"}"}`},
		{"cursor", `{"hook_event_name":"preToolUse","tool_name":"Shell","tool_input":{}}`, edited, `{"permission":"allow","user_message":"fine","agent_message":"fine","updated_input":{"command":"pwd"}}`},
		{"gemini-cli", gemini, no, `{"decision":"deny","reason":"not today"}`},
		{"gemini-cli", gemini, edited, `{"decision":"allow","reason":"fine","hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":{"command":"pwd"}}}`},
	} {
		client, _ := Find(c.client)
		e, err := client.Read([]byte(c.event))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(client.Answer(e, c.d))); got != c.want {
			t.Errorf("%s: %s: %+v\n got %s\nwant %s", c.client, c.event, c.d, got, c.want)
		}
	}
}

// Only an ask that was approved lets a step run, and only with its arguments.
func TestDecisionOf(t *testing.T) {
	args := json.RawMessage(`{"b": 1, "a": 2}`)
	for state, want := range map[string]Verdict{"approved": Allow, "pending": Deny, "refused": Deny, "expired": Deny, "cancelled": Deny, "": Deny, "done": Deny} {
		d := DecisionOf(api.Ask{State: state, Arguments: json.RawMessage(`{"a":2,"b":1}`)}, args)
		if d.Verdict != want || d.Args != nil || d.Reason == "" {
			t.Errorf("%q: %+v", state, d)
		}
	}
	if d := DecisionOf(api.Ask{State: "approved", Arguments: json.RawMessage(`{"a":3}`)}, args); string(d.Args) != `{"a":3}` {
		t.Errorf("%+v", d)
	}
	for _, approved := range []string{"", "null", "[]", `"make"`, "{", `{"a":2}{}`} {
		if d := DecisionOf(api.Ask{State: "approved", Arguments: json.RawMessage(approved)}, args); d.Verdict != Deny || !strings.Contains(d.Reason, "can't decide") {
			t.Errorf("approved with %q: %+v", approved, d)
		}
	}
}

func TestSkips(t *testing.T) {
	claude, _ := Find("claude-code")
	for _, c := range []struct {
		tool       string
		only, skip []string
		want       bool
	}{
		{"Read", nil, nil, true}, {"Bash", nil, nil, false}, {"Write", nil, []string{"Write"}, true}, {"mcp__x__y", []string{"mcp__*"}, nil, false},
		{"Bash", []string{"mcp__*"}, nil, true}, {"Read", []string{"Read"}, nil, false}, {"Reader", nil, nil, false}, {"", nil, nil, false},
		{"Bash", []string{"Write", "Bash"}, nil, false}, {"Bash", []string{"Bash"}, []string{"B*"}, true}, {"Bash", nil, []string{"bash"}, false}, // names as they are
		{"mcp__files/a__b", []string{"mcp__*"}, nil, false}, {"MCP:a/b", []string{"*"}, nil, false}, // a slash is no end of a *
		{"mcp__files/a__b", nil, []string{"mcp__files*"}, true}, {"mcp__x", nil, []string{"mcp__files*"}, false},
	} {
		if got := claude.Skips(c.tool, c.only, c.skip); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
	for pattern, want := range map[string]bool{"Bash": true, "mcp__*": true, "[A-Z]*": true, "a/b": true, "": false, "[": false, "mcp__[": false, `Bash\`: false} {
		if err := CheckPattern(pattern); err == nil != want {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{claude, asks, shell, gemini} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, c := range Clients {
			if e, err := c.Read([]byte(raw)); err == nil {
				c.Answer(e, Decision{Verdict: Deny, Reason: "no"})
				if e.Tool == "" {
					t.Errorf("%s: %q has no tool", c.Name, raw)
				}
			}
		}
	})
}
