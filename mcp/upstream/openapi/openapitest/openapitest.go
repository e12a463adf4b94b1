// Package openapitest is a test service built from an OpenAPI document.
//
// It serves the document and its operations, and checks each request against the document
// with kin-openapi, an independent reading of the specification.
package openapitest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"go.yaml.in/yaml/v3"
)

// Request is one received request.
type Request struct {
	Method, Path string // the path as in the document, "" if the document doesn't have it
	URL          string // path and query as received
	Header       http.Header
	Body         string
	Err          error // violation of the document
}

// Service is a running service. It responds 404 to paths that end in "missing". It is safe
// for concurrent use.
type Service struct {
	URL string // base URL without a trailing slash; the document is at /openapi.json
	// Answer, if set, handles the operations instead of the service.
	Answer func(w http.ResponseWriter, r *http.Request)

	web *httptest.Server

	mu       sync.Mutex
	raw      []byte
	doc      *openapi3.T
	paths    []path
	requests []Request
	fetched  int
}

type path struct {
	template string
	match    *regexp.Regexp
	names    []string
}

// New starts a service for the duration of a test.
func New(t testing.TB, raw []byte, prefix string) *Service {
	t.Helper()
	s, err := Start(raw, prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a service. prefix is the base path of the operations.
func Start(raw []byte, prefix string) (*Service, error) {
	s := &Service{}
	if err := s.Set(raw); err != nil {
		return nil, err
	}
	s.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, prefix) }))
	s.URL = s.web.URL
	return s, nil
}

// Close stops the service.
func (s *Service) Close() { s.web.Close() }

// Set replaces the document.
func (s *Service) Set(raw []byte) error {
	doc, err := load(raw)
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	var paths []path
	for template := range doc.Paths.Map() {
		p := path{template: template}
		bare, _, _ := strings.Cut(template, "#")
		bare, _, _ = strings.Cut(bare, "?")
		pattern := regexp.MustCompile(`\\\{([^{}/]+?)\\\}`).ReplaceAllString(regexp.QuoteMeta(bare), `([^/]*)`)
		for _, m := range regexp.MustCompile(`\{([^{}/]+)\}`).FindAllStringSubmatch(bare, -1) {
			p.names = append(p.names, m[1])
		}
		p.match = regexp.MustCompile("^" + pattern + "$")
		paths = append(paths, p)
	}
	slices.SortFunc(paths, func(a, b path) int { // more specific paths first
		if n := len(a.names) - len(b.names); n != 0 {
			return n
		}
		return strings.Compare(a.template, b.template)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw, s.doc, s.paths = raw, doc, paths
	return nil
}

func load(raw []byte) (*openapi3.T, error) {
	var version struct {
		Swagger string `yaml:"swagger"`
	}
	if yaml.Unmarshal(raw, &version) == nil && version.Swagger != "" {
		var old openapi2.T
		if err := json.Unmarshal(raw, &old); err != nil {
			return nil, err
		}
		return openapi2conv.ToV3(&old)
	}
	return openapi3.NewLoader().LoadFromData(raw)
}

// Requests returns the requests received so far.
func (s *Service) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Fetched returns how often the whole document was sent.
func (s *Service) Fetched() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetched
}

func (s *Service) serve(w http.ResponseWriter, r *http.Request, prefix string) {
	s.mu.Lock()
	raw, doc, paths := s.raw, s.doc, s.paths
	s.mu.Unlock()
	if r.URL.Path == "/openapi.json" {
		tag := fmt.Sprintf(`"%x"`, sha256.Sum256(raw))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		s.mu.Lock()
		s.fetched++
		s.mu.Unlock()
		_, _ = w.Write(raw)
		return
	}
	if r.Method == http.MethodHead && r.URL.Path == strings.TrimSuffix(prefix, "/") || r.URL.Path == "/" {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	got := Request{Method: r.Method, URL: r.URL.RequestURI(), Header: r.Header.Clone(), Body: string(body)}
	got.Path, got.Err = judge(doc, paths, r, prefix)
	s.mu.Lock()
	s.requests = append(s.requests, got)
	answer := s.Answer
	s.mu.Unlock()
	switch {
	case answer != nil:
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r)
	case strings.HasSuffix(r.URL.Path, "/missing"):
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"detail":"there is no such thing"}`)
	case got.Err != nil:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": got.Err.Error()})
	default:
		seen := map[string]string{}
		for name := range got.Header {
			seen[name] = got.Header.Get(name)
		}
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		_ = e.Encode(map[string]any{"method": got.Method, "path": got.Path, "url": got.URL, "body": got.Body, "header": seen})
	}
}

// judge finds the operation of a request and checks the request against the document.
func judge(doc *openapi3.T, paths []path, r *http.Request, prefix string) (string, error) {
	at, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix)
	if !ok {
		return "", fmt.Errorf("%s is not below %s", r.URL.EscapedPath(), prefix)
	}
	for _, p := range paths {
		m := p.match.FindStringSubmatch(at)
		item := doc.Paths.Value(p.template)
		if m == nil || item == nil {
			continue
		}
		op := item.GetOperation(r.Method)
		if op == nil {
			continue
		}
		values := map[string]string{}
		for i, name := range p.names {
			values[name], _ = url.PathUnescape(m[i+1])
		}
		in := &openapi3filter.RequestValidationInput{Request: r, PathParams: values,
			Route:   &routers.Route{Spec: doc, Path: p.template, PathItem: item, Method: r.Method, Operation: op},
			Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true}}
		return p.template, openapi3filter.ValidateRequest(context.WithoutCancel(r.Context()), in)
	}
	return "", fmt.Errorf("the document has no %s %s", r.Method, at)
}

// Unread reports whether the request, or the document at its operation, could not be read,
// so that the request was not checked.
func Unread(err error) bool {
	if err == nil {
		return false
	}
	for _, says := range []string{"invalid serialization method", "unsupported schema of request body", "header Content-Type has unexpected value", "unsupported content type", "discriminator", "is not declared", "schema has non primitive type object", `parameter "accept" in header`} {
		if strings.Contains(strings.ToLower(err.Error()), strings.ToLower(says)) {
			return true
		}
	}
	return false
}
