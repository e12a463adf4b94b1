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

// Requests that are not made with slack-go: it follows redirects with the
// token, and refuses a whole list of messages over one block of a shape that it
// does not know.

const (
	// maxAnswer bounds the answer of a raw call.
	maxAnswer = 16 << 20
	// fileTries is how often one download is begun.
	fileTries = 3
	// maxFilePause bounds what Slack may ask to wait for before a download.
	maxFilePause = 10 * time.Second
)

// maxDownloads is how many files are in memory at the same time: a message
// is fetched before it is known whether its author wrote too many.
const maxDownloads = 4

// Why a file can't be had, for good.
var (
	ErrForeign  = errors.New("its address is not Slack's")
	ErrDenied   = errors.New("the bot token lacks files:read, or may not see the file")
	ErrGone     = errors.New("it is gone")
	ErrTooLarge = errors.New("it is larger than it may be")
)

// Raw makes requests with the bot token itself.
type Raw struct {
	client *http.Client
	base   *url.URL // of the Web API
	token  store.Secret
	Busy   chan struct{} // holds one for each file that is being fetched
}

func newRaw(o Options, token store.Secret) *Raw {
	address := o.URL
	if address == "" {
		address = slackgo.APIURL
	}
	base, err := url.Parse(strings.TrimSuffix(address, "/") + "/")
	if err != nil {
		base = &url.URL{} // nothing is Slack's then; slack-go says what is wrong
	}
	// Where a redirect of a file goes, the token must not: it is a page to sign in on.
	client := &http.Client{Transport: o.Transport, Timeout: callTime, CheckRedirect: stay}
	return &Raw{client: client, base: base, token: token, Busy: make(chan struct{}, maxDownloads)}
}

// slackHosts are where Slack keeps files, with all below them.
var slackHosts = []string{"slack.com", "slack-gov.com"}

// owns says whether the token may go to an address: a host of Slack's over TLS,
// or the place of the Web API itself.
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

// Ask makes a request of the Web API and decodes its answer into out. Slack's
// errors are those of slack-go.
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

// send sends a request with the token; too many are an error of slack-go's.
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

// Download fetches a file, at most limit bytes of it, again after what may pass
// by itself. announced is its size as Slack says it, 0 for unknown: what comes
// must have it, since a page to sign in on comes like a file.
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

// get begins one download.
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
