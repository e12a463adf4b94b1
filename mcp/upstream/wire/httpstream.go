package wire

import (
	"bytes"
	"cmp"
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

// stream reads events until the answer to the request with this id. A stream that ends
// before it is resumed if its events had ids (SEP-1699).
func (w *HTTPConn) stream(ctx context.Context, resp *http.Response, id uint64, r *Request) (json.RawMessage, error) {
	er := streams.Get().(*eventReader)
	defer func() {
		er.reset(nil)
		streams.Put(er)
	}()
	var unread []byte // the last event that could not be read
	spend := func(n int) error { return w.trip.Budget.Spend(n, ctx.Done()) }
	er.reset(resp.Body)
	er.skip = spend
	quests := 0
	for tries := 0; ; {
		ev, err := er.next()
		if err != nil {
			if er.lastID == "" || w.modern || ctx.Err() != nil || tries >= 5 || errors.Is(err, errTooLarge) || errors.As(err, new(*NoiseError)) {
				return nil, w.streamFault(err, unread)
			}
			tries++
			again, err := w.resume(ctx, er.lastID, max(er.retry, 100*time.Millisecond))
			if err != nil {
				return nil, err
			}
			defer again.Body.Close()
			last := er.lastID
			er.reset(again.Body)
			er.skip, er.lastID = spend, last
			continue
		}
		var e envelope
		if ev.name == "" || ev.name == "message" {
			if e, err = openMessage(ev.data, w.trip.Hide); err != nil {
				// A heartbeat, for example. But an unreadable answer is the answer: don't
				// wait for another.
				if text := bytes.TrimSpace(ev.data); attemptsAnswer(text) {
					return nil, &Fault{Reach: Maybe, Drop: true, Err: fmt.Errorf("an event that is not a JSON-RPC message: %w", err)}
				}
				unread = bytes.Clone(ev.data[:min(len(ev.data), 8<<10)])
			}
			if err == nil && e.answers(id) {
				result, err := e.answer()
				return bytes.Clone(result), err
			}
		}
		if err := spend(len(ev.data) + lineCost); err != nil {
			return nil, &Fault{Reach: Maybe, Drop: true, Err: err}
		}
		switch {
		case e.method != "" && e.id != nil:
			if quests++; quests > maxServerRequests {
				return nil, &Fault{Reach: Maybe, Drop: true, Err: fmt.Errorf("it asked more than %d things during one call", maxServerRequests)}
			}
			e.id, e.params = bytes.Clone(e.id), bytes.Clone(e.params)
			w.spawn(func() { w.send(r.asked(ctx, e)) })
		case e.method != "":
			w.passProgress(e, id, r)
		}
		tries = 0
	}
}

// passProgress passes on a progress notification of this request; others are not for this
// caller.
func (w *HTTPConn) passProgress(e envelope, id uint64, r *Request) {
	if e.method != "notifications/progress" || r.Progress == nil {
		return
	}
	if n, ok := progressOf(e.params); ok && n == cmp.Or(r.token, id) {
		r.Progress(e.params)
	}
}

func (w *HTTPConn) streamFault(err error, unread []byte) error {
	if errors.Is(err, errTooLarge) {
		return &Fault{Reach: Maybe, Drop: true, Err: errTooLarge}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("its stream ended before the answer")
		if unread != nil {
			err = fmt.Errorf("%w; it sent %s", err, w.trip.Hide.quote(unread))
		}
	}
	return &Fault{Reach: Maybe, Drop: true, Err: err}
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
