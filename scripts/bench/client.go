package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// callers is the number of concurrent callers in the figures on throughput.
const callers = 16

// crowd is the number of concurrent callers in the figure on memory.
const crowd = 64

// client is one session of the SDK's client.
type client struct {
	session *sdk.ClientSession
	meter   *meter
}

func connect(ctx context.Context, endpoint, token string) (*client, error) {
	c := &client{meter: &meter{token: token, base: &http.Transport{MaxIdleConnsPerHost: 4 * callers}}}
	mcp := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	var err error
	c.session, err = mcp.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: c.meter}},
		&sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", endpoint, err)
	}
	return c, nil
}

func (c *client) close() {
	_ = c.session.Close() // the measurement is over
	c.meter.base.CloseIdleConnections()
}

// call calls a tool and returns an error unless it succeeds.
func (c *client) call(ctx context.Context, name string, args any) error {
	result, err := c.session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return fmt.Errorf("calling %s: %w", name, err)
	}
	if result.IsError {
		return fmt.Errorf("calling %s: it failed: %s", name, text(result))
	}
	return nil
}

func text(r *sdk.CallToolResult) string {
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			return t.Text
		}
	}
	return "without a word"
}

// meter adds the bearer token and counts the bytes of answers to POSTs.
type meter struct {
	token string
	base  *http.Transport
	bytes atomic.Int64
}

func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+m.token)
	}
	resp, err := m.base.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost {
		resp.Body = &counted{resp.Body, &m.bytes}
	}
	return resp, err
}

type counted struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// work is one call of something.
type work func(ctx context.Context, i int) error

// p50 runs it n times sequentially and returns the median.
func p50(ctx context.Context, n int, do work) (time.Duration, error) {
	took := make([]time.Duration, n)
	for i := range took {
		begin := time.Now()
		if err := do(ctx, i); err != nil {
			return 0, err
		}
		took[i] = time.Since(begin)
	}
	return median(took), nil
}

// rate runs it n times with that many concurrent callers and returns the number per second.
func rate(ctx context.Context, callers, n int, do work) (float64, error) {
	var next atomic.Int64
	errs := make(chan error, callers) // one for each
	var running sync.WaitGroup
	begin := time.Now()
	for range callers {
		running.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := do(ctx, int(i)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	running.Wait()
	took := time.Since(begin)
	select {
	case err := <-errs:
		return 0, err
	default:
	}
	return float64(n) / took.Seconds(), nil
}
