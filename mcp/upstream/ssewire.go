package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"nize/store"
)

// sseFrames are messages of the older HTTP+SSE transport (2024-11-05): what
// the server says comes as events of one long GET, what we say goes as POSTs
// to the address that its first event names.
type sseFrames struct {
	client *http.Client // adds headers, keeps to the registered host, bounds bodies
	target string
	body   io.ReadCloser
	er     *eventReader
	life   context.Context
	end    context.CancelFunc
	once   sync.Once
}

// dialSSE opens the stream and waits for the address. The context bounds the
// wait; the stream lives until close.
func dialSSE(ctx context.Context, address string, client *http.Client) (*sseFrames, error) {
	f := &sseFrames{client: client}
	f.life, f.end = context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, f.end)
	err := f.open(address)
	if !unhook() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		f.terminate(true)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return f, nil
}

func (f *sseFrames) open(address string) error {
	req, err := http.NewRequestWithContext(f.life, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("its URL: %w", withoutURL(err))
	}
	req.Header.Set("Accept", mediaStream)
	resp, err := f.client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	f.body, f.er = resp.Body, newEventReader(resp.Body)
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header.Get("Content-Type")) != mediaStream {
		return &statusError{status: resp.StatusCode, media: mediaType(resp.Header.Get("Content-Type"))}
	}
	ev, err := f.er.next()
	if err != nil {
		return fmt.Errorf("its first event: %w", err)
	}
	if ev.name != "endpoint" {
		return fmt.Errorf("its first event is %q, not the endpoint", store.Clip(ev.name, 40))
	}
	base, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("its URL: %w", withoutURL(err))
	}
	target, err := base.Parse(string(ev.data))
	if err != nil {
		return errors.New("its endpoint is no URL")
	}
	if target.Scheme != base.Scheme || target.Host != base.Host {
		return fmt.Errorf("its endpoint is on %s, another host than the registered one", store.Clip(target.Host, 100))
	}
	f.target = target.String()
	return nil
}

// statusError is an answer that is no MCP.
type statusError struct {
	status int
	media  string
}

func (e *statusError) Error() string {
	if e.status == http.StatusOK {
		return fmt.Sprintf("it answered with %q instead of an event stream", store.Clip(e.media, 60))
	}
	return fmt.Sprintf("it answered %d %s", e.status, http.StatusText(e.status))
}

func (f *sseFrames) read() ([]byte, error) {
	for {
		ev, err := f.er.next()
		switch {
		case errors.Is(err, errTooLarge):
			return nil, fmt.Errorf("it sent %w", err)
		case err != nil:
			return nil, fmt.Errorf("its event stream ended: %w", err)
		case ev.name == "" || ev.name == "message":
			return bytes.Clone(ev.data), nil
		}
	}
}

func (f *sseFrames) write(ctx context.Context, msg []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.target, bytes.NewReader(msg))
	if err != nil {
		return &fault{reach: never, drop: true, err: withoutURL(err)}
	}
	req.Header.Set("Content-Type", mediaJSON)
	resp, err := f.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return &fault{reach: maybe, err: ctx.Err()}
		}
		return netFault(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	status := &statusError{status: resp.StatusCode}
	switch {
	case resp.StatusCode >= 500:
		return &fault{reach: maybe, drop: true, err: status}
	default: // turned away at the door
		return &fault{reach: never, drop: true, err: status}
	}
}

func (f *sseFrames) terminate(bool) {
	f.once.Do(func() {
		f.end()
		if f.body != nil {
			f.body.Close()
		}
	})
}

func (f *sseFrames) pid() int { return 0 }

// endingFrames ends what else belongs to the frames.
type endingFrames struct {
	*sseFrames
	end context.CancelCauseFunc
}

func (f *endingFrames) terminate(kill bool) {
	f.sseFrames.terminate(kill)
	f.end(errEnded)
}
