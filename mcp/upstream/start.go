package upstream

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"nize/mcp/upstream/wire"
	"nize/store"
)

// installTime is what a command has that fetches its program before it runs it,
// which takes minutes where nothing of it is there yet.
const installTime = 3 * time.Minute

// documentTime is what fetching and reading an OpenAPI document may take.
const documentTime = time.Minute

// installers are those commands; where there is a second word, they fetch with
// that one alone.
var installers = map[string][]string{
	"npx": nil, "uvx": nil, "bunx": nil, "pnpx": nil, "dnx": nil, "docker": nil, "podman": nil, "nerdctl": nil,
	"pipx": {"run"}, "npm": {"exec", "x"}, "pnpm": {"dlx"}, "yarn": {"dlx"}, "bun": {"x"}, "uv": {"run", "tool"}, "deno": {"run"}, "go": {"run"},
}

// installs says whether the command of a server fetches its program first.
func installs(cfg store.Server) bool {
	words, known := installers[strings.TrimSuffix(filepath.Base(cfg.Command), ".cmd")]
	return cfg.Transport == store.Stdio && known && (words == nil || len(cfg.Args) > 0 && slices.Contains(words, cfg.Args[0]))
}

// startTime is how long a server has to start and to initialize.
func startTime(cfg store.Server) time.Duration {
	switch {
	case cfg.StartTimeout > 0:
		return time.Duration(cfg.StartTimeout)
	case cfg.Transport == store.OpenAPI:
		return documentTime
	case cfg.Transport != store.Stdio:
		return wire.ConnectTime
	case installs(cfg):
		return installTime
	}
	return spawnTime
}

// causes are hints for what a command that installs something says of itself.
var causes = []struct {
	says []string // any of them
	hint string
}{
	{[]string{"is not in this registry", "404 Not Found", "E404", "not found in the package registry", "No matching distribution"}, "check the name of the package"},
	{[]string{"notarget", "No matching version", "no version of"}, "check the version of the package"},
	{[]string{"ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "ECONNRESET", "dns error", "Temporary failure in name resolution", "Could not resolve host", "error sending request"}, "nized can't reach where it is fetched from; check the network, and give a proxy with --env HTTPS_PROXY=URL"},
	{[]string{"could not determine executable", "no executable"}, "the package has no program to run: is it an MCP server?"},
	{[]string{"Cannot connect to the Docker daemon", "docker daemon socket", "Cannot connect to Podman"}, "is it running, and may nized's user use it?"},
	{[]string{"pull access denied", "manifest unknown", "manifest for", "repository does not exist"}, "check the name and the tag of the image"},
	{[]string{"ENOSPC", "No space left on device", "no space left on device"}, "the disk is full"},
}

// missingProgram is what env and shells write of an interpreter that they don't find.
var missingProgram = regexp.MustCompile("(?:env: (?:can't execute )?|exec: |sh: (?:[0-9]+: |line [0-9]+: )?)['‘\"]?(node|npm|python3?|uv|deno|bun|ruby|java)['’\"]?: (?:No such file|not found|command not found|executable file not found)")

// causeHint is the hint for what a command says of itself, "" for none.
func causeHint(text string) string {
	if m := missingProgram.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s is not in nized's PATH: start nized with a PATH that has its folder, or give this server one with --env PATH=DIR:/usr/local/bin:/usr/bin:/bin", m[1])
	}
	for _, c := range causes {
		if slices.ContainsFunc(c.says, func(s string) bool { return strings.Contains(text, s) }) {
			return c.hint
		}
	}
	return ""
}
