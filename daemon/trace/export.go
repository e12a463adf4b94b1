package trace

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"nize/store"
	"nize/store/backoff"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	gatherTime = time.Second      // how long spans are collected into a batch
	sendTime   = 10 * time.Second // timeout of one request
	lastTime   = 5 * time.Second  // maximum time for sending the last spans at a stop
	mostBatch  = 512              // spans per request
	mostQueue  = 4096             // queued spans; further ones are dropped
	mostTries  = 5
)

var retryPause = backoff.Exponential{First: time.Second, Most: 30 * time.Second}

// target is where spans are sent.
type target struct {
	url    string
	header http.Header
}

// CheckEndpoint returns an error for an address to which spans can't be sent.
func CheckEndpoint(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("want an address such as http://127.0.0.1:4318")
	}
	if u.User != nil {
		return errors.New("it contains a password, which everyone who can see the setting could read; use the environment variable OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// Send sets where spans are sent from now on; "" is nowhere. headers has the form of
// OTEL_EXPORTER_OTLP_HEADERS: name=value, separated by commas, with percent-encoded values.
func (t *Tracer) Send(endpoint, headers string) error {
	if endpoint == "" {
		t.to.Store(nil)
		return nil
	}
	if err := CheckEndpoint(endpoint); err != nil {
		return err
	}
	to := &target{url: strings.TrimRight(endpoint, "/") + "/v1/traces", header: http.Header{}}
	for pair := range strings.SplitSeq(headers, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return errors.New("OTEL_EXPORTER_OTLP_HEADERS is not a list of name=value") // the value is omitted, since it may be secret
		}
		to.header.Set(name, value)
	}
	to.header.Set("Content-Type", "application/json")
	to.header.Set("User-Agent", "nized/"+t.opt.Version)
	t.to.Store(to)
	return nil
}

// queue holds finished spans that are not sent yet.
type queue struct {
	wake chan struct{} // capacity 1: signals that the queue must be checked

	mu    sync.Mutex
	spans []*Span
	lost  int // since it was last logged
}

func newQueue() queue { return queue{wake: make(chan struct{}, 1)} }

func (q *queue) add(s *Span) {
	q.mu.Lock()
	if len(q.spans) < mostQueue {
		q.spans = append(q.spans, s)
	} else {
		q.lost++
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes the next batch.
func (q *queue) take() []*Span {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.spans), mostBatch)
	batch := q.spans[:n:n]
	if q.spans = q.spans[n:]; len(q.spans) == 0 {
		q.spans = nil
	}
	return batch
}

func (q *queue) takeLost() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.lost
	q.lost = 0
	return n
}

// Run sends spans until ctx ends, and then the remaining ones.
func (t *Tracer) Run(ctx context.Context) error {
	failing := ""
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-t.queue.wake:
		}
		select {
		case <-ctx.Done():
			continue
		case <-time.After(gatherTime):
		}
		for batch := t.queue.take(); len(batch) > 0 && ctx.Err() == nil; batch = t.queue.take() {
			err := t.send(ctx, batch, mostTries)
			switch {
			case err != nil && ctx.Err() == nil && err.Error() != failing: // log repeated errors once
				failing = err.Error()
				t.opt.Log.Warn("traces can't be sent and are lost", "err", err)
			case err == nil && failing != "":
				failing = ""
				t.opt.Log.Info("traces are sent again")
			}
			if n := t.queue.takeLost(); n > 0 {
				t.opt.Log.Warn("spans were lost because the collector is too slow", "spans", n)
			}
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer cancel()
	for batch := t.queue.take(); len(batch) > 0; batch = t.queue.take() {
		if t.send(last, batch, 1) != nil {
			return nil // the collector is unavailable; a stop does not wait for it
		}
	}
	return nil
}

// send posts a batch. It retries temporary errors.
func (t *Tracer) send(ctx context.Context, batch []*Span, tries int) error {
	to := t.to.Load()
	if to == nil {
		return nil // it was switched off in the meantime
	}
	body, err := json.Marshal(documentOf(batch, t.opt.Version))
	if err != nil {
		return fmt.Errorf("encoding spans: %w", err)
	}
	for try := 1; ; try++ {
		wait, err := t.post(ctx, to, body)
		if err == nil || wait < 0 || try >= tries || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(min(max(wait, retryPause.After(try)), retryPause.Most)):
		}
	}
}

// post sends one request. A negative wait means that a retry won't help.
func (t *Tracer) post(ctx context.Context, to *target, body []byte) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url, bytes.NewReader(body))
	if err != nil {
		return -1, fmt.Errorf("making the request: %w", err)
	}
	req.Header = to.header.Clone()
	resp, err := t.opt.Transport.RoundTrip(req) // no redirects: the headers are for this host
	if err != nil {
		return 0, fmt.Errorf("the collector can't be reached: %w", store.NetworkError(err))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // only the status matters
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	err = fmt.Errorf("the collector answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // a date is ignored
		return time.Duration(max(0, min(seconds, 3600))) * time.Second, err
	}
	return -1, err
}

// The document of OTLP over HTTP in JSON: ids in hex, 64-bit numbers as strings.
type (
	document struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope      `json:"scope"`
		Spans []spanJSON `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	spanJSON struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		Parent     string     `json:"parentSpanId,omitempty"`
		Flags      int        `json:"flags"`
		Name       string     `json:"name"`
		Kind       kind       `json:"kind"`
		Start      string     `json:"startTimeUnixNano"`
		End        string     `json:"endTimeUnixNano"`
		Attributes []keyValue `json:"attributes,omitempty"`
		Status     *status    `json:"status,omitempty"`
	}
	status struct {
		Code int `json:"code"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		Text   *string `json:"stringValue,omitempty"`
		Number *string `json:"intValue,omitempty"`
	}
)

const statusError = 2

func text(key, of string) keyValue { return keyValue{key, value{Text: &of}} }

func documentOf(batch []*Span, version string) document {
	spans := make([]spanJSON, len(batch))
	for i, s := range batch {
		j := spanJSON{TraceID: hex.EncodeToString(s.trace[:]), SpanID: hex.EncodeToString(s.id[:]), Flags: 1, Name: s.name, Kind: s.kind,
			Start: strconv.FormatInt(s.began.UnixNano(), 10), End: strconv.FormatInt(max(s.ended.UnixNano(), s.began.UnixNano()), 10)}
		if s.parent != [8]byte{} {
			j.Parent = hex.EncodeToString(s.parent[:])
		}
		for _, a := range s.attributes {
			if a.text != "" {
				j.Attributes = append(j.Attributes, text(a.key, a.text))
				continue
			}
			n := strconv.FormatInt(a.number, 10)
			j.Attributes = append(j.Attributes, keyValue{a.key, value{Number: &n}})
		}
		if s.fault != "" {
			j.Attributes = append(j.Attributes, text("error.type", s.fault))
			j.Status = &status{statusError}
		}
		spans[i] = j
	}
	return document{[]resourceSpans{{
		Resource:   resource{[]keyValue{text("service.name", "nized"), text("service.version", version)}},
		ScopeSpans: []scopeSpans{{scope{"nize", version}, spans}},
	}}}
}
