package setup

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/cmd/nizectl/command"
	"nize/store"
)

// typing is a person at a terminal who types that, and a key where it is hidden.
func typing(text, key string) (*command.App, *bytes.Buffer) {
	shown := &bytes.Buffer{}
	return &command.App{In: strings.NewReader(text), Err: shown, Raw: io.Discard, InTTY: true, ErrTTY: true, Hidden: func() ([]byte, error) { return []byte(key), nil }}, shown
}

// program puts an empty program on the PATH.
func program(t *testing.T, name string) string {
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	return file
}

// TestAsk: a person answers at most three questions, and those that flags answer are
// not put.
func TestAsk(t *testing.T) {
	toolbox := program(t, "nize-toolbox")
	for name, test := range map[string]struct {
		typed, key           string
		given                Answers
		asked                []string // numbers of questions
		admin, service, with string
		server               string
	}{
		"Enter three times":   {"\n\n\n", "", Answers{}, []string{"1.", "2.", "3."}, "mia", "", "", toolbox},
		"own answers":         {"ann\nopenai/gpt-5\nhttps://mcp.example.com/mcp\n", "sk-1", Answers{}, []string{"1.", "2.", "3."}, "ann", "openai", "sk-1", "https://mcp.example.com/mcp"},
		"nothing":             {"\nNone\nnone\n", "", Answers{}, []string{"1.", "2.", "3."}, "mia", "", "", ""},
		"wrong answers first": {"a b\nann\nopnai\nsk-abcdefghijklmnopqrstuvwxyz012345\nollama\nno-such-program\n'a\nexample\n", "", Answers{}, []string{"1.", "2.", "3."}, "ann", "ollama", "", toolbox},
		"one flag":            {"\nnone\n", "", Answers{Model: "none"}, []string{"1.", "3."}, "mia", "", "", ""},
		"all flags":           {"", "k", Answers{Admin: "bo", Model: "groq", Server: "none"}, nil, "bo", "groq", "k", ""},
	} {
		a, shown := typing(test.typed, test.key)
		p, err := Ask(a, test.given, "mia")
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, shown)
			continue
		}
		var asked []string
		for line := range strings.Lines(shown.String()) {
			if len(line) > 2 && strings.Contains("1. 2. 3.", line[:2]) && line[1] == '.' {
				asked = append(asked, line[:2])
			}
		}
		if !cmp.Equal(asked, test.asked) {
			t.Errorf("%s: asked %q, want %q", name, asked, test.asked)
		}
		service, key, server := "", "", ""
		if p.provider != nil {
			service, key = p.provider.Name, p.provider.Key.Reveal()
		}
		if p.server != nil {
			server = p.server.Where()
		}
		if got, want := []string{p.admin, service, key, server}, []string{test.admin, test.service, test.with, test.server}; !cmp.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if strings.Contains(shown.String(), test.key) && test.key == "sk-1" {
			t.Errorf("%s: the key is shown", name)
		}
	}
}

// TestAskWithout: without a terminal nothing is asked; the key is a line of standard
// input, and a wrong flag is an error rather than a question.
func TestAskWithout(t *testing.T) {
	toolbox := program(t, "nize-toolbox")
	pipe := func(text string) *command.App {
		return &command.App{In: strings.NewReader(text), Err: io.Discard, Raw: io.Discard}
	}
	p, err := Ask(pipe(""), Answers{}, "mia")
	if err != nil || p.admin != "mia" || p.provider != nil || p.server.Where() != toolbox {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = Ask(pipe("sk-2\n"), Answers{Model: "openai", Server: "none"}, "mia")
	if err != nil || p.provider.Key.Reveal() != "sk-2" || p.server != nil {
		t.Errorf("%+v, %v", p, err)
	}
	for name, test := range map[string]struct {
		stdin string
		given Answers
	}{
		"no key":                {"", Answers{Model: "openai"}},
		"a key that is none":    {"two words\n", Answers{Model: "openai"}},
		"unknown service":       {"", Answers{Model: "opnai"}},
		"key-file alone":        {"", Answers{KeyFile: "x"}},
		"key-file not there":    {"", Answers{Model: "openai", KeyFile: "/nowhere/x"}},
		"base-url alone":        {"", Answers{BaseURL: "http://127.0.0.1/v1"}},
		"server-name alone":     {"", Answers{Server: "none", ServerName: "x"}},
		"server-name reserved":  {"", Answers{ServerName: "native"}},
		"key for a name":        {"", Answers{Admin: "sk-abcdefghijklmnopqrstuvwxyz012345"}},
		"key in a command line": {"", Answers{Server: "nize-toolbox sk-abcdefghijklmnopqrstuvwxyz012345"}},
		"key in a URL":          {"", Answers{Server: "https://user:pass@example.com/mcp"}},
		"no such program":       {"", Answers{Server: "nize-toolbocks"}},
	} {
		if p, err := Ask(pipe(test.stdin), test.given, "mia"); err == nil {
			t.Errorf("%s: %+v, want an error", name, p)
		}
	}
}

// TestAskEnds: a person who ends the input changes nothing.
func TestAskEnds(t *testing.T) {
	program(t, "nize-toolbox")
	for _, typed := range []string{"", "ann\n", "ann\nnone\n", "ann\nwrong\n"} {
		a, _ := typing(typed, "")
		_, err := Ask(a, Answers{}, "mia")
		var f *command.Failure
		if !errors.As(err, &f) || f.Code != 1 {
			t.Errorf("%q: %v", typed, err)
		}
	}
}

func TestNames(t *testing.T) {
	for line, want := range map[string]string{
		"npx -y @modelcontextprotocol/server-filesystem /srv/docs": "filesystem",
		"npx -y @acme/mcp@latest":                                  "mcp",
		"uvx mcp-server-git --repository .":                        "git",
		"docker run -i ghcr.io/acme/notes-mcp:1.2":                 "notes",
		"python3 /srv/tools/Weather_Server.py":                     "weather",
		"/usr/local/bin/nize-toolbox":                              "nize-toolbox",
		"npx":                                                      "npx",
	} {
		words, err := splitWords(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := nameOfCommand(words); got != want {
			t.Errorf("%s is named %q, want %q", line, got, want)
		}
		if err := store.CheckSlug(nameOfCommand(words)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for host, want := range map[string]string{"mcp.example.com": "example", "localhost": "localhost", "127.0.0.1": "127-0-0-1", "mcp": "mcp", "::1": "1"} {
		if got := nameOfHost(host); got != want {
			t.Errorf("%s is named %q, want %q", host, got, want)
		}
	}
}

func TestSplitWords(t *testing.T) {
	for line, want := range map[string][]string{
		`a  b`:              {"a", "b"},
		`a 'b c' "d \"e"`:   {"a", "b c", `d "e`},
		`a\ b ''`:           {"a b", ""},
		`a '$HOME;x' "p|q"`: {"a", "$HOME;x", "p|q"},
		` `:                 nil,
		`a 'b`:              nil,
		`a \`:               nil,
		`a | b`:             nil,
		`a; b`:              nil,
		`echo $HOME`:        nil,
		"a `b`":             nil,
		`a > b`:             nil,
	} {
		got, err := splitWords(line)
		if !cmp.Equal(got, want) || (want == nil) != (err != nil) && strings.TrimSpace(line) != "" {
			t.Errorf("%s: %q, %v; want %q", line, got, err, want)
		}
	}
}

func FuzzServer(f *testing.F) {
	for _, seed := range []string{"example", "npx -y @a/b@1", "docker run 'x", "https://h/", `"\`, "none", "@@", "docker --"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseServer(text, "")
		if err == nil && s != nil && store.CheckSlug(s.Name) != nil {
			t.Errorf("%q is taken as a server with the name %q", text, s.Name)
		}
	})
}
