package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptRegistry starts an MCP registry of two servers, in the form of the
// official one's answers, and keeps its address.
func scriptRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: registry VAR")
	}
	const official = `"_meta":{"io.modelcontextprotocol.registry/official":{"status":"active","publishedAt":"2026-01-02T03:04:05Z","isLatest":true}}`
	const box = `{"server":{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json","name":"io.github.acme/box-mcp","title":"Box","description":"Tools of a box\u001b[2J, by Acme","version":"1.2.3",
		"packages":[{"registryType":"npm","registryBaseUrl":"https://registry.npmjs.org","identifier":"@acme/box","version":"1.2.3","runtimeHint":"npx","transport":{"type":"stdio"},
		"packageArguments":[{"type":"positional","valueHint":"folder","description":"Where it works","isRequired":true}],
		"environmentVariables":[{"name":"BOX_KEY","description":"Your key","isRequired":true,"isSecret":true},{"name":"BOX_MODE","default":"calm"}]}]},` + official + `}`
	const far = `{"server":{"name":"com.example/far-box","description":"Far away","version":"2.0.0","remotes":[{"type":"streamable-http","url":"https://mcp.example.com/mcp"}]},` + official + `}`
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.EscapedPath() {
		case "/v0.1/servers":
			if r.URL.Query().Get("search") == "box" {
				fmt.Fprint(w, `{"servers":[`+box+`,`+far+`],"metadata":{"nextCursor":"com.example/far-box:2.0.0","count":2}}`)
				return
			}
			fmt.Fprint(w, `{"servers":[],"metadata":{"count":0}}`)
		case "/v0.1/servers/io.github.acme%2Fbox-mcp/versions/latest", "/v0.1/servers/io.github.acme%2Fbox-mcp/versions/1.2.3":
			fmt.Fprint(w, box)
		default:
			http.Error(w, `{"title":"Not Found","status":404,"detail":"Server not found"}`, http.StatusNotFound)
		}
	}))
	ts.Defer(web.Close)
	ts.Setenv(args[0], web.URL)
}
