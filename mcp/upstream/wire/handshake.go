package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"nize/store/eventstream"
)

// The SDK ends a connection whose first responses break the protocol. Servers of the older
// protocol answer server/discover, which they don't know, in many ways, and some answer
// initialize sloppily. These responses are read here instead, and the SDK gets an answer
// that it understands. TestHabitsOfHandshakes has the responses that make the SDK fail.

const (
	// probeTime is the timeout for messages that older servers leave unanswered:
	// notifications, and the headers of the standing stream.
	probeTime = 2 * time.Second
	// discoverTime is the timeout for server/discover. It is shorter, so that a server
	// which does not answer it gets initialize within probeTime.
	discoverTime = 3 * probeTime / 4
)

// sentMessage returns the message in a request of the SDK, or the zero envelope if it has
// none.
func sentMessage(req *http.Request) envelope {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return envelope{}
	}
	body, err := req.GetBody()
	if err != nil {
		return envelope{}
	}
	defer body.Close()
	msg, err := io.ReadAll(body)
	if err != nil {
		return envelope{}
	}
	e, err := openEnvelope(msg)
	if err != nil {
		return envelope{}
	}
	return e
}

// discover sends the probe for 2026-07-28. If the response is not one of that protocol, it
// returns to the SDK the error of a server that doesn't know the method, so that it
// continues with initialize.
func (t *RoundTripper) discover(req *http.Request, id []byte) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	timer := time.AfterFunc(discoverTime, cancel)
	defer timer.Stop()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { timer.Reset(discoverTime) }})
	resp, err := t.pass(req.WithContext(ctx))
	if err != nil {
		t.Trouble.Store(true)
		if ctx.Err() == nil || req.Context().Err() != nil {
			return nil, err
		}
		t.silent.Store(true)
		t.clearFailure()
		return answerWith(req, nil, unknownMethod(id)), nil
	}
	defer resp.Body.Close()
	t.Trouble.Store(resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests)
	if denied(resp) {
		head, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) //nolint:errcheck // an error response, even if it is cut off
		resp.Body = io.NopCloser(bytes.NewReader(head))
		return resp, nil
	}
	e, err := t.readAnswer(resp, id)
	if err != nil && ctx.Err() != nil && req.Context().Err() == nil {
		t.Trouble.Store(true)
		t.silent.Store(true)
	}
	switch {
	case err == nil && e.fault == nil:
		return answerWith(req, nil, envelopeOf(id, "result", e.result)), nil
	case err == nil && openError(e.fault).Code == codeVersion:
		return answerWith(req, nil, envelopeOf(id, "error", e.fault)), nil
	}
	return answerWith(req, nil, unknownMethod(id)), nil
}

// initialize sends the first request of the older protocol. The time that its response
// takes distinguishes a server that was silent because it doesn't know server/discover from
// one that is slow or still starting.
func (t *RoundTripper) initialize(req *http.Request, id []byte) (*http.Response, error) {
	t.clearFailure()
	begin := time.Now()
	resp, err := t.pass(req)
	if err != nil || resp.StatusCode >= 300 {
		return resp, err
	}
	defer resp.Body.Close()
	e, err := t.readAnswer(resp, id)
	if nothing := emptyAnswer(0); errors.As(err, &nothing) {
		e, err = t.answerOverStream(req, resp, id, err)
	}
	switch {
	case err != nil:
		t.fail(err)
		return nil, err
	case e.fault != nil:
		refused := error(openError(e.fault))
		t.fail(refused)
		return answerWith(req, resp.Header, envelopeOf(id, "error", e.fault)), nil
	case !json.Valid(e.result) || len(e.result) == 0:
		err := errors.New("it answered initialize without a result")
		t.fail(err)
		return nil, err
	}
	if t.silent.Load() && time.Since(begin) < probeTime/4 {
		t.Trouble.Store(false)
	}
	return answerWith(req, resp.Header, envelopeOf(id, "result", e.result)), nil
}

// readAnswer reads the response to a request of the SDK.
func (t *RoundTripper) readAnswer(resp *http.Response, id []byte) (envelope, error) {
	number, ok := readID(id)
	if !ok {
		return envelope{}, fmt.Errorf("the id %s of our own request is not a number", id)
	}
	e, events, err := answerIn(resp, number, t.Hide)
	if events != nil {
		return t.readEvents(newEventReader(events), resp, number)
	}
	return e, err
}

// readEvents reads a stream until the answer. Other events are ignored before the session
// is open, except pings.
func (t *RoundTripper) readEvents(er *eventReader, resp *http.Response, id uint64) (envelope, error) {
	quests := 0
	return findEvent(er, id, t.Hide, func(e envelope, _ int) error {
		if e.method == "" || e.id == nil {
			return nil
		}
		if quests++; quests > maxServerRequests {
			return fmt.Errorf("it asked more than %d things before it answered", maxServerRequests)
		}
		t.reply(resp, replyTo(e))
		return nil
	})
}

// reply answers a request that a server made in its response to initialize.
func (t *RoundTripper) reply(to *http.Response, msg []byte) {
	ctx, cancel := context.WithTimeout(to.Request.Context(), noticeTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Request.URL.String(), bytes.NewReader(msg))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", mediaJSON)
	req.Header.Set("Accept", acceptBoth)
	if session := to.Header.Get(headerSession); session != "" {
		req.Header.Set(headerSession, session)
	}
	resp, err := t.pass(req)
	if err != nil {
		return // the server asks again, or gives up
	}
	resp.Body.Close()
}

// notify sends a notification of the SDK. Servers that don't know it refuse it or never
// answer; neither affects the session.
func (t *RoundTripper) notify(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), probeTime)
	defer cancel()
	resp, err := t.pass(req.WithContext(ctx))
	switch {
	case err != nil && (ctx.Err() == nil || req.Context().Err() != nil):
		return nil, err
	case err != nil: // no response
	case denied(resp) || redirects(resp):
		head, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) //nolint:errcheck // an error response, even if it is cut off
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(head))
		return resp, nil
	default:
		resp.Body.Close()
	}
	t.clearFailure()
	return acceptedBy(req), nil
}

// acceptedBy returns our own response to a notification of the SDK.
func acceptedBy(req *http.Request) *http.Response {
	resp := answerWith(req, nil, nil)
	resp.StatusCode, resp.Status = http.StatusAccepted, "202 Accepted"
	return resp
}

// streamTime is the timeout for an answer to initialize that a server sends over the
// standing stream. The server has accepted the request, so it is alive.
const streamTime = 5 * time.Second

// answerOverStream opens the standing stream and waits on it for the answer to initialize.
// Some servers accept the request with an empty response, as servers of the transport
// before Streamable HTTP do. The stream is kept for the SDK, because many servers allow one
// per session. nothing is the error of the empty response.
func (t *RoundTripper) answerOverStream(req *http.Request, accepted *http.Response, id []byte, nothing error) (envelope, error) {
	number, _ := readID(id) // readAnswer has validated it
	ctx, cancel := context.WithCancel(t.Life)
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, req.URL.String(), nil)
	if err != nil {
		cancel()
		return envelope{}, nothing
	}
	get.Header.Set("Accept", mediaStream)
	if session := accepted.Header.Get(headerSession); session != "" {
		get.Header.Set(headerSession, session)
	}
	var e envelope
	var stream *readableStream
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		var resp *http.Response
		if resp, err = t.pass(get); err != nil {
			return
		}
		if !isStream(resp) {
			_ = resp.Body.Close() // not used
			err = fmt.Errorf("%w, and has no stream for its answer: GET is answered %d %s", nothing, resp.StatusCode, http.StatusText(resp.StatusCode))
			return
		}
		stream = newReadableStream(resp.Body, &t.Answers)
		e, err = t.readEvents(stream.events, accepted, number)
		if err == nil && e.fault != nil && openError(e.fault).Code == jsonrpc.CodeMethodNotFound {
			// It was the answer to server/discover, which has the same id.
			e, err = t.readEvents(stream.events, accepted, number)
		}
		if err != nil {
			err = fmt.Errorf("%w; on its stream for that: %w", nothing, err)
		}
	}()
	timer := time.NewTimer(streamTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		cancel()
		<-done
		err = fmt.Errorf("%w, and over its stream no answer came within %s", nothing, streamTime)
	case <-req.Context().Done():
		cancel()
		<-done
		err = req.Context().Err()
	}
	if err != nil {
		cancel()
		if stream != nil {
			_ = stream.Close() // not used
		}
		return envelope{}, err
	}
	t.clearFailure()
	t.early.Store(&earlyStream{stream, cancel})
	return e, nil
}

// earlyStream is a standing stream that was opened before the SDK requested it.
type earlyStream struct {
	*readableStream
	cancel context.CancelFunc
}

func (s *earlyStream) Close() error {
	s.cancel()
	return s.readableStream.Close()
}

// stand opens the standing stream. The SDK waits for its headers, which some servers send
// with the first event; after probeTime it continues without them.
func (t *RoundTripper) stand(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Accept") != mediaStream {
		return t.pass(req)
	}
	if early := t.early.Swap(nil); early != nil {
		context.AfterFunc(req.Context(), early.cancel)
		t.Answers.open()
		resp := answerWith(req, nil, nil)
		resp.Header.Set("Content-Type", mediaStream)
		resp.Body, resp.ContentLength = early, -1
		return resp, nil
	}
	ctx, cancel := context.WithCancel(req.Context())
	late := &lateStream{ctx: ctx, cancel: cancel, answers: &t.Answers, opened: make(chan struct{})}
	go func() { // ends with ctx, when the stream is closed at the latest
		defer close(late.opened)
		late.resp, late.err = t.pass(req.WithContext(ctx))
	}()
	timer := time.NewTimer(probeTime)
	defer timer.Stop()
	select {
	case <-late.opened:
		if late.err != nil {
			cancel()
			return nil, late.err
		}
		resp := *late.resp
		if resp.StatusCode == http.StatusInternalServerError || resp.StatusCode == http.StatusNotImplemented {
			// The server has no such stream, and reports that in an unusual way.
			resp.StatusCode, resp.Status = http.StatusMethodNotAllowed, "405 Method Not Allowed"
		}
		if isStream(&resp) {
			t.Answers.open()
		}
		resp.Body = late
		return &resp, nil
	case <-timer.C:
		late.mute = true
		t.Answers.open()
		resp := answerWith(req, nil, nil)
		resp.Header.Set("Content-Type", mediaStream)
		resp.Body, resp.ContentLength = late, -1
		return resp, nil
	}
}

// lateStream is the body of a response whose headers may not have arrived yet.
type lateStream struct {
	ctx     context.Context // of the request, which lives as long as the stream
	cancel  context.CancelFunc
	answers *StandingAnswers
	mute    bool          // the SDK did not wait for the headers
	opened  chan struct{} // closed when resp and err are set
	resp    *http.Response
	err     error

	reading sync.Once
	body    io.Reader // source of Read, set at the first read
}

// Read waits for the response. A late response that is not an event stream blocks like one
// that never arrived, because the SDK would treat its end as the session's.
func (l *lateStream) Read(p []byte) (int, error) {
	<-l.opened
	if l.mute && (l.err != nil || !isStream(l.resp)) {
		<-l.ctx.Done()
		return 0, l.ctx.Err()
	}
	if l.err != nil {
		return 0, l.err
	}
	l.reading.Do(func() {
		l.body = l.resp.Body
		if mediaType(l.resp.Header.Get("Content-Type")) == mediaStream {
			l.body = newReadableStream(l.resp.Body, l.answers)
		}
	})
	return l.body.Read(p)
}

func (l *lateStream) Close() error {
	l.cancel()
	<-l.opened
	if l.err != nil {
		return nil
	}
	return l.resp.Body.Close()
}

// isStream reports whether a response is an event stream.
func isStream(resp *http.Response) bool {
	return resp.StatusCode == http.StatusOK && mediaType(resp.Header.Get("Content-Type")) == mediaStream
}

// clearFailure clears the error of an earlier request, unless the request was denied.
func (t *RoundTripper) clearFailure() {
	if !t.turnedAway.Load() {
		t.Failure.Store(nil)
	}
}

// answerWith returns our own response to a request of the SDK, with the session id of the
// server's headers.
func answerWith(req *http.Request, header http.Header, body []byte) *http.Response {
	h := http.Header{"Content-Type": {mediaJSON}}
	if session := header.Get(headerSession); session != "" {
		h.Set(headerSession, session)
	}
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req}
}

// envelopeOf returns a response with a result or an error.
func envelopeOf(id []byte, member string, value json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%q:%s}`, id, member, value)
}

func unknownMethod(id []byte) []byte {
	return envelopeOf(id, "error", json.RawMessage(`{"code":-32601,"message":"it is not known"}`))
}

// readableStream is an event stream for the SDK without the events that it can't decode,
// for which it would end the session: heartbeats, text, JSON that is not JSON-RPC. A
// notification without the JSON-RPC version gets it. Answers to our own requests go to
// answers.
type readableStream struct {
	io.Closer
	events  *eventReader
	answers *StandingAnswers
	out     bytes.Buffer
}

func newReadableStream(body io.ReadCloser, answers *StandingAnswers) *readableStream {
	return &readableStream{Closer: body, events: newEventReader(body), answers: answers}
}

func (s *readableStream) Read(p []byte) (int, error) {
	for s.out.Len() == 0 {
		ev, err := s.events.next()
		if err != nil {
			return 0, err
		}
		data := ev.data
		if e, err := openMessage(data, nil); err == nil && s.answers.deliver(e) {
			continue
		}
		if _, err := jsonrpc.DecodeMessage(data); err != nil {
			e, err := openMessage(data, nil)
			if err != nil || e.method == "" || e.id != nil {
				continue
			}
			data = notificationOf(e)
		}
		s.out.Write(eventstream.Event{ID: s.events.lastID, Retry: s.events.retry, Name: ev.name, Data: data}.Append(nil))
	}
	return s.out.Read(p)
}

// notificationOf returns the notification in strict form.
func notificationOf(e envelope) []byte {
	b := appendString([]byte(`{"jsonrpc":"2.0","method":`), e.method)
	if len(e.params) > 0 && e.params[0] == '{' {
		b = append(append(b, `,"params":`...), e.params...)
	}
	return append(b, '}')
}
