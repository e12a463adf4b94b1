package wire

import (
	"log/slog"
	"strings"
	"testing"
)

// TestLastWords: of what real programs write when they end, the line that says
// why is shown.
func TestLastWords(t *testing.T) {
	for want, text := range map[string]string{
		"npm error 404 Not Found - GET https://registry.npmjs.org/@acme%2fnone - Not found": `npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/@acme%2fnone - Not found
npm error 404
npm error 404  '@acme/none@*' is not in this registry.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git folder.
npm error A complete log of this run can be found in: /home/ann/.npm/_logs/2026-11-22T20_00_00_000Z-debug-0.log
`,
		"npm error network request to https://registry.npmjs.org/x failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org": `npm error code ENOTFOUND
npm error syscall getaddrinfo
npm error errno ENOTFOUND
npm error network request to https://registry.npmjs.org/x failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org
npm error network This is a problem related to network connectivity.
npm error A complete log of this run can be found in: /home/ann/.npm/_logs/x.log
`,
		"npm ERR! could not determine executable to run": `npm WARN exec The following package was not found and will be installed: x@1.0.0
npm ERR! could not determine executable to run

npm ERR! A complete log of this run can be found in: /home/ann/.npm/_logs/x.log
`,
		"╰─▶ Because mcp-server-none was not found in the package registry and you require mcp-server-none, we can conclude that your requirements are unsatisfiable.": `  × No solution found when resolving tool dependencies:
  ╰─▶ Because mcp-server-none was not found in the package registry and you require mcp-server-none, we can conclude that your requirements are unsatisfiable.
`,
		"docker: Error response from daemon: pull access denied for acme/none, repository does not exist or may require 'docker login'": `Unable to find image 'acme/none:latest' locally
docker: Error response from daemon: pull access denied for acme/none, repository does not exist or may require 'docker login'

Run 'docker run --help' for more information
`,
		"Error: Cannot find module '/srv/x.js'": `node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module '/srv/x.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15) {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v22.1.0
`,
		"pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings": `Traceback (most recent call last):
  File "/x/server.py", line 3, in <module>
    Settings()
pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings
`,
		"two | three | four": "one\ntwo\nthree\nfour\n",
	} {
		r := NewStderrLog(slog.New(slog.DiscardHandler))
		for line := range strings.Lines(text) {
			r.addLine(line)
		}
		if got := r.LastWords(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
