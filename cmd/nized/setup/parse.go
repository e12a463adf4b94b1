package setup

import (
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

// kinds are the services for which a name is enough.
var kinds = []string{"openai", "anthropic", "gemini", "mistral", "xai", "openrouter", "deepseek", "groq", "ollama"}

var services = strings.Join(kinds, ", ")

// ownService is the name of a service given only by a URL.
const ownService = "own"

func checkName(name string) error {
	if store.LooksSecret(name) {
		return command.Usagef("that looks like a key, not a name")
	}
	if strings.IndexFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) >= 0 {
		return command.Usagef("%q is not a name: write one word", name)
	}
	return nil
}

// parseModel parses an answer about the model. base is the service's URL, if the answer is
// a name.
func parseModel(text, base string) (*api.AddProviderRequest, string, error) {
	if store.LooksSecret(text) {
		return nil, "", command.Usagef("that looks like a key: name the service first, the key is read next (it was shown just now, so replace it if others can see this terminal)")
	}
	if strings.EqualFold(text, None) {
		if base != "" {
			return nil, "", command.Usagef("--base-url has no effect without --model NAME")
		}
		return nil, "", nil
	}
	if isURL(text) {
		if base != "" {
			return nil, "", command.Usagef("give the URL once: --model NAME --base-url URL")
		}
		return &api.AddProviderRequest{Name: ownService, BaseURL: text, Try: true}, "", nil
	}
	name, model, _ := strings.Cut(text, "/")
	p := &api.AddProviderRequest{Name: strings.ToLower(name), BaseURL: base, Try: true}
	switch {
	case slices.Contains(kinds, p.Name):
		p.Kind = p.Name
	case base != "":
		if err := store.CheckSlug(p.Name); err != nil {
			return nil, "", err
		}
		if !isURL(base) {
			return nil, "", command.Usagef("--base-url %s: want an http or https URL", base)
		}
	case store.Nearest(p.Name, kinds) != "":
		return nil, "", command.Usagef("%q is not a model service that is known; did you mean %s?", name, store.Nearest(p.Name, kinds))
	default:
		return nil, "", command.Usagef("%q is not a model service that is known: use one of %s, a URL, or %s", name, services, None)
	}
	return p, model, nil
}

// parseServer parses an answer about the server. name replaces the generated name.
func parseServer(text, name string) (*store.Server, error) {
	switch {
	case strings.EqualFold(text, None):
		if name != "" {
			return nil, command.Usagef("--server-name has no effect without a server")
		}
		return nil, nil
	case strings.EqualFold(text, Example):
		text, name = "nize-toolbox", orElse(name, "toolbox")
	}
	s := &store.Server{Name: name}
	if isURL(text) {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || strings.ContainsAny(text, " \t") {
			return nil, command.Usagef("%q is not a URL", text)
		}
		if u.User != nil || store.LooksSecret(text) {
			return nil, command.Usagef("the URL holds what looks like a key: nizectl servers add NAME --url URL --header-secret NAME")
		}
		s.Transport, s.URL, s.Name = store.HTTP, text, orElse(name, nameOfHost(u.Hostname()))
		return s, checkServerName(s.Name)
	}
	words, err := splitWords(text)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, command.Usagef("no command: write one, a URL, %s or %s", Example, None)
	}
	for _, w := range words {
		if store.LooksSecret(w) {
			return nil, command.Usagef("the command holds what looks like a key, which everybody on this machine could read: nizectl servers add NAME --env-secret NAME -- COMMAND")
		}
	}
	s.Transport, s.Command, s.Args, s.Name = store.Stdio, locate(words[0]), words[1:], orElse(name, nameOfCommand(words))
	if s.Command == "" {
		return nil, command.Usagef("program %s is neither on the PATH nor beside nized", words[0])
	}
	return s, checkServerName(s.Name)
}

func checkServerName(name string) error {
	if err := store.CheckSlug(name); err != nil {
		return command.Usagef("%v; give another with --server-name", err)
	}
	return nil
}

func orElse(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}

func isURL(text string) bool {
	lower := strings.ToLower(text)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

// locate returns the absolute path of a program on the PATH or beside nized, "" if
// there is none.
func locate(name string) string {
	if found, err := exec.LookPath(name); err == nil {
		if abs, err := filepath.Abs(found); err == nil {
			return abs
		}
	}
	if self, err := os.Executable(); err == nil && !strings.ContainsRune(name, '/') {
		if found, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return found
		}
	}
	return ""
}

// launchers run a program that a later word names.
var launchers = []string{"npx", "bunx", "pnpx", "uvx", "pipx", "node", "bun", "deno", "python", "python3", "docker", "podman"}

// filler matches the common parts around the significant word of a package name.
var filler = regexp.MustCompile(`^(mcp-server-|server-|mcp-)|(-mcp-server|-server-mcp|-mcp|-server)$`)

// nameOfCommand derives a server's name from its command line.
func nameOfCommand(words []string) string {
	word := words[0]
	if slices.Contains(launchers, path.Base(word)) {
		for _, w := range words[1:] {
			if strings.HasPrefix(w, "-") || w == "run" || w == "dlx" || w == "exec" {
				continue
			}
			word = w
			break
		}
	}
	word = path.Base(word)
	if at := strings.IndexAny(word, "@:"); at > 0 { // a version, or an image's tag
		word = word[:at]
	}
	word = strings.TrimSuffix(word, path.Ext(word))
	return slugOf(word)
}

// nameOfHost derives a server's name from a URL's host: mcp.example.com is example.
func nameOfHost(host string) string {
	labels := strings.Split(host, ".")
	if strings.Trim(host, "0123456789.:") == "" || len(labels) < 2 {
		return slugOf(host)
	}
	return slugOf(labels[len(labels)-2])
}

// slugOf keeps the characters that a server's name may contain.
func slugOf(text string) string {
	slug := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(text), "-"), "-")
	if short := filler.ReplaceAllString(slug, ""); short != "" {
		slug = short
	}
	return slug[:min(len(slug), 63)]
}

// splitWords splits a command line as a shell does, with quotes and backslashes but without
// expansions.
func splitWords(line string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	inWord, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case unicode.IsSpace(r):
			if inWord {
				words, inWord = append(words, word.String()), false
				word.Reset()
			}
		case strings.ContainsRune("|&;<>$`", r):
			return nil, command.Usagef("the command is not run by a shell, which %q would need: put it into a script, or quote it", string(r))
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, command.Usagef("the command ends within a quotation")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
