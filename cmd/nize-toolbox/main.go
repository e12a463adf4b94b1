// Command nize-toolbox is an example MCP server: clocks, calculator, notes, a picture, a
// task with progress.
//
// It is used in the first run of nize, its demo and its tests, and is meant to be read and
// copied.
//
// It shows what a gateway needs: each parameter is described, each result is returned as
// text and as structured content with a schema, the annotations are true, and an error says
// what to do instead. The SDK generates the schemas from structs and checks the arguments
// (server.go); each other file has the tools of one field.
//
// It uses stdio, or Streamable HTTP on loopback with --http. It has no network access, no
// configuration, and one file: the notebook.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const usage = `nize-toolbox is an MCP server of everyday tools: time zones, a calculator,
units, notes, a picture and a countdown.

Usage: nize-toolbox [--http 127.0.0.1:PORT] [--notes DIR] [--version]
It serves stdio until it ends, or Streamable HTTP at /mcp on a loopback address
(PORT 0 picks one). DIR keeps notes.json (default: nize-toolbox in the XDG data
directory).
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
	showVersion := flags.Bool("version", false, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		_, err = io.WriteString(out, usage)
		return err
	case err != nil || flags.NArg() > 0:
		return fmt.Errorf("wrong flag or argument %q; see --help", args)
	case *showVersion:
		_, err = fmt.Fprintln(out, "nize-toolbox "+version())
		return err
	}
	if *notes == "" {
		*notes = filepath.Join(cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(os.Getenv("HOME"), ".local", "share")), "nize-toolbox")
	}
	server := newServer(&toolbox{now: time.Now, roll: rand.IntN, notes: notebook{dir: *notes}})
	if *address != "" {
		return serveHTTP(server, *address, out)
	}
	// No signal is caught: files are replaced atomically, so this process can be killed.
	err := server.Run(context.Background(), &sdk.StdioTransport{})
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, fs.ErrClosed) {
		return nil // the client left, perhaps in the middle of a line
	}
	return err
}

// serveHTTP serves MCP without sessions, and refuses requests from web pages of other
// origins.
func serveHTTP(server *sdk.Server, address string, out io.Writer) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listening on %q: only loopback addresses are served, such as 127.0.0.1:8080", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	mcp := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, Logger: slog.New(slog.DiscardHandler)})
	fmt.Fprintf(out, "listening on http://%s/mcp\n", listener.Addr())
	return (&http.Server{Handler: http.NewCrossOriginProtection().Handler(mcp), ReadHeaderTimeout: 5 * time.Second}).Serve(listener)
}
