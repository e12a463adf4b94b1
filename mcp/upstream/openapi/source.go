package openapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"nize/store"
)

// Source caches the last document of one server, so that its sessions need not each fetch
// and read an unchanged document.
type Source struct {
	busy chan struct{} // capacity 1: held while reading

	key            string // identifies the options with which the document was read
	etag, modified string
	sum            [sha256.Size]byte
	document       *Document
}

// NewSource returns an empty source.
func NewSource() *Source { return &Source{busy: make(chan struct{}, 1)} }

// Spec describes the document that a source reads, and the options.
type Spec struct {
	Document string // a URL or an absolute path
	Base     *url.URL
	Allowed  []string // the patterns that Allow implements
	Allow    func(name, method, path string) bool
	// Client fetches the document, and Header has the credentials for its host.
	Client *http.Client
	Header http.Header
}

// IsURL reports whether a document is at a URL.
func IsURL(document string) bool {
	return strings.HasPrefix(document, "http://") || strings.HasPrefix(document, "https://")
}

// Load returns the document, and reads it only if it has changed.
func (s *Source) Load(ctx context.Context, spec Spec) (*Document, error) {
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.busy }()
	key := fmt.Sprint(spec.Document, "\n", spec.Base, "\n", strings.Join(spec.Allowed, "\n"))
	if s.key != key {
		s.key, s.etag, s.modified, s.document = key, "", "", nil
	}
	opt := Options{Base: spec.Base, Allow: spec.Allow}
	data, same, err := s.fetch(ctx, spec, &opt)
	if err != nil {
		return nil, err
	}
	if same {
		return s.document, nil
	}
	sum := sha256.Sum256(data)
	if s.document != nil && s.sum == sum {
		return s.document, nil
	}
	doc, err := Read(data, opt)
	if err != nil {
		s.etag, s.modified = "", ""
		return nil, err
	}
	s.sum, s.document = sum, doc
	return doc, nil
}

// fetch returns the bytes of the document. It returns same true if the document is
// unchanged.
func (s *Source) fetch(ctx context.Context, spec Spec, opt *Options) (data []byte, same bool, err error) {
	if !IsURL(spec.Document) {
		data, err := readFile(spec.Document)
		return data, false, err
	}
	at, err := url.Parse(spec.Document)
	if err != nil {
		return nil, false, fmt.Errorf("%w address of an OpenAPI document", store.ErrInvalid)
	}
	opt.At = at
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, spec.Document, nil)
	if err != nil {
		return nil, false, store.NetworkError(err)
	}
	header, query := splitQuery(spec.Header)
	req.URL.RawQuery = withQuery(req.URL.RawQuery, query)
	for name, v := range header {
		req.Header[name] = v
	}
	req.Header.Set("Accept", "application/vnd.oai.openapi+json, application/json, application/yaml;q=0.8, */*;q=0.5")
	if s.document != nil && s.etag != "" {
		req.Header.Set("If-None-Match", s.etag)
	}
	if s.document != nil && s.modified != "" {
		req.Header.Set("If-Modified-Since", s.modified)
	}
	client := *spec.Client
	client.CheckRedirect = checkRedirect
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		return nil, false, fmt.Errorf("fetching the document: %w", store.NetworkError(err))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && s.document != nil:
		return nil, true, nil
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return nil, false, fmt.Errorf("fetching the document: %s answered %d %s; credentials go along only if the document is at the host of --base-url: else save it and give the file", at.Host, resp.StatusCode, http.StatusText(resp.StatusCode))
	case resp.StatusCode != http.StatusOK:
		return nil, false, fmt.Errorf("fetching the document: %s answered %d %s; check its address", at.Host, resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	data, err = io.ReadAll(io.LimitReader(resp.Body, MaxDocument+1))
	if err != nil {
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		return nil, false, fmt.Errorf("fetching the document: %w", store.NetworkError(err))
	}
	s.etag, s.modified = resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
	return data, false, nil
}

// readFile reads a document from a file. It only opens regular files, so not a device, for
// example.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err == nil && info.Size() > MaxDocument {
		return nil, invalid("it has more than %d MiB", MaxDocument>>20)
	}
	if err != nil {
		var of *os.PathError
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, fmt.Errorf("reading the document %s as nized: %w", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		var of *os.PathError
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, fmt.Errorf("reading the document %s as nized: %w", path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("reading the document %s: %w", path, err)
	}
	return data, nil
}
