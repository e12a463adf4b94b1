package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/store/printable"
)

func TestAuditLineOnANarrowTerminal(t *testing.T) {
	cells := []string{"2026-11-21 07:07:17", "root", "terminal", "meta.browse_tool_domain", "01M7YEWJNR00X8DFRE2E9Q22DA", "toolbox:convert_units", "outcome unknown"}
	for columns, lines := range map[int]int{80: 2, 142: 2, 143: 1, 0: 1} {
		a := &command.App{OutTTY: true, Columns: func() int { return columns }}
		got := strings.Split(auditLine(a, cells...), "\n")
		if len(got) != lines {
			t.Errorf("%d columns: %d lines, want %d", columns, len(got), lines)
		}
		for _, line := range got {
			if columns > 0 && display.Width(line) > columns {
				t.Errorf("%d columns: %q is %d wide", columns, line, display.Width(line))
			}
		}
	}
}

func TestOneLineCutsWhatSomebodyPasted(t *testing.T) {
	got := oneLine("invalid name \"" + strings.Repeat("a\x1b", 50_000) + "\":\nuse letters")
	if !strings.HasPrefix(got, `invalid name "a\u001ba`) || !strings.HasSuffix(got, "… use letters") || display.Width(got) != len("invalid name ")+longestWord+len(" use letters") {
		t.Errorf("%d columns: %.60s", display.Width(got), got)
	}
}

// showing are the commands that show something.
var showing = []string{"status", "servers list", "servers show toolbox", "servers test toolbox", "servers logs toolbox", "servers trust toolbox --yes",
	"tools list", "tools search time", "tools show toolbox:" + "E", "tools call toolbox:" + "E", "tools domains time", "audit", "audit verify", "reindex", "usage", "usage --by tool", "usage --csv", "usage --by model --chart",
	"approvals list", "approvals show 01A", "agents list", "agents show main", "models list", "tokens list", "config list", "config get agent.tools.systemPrompt",
	"servers show missing" + "E", "credentials list", "users list", "users show ada", "servers tools toolbox", "tools why toolbox:x", "tools wanted", "alerts list", "doctor", "bots status",
	"bots channels list", "groups list", "groups show ops", "budgets list", "chat list", "chat show 01J", "approvals grants list", "providers list", "models price a/b"}

// TestIDsAreCalledID walks all that the commands print with --json: what has an id
// has it as "id". A name that it had before stays beside it.
func TestIDsAreCalledID(t *testing.T) {
	d := newDouble(t)
	d.answerWith("x")
	older := []string{"tool_id", "call", "incident", "grant", "token_id", "user_id", "conversation", "thread_id"}
	var walk func(line string, v any)
	walk = func(line string, v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(line, e)
			}
		case map[string]any:
			for _, key := range older {
				if _, ok := v[key].(string); ok && v["id"] == nil {
					t.Errorf("%s --json: %q without \"id\" in %v", line, key, slices.Sorted(maps.Keys(v)))
				}
			}
			for _, e := range v {
				walk(line, e)
			}
		}
	}
	for _, line := range showing {
		if strings.HasPrefix(line, "usage --csv") {
			continue
		}
		got := d.nizectl(surroundings{}, append(strings.Fields(line), "--json")...)
		dec := json.NewDecoder(strings.NewReader(got.out))
		for dec.More() {
			var v any
			if err := dec.Decode(&v); err != nil {
				t.Errorf("%s --json: %v", line, err)
				break
			}
			walk(line, v)
		}
	}
}

// TestNothingOfOthersReachesTheTerminal puts what steers a terminal, or can't be
// seen, wherever a server or a model may write and runs every command that shows
// them. Running text loses it; everything else spells it out, or is JSON.
func TestNothingOfOthersReachesTheTerminal(t *testing.T) {
	const evil = "x\x1b]0;owned\x07\u009b2J\u202e\b\u034f\u2800\u3164\U000e0100\U000e0041\ue000\ufffc\u200d\ny\u0301\u0301\u0301\u0301\u0301\u0301"
	prose := map[string]bool{"tools call toolbox:E": true, "chat show 01J": true, "agents show main": true}
	d := newDouble(t)
	d.answerWith(evil)
	for _, line := range showing {
		for _, asJSON := range []bool{false, true} {
			words := strings.Fields(line)
			for i, w := range words {
				words[i] = strings.ReplaceAll(w, "E", evil)
			}
			if asJSON {
				words = append(words, "--json")
			}
			got := d.nizectl(surroundings{env: map[string]string{"NO_COLOR": "1"}}, words...)
			rest := strings.ReplaceAll(got.out+got.err, "\r\n", "\n") // of --csv
			safe := printable.EscapeLines(rest)
			if prose[line] && !asJSON {
				safe = printable.Prose(rest)
			}
			if safe != rest {
				t.Errorf("%q lets characters through that the terminal may act on: %+q", words, rest)
			}
			if asJSON && got.code == 0 && !strings.HasPrefix(line, "usage --csv") {
				dec := json.NewDecoder(strings.NewReader(got.out))
				for dec.More() {
					var v any
					if err := dec.Decode(&v); err != nil {
						t.Errorf("%q prints no JSON: %v", words, err)
						break
					}
				}
			}
		}
	}
}
