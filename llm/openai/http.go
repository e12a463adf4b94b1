package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nize/llm"
	"nize/store"
	"nize/store/backoff"
)

const (
	maxTries = 3
	// maxWait is the longest pause that a request waits; if a service asks for more, the
	// router gets an error with its Retry-After.
	maxWait     = 10 * time.Second
	firstWait   = 500 * time.Millisecond
	maxError    = 64 << 10 // bytes of an error's body
	maxAnswer   = 64 << 20 // bytes of a response; streams are verbose
	maxLine     = 8 << 20  // bytes of one line of a stream
	maxText     = 1 << 20  // bytes of the model's text
	maxSentence = 300      // bytes of a service's message that we repeat
)

var (
	errTotal = errors.New("the answer took too long")
	errIdle  = errors.New("the service went silent")
	// errLongLine is returned for a line longer than any service needs.
	errLongLine = fmt.Errorf("a line of the stream is over %d MiB", maxLine>>20)
	// errClosed is returned if a connection ended without a byte of response, so a retry or
	// another model may succeed.
	errClosed = errors.New("the connection was closed before the answer began")
)

// doer sends one request of the library. A new one is created for each.
type doer struct {
	c *Client
	// extra are fields of the body that the library doesn't support.
	extra map[string]json.RawMessage

	lines  *lines   // of the response, if it is a stream
	models []string // of the response, if it is a list of models
}

// Do sends the request and retries before the first byte. Its errors are already
// *llm.ProviderErrors.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	body, err := d.readBody(req)
	if err != nil {
		return nil, err
	}
	d.c.addHeaders(req)
	for try := 1; ; try++ {
		resp, err := d.tryOnce(req, body)
		if err == nil {
			return resp, nil
		}
		var pe *llm.ProviderError
		if !errors.As(err, &pe) || !retryable(pe) || try == triesOf(pe) || req.Context().Err() != nil {
			return nil, err
		}
		wait := backoff.Exponential{First: firstWait}.After(try)
		wait = backoff.Jitter(wait+wait/2, wait/2) // so that many clients don't return at once
		if pe.RetryAfter > 0 {
			wait = pe.RetryAfter
		}
		if wait > maxWait {
			return nil, err
		}
		d.c.opt.Log.Info("model service is asked again", "provider", d.c.opt.Provider.Name, "try", try+1, "wait", wait, "error", err)
		if d.c.opt.Sleep(req.Context(), wait) != nil {
			return nil, err
		}
	}
}

// triesOf returns how often a request is tried in all: twice if a service can't be
// reached, maxTries times if it is busy.
func triesOf(pe *llm.ProviderError) int {
	if pe.Status == 0 {
		return 2
	}
	return maxTries
}

// retryable reports whether the same request may succeed next time.
func retryable(pe *llm.ProviderError) bool {
	if pe.Fault == llm.FaultCredit {
		return false
	}
	switch pe.Status {
	case 0:
		return pe.Fault == llm.FaultDown
	case 429, 500, 502, 503, 504, 529:
		return true
	}
	return false
}

// readBody returns the request's body with the extra fields.
func (d *doer) readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	raw, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil || len(d.extra) == 0 {
		return raw, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("reading back the request: %w", err)
	}
	for k, v := range d.extra {
		fields[k] = v
	}
	return json.Marshal(fields)
}

// tryOnce sends the request once and monitors its response.
func (d *doer) tryOnce(req *http.Request, body []byte) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	idle, _ := d.c.opt.Timeouts()
	watch := time.AfterFunc(idle, func() { cancel(errIdle) })
	again := req.Clone(ctx)
	if body != nil {
		again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	resp, err := d.c.http.Do(again)
	if err != nil {
		watch.Stop()
		if err = d.c.providerError(ctx, err); isBroken(err) { // before cancel, which would become the cause
			err = d.c.unreachable(errClosed)
		}
		cancel(nil)
		return nil, err
	}
	resp.Body = &idleReader{body: resp.Body, c: d.c, ctx: ctx, cancel: cancel, timer: watch, idle: idle, left: maxAnswer}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, d.c.refusalError(resp)
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	l := newLines(resp.Body, mediaType == "application/json")
	head, err := l.head()
	if mediaType == "text/html" || isMarkup(head) {
		resp.Body.Close()
		return nil, &llm.ProviderError{Provider: d.c.opt.Provider.Name, Fault: llm.FaultRequest, Status: resp.StatusCode, Message: d.c.redactKey(markup(head))}
	}
	switch path := req.URL.Path; {
	case strings.HasSuffix(path, "/chat/completions"), strings.HasSuffix(path, "/responses"):
		if err != nil && len(head) == 0 {
			resp.Body.Close()
			if err = d.c.providerError(req.Context(), err); isBroken(err) {
				err = d.c.unreachable(errClosed)
			}
			return nil, err
		}
		resp.Body, d.lines = l, l
	case strings.HasSuffix(path, "/models"):
		defer resp.Body.Close()
		return d.readModels(req, resp, l)
	default:
		resp.Body = struct {
			io.Reader
			io.Closer
		}{l.buf, resp.Body}
	}
	return resp, nil
}

// readModels decodes a list of models in any form that services use, and passes an empty
// list to the library, which knows only one form.
func (d *doer) readModels(req *http.Request, resp *http.Response, l *lines) (*http.Response, error) {
	body, err := io.ReadAll(l.buf)
	if err != nil {
		return nil, d.c.providerError(req.Context(), err)
	}
	names, ok := modelNames(body)
	one := unwrapError(body)
	if said := errorMessage(one); said != "" && (!ok || len(names) == 0 && len(one) < len(body)) { // an error with a success status
		return nil, &llm.ProviderError{Provider: d.c.opt.Provider.Name, Fault: llm.FaultRequest, Status: resp.StatusCode, Message: d.c.redactKey(said)}
	}
	if !ok {
		why := "it sent no list of models, and nothing else"
		if words := wordsOf(body); words != "" {
			why = d.c.redactKey(fmt.Sprintf("it sent no list of models, but %q", store.Clip(words, 120)))
		}
		return nil, &llm.ProviderError{Provider: d.c.opt.Provider.Name, Fault: llm.FaultAnswer, Status: resp.StatusCode, Message: why}
	}
	d.models = append([]string{}, names...)
	resp.Body = io.NopCloser(strings.NewReader(`{"data":[]}`))
	return resp, nil
}

// markup returns a description if a web page or an XML document arrived instead of JSON;
// body is its beginning.
func markup(body []byte) string {
	if isXML(body) {
		if words := wordsOf(body); words != "" {
			return fmt.Sprintf("an XML document answered (%q); check the base URL", store.Clip(words, 120))
		}
		return "an XML document answered; check the base URL"
	}
	if title := pageTitle(body); title != "" {
		return fmt.Sprintf("a web page answered (%q); check the base URL", store.Clip(title, 80))
	}
	return "a web page answered; check the base URL"
}

// isBroken reports whether a connection ended too early.
func isBroken(err error) bool {
	var pe *llm.ProviderError
	return errors.As(err, &pe) && pe.Fault == llm.FaultAnswer && pe.Status == 0
}

// brokeOff reports whether a service closed the connection in the middle of a response.
func brokeOff(err error) bool {
	var pe *llm.ProviderError
	return errors.As(err, &pe) && (pe.Fault == llm.FaultAnswer || pe.Fault == llm.FaultDown)
}

// unreachable returns the error for a service that didn't respond.
func (c *Client) unreachable(err error) error {
	return &llm.ProviderError{Provider: c.opt.Provider.Name, Fault: llm.FaultDown, Message: store.NetworkError(err).Error(), Err: err}
}

// idleReader is a body that is limited in size and in the time between two reads.
type idleReader struct {
	body   io.ReadCloser
	c      *Client
	ctx    context.Context // of this request, to find out why a read failed
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
	left   int64
}

func (w *idleReader) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, w.c.brokenAnswer(fmt.Sprintf("it is over %d MiB", maxAnswer>>20), nil)
	}
	n, err := w.body.Read(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	if err != nil && err != io.EOF {
		return n, w.c.providerError(w.ctx, err)
	}
	w.timer.Reset(w.idle)
	return n, err
}

func (w *idleReader) Close() error {
	w.timer.Stop()
	w.cancel(nil)
	return w.body.Close()
}

// refusalError returns an error for an unsuccessful response.
func (c *Client) refusalError(resp *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what was read is enough for a message
	raw = unwrapError(raw)
	pe := &llm.ProviderError{
		Provider: c.opt.Provider.Name, Status: resp.StatusCode,
		RetryAfter: cmp.Or(retryAfter(resp.Header, time.Now()), retryDelay(raw)), Message: c.redactKey(errorMessage(raw)),
	}
	switch {
	case pe.Message != "" || json.Valid(raw):
	case isMarkup(raw):
		pe.Message = c.redactKey(markup(raw))
	default:
		pe.Message = c.redactKey(wordsOf(raw))
	}
	if resp.StatusCode < 400 { // following a redirect would send the key elsewhere
		pe.Message = "it redirects"
		if to, err := resp.Location(); err == nil && to.Host != "" {
			to.User, to.RawQuery, to.Fragment = nil, "", ""
			pe.Message = c.redactKey("it redirects to " + to.String() + ", where nize does not follow with its key; an admin can set that base URL")
		}
	}
	switch s := resp.StatusCode; {
	case c.kindFault(s, raw) != "":
		pe.Fault = c.kindFault(s, raw)
	case s == 413 || s < 429 && tooLong(pe.Message, raw):
		pe.Fault = llm.FaultTooLong
	case s < 500 && withheld(raw):
		pe.Fault = llm.FaultWithheld
	case s == 402 || s == 429 && outOfCredit(raw):
		pe.Fault = llm.FaultCredit
	case s == 429:
		pe.Fault = llm.FaultBusy
	case s == 408:
		pe.Fault = llm.FaultTimeout
	case s == 401 || s == 403:
		pe.Fault = llm.FaultAuth
	case s >= 500:
		pe.Fault = llm.FaultDown
	default:
		pe.Fault = llm.FaultRequest
	}
	return pe
}

// outOfCredit reports whether a service refuses because the credit is used up: OpenAI uses
// the status of a busy service for that.
func outOfCredit(raw []byte) bool {
	return hasCode(raw, "insufficient_quota")
}

// hasCode reports whether an error has that code.
func hasCode(raw []byte, code string) bool {
	var body struct {
		Code  any `json:"code"`
		Error struct {
			Code any    `json:"code"`
			Type string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal(raw, &body) // a body of another form has no code
	return body.Error.Code == code || body.Error.Type == code || body.Code == code
}

// tooLongWords are phrases with which services say that a conversation doesn't fit into a
// model; most have no code for it.
var tooLongWords = []string{"maximum context length", "context window", "context length", "prompt is too long", "too many tokens", "maximum prompt length", "input token count", "reduce the length of", "input is too long"}

// tooLong reports whether a service refuses because the prompt is too long.
func tooLong(message string, raw []byte) bool {
	message = strings.ToLower(message)
	return hasCode(raw, "context_length_exceeded") || slices.ContainsFunc(tooLongWords, func(w string) bool { return strings.Contains(message, w) })
}

// withheld reports whether a service refuses because of the content of the prompt or the
// answer: Azure and OpenAI have codes for it.
func withheld(raw []byte) bool {
	return hasCode(raw, "content_filter") || hasCode(raw, "content_policy_violation")
}

// errorMessage returns the message from the usual forms of an error's body.
func errorMessage(raw []byte) string {
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(raw, &body) != nil {
		return ""
	}
	if m := errorText(body.Error); m != "" {
		return m
	}
	return cmp.Or(errorText(body.Message), errorText(body.Detail))
}

// errorText decodes {"message":…}, a string, or anything else unchanged.
func errorText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var obj struct {
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(raw, &obj) == nil && len(obj.Message)+len(obj.Detail) > 0 {
		return cmp.Or(errorText(obj.Message), errorText(obj.Detail))
	}
	var list []struct { // Mistral's, one for each rejected field
		Place []any  `json:"loc"`
		Words string `json:"msg"`
	}
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 && list[0].Words != "" {
		var parts []string
		for _, p := range list {
			parts = append(parts, strings.Trim(fmt.Sprint(p.Place), "[]")+": "+p.Words)
		}
		return strings.Join(parts, "; ")
	}
	return string(raw)
}

// retryAfter decodes the header in seconds or as a date (RFC 9110, 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) && at.Sub(now) < 1e6*time.Second {
		return at.Sub(now)
	}
	return 0
}

// providerError turns a transport error into a *llm.ProviderError. A cancelled ctx stays
// what it is.
func (c *Client) providerError(ctx context.Context, err error) error {
	var pe *llm.ProviderError
	if errors.As(err, &pe) {
		return pe
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errIdle), errors.Is(cause, errTotal):
		return &llm.ProviderError{Provider: c.opt.Provider.Name, Fault: llm.FaultTimeout, Message: cause.Error(), Err: context.DeadlineExceeded}
	case cause != nil:
		return cause
	}
	pe = &llm.ProviderError{Provider: c.opt.Provider.Name, Fault: llm.FaultDown, Message: c.redactKey(store.NetworkError(err).Error())}
	var ne net.Error
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &ne) && ne.Timeout():
		pe.Fault = llm.FaultTimeout
	case errors.As(err, &syntax), errors.As(err, &mismatch), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, errLongLine):
		pe.Fault = llm.FaultAnswer
	}
	return pe
}

// brokenAnswer returns the error for a malformed response.
func (c *Client) brokenAnswer(why string, err error) error {
	return &llm.ProviderError{Provider: c.opt.Provider.Name, Fault: llm.FaultAnswer, Message: why, Err: err}
}

// redactKey returns a service's message as one line of limited length, without the key.
func (c *Client) redactKey(s string) string {
	if key := c.opt.Provider.Key.Reveal(); len(key) >= 4 {
		s = strings.ReplaceAll(s, key, "••••")
	}
	s = store.RedactText(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "))
	return store.Clip(s, maxSentence)
}

func sleepContext(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
