// Command addhdr is a loopback proxy that adds one header to every request.
//
// The conformance runner has no option for a bearer token; through this proxy it can test a
// server that requires one.
//
// It must not weaken the tests, so Host and Origin are forwarded unchanged, with one
// exception: if they name this proxy's own address, they are replaced by the target's, as
// if there were no proxy. Those that name another host (DNS rebinding) are unchanged.
//
// The header is in the variable ADDHDR ("Authorization: Bearer …"), since anyone on a
// machine can read a command line. The proxy prints its address and ends with its standard
// input.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"
)

func main() {
	to := flag.String("to", "", "`URL` of the server, such as http://127.0.0.1:19560")
	flag.Parse()
	if err := run(*to, os.Getenv("ADDHDR")); err != nil {
		fmt.Fprintf(os.Stderr, "addhdr: %v\n", err)
		os.Exit(1)
	}
}

func run(to, header string) error {
	target, err := url.Parse(to)
	if err != nil || target.Host == "" {
		return fmt.Errorf("-to %q: want the URL of a server", to)
	}
	name, value, ok := strings.Cut(header, ":")
	if !ok {
		return errors.New("the variable ADDHDR holds no header: want Name: value")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		return fmt.Errorf("reading the listener's address: %w", err)
	}
	fmt.Println(ln.Addr())
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, // event streams
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		ErrorLog:      log.New(io.Discard, "", 0), // don't log that a client disconnected
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = translate(r.In.Host, port, target.Port())
			if origin, err := url.Parse(r.In.Header.Get("Origin")); err == nil && origin.Host != "" {
				origin.Host = translate(origin.Host, port, target.Port())
				r.Out.Header.Set("Origin", origin.String())
			}
			r.Out.Header.Set(strings.TrimSpace(name), strings.TrimSpace(value))
		},
	}
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: whole(proxy)}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // only its end matters
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // streams are cut
		}
	}()
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// maxBody limits a request, as the SDK's servers do.
const maxBody = 4 << 20

// whole reads each request to its end before it is forwarded. Otherwise a fast server
// responds while the transport still waits for the end of the body; the first byte of the
// response makes our side close that body, the transport treats that as an error and cuts
// the connection, and the response with it.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, r)
	})
}

// translate replaces a loopback name with this proxy's port by the same with the target's.
func translate(host, own, target string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil || port != own {
		return host
	}
	if ip := net.ParseIP(name); name != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return host
	}
	return net.JoinHostPort(name, target)
}
