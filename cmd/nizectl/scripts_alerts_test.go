package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
)

// hook FILE is a webhook: it writes its address to FILE.url, and each request
// that it takes to FILE. Under /refuse it takes none.
func hook() int {
	if err := hookServe(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "hook:", err)
		return 1
	}
	return 0
}

func hookServe(path string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	var mu sync.Mutex // one request at a time
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/refuse") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			if sign := r.Header.Get("Webhook-Signature"); sign != "" {
				fmt.Fprintf(f, "Webhook-Signature: %s\n", sign)
			}
			_, err = fmt.Fprintf(f, "%s\n", body)
		}
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	go func() { <-stop; srv.Close() }()
	if err := os.WriteFile(path+".url", []byte("http://"+ln.Addr().String()+"\n"), 0o600); err != nil {
		return err
	}
	if err := srv.Serve(ln); err != http.ErrServerClosed {
		return err
	}
	return f.Close()
}
