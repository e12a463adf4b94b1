// Package commandline parses command lines like a shell, to determine what a standing
// answer with a pattern may cover.
//
// A pattern is compared with text, but a shell runs more than text: "git status; rm -rf ."
// begins with "git status". So a pattern covers only a line that is one plain command: one
// program, literal arguments, no operator, redirection, expansion or assignment. Shells
// differ; a line that any of them could parse as more than that is not plain.
package commandline

import (
	"encoding/json"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"nize/store"
)

// fields lists the argument names that tools use for a command line.
var fields = []string{"command", "cmd", "command_line", "commandline", "script", "bash_command"}

// Covers reports whether a pattern with wildcards may cover these arguments: each command
// line that one of its wildcards matches is plain. It doesn't compare the two; both are
// JSON objects. Unreadable arguments are not covered.
func Covers(pattern, args json.RawMessage) bool {
	var want, got map[string]any
	if len(pattern) == 0 {
		return true
	}
	if json.Unmarshal(pattern, &want) != nil || json.Unmarshal(args, &got) != nil {
		return false
	}
	line := false
	for name, w := range want {
		if !isField(name) {
			continue
		}
		if !covers(w, got[name]) {
			return false
		}
		line = true
	}
	for name, v := range got {
		if _, named := want[name]; line && !named && !empty(v) && changes(name) {
			return false
		}
	}
	return true
}

// changes reports whether an argument with that name changes the effect of a command line
// beside it.
func changes(name string) bool { return isField(name) || slices.Contains(changing, plainName(name)) }

// changing lists arguments beside a command line that change what runs, or with which
// rights. A pattern of a command line doesn't cover them, unless it names them.
var changing = []string{
	"env", "environment", "environmentvariables", "envvars", "envs", "variables", "shell", "interpreter", "executable", "program", "binary", "loginshell",
	"args", "argv", "arguments", "params", "parameters", "commands", "cmds", "prefix", "suffix", "precommand", "postcommand", "stdin", "input",
	"user", "runas", "sudo", "root", "privileged", "elevated", "dangerouslydisablesandbox", "disablesandbox", "nosandbox", "sandbox", "sandboxpermissions", "withescalatedpermissions", "additionalpermissions",
}

// plainName returns a name in lower case without dashes and underscores.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// empty reports whether a value means that an argument is absent.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// endsWord reports whether a pattern that ends in the name of a program, or of one of its
// commands, matches that whole word: "git status*" matches "git status --short", and not
// "git status-other", which is another command.
func endsWord(pattern, line string) bool {
	head := strings.TrimSuffix(pattern, "*")
	words := strings.Fields(head)
	whole := head == "" || strings.HasSuffix(head, " ") || strings.HasSuffix(head, "/")
	if whole || len(words) > 2 || len(words) == 2 && (strings.HasPrefix(words[1], "-") || !hasCommands(base(words[0]))) {
		return true
	}
	rest, ok := strings.CutPrefix(line, head)
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

func isField(name string) bool { return slices.Contains(fields, strings.ToLower(name)) }

// covers compares one field: a string, or a list of strings.
func covers(want, got any) bool {
	switch w := want.(type) {
	case string:
		line, ok := got.(string)
		return !strings.HasSuffix(w, "*") || ok && (w == line || coversLine(w, line))
	case []any:
		list, _ := got.([]any)
		for i, one := range w {
			if i >= len(list) || !covers(one, list[i]) {
				return false
			}
		}
	}
	return true
}

// coversLine reports whether a pattern that ends with * may cover a line that begins with
// the rest of the pattern.
func coversLine(pattern, line string) bool {
	words, _ := plain(line)
	return len(words) > 0 && endsWord(pattern, line) && !escapesIn(words, fixedWords(pattern, line))
}

// fixedWords returns how many words of a line the pattern contains completely.
func fixedWords(pattern, line string) int {
	head := strings.TrimSuffix(pattern, "*")
	words, _ := plain(head)
	rest, ok := strings.CutPrefix(line, head)
	whole := strings.HasSuffix(head, " ") || ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
	if n := len(words); n > 0 && !whole {
		return n - 1
	}
	return len(words)
}

// plain returns the unquoted words of one plain command, and whether the line consists of
// just these words with single blanks between them. It returns nil for any other line.
func plain(line string) (words []string, bare bool) {
	if strings.ContainsFunc(line, func(r rune) bool {
		return r < ' ' && r != '\t' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' ||
			r >= '\u2018' && r <= '\u201f' // PowerShell treats these as quotes
	}) {
		return nil, false
	}
	if strings.ContainsAny(line, "%^`") || strings.HasSuffix(line, `\`) { // cmd.exe uses these for expansion and escapes
		return nil, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 {
		return nil, false
	}
	s := file.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Semicolon.IsValid() || len(s.Comments)+len(file.Last) > 0 || s.Negated || s.Background || s.Coprocess || len(s.Redirs) > 0 || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return nil, false
	}
	for _, word := range call.Args {
		text, ok := literal(word.Parts)
		if !ok {
			return nil, false
		}
		words = append(words, text)
	}
	return words, strings.Join(words, " ") == line
}

// literal returns the text of a word that no shell expands, and that ends at the same
// position in all of them: cmd.exe has no single quotes, PowerShell and cmd.exe don't
// escape with backslashes, and fish does so within single quotes.
func literal(parts []syntax.WordPart) (string, bool) {
	var b strings.Builder
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			// zsh expands =program at the start of a word, fish and csh expand braces,
			// PowerShell interprets @ and commas, and all of them globs. A literal contains
			// operators, quotes and $ only after a backslash.
			if strings.ContainsAny(p.Value, "*?[]{}()@;&|<>$\"'") || i == 0 && strings.HasPrefix(p.Value, "=") {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar || strings.ContainsAny(p.Value, `&|<>"`) || strings.HasSuffix(p.Value, `\`) {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false
			}
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.ContainsAny(lit.Value, `$"`) || strings.HasSuffix(lit.Value, `\`) {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// maxProposed is the maximum length in bytes of a line that is proposed unchanged: a patch,
// or a program in a here-document, is not repeated.
const maxProposed = 300

// Patterns proposes patterns for a standing answer about a line, from narrow to wide: the
// line itself, and wider patterns if it is plain.
func Patterns(line string) (list []string) {
	if line != "" && len(line) <= maxProposed && !strings.HasSuffix(line, "*") {
		list = append(list, line)
	}
	words, bare := plain(line)
	if len(words) == 0 || !bare || slices.Contains(wrappers, programName(words[0])) {
		return list
	}
	program := words[0]
	if len(words) > 1 && !strings.HasPrefix(words[1], "-") {
		if hasCommands(base(program)) {
			list = append(list, program+" "+words[1]+"*")
		} else if len(words) > 2 {
			list = append(list, program+" "+words[1]+" *")
		}
	}
	if len(words) > 1 {
		list = append(list, program+" *")
	}
	return slices.DeleteFunc(list, func(p string) bool { return strings.HasSuffix(p, "*") && !coversLine(p, line) })
}

// PatternsOf proposes patterns for an ask whose arguments contain a command line and
// nothing that changes its effect. In a repository the widest is restricted to it.
func PatternsOf(ask *store.Ask, args json.RawMessage) []store.CardPattern {
	var got map[string]any
	if json.Unmarshal(args, &got) != nil {
		return nil
	}
	for _, field := range fields {
		line, _ := got[field].(string)
		here := ask != nil && ask.Repository != "" && staysIn(ask, args)
		var list []store.CardPattern
		add := func(p string, here bool) {
			if b, err := json.Marshal(map[string]string{field: p}); err == nil {
				risk := RiskOf(p)
				one := store.CardPattern{Args: b, Line: p, Exact: p == line, Wide: risk != store.Text{}, Risk: risk}
				if here {
					one.Repository, one.Host = ask.Repository, ask.Host
				}
				list = append(list, one)
			}
		}
		words, bare := plain(line)
		for _, p := range Patterns(line) {
			if !here || p != words[0]+" *" {
				add(p, false)
			}
		}
		if here && bare && coversLine(words[0]+"*", line) {
			add(words[0]+"*", true)
		}
		if line == "" {
			continue
		}
		for name, v := range got {
			if name != field && !empty(v) && changes(name) {
				return nil
			}
		}
		return list
	}
	return nil
}
