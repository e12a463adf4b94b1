package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"nize/mcp/upstream/process"
	"nize/store"
)

// sseFrames carries messages over the older HTTP+SSE transport (2024-11-05): the server's
// messages are events of one long GET, and ours are POSTs to the URL that its first event
// names.
//
// The SDK's transport is not used: it ends a session for a heartbeat or an answer that is
// not to the letter, and sends its messages wherever the first event points
// (TestHabitsOverSSE).
type sseFrames struct {
	client *http.Client // adds headers, restricts requests to the registered host, limits bodies
	hide   Hide
	budget *Budget // for events that are not messages
	target string
	body   io.ReadCloser
	er     *eventReader
	life   context.Context
	end    context.CancelFunc
	once   sync.Once
	ended  context.CancelCauseFunc // ends the rest of the session; nil until it is open
}

// DialSSE opens the stream and waits for the URL. ctx limits the wait; the stream lives
// until Terminate, which ends trip's life with [ErrEnded].
func DialSSE(ctx context.Context, address string, trip *RoundTripper, budget *Budget) (Frames, error) {
	f := &sseFrames{client: clientOf(passing{trip}), hide: trip.Hide, budget: budget}
	f.life, f.end = context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, f.end)
	err := f.open(address)
	if !unhook() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		f.Terminate(true)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	f.ended = trip.End
	return f, nil
}

func (f *sseFrames) open(address string) error {
	req, err := http.NewRequestWithContext(f.life, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("its URL: %w", store.NetworkError(err))
	}
	req.Header.Set("Accept", mediaStream)
	resp, err := f.client.Do(req)
	if err != nil {
		return store.NetworkError(err)
	}
	f.body, f.er = resp.Body, newEventReader(resp.Body)
	f.er.skip = f.spend
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header.Get("Content-Type")) != mediaStream {
		return statusError(resp, f.hide)
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
		return fmt.Errorf("its URL: %w", store.NetworkError(err))
	}
	target, err := base.Parse(string(ev.data))
	if err != nil {
		return errors.New("its endpoint is not a URL")
	}
	if target.Scheme != base.Scheme || target.Host != base.Host {
		return fmt.Errorf("its endpoint is on %s, another host than the registered one", store.Clip(target.Host, 100))
	}
	f.target = target.String()
	return nil
}

// StatusError is a response that is not MCP.
type StatusError struct {
	Status int
	Target string // of a redirect that is not followed, without its query
	media  string
	said   string // the text of its body, quoted
	text   string // if "", built from the other fields
}

func (e *StatusError) Error() string {
	if e.text != "" {
		return e.text
	}
	if e.Status == http.StatusOK {
		return fmt.Sprintf("it answered with %q instead of an event stream", store.Clip(e.media, 60))
	}
	text := strings.TrimSpace(fmt.Sprintf("it answered %d %s", e.Status, http.StatusText(e.Status)))
	if e.Target != "" {
		text += " to " + e.Target
	}
	if e.said != "" {
		text += ": " + e.said
	}
	return text
}

func (f *sseFrames) read() (msg []byte, afterText bool, err error) {
	for {
		ev, err := f.er.next()
		switch {
		case errors.Is(err, errTooLarge):
			return nil, false, fmt.Errorf("it sent %w", err)
		case errors.As(err, new(*NoiseError)):
			return nil, false, err
		case err != nil:
			return nil, false, fmt.Errorf("its event stream ended: %w", err)
		case ev.name == "" || ev.name == "message":
			return bytes.Clone(ev.data), false, nil
		}
		if err := f.spend(len(ev.data) + lineCost); err != nil {
			return nil, false, err
		}
	}
}

func (f *sseFrames) spend(n int) error { return f.budget.Spend(n, f.life.Done()) }

func (f *sseFrames) write(ctx context.Context, msg []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.target, bytes.NewReader(msg))
	if err != nil {
		return &Fault{Reach: Never, Drop: true, Err: store.NetworkError(err)}
	}
	req.Header.Set("Content-Type", mediaJSON)
	resp, err := f.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return &Fault{Reach: Maybe, Err: ctx.Err()}
		}
		return netFault(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	status := statusError(resp, f.hide)
	switch {
	case resp.StatusCode >= 500:
		return &Fault{Reach: Maybe, Drop: true, Err: status}
	default: // rejected before it was handled
		return &Fault{Reach: Never, Drop: true, Err: status}
	}
}

func (f *sseFrames) Terminate(bool) {
	f.once.Do(func() {
		f.end()
		if f.body != nil {
			f.body.Close()
		}
		if f.ended != nil {
			f.ended(ErrEnded)
		}
	})
}

func (f *sseFrames) Child() process.Child { return nil }
