package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/store"
)

// Requests that are not made with slack-go: it follows redirects with the token, and
// rejects a whole list of messages because of one part of a block that it doesn't know
// (TestLibrary in incoming).

const (
	// maxAnswer limits the response of a raw call.
	maxAnswer = 16 << 20
	// fileTries is how often one download is attempted.
	fileTries = 3
	// maxFilePause limits how long a download waits on Slack's request.
	maxFilePause = 10 * time.Second
)

// maxDownloads is how many files are in memory at once: files are downloaded before the
// author's message limit is checked.
const maxDownloads = 4

// Lasting reasons why a file can't be downloaded.
var (
	ErrForeign  = errors.New("its address is not Slack's")
	ErrDenied   = errors.New("the bot token lacks files:read, or may not see the file")
	ErrGone     = errors.New("it is gone")
	ErrTooLarge = errors.New("it is larger than it may be")
)

// Raw makes requests with the bot token directly.
type Raw struct {
	client *http.Client
	base   *url.URL // of the Web API
	token  store.Secret
	Busy   chan struct{} // has one element per file being downloaded
}

func newRaw(o Options, token store.Secret) *Raw {
	address := o.URL
	if address == "" {
		address = slackgo.APIURL
	}
	base, err := url.Parse(strings.TrimSuffix(address, "/") + "/")
	if err != nil {
		base = &url.URL{} // no URL counts as Slack's then; slack-go reports what is wrong
	}
	// A file's redirect leads to a sign-in page, which must not get the token.
	client := &http.Client{Transport: o.Transport, Timeout: callTime, CheckRedirect: stay}
	return &Raw{client: client, base: base, token: token, Busy: make(chan struct{}, maxDownloads)}
}

// slackHosts are the hosts of Slack's files, including subdomains.
var slackHosts = []string{"slack.com", "slack-gov.com"}

// owns reports whether the token may be sent to a URL: a Slack host over TLS, or the Web
// API's own origin.
func (b *Raw) owns(u *url.URL) bool {
	if u.User != nil || u.Host == "" {
		return false
	}
	if u.Scheme == b.base.Scheme && u.Host == b.base.Host {
		return true
	}
	if u.Scheme != "https" || u.Port() != "" && u.Port() != "443" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	for _, own := range slackHosts {
		if host == own || strings.HasSuffix(host, "."+own) {
			return true
		}
	}
	return false
}

// Ask makes a Web API request and decodes the response into out. Slack's errors are
// returned as slack-go's.
func (b *Raw) Ask(ctx context.Context, method string, form url.Values, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base.JoinPath(method).String(), strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("asking %s: %w", method, err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := b.send(req)
	if err != nil {
		return fmt.Errorf("asking %s: %w", method, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: Slack answered %s", method, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("%w answer: over %d bytes", store.ErrInvalid, maxAnswer)
	}
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", method, err)
	}
	var head struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return fmt.Errorf("decoding the answer of %s: %w", method, err)
	}
	if !head.OK {
		return slackgo.SlackErrorResponse{Err: head.Error}
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("decoding the answer of %s: %w", method, err)
	}
	return nil
}

// send sends a request with the token; a rate limit is returned as slack-go's error.
func (b *Raw) send(req *http.Request) (*http.Response, error) {
	req.Header.Set("Authorization", "Bearer "+b.token.Reveal())
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		resp.Body.Close()
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || seconds < 0 {
			seconds = 1
		}
		return nil, &slackgo.RateLimitedError{RetryAfter: time.Duration(min(seconds, 3600)) * time.Second}
	}
	return resp, nil
}

// Download downloads a file of at most limit bytes and retries temporary errors. announced
// is its size according to Slack, 0 if unknown: the content must have that size, because a
// sign-in page would arrive like a file.
func (w *Client) Download(ctx context.Context, address string, announced, limit int64) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil || !w.Raw.owns(u) {
		return nil, ErrForeign
	}
	pause := time.Second
	for try := 1; ; try++ {
		data, err := w.Raw.get(ctx, u, announced, limit)
		for _, lasting := range []error{ErrDenied, ErrGone, ErrTooLarge} {
			if errors.Is(err, lasting) {
				return nil, err
			}
		}
		if err == nil || try == fileTries || ctx.Err() != nil {
			return data, err
		}
		var limited *slackgo.RateLimitedError
		if errors.As(err, &limited) {
			pause = min(max(limited.RetryAfter, pause), maxFilePause)
		}
		if err := w.Wait(ctx, pause); err != nil {
			return nil, err
		}
		pause *= 2
	}
}

// get starts one download.
func (b *Raw) get(ctx context.Context, u *url.URL, announced, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := b.send(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch code := resp.StatusCode; {
	case code >= 300 && code < 400, code == http.StatusUnauthorized, code == http.StatusForbidden:
		return nil, ErrDenied
	case code == http.StatusNotFound, code == http.StatusGone:
		return nil, ErrGone
	case code != http.StatusOK:
		return nil, fmt.Errorf("the answer is %s", resp.Status)
	case resp.ContentLength > limit:
		return nil, ErrTooLarge
	}
	if announced > 0 {
		limit = min(limit, announced)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, err
	case announced == 0 && int64(len(data)) > limit:
		return nil, ErrTooLarge
	case announced == 0 || int64(len(data)) == announced:
		return data, nil
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && kind == "text/html" {
		return nil, ErrDenied
	}
	return nil, fmt.Errorf("%d bytes came, %d were announced", len(data), announced)
}
