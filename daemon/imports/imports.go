// Package imports registers servers from files of MCP clients.
//
// It does so once, as an operation of the control API, and for the file of --mcp-config as
// long as the daemon runs. Package mcpfile parses the files.
package imports

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/mcpfile"
	"nize/daemon/mux"
	"nize/store"
)

// maxConcurrent bounds how many servers of a file are started at once, since many of them
// install themselves first.
const maxConcurrent = 4

// Importer registers the servers of files.
type Importer struct {
	Servers *control.Servers
	Env     func(name string) string // of the daemon; "" counts as unset
	// Port returns the port of the daemon's own listener, since the daemon must not be
	// registered as its own server.
	Port func() string
	Now  func() time.Time
	Log  *slog.Logger
}

// Mount registers the operations.
func (m *Importer) Mount(on *mux.Mux) {
	mux.HandleStream(on, api.ImportServers, m.Import)
}

// Import registers the servers of an MCP client's file independently of each other, and
// sends the result of each, in the file's order.
func (m *Importer) Import(ctx context.Context, by store.Caller, req api.ImportServersRequest, send func(api.ImportLine) error) error {
	file, err := m.parseFile([]byte(req.Text))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx) // if the client disconnects, the import stops
	defer cancel()
	lines := make([]chan api.ImportLine, len(file.Entries))
	slots := make(chan struct{}, maxConcurrent)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel() // runs before the wait
	for i, e := range file.Entries {
		line := make(chan api.ImportLine, 1) // capacity 1: no goroutine waits for the lines before it
		lines[i] = line
		running.Go(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				line <- m.importEntry(ctx, by, e, entryOptions{force: req.Force, dryRun: req.DryRun})
			case <-ctx.Done():
			}
		})
	}
	for _, line := range lines {
		select {
		case l := <-line:
			if err := send(l); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// parseFile parses a file, which may refer to the daemon's environment.
func (m *Importer) parseFile(text []byte) (mcpfile.File, error) {
	return mcpfile.Read(text, mcpfile.Options{Env: func(name string) (string, bool) {
		v := m.Env(name)
		return v, v != ""
	}})
}

// entryOptions are the options for registering an entry.
type entryOptions struct {
	force, dryRun bool
	origin        store.Origin
}

// importEntry registers one entry of a file.
func (m *Importer) importEntry(ctx context.Context, by store.Caller, e mcpfile.Entry, opt entryOptions) api.ImportLine {
	line := api.ImportLine{Entry: e.Key, Name: e.Name, Project: e.Project, Where: e.Server.Where(), Notes: e.Notes}
	end := func(status, reason string) api.ImportLine {
		line.Status, line.Reason = status, store.RedactText(reason)
		return line
	}
	s := e.Server
	s.Origin = opt.origin
	switch {
	case e.Err != nil && startsNize(s):
		return end(api.ImportInvalid, "it is nize itself, as written by nizectl connect")
	case e.Err != nil:
		return end(api.ImportInvalid, mcpfile.Reason(e.Err))
	}
	if m.isSelf(s.URL) {
		return end(api.ImportInvalid, "it is this nized itself")
	}
	if startsNize(s) {
		line.Notes = append(line.Notes, "it starts nize as a client does: nize would call itself")
	}
	checkErr := control.CheckServer(&s)
	old, err := m.Servers.Store.GetServer(ctx, s.Name)
	switch {
	case err == nil && (sameEndpoint(old, s) || signsIn(old) && sameEndpoint(old, withLogin(s))):
		return end(api.ImportExists, "it is already registered in the same form")
	case err == nil:
		return end(api.ImportExists, "another server has that name: see nizectl servers show "+s.Name)
	case !errors.Is(err, store.ErrNotFound):
		return end(api.ImportInvalid, err.Error())
	case checkErr != nil:
		return end(api.ImportInvalid, checkErr.Error())
	}
	line.Where = s.Where()
	if opt.dryRun {
		line.Sealed = slices.Sorted(maps.Keys(e.Secrets))
		if e.Login != "" {
			line.Notes = append(line.Notes, e.Login)
		}
		return end(api.ImportNew, "")
	}
	made, kept, err := m.sealCredentials(ctx, by, s, e.Secrets)
	for _, name := range kept {
		line.Notes = append(line.Notes, "the credential "+name+" was set before and is kept as it was")
	}
	var view api.ServerView
	if err == nil {
		if s.Origin.File != "" {
			s.Origin.Sealed = made
		}
		view, err = m.Servers.Register(ctx, by, s, opt.force)
	}
	if err != nil {
		m.removeCredentials(context.WithoutCancel(ctx), by, s.Name, made)
		reason := strings.TrimPrefix(err.Error(), "server "+s.Name+" was not added: ")
		return end(importStatus(err), strings.TrimPrefix(reason, "server "+s.Name+": "))
	}
	switch {
	case e.Login != "":
		line.Notes = append(line.Notes, e.Login)
	case signsIn(view.Server):
		line.Notes = append(line.Notes, "it needs a sign-in: nizectl servers login "+s.Name)
	}
	line.Tools, line.Held, line.Sealed, line.Stored = view.ToolCount, view.Held, made, view.Unreachable
	switch {
	case view.Unreachable:
		return end(api.ImportUnreachable, strings.Join(view.Warnings, "; "))
	case s.Disabled:
		return end(api.ImportAdded, "it is disabled in the file, and not contacted")
	}
	return end(api.ImportAdded, "")
}

func importStatus(err error) string {
	switch {
	case errors.Is(err, store.ErrExists):
		return api.ImportExists
	case errors.Is(err, api.ErrUnavailable):
		return api.ImportUnreachable
	}
	return api.ImportInvalid
}

// signsIn reports whether a server is called with logins, which files don't define.
func signsIn(s store.Server) bool {
	return s.Headers["Authorization"].SecretKey == store.LoginName
}

func withLogin(s store.Server) store.Server {
	s.Headers = control.WithLogin(s.Headers)
	return s
}

// startsNize reports whether a command is the one that nizectl connect writes.
func startsNize(s store.Server) bool {
	return filepath.Base(s.Command) == "nizectl" && slices.Contains(s.Args, "mcp")
}

// isSelf reports whether a URL leads to this daemon itself, as in the files of nize's own
// users.
func (m *Importer) isSelf(raw string) bool {
	u, err := url.Parse(raw)
	if raw == "" || err != nil || u.Port() != m.Port() {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// sameEndpoint reports whether two records reach the same server in the same way.
func sameEndpoint(a, b store.Server) bool {
	values := func(x, y map[string]store.Value) bool { return len(x) == 0 && len(y) == 0 || reflect.DeepEqual(x, y) }
	if a.Transport == store.OpenAPI && b.URL == "" && a.URLFromDocument { // both use the document's
		b.URL = a.URL
	}
	return a.Transport == b.Transport && a.Document == b.Document && (a.Transport != store.OpenAPI || len(b.AllowedTools) == 0 || slices.Equal(a.AllowedTools, b.AllowedTools)) && a.Command == b.Command && slices.Equal(a.Args, b.Args) && a.Cwd == b.Cwd && a.URL == b.URL &&
		values(a.Env, b.Env) && values(a.Headers, b.Headers) && (b.Timeout == 0 || a.Timeout == b.Timeout) && (b.MaxConcurrency == 0 || a.MaxConcurrency == b.MaxConcurrency)
}
