// Command nize-toolbox is a small MCP server of everyday tools: clocks and
// zones, dates, units, arithmetic, dice, text, and a notebook that really
// writes. It serves the first run of nize, its demo and its tests, and as an
// example of a server that a gateway likes: every parameter is described,
// every answer comes as text and as structured content with a schema, the
// annotations are true, and an error says what to do instead.
//
// It speaks stdio, and with --http Streamable HTTP on loopback. It has no
// network, no configuration and one file: the notebook.
//
// The tools are one table (tools.go); each file holds the tools of one field.
// Arguments are decoded straight into structs and never pass through float64,
// so that 9007199254740993 stays what it is; the SDK's typed AddTool would
// round it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const usage = `nize-toolbox is an MCP server of everyday tools: time zones, dates, units,
arithmetic, dice, text and a notebook.

Usage:
  nize-toolbox                          serve stdio until it ends
  nize-toolbox --http 127.0.0.1:PORT    serve Streamable HTTP at /mcp (PORT 0 picks one)

Flags:
  --http ADDRESS   a loopback address to listen on
  --notes DIR      where notes.json is kept (default: nize-toolbox in the XDG data directory)
  --version        print the version
  --help           print this
`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "nize-toolbox: "+err.Error())
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("nize-toolbox", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	address := flags.String("http", "", "")
	notes := flags.String("notes", "", "")
	version := flags.Bool("version", false, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		_, err = io.WriteString(out, usage)
		return err
	case err != nil:
		return fmt.Errorf("%w; see --help", err)
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	case *version:
		_, err = fmt.Fprintln(out, "nize-toolbox "+buildVersion())
		return err
	}
	dir := *notes
	if dir == "" {
		var err error
		if dir, err = dataDir(); err != nil {
			return err
		}
	}
	server := newServer(&toolbox{notes: notebook{dir: dir}})
	if *address != "" {
		return serveHTTP(server, *address, out)
	}
	// No signal is caught: what is written is written whole, and a client that
	// wants us gone should not have to wait.
	err := server.Run(context.Background(), &sdk.StdioTransport{})
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, fs.ErrClosed) {
		return nil // the client left, perhaps in the middle of a line
	}
	return err
}

// dataDir follows the XDG base directory specification.
func dataDir() (string, error) {
	base := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("finding a place for notes: %w; give one with --notes", err)
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "nize-toolbox"), nil
}

func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// serveHTTP serves until SIGINT or SIGTERM.
func serveHTTP(server *sdk.Server, address string, out io.Writer) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listening: %w; write 127.0.0.1:PORT", err)
	}
	if !loopback(host) {
		return fmt.Errorf("listening on %q: only loopback addresses are served, such as 127.0.0.1:8080", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	srv := &http.Server{Handler: handler(server), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 32 << 10}
	done := make(chan error, 1) // one result, so that Serve can end after we stopped reading
	go func() { done <- srv.Serve(listener) }()
	if _, err := fmt.Fprintf(out, "listening on http://%s/mcp\n", listener.Addr()); err != nil {
		return errors.Join(err, srv.Close())
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if srv.Shutdown(grace) != nil { // a client may hold its stream for ever
		_ = srv.Close()
	}
	<-done
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// handler serves both wires of MCP: stateless from 2026-07-28 on, with
// sessions before. Requests of web pages of other origins are refused.
func handler(server *sdk.Server) http.Handler {
	get := func(*http.Request) *sdk.Server { return server }
	quiet := slog.New(slog.DiscardHandler)
	modern := sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, Logger: quiet})
	legacy := sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{SessionTimeout: 30 * time.Minute, Logger: quiet})
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header.Get("Origin"); origin != "" {
			if u, err := url.Parse(origin); err != nil || !loopback(u.Hostname()) {
				http.Error(w, "forbidden origin", http.StatusForbidden)
				return
			}
		}
		if r.Header.Get("MCP-Protocol-Version") >= "2026-07-28" {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	})
	return mux
}
