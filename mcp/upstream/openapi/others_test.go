package openapi_test

import (
	"cmp"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"nize/mcp/schema"
	"nize/mcp/upstream/openapi"
	"nize/mcp/upstream/openapi/openapitest"
	"nize/store"
)

// TestOthers reads the documents that others wrote, in the files and folders of
// NIZE_TEST_OPENAPI, and calls ten operations of each: the service judges the requests by
// the document. With NIZE_TEST_OPENAPI_CALLS, a document of which fewer requests than that
// were judged good fails; without, small documents have as many as they have.
// scripts/peers.sh runs it.
func TestOthers(t *testing.T) {
	places := filepath.SplitList(os.Getenv("NIZE_TEST_OPENAPI"))
	if len(places) == 0 {
		t.Skip("NIZE_TEST_OPENAPI names no documents")
	}
	var files []string
	for _, place := range places {
		before := len(files)
		err := filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
			if ext := filepath.Ext(path); err == nil && !d.IsDir() && (ext == ".json" || ext == ".yaml") {
				files = append(files, path)
			}
			return err
		})
		if err != nil || len(files) == before {
			t.Fatalf("%d documents in %s: %v", len(files)-before, place, err)
		}
	}
	for _, path := range files {
		name := filepath.Join(filepath.Base(filepath.Dir(filepath.Dir(path))), filepath.Base(path))
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			callTen(t, raw)
		})
	}
}

// callTen calls ten operations of a document, spread over it.
func callTen(t *testing.T, raw []byte) {
	base, _ := url.Parse("https://api.example/v1")
	d, err := openapi.Read(raw, openapi.Options{Base: base})
	if err != nil {
		if strings.Contains(err.Error(), "it has no operations") { // of webhooks alone, or none
			t.Skip(err)
		}
		t.Fatal(err)
	}
	s, err := openapitest.Start(raw, "/v1")
	if err != nil && os.Getenv("NIZE_TEST_OPENAPI_CALLS") == "" {
		t.Skipf("its %d operations are tools, and the judge can't read it: %.200v", len(d.Tools), err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	call := connect(t, raw, s.URL+"/v1", http.Header{"Authorization": {"Bearer key"}})
	const most = 10
	step := max(1, len(d.Tools)/most)
	good, unjudged := 0, 0
	var schemas schema.Cache
	for i := 0; i < len(d.Tools) && good+unjudged < most; i += step {
		tool := d.Tools[i]
		args, ok := openapitest.Sample(tool.InputSchema, 3)
		if !ok || schemas.Check(store.Tool{Name: tool.Name, InputSchema: tool.InputSchema}, args) != nil {
			continue // what is made up does not fit, as the gateway would say
		}
		if _, err := call(tool.Name, string(args)); err != nil {
			t.Errorf("%s %s: %v", tool.Name, args, err)
			continue
		}
		all := s.Requests()
		switch got := all[len(all)-1]; {
		case openapitest.Unread(got.Err):
			unjudged++
		case got.Err != nil || got.Path != tool.Meta.Route.Path:
			t.Errorf("%s %.300s: %s %s %.200s: %.300v", tool.Name, args, got.Method, got.URL, got.Body, got.Err)
		default:
			good++
		}
	}
	if want, err := strconv.Atoi(cmp.Or(os.Getenv("NIZE_TEST_OPENAPI_CALLS"), "0")); err != nil || good < want {
		t.Errorf("%d requests were judged good, want %d (%v)", good, want, err)
	}
	t.Logf("%s, %d tools; %d requests as the document demands, %d that the judge can't read; warnings %q", d.Format, len(d.Tools), good, unjudged, d.Warnings)
}
