package upstream

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"nize/mcp/upstream/openapi/openapitest"
	"nize/store"
)

// shop is a document with an operation whose path is given.
func shop(path string) []byte {
	return fmt.Appendf(nil, `{"openapi":"3.0.3","info":{"title":"Shop","version":"1"},"servers":[{"url":"/v1"}],"paths":{%q:{"get":{"operationId":"look","responses":{"200":{"description":"ok"}}}}}}`, path)
}

func service(s *openapitest.Service) store.Server {
	return store.Server{Name: "far", Transport: store.OpenAPI, URL: s.URL + "/v1", Document: s.URL + "/openapi.json", Headers: map[string]store.Value{"X-Key": {SecretKey: "TOKEN"}}}
}

// Each person's calls carry their own key, and the document is fetched for all of them once.
func TestOperationsWithPersonalCredentials(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := openapitest.New(t, shop("/things"), "/v1")
	for _, u := range []string{"ann", "bob"} {
		b.secret("user", u, "TOKEN", "", u+"-key-of-theirs")
	}
	cfg := service(s)
	cfg.Auth = store.AuthUser
	b.register(cfg)
	for _, u := range []string{"ann", "bob", "ann"} {
		if _, err := b.Run(t.Context(), store.Caller{User: u}, b.call("far:look", `{}`), nil); err != nil {
			t.Fatalf("%s: %v", u, err)
		}
		got := s.Requests()
		if key := got[len(got)-1].Header.Get("X-Key"); key != u+"-key-of-theirs" {
			t.Errorf("%s called with %q", u, key)
		}
	}
	if _, err := b.Run(t.Context(), store.Caller{User: "cid"}, b.call("far:look", `{}`), nil); err == nil || len(s.Requests()) != 3 {
		t.Errorf("without a key: %v, %d requests", err, len(s.Requests()))
	}
	if n := s.Fetched(); n != 1 {
		t.Errorf("the document was fetched %d times", n)
	}
}

// What was accepted is what runs: a document that moves an operation holds its tool, and
// the call that was decided before goes nowhere.
func TestOperationThatMovedIsHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := openapitest.New(t, shop("/things"), "/v1")
	cfg := service(s)
	cfg.Headers = nil
	b.register(cfg)
	before := b.call("far:look", `{}`)
	if err := s.Set(shop("/admin")); err != nil {
		t.Fatal(err)
	}
	if err := b.Restart(t.Context(), "far"); err != nil {
		t.Fatal(err)
	}
	if got := b.tool("far:look"); got.State != store.ToolQuarantined {
		t.Fatalf("it is %s", got.State)
	}
	_, err := b.Run(t.Context(), store.Caller{User: "ann"}, before, nil)
	fails(t, err, store.CodeRefused)
	for _, r := range s.Requests() {
		t.Errorf("it was sent to %s", r.URL)
	}
}

// A document chooses no private address, and no host for credentials; an admin does.
func TestWhereADocumentMayLead(t *testing.T) {
	t.Parallel()
	s := openapitest.New(t, shop("/things"), "/v1")
	elsewhere := openapitest.New(t, []byte(strings.Replace(string(shop("/things")), `"/v1"`, `"`+strings.Replace(s.URL, "127.0.0.1", "localhost", 1)+`/v1"`, 1)), "/v1")
	for _, c := range []struct {
		name   string
		change func(*store.Server)
		egress string
		err    string
	}{
		{name: "its own host", change: func(c *store.Server) { c.Document = s.URL + "/openapi.json" }},
		{name: "another one", err: "it is not a public one"},
		{name: "another one that egress.allow has", egress: "localhost"},
		{name: "another one that an admin named", change: func(c *store.Server) { c.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1) + "/v1" }},
		{name: "another one with a key", egress: "localhost", err: "credentials are sent only to an address that an admin entered", change: func(c *store.Server) { c.Headers = map[string]store.Value{"X-Key": {SecretKey: "TOKEN"}} }},
		{name: "its own host with a key", change: func(c *store.Server) {
			c.Document, c.Headers = s.URL+"/openapi.json", map[string]store.Value{"X-Key": {SecretKey: "TOKEN"}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			b.secret("system", "", "TOKEN", "", "a-key-of-all")
			b.Pool.opt.Egress = func() string { return c.egress }
			cfg := store.Server{Name: "far", Transport: store.OpenAPI, Document: elsewhere.URL + "/openapi.json"}
			if c.change != nil {
				c.change(&cfg)
			}
			p, err := b.Probe(t.Context(), cfg)
			switch {
			case c.err == "" && err != nil:
				t.Error(err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("error %v, want %q", err, c.err)
			case c.err == "" && p.URL == "":
				t.Error("it has no address")
			}
		})
	}
	// Later, too: the record says that the document chose the address.
	b := newBench(t, nil)
	b.put(store.Server{Name: "far", Transport: store.OpenAPI, Document: elsewhere.URL + "/openapi.json", URL: strings.Replace(s.URL, "127.0.0.1", "localhost", 1) + "/v1", URLFromDocument: true})
	b.sync(admin, "far")
	_, err := b.run(t.Context(), "far:look", `{}`)
	var call *store.CallError
	if !errors.As(err, &call) || call.Code != store.CodeRefused || len(s.Requests()) > 0 {
		t.Errorf("%v, %d requests", err, len(s.Requests()))
	}
}

func TestChosenByDocument(t *testing.T) {
	for _, c := range []struct {
		document, service string
		said              bool // by the document
		want              bool
	}{
		{"https://a.example/openapi.json", "https://a.example/v1", true, false},
		{"http://a.example/openapi.json", "https://A.example/v1", true, false},
		{"https://a.example/openapi.json", "http://a.example/v1", true, true},
		{"https://a.example/openapi.json", "https://a.example:8443/v1", true, true},
		{"https://a.example/openapi.json", "https://b.example/v1", true, true},
		{"https://a.example/openapi.json", "https://b.example/v1", false, false},
		{"https://a.example/openapi.json", "http://a.example/v1", false, false},
		{"/srv/openapi.json", "https://a.example/v1", true, true},
		{"/srv/openapi.json", "https://a.example/v1", false, false},
	} {
		u, err := url.Parse(c.service)
		if err != nil {
			t.Fatal(err)
		}
		if got := chosenByDocument(store.Server{Document: c.document, URLFromDocument: c.said}, u); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Patterns of methods and paths choose operations; widening them accepts what they newly
// allow, as names do.
func TestAllowedOperations(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	doc := `{"openapi":"3.0.3","info":{"title":"Shop","version":"1"},"servers":[{"url":"/v1"}],"paths":{"/a":{"get":{"operationId":"getA","responses":{"200":{"description":"ok"}}},"post":{"operationId":"postA","responses":{"200":{"description":"ok"}}}},"/b":{"delete":{"operationId":"dropB","responses":{"200":{"description":"ok"}}}}}}`
	s := openapitest.New(t, []byte(doc), "/v1")
	cfg := service(s)
	cfg.Headers, cfg.AllowedTools = nil, []string{"GET *", "dropB"}
	diff := b.register(cfg)
	if got := fmt.Sprint(diff.Added); got != "[far:dropB far:getA]" {
		t.Errorf("added %s", got)
	}
	cfg = b.put(store.Server{Name: "far", Transport: store.OpenAPI, URL: cfg.URL, Document: cfg.Document, AllowedTools: []string{"* /a"}})
	b.sync(admin, "far")
	if got := b.tool("far:postA"); got.State != store.ToolAccepted {
		t.Errorf("postA is %s: %q", got.State, got.Findings)
	}
	if _, err := b.db.GetTool(t.Context(), "far:dropB"); err == nil {
		t.Error("dropB is there still")
	}
}
