package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"nize/store"
)

// streams holds event readers for responses that are streams.
var streams = sync.Pool{New: func() any { return newEventReader(nil) }}

// streamError is the error of a stream that ended before the answer, or that can't be read.
type streamError struct{ error }

func (e streamError) Unwrap() error { return e.error }

// findEvent reads events until the answer to the request with this id. It passes other
// messages to other, with their size; an event that is not a message is empty.
func findEvent(er *eventReader, id uint64, hide Hide, other func(e envelope, size int) error) (envelope, error) {
	var unread []byte // the last event that could not be read
	for {
		ev, err := er.next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("its stream ended before the answer")
			if unread != nil {
				err = fmt.Errorf("%w; it sent %s", err, hide.quote(unread))
			}
		}
		if err != nil {
			return envelope{}, streamError{err}
		}
		e, err := openMessage(ev.data, hide)
		switch {
		case err != nil && attemptsAnswer(bytes.TrimSpace(ev.data)):
			// An unreadable answer is the answer: don't wait for another.
			return e, fmt.Errorf("an event that is not a JSON-RPC message: %w", err)
		case err != nil: // a heartbeat, for example
			e, unread = envelope{}, bytes.Clone(ev.data[:min(len(ev.data), 8<<10)])
		case e.answers(id):
			e.result, e.fault = bytes.Clone(e.result), bytes.Clone(e.fault)
			return e, nil
		}
		if err := other(e, len(ev.data)); err != nil {
			return e, err
		}
	}
}

// stream reads events until the answer to the request with this id. A stream that ends
// before it is resumed if its events had ids (SEP-1699).
func (w *HTTPConn) stream(ctx context.Context, events io.Reader, id uint64, r *Request) (json.RawMessage, error) {
	er := streams.Get().(*eventReader)
	defer func() {
		er.reset(nil)
		streams.Put(er)
	}()
	spend := func(n int) error { return w.trip.Budget.Spend(n, ctx.Done()) }
	er.reset(events)
	er.skip = spend
	quests, tries := 0, 0
	other := func(e envelope, size int) error {
		if err := spend(size + lineCost); err != nil {
			return err
		}
		switch {
		case e.method != "" && e.id != nil:
			if quests++; quests > maxServerRequests {
				return fmt.Errorf("it asked more than %d things during one call", maxServerRequests)
			}
			e.id, e.params = bytes.Clone(e.id), bytes.Clone(e.params)
			w.spawn(func() { w.send(r.asked(ctx, e)) })
		case e.method != "":
			w.passProgress(e, id, r)
		}
		tries = 0
		return nil
	}
	for {
		e, err := findEvent(er, id, w.trip.Hide, other)
		if err == nil {
			return e.answer()
		}
		if !errors.As(err, new(streamError)) || er.lastID == "" || w.modern || ctx.Err() != nil || tries >= 5 || errors.Is(err, errTooLarge) || errors.As(err, new(*NoiseError)) {
			return nil, &Fault{Reach: Maybe, Drop: true, Err: err}
		}
		tries++
		last := er.lastID
		again, err := w.resume(ctx, last, max(er.retry, 100*time.Millisecond))
		if err != nil {
			return nil, err
		}
		defer again.Body.Close()
		er.reset(again.Body)
		er.skip, er.lastID = spend, last
	}
}

// passProgress passes on a progress notification of this request; others are not for this
// caller.
func (w *HTTPConn) passProgress(e envelope, id uint64, r *Request) {
	if e.method != "notifications/progress" || r.Progress == nil {
		return
	}
	if n, ok := progressOf(e.params); ok && n == id {
		r.Progress(e.params)
	}
}

// resume requests the rest of a stream.
func (w *HTTPConn) resume(ctx context.Context, last string, after time.Duration) (*http.Response, error) {
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return nil, &Fault{Reach: Maybe, Err: ctx.Err()}
	}
	header, err := w.headerFor(ctx, &Request{})
	if err != nil {
		return nil, err
	}
	header = header.Clone()
	header.Set("Accept", mediaStream)
	header.Set(headerLast, last)
	header.Del("Content-Type")
	at := w.trip.Address(w.url)
	req := (&http.Request{Method: http.MethodGet, URL: at, Host: at.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header}).WithContext(ctx)
	resp, err := w.trip.Base.RoundTrip(req)
	if err != nil {
		return nil, &Fault{Reach: Maybe, Drop: true, Err: store.NetworkError(err)}
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header.Get("Content-Type")) != mediaStream {
		resp.Body.Close()
		return nil, &Fault{Reach: Maybe, Drop: true, Err: fmt.Errorf("its stream ended before the answer, and it answered %d to the rest of it", resp.StatusCode)}
	}
	return resp, nil
}
