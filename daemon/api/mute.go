package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// A request may take minutes, so it has no deadline. But a stopped nized, or another
// program on its socket, accepts connections and never responds. If a request gets no
// response for a while, the client therefore sends a probe on a separate connection, which
// nized answers immediately. If the probe gets no response either, the client gives the
// request up.

// patience is a client's timeouts.
type patience struct {
	after time.Duration // time without a response until the first probe
	probe time.Duration // timeout of a probe
	rest  time.Duration // interval between probes
}

var usualPatience = patience{after: 2 * time.Second, probe: 6 * time.Second, rest: 10 * time.Second}

// probePath is no operation's path: any nized responds with 404.
const probePath = "/v1/probe"

// Mute returns the error for a socket that accepts connections but never responds.
func Mute(socket string, after time.Duration) error {
	return &Error{Code: "timeout", Message: fmt.Sprintf("%s accepts connections, but nothing answered within %s: is nized stopped, or is another program listening there? What was asked for may still be done if it goes on", socket, after)}
}

var errMute = errors.New("no answer to a probe")

// Probe returns nil if a daemon responds, with any status.
func (c *Client) Probe(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://"+Host+probePath, nil)
	if err != nil {
		return err
	}
	req.Header.Set(VersionHeader, Version)
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// dialRoom connects to a socket. If its connection queue is full, it retries until the
// dialer's timeout: the daemon may only be busy.
func dialRoom(ctx context.Context, dialer *net.Dialer, socket string) (net.Conn, error) {
	begin := time.Now()
	for {
		conn, err := dialer.DialContext(ctx, "unix", socket)
		if !errors.Is(err, syscall.EAGAIN) || time.Since(begin) > dialer.Timeout {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// do sends a request, and gives it up if the socket's listener is unresponsive.
func (c *Client) do(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	watching, answered := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if c.watch(watching) {
			cancel(errMute)
		}
	}()
	resp, err := c.http.Do(req.WithContext(ctx))
	answered()
	<-watched
	switch {
	case err == nil:
		resp.Body = endingBody(resp.Body, cancel)
		return resp, nil
	case errors.Is(context.Cause(ctx), errMute):
		err = Mute(c.at(), c.patience.after+c.patience.probe)
	}
	cancel(nil)
	return nil, err
}

// watch probes the socket until ctx ends; it returns true if the socket does not respond.
func (c *Client) watch(ctx context.Context) (mute bool) {
	timer := time.NewTimer(c.patience.after)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
		if err := c.Probe(ctx, c.patience.probe); ctx.Err() == nil && isMute(err) {
			return true
		}
		timer.Reset(c.patience.rest)
	}
}

// isMute reports whether err is that of a socket that accepts connections, or has a full
// queue, and does not respond.
func isMute(err error) bool {
	var slow net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.EAGAIN) || errors.As(err, &slow) && slow.Timeout()
}

// endingBody returns a body that cancels its request's context when it is closed. The body
// of an upgraded connection is also a writer.
func endingBody(body io.ReadCloser, cancel context.CancelCauseFunc) io.ReadCloser {
	if rw, ok := body.(io.ReadWriteCloser); ok {
		return &endingConn{rw, cancel}
	}
	return &ending{body, cancel}
}

type ending struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (e *ending) Close() error {
	defer e.cancel(nil)
	return e.ReadCloser.Close()
}

type endingConn struct {
	io.ReadWriteCloser
	cancel context.CancelCauseFunc
}

func (e *endingConn) Close() error {
	defer e.cancel(nil)
	return e.ReadWriteCloser.Close()
}
