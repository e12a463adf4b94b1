package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/store"
)

// recorded has the form of the official registry's answers.
const recorded = `{"servers":[
 {"server":{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json","name":"io.github.acme/files","title":"Files","description":"Reads files","version":"1.2.3",
   "repository":{"url":"https://github.com/acme/files","source":"github"},
   "packages":[{"registryType":"npm","registryBaseUrl":"https://registry.npmjs.org","identifier":"@acme/files","version":"1.2.3","runtimeHint":"npx","transport":{"type":"stdio"},
     "packageArguments":[{"type":"positional","valueHint":"folder","description":"What may be read","isRequired":true,"format":"filepath"}],
     "environmentVariables":[{"name":"ACME_KEY","description":"Your key","isRequired":true,"isSecret":true,"format":"string"}]}]},
  "_meta":{"io.modelcontextprotocol.registry/official":{"status":"active","publishedAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-02T03:04:05Z","isLatest":true}}},
 {"server":{"name":"io.github.acme/files","description":"Reads files","version":"1.0.0"},"_meta":{"io.modelcontextprotocol.registry/official":{"status":"active","isLatest":false}}},
 {"server":{"name":"io.github.acme/gone","description":"Gone","version":"1.0.0"},"_meta":{"io.modelcontextprotocol.registry/official":{"status":"deleted","isLatest":true}}},
 {"server":{"name":"com.example/far","description":"Far away","version":"2.0.0","remotes":[{"type":"streamable-http","url":"https://mcp.example.com/{team}/mcp","variables":{"team":{"isRequired":true}},"headers":[{"name":"Authorization","value":"Bearer {key}","variables":{"key":{"isSecret":true,"isRequired":true}}}]}]},
  "_meta":{"io.modelcontextprotocol.registry/official":{"status":"deprecated","isLatest":true}}}
],"metadata":{"nextCursor":"com.example/far:2.0.0","count":4}}`

func at(t *testing.T, h http.HandlerFunc) *Registry {
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &Registry{Address: func() string { return web.URL + "/" }, Transport: transport}
}

func TestSearch(t *testing.T) {
	asked := ""
	r := at(t, func(w http.ResponseWriter, req *http.Request) {
		asked = req.URL.String()
		fmt.Fprint(w, recorded)
	})
	page, err := r.Search(t.Context(), store.Caller{}, api.SearchRegistryRequest{Search: "acme files", Cursor: "a/b:1", Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	if want := "/v0.1/servers?cursor=a%2Fb%3A1&limit=5&search=acme+files&version=latest"; asked != want {
		t.Errorf("asked for %s, want %s", asked, want)
	}
	if len(page.Servers) != 2 || page.Next != "com.example/far:2.0.0" {
		t.Fatalf("%+v", page)
	}
	p, far := page.Servers[0].Packages[0], page.Servers[1]
	if p.Identifier != "@acme/files" || !p.PackageArguments[0].Required || !p.Environment[0].Secret || p.Transport.Type != "stdio" {
		t.Errorf("%+v", p)
	}
	if h := far.Remotes[0].Headers[0]; far.Status != "deprecated" || !h.Variables["key"].Secret || !far.Remotes[0].Variables["team"].Required {
		t.Errorf("%+v", far)
	}
}

func TestGet(t *testing.T) {
	r := at(t, func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.EscapedPath() {
		case "/v0.1/servers/io.github.acme%2Ffiles/versions/latest", "/v0.1/servers/io.github.acme%2Ffiles/versions/1.2.3%2Bx":
			fmt.Fprint(w, `{"server":{"name":"io.github.acme/files","description":"`+strings.Repeat("x", 5000)+`","version":"1.2.3"}}`)
		case "/v0.1/servers/other/versions/latest":
			fmt.Fprint(w, `{"server":{"name":"io.github.acme/files","version":"1.2.3"}}`)
		default:
			http.NotFound(w, req)
		}
	})
	for _, version := range []string{"", "1.2.3+x"} {
		s, err := r.Get(t.Context(), store.Caller{}, api.RegistryServerRequest{Name: "io.github.acme/files", Version: version})
		if err != nil || s.Version != "1.2.3" || len(s.Description) > maxText+10 {
			t.Errorf("%s: a description of %d bytes, %v", version, len(s.Description), err)
		}
	}
	for _, name := range []string{"none", "other"} {
		if _, err := r.Get(t.Context(), store.Caller{}, api.RegistryServerRequest{Name: name}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTrouble: a registry that is off, away or no registry is one line, and
// nothing that it says is followed.
func TestTrouble(t *testing.T) {
	for want, h := range map[string]http.HandlerFunc{
		"HTTP 302": func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, "http://127.0.0.1:1/", http.StatusFound)
		},
		"not that of a registry": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"over 4 MiB":             func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", maxAnswer+1)) },
		"HTTP 500":               func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
	} {
		_, err := at(t, h).Search(t.Context(), store.Caller{}, api.SearchRegistryRequest{})
		if !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", want, err)
		}
	}
	for address, want := range map[string]string{"off": "registry.url is off", "http://127.0.0.1:1": "can't be asked: nothing listens at 127.0.0.1:1", "http://registry.example.com": "want an https address"} {
		r := &Registry{Address: func() string { return address }, Transport: &http.Transport{}}
		if _, err := r.Get(context.Background(), store.Caller{}, api.RegistryServerRequest{Name: "x"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for address, ok := range map[string]bool{"off": true, "https://r.example.com": true, "https://r.example.com/sub/": true, "http://localhost:1": true, "http://[::1]:1": true, "http://r.example.com": false, "https://u:p@r.example.com": false, "https://r.example.com?x": false, "ftp://x": false, "": false} {
		if err := CheckAddress(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// FuzzAnswers: no answer breaks the client or comes out unbounded.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(recorded))
	f.Add([]byte(`{"servers":[{"server":{"packages":[{}]}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &Registry{Address: func() string { return "https://r.example.com" }, Transport: answers(body)}
		page, err := r.Search(t.Context(), store.Caller{}, api.SearchRegistryRequest{Limit: 3})
		if err == nil && len(page.Servers) > 3 {
			t.Errorf("%d servers", len(page.Servers))
		}
	})
}

// answers is a transport that always says the same.
type answers []byte

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	_, _ = w.Write(a) // into memory
	return w.Result(), nil
}
