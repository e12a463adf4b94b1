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

// installTime is the start timeout of a command that downloads its program before running
// it, which takes minutes if nothing is cached.
const installTime = 3 * time.Minute

// documentTime is the timeout for fetching and reading an OpenAPI document.
const documentTime = time.Minute

// installers lists those commands. If a command has subcommands here, only they download.
var installers = map[string][]string{
	"npx": nil, "uvx": nil, "bunx": nil, "pnpx": nil, "dnx": nil, "docker": nil, "podman": nil, "nerdctl": nil,
	"pipx": {"run"}, "npm": {"exec", "x"}, "pnpm": {"dlx"}, "yarn": {"dlx"}, "bun": {"x"}, "uv": {"run", "tool"}, "deno": {"run"}, "go": {"run"},
}

// installs reports whether the command of a server downloads its program first.
func installs(cfg store.Server) bool {
	words, known := installers[strings.TrimSuffix(filepath.Base(cfg.Command), ".cmd")]
	return cfg.Transport == store.Stdio && known && (words == nil || len(cfg.Args) > 0 && slices.Contains(words, cfg.Args[0]))
}

// startTime returns the timeout for starting and initializing a server.
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

// causes maps the output of installing commands to hints.
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

// missingProgram matches the messages of env and shells about an interpreter that they
// can't find.
var missingProgram = regexp.MustCompile("(?:env: (?:can't execute )?|exec: |sh: (?:[0-9]+: |line [0-9]+: )?)['‘\"]?(node|npm|python3?|uv|deno|bun|ruby|java)['’\"]?: (?:No such file|not found|command not found|executable file not found)")

// causeHint returns the hint for a command's output, or "".
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
