// Package web is the native tool web-scrape, which fetches a URL that a model chose and
// returns its text.
package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"nize/mcp/native"
	"nize/mcp/native/page"
	"nize/store"
)

const (
	defaultLength = 50_000
	callTime      = 30 * time.Second // the client's own limit is lower
	atOnce        = 4                // reading a page takes tens of megabytes
)

const schema = `{"type":"object","properties":{"url":{"type":"string","description":"The URL of the web page to fetch"},"maxLength":{"type":"number","description":"Maximum characters to return (default: 50000)","default":50000}},"required":["url"]}`

// Tool returns web-scrape. client must be the guarded one: it limits time, size and
// redirects, and refuses non-public addresses with [store.ErrRefused].
func Tool(client *http.Client, version string) native.Tool {
	yes, no := true, false
	s := scraper{client, "Mozilla/5.0 (compatible; nize/" + version + ")"}
	return native.Tool{
		Name: "web-scrape", Title: "Read a web page",
		Description: "Fetches the content of a web page and returns it as plain text. HTML comes as Markdown of what matters on the page; JSON and plain text as they are.",
		InputSchema: json.RawMessage(schema),
		Annotations: store.Annotations{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &yes},
		Untrusted:   true, Timeout: callTime, AtOnce: atOnce,
		Run: s.run,
	}
}

type scraper struct {
	client    *http.Client
	userAgent string
}

func (s scraper) run(ctx context.Context, _ native.Context, input json.RawMessage) (none native.Result, _ error) {
	var args struct {
		URL       string  `json:"url"`
		MaxLength float64 `json:"maxLength"`
	}
	if err := json.Unmarshal(input, &args); err != nil {
		return none, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("maxLength must be a number")}
	}
	most := defaultLength
	if args.MaxLength >= 1 {
		most = int(min(args.MaxLength, math.MaxInt32))
	}
	address := strings.TrimSpace(args.URL)
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return native.Failed("Invalid URL: " + args.URL), nil
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return native.Failed("Invalid protocol: " + u.Scheme + ":"), nil
	}
	if u.Host == "" {
		return native.Failed("Invalid URL: " + args.URL), nil
	}
	text, status, err := s.fetch(ctx, u)
	switch {
	case err != nil:
		return native.Failed("Failed to fetch: " + reason(err)), nil
	case status < 200 || status > 299:
		return native.Failed(fmt.Sprintf("HTTP error: %d", status)), nil
	}
	return native.Text(cut(text, most)), nil
}

// fetch returns the text at a URL, or "" if the status is an error.
func (s scraper) fetch(ctx context.Context, u *url.URL) (text string, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", 0, err
	}
	req.Header.Set("User-Agent", s.userAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.8,*/*;q=0.1")
	resp, err := s.client.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return "", resp.StatusCode, nil
	}
	if how := resp.Header.Get("Content-Encoding"); how != "" && !strings.EqualFold(how, "identity") {
		return "", 0, errors.New("the server sent it in an encoding that was not asked for") // gzip was requested, and is already decoded
	}
	contentType := resp.Header.Get("Content-Type")
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", 0, err
	}
	if contentType == "" {
		contentType = http.DetectContentType(body)
	}
	text, err = read(body, contentType, resp.Request.URL)
	return text, resp.StatusCode, err
}

// read returns the text of a body of the given type.
func read(body []byte, contentType string, at *url.URL) (string, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind, _, _ = strings.Cut(strings.ToLower(contentType), ";")
		kind = strings.TrimSpace(kind)
	}
	switch {
	case kind == "text/html", kind == "application/xhtml+xml":
		return page.Markdown(page.Decode(body, contentType), at), nil
	case kind == "application/json", strings.HasSuffix(kind, "+json"):
		return page.Decode(body, kind+"; charset=utf-8"), nil
	case strings.HasPrefix(kind, "text/"), kind == "application/xml", strings.HasSuffix(kind, "+xml"),
		kind == "application/javascript", kind == "application/x-ndjson", kind == "application/yaml", kind == "application/toml":
		return page.Decode(body, contentType), nil
	}
	return "", fmt.Errorf("it is %s, which is not text", store.Clip(kind, 60))
}

// reason returns the caller's message about a failed request. For a request that was
// blocked from a network it reveals nothing about that network.
func reason(err error) string {
	if errors.Is(err, store.ErrRefused) {
		return "blocked: only public addresses on ports 80 and 443 are fetched, unless an admin allows them in egress.allow"
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "the server did not answer in time"
	}
	var request *url.Error // it repeats the URL
	if errors.As(err, &request) {
		err = request.Err
	}
	return err.Error()
}

// cut returns at most that many characters of a text.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	end := fmt.Sprintf("\n\n[Cut after %d characters.]", most)
	if len(end) > most/2 {
		end = ""
	}
	keep := most - len(end)
	for i := range text {
		if keep == 0 {
			return text[:i] + end
		}
		keep--
	}
	return text
}
