package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"nize/store"
)

// What a client of net/http says of a network is a sentence, holds no address that
// was asked, and is the same error still.
func TestNetworkError(t *testing.T) {
	get := func(ctx context.Context, address string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"?key=secret", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = nil
	breaks := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer breaks.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for name, c := range map[string]struct {
		err  error
		want string
		is   error
	}{
		"refused":     {get(t.Context(), "http://"+closed+"/"), "nothing listens at " + closed, syscall.ECONNREFUSED},
		"no host":     {&net.OpError{Op: "dial", Err: &net.DNSError{Name: "nosuch.invalid", IsNotFound: true}}, "there is no host nosuch.invalid", nil},
		"no resolver": {&net.OpError{Op: "dial", Err: &net.DNSError{Name: "far.example", IsTemporary: true}}, "the host name far.example can't be looked up now", nil},
		"certificate": {get(t.Context(), secure.URL), "its certificate is not accepted (x509: certificate signed by unknown authority)", nil},
		"broken off":  {get(t.Context(), breaks.URL), "the connection broke off", io.EOF},
		"too late":    {get(late, breaks.URL), "no answer came in time", context.DeadlineExceeded},
		"no network":  {fmt.Errorf("reading: %w", io.ErrNoProgress), "reading: " + io.ErrNoProgress.Error(), io.ErrNoProgress},
	} {
		got := store.NetworkError(c.err)
		if got == nil || got.Error() != c.want || strings.Contains(fmt.Sprintf("%v", got), "secret") || c.is != nil && !errors.Is(got, c.is) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
