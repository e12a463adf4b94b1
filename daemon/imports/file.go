package imports

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/mcpfile"
	"nize/store"
	"nize/store/backoff"
)

// The file of --mcp-config. The daemon keeps its servers in sync with it:
//
//   - A new entry is registered, a changed one updates its server, and a removed
//     one removes it, but only if the server came from this file according to its
//     store.Origin. A server that was registered by hand is left alone.
//   - The file defines how a server is reached and, whenever that value changes in
//     the file, whether it is disabled. It may also define timeout and
//     max_concurrency. Everything else that an admin set (approval, who may use it,
//     a timeout that the file doesn't set) stays.
//   - A file that can't be read, is not JSON or may be written by others changes
//     nothing. An invalid entry doesn't change the server that it defined before.
//   - A problem is logged once, and is a warning in nizectl status as long as it
//     persists.
//
// Anyone who can write the file can run commands as nized. So it must be owned by nized's
// user or root and not be writable by anyone else. A user who can write it is then an admin
// at the control socket anyway, and is treated as one here.
const (
	// The file is polled: two stats per second cost nothing, and work equally on a network
	// file system, a bind mount and a file that editors replace instead of writing, each of
	// which needs a special case with inotify. A change takes effect once two polls have
	// seen the same state, so that a half-written file is not read.
	fileEvery = 500 * time.Millisecond

	fileRetry    = 30 * time.Second // delay before a new entry that was unreachable is retried
	fileRetryMax = 10 * time.Minute // maximum delay between retries
)

// fileCaller is the caller of changes made by the file.
var fileCaller = store.Caller{User: store.System.User, Name: "--mcp-config", Role: store.Admin, Surface: store.OnCLI}

// File keeps the servers of one file in sync.
type File struct {
	Importer *Importer
	Path     string // absolute

	mu       sync.Mutex
	problems []string         // current problems
	failed   []api.ServerView // entries of the file that are not servers
}

// NotAdded returns the entries of the file that did not become servers, as far as they could be
// read; none if the daemon has no such file. The name is the entry's if the server's isn't valid.
func (f *File) NotAdded() []api.ServerView {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.failed)
}

// Warnings returns the warnings for nizectl status; none if the daemon has no such file.
func (f *File) Warnings() []string {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.problems)
}

// setProblems replaces the current problems and logs new ones.
func (f *File) setProblems(now []string) {
	f.mu.Lock()
	before := f.problems
	f.problems = now
	f.mu.Unlock()
	for _, p := range now {
		if !slices.Contains(before, p) {
			f.Importer.Log.Warn("servers file", "problem", p)
		}
	}
	if len(now) == 0 && len(before) > 0 {
		f.Importer.Log.Info("servers file", "problem", "none")
	}
}

// Keep applies the file at the start and after each change, until ctx ends.
func (f *File) Keep(ctx context.Context) error {
	tick := time.NewTicker(fileEvery)
	defer tick.Stop()
	var seen, applied fs.FileInfo
	var data []byte
	var retry time.Time // zero if there is nothing to retry
	pause, tries, first := backoff.Exponential{First: fileRetry, Most: fileRetryMax}, 0, true
	for {
		info, err := os.Stat(f.Path)
		switch {
		case err != nil:
			seen, applied, retry = nil, nil, time.Time{}
			f.setProblems([]string{f.problem(err)})
		case !first && !sameFile(info, seen):
			seen = info // wait for a second poll
		case sameFile(info, applied) && (retry.IsZero() || time.Now().Before(retry)):
		default:
			fresh, err := f.readFile()
			changed := !bytes.Equal(fresh, data)
			seen, applied = info, info
			if err != nil {
				retry, data, applied = time.Time{}, nil, nil // the owner may change without a new modification time
				f.setProblems([]string{f.problem(err)})
				break
			}
			if data = fresh; changed {
				tries = 0
			}
			retry = time.Time{}
			if f.applyFile(ctx, data) {
				tries++
				retry = time.Now().Add(pause.After(tries))
			}
		}
		first = false
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// sameFile reports whether two polls saw the same content.
func sameFile(a, b fs.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}

// problem returns why the file as a whole was not applied.
func (f *File) problem(err error) string {
	why := err.Error()
	var path *fs.PathError
	if errors.As(err, &path) {
		why = path.Err.Error()
	}
	return fmt.Sprintf("%s is ignored: %s", f.Path, strings.TrimPrefix(why, store.ErrInvalid.Error()+" file: "))
}

// readFile reads the file if it is not writable by others.
func (f *File) readFile() ([]byte, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat() // stat the open file, since the name may now refer to another one
	if err != nil {
		return nil, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("others can write it (%04o), and so run commands as nized: chmod go-w it", info.Mode().Perm())
	case ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid():
		return nil, errors.New("it belongs to another user, who could run commands as nized: chown it")
	case info.Size() > mcpfile.MaxSize:
		return nil, fmt.Errorf("it is over %d MiB", mcpfile.MaxSize>>20)
	}
	data := make([]byte, info.Size())
	n, err := file.ReadAt(data, 0)
	if n < len(data) {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	return data, nil
}

// applyFile makes the servers match the file; again is true if one could not be reached and
// should be retried.
func (f *File) applyFile(ctx context.Context, data []byte) (again bool) {
	file, err := f.Importer.parseFile(data)
	if err != nil {
		f.setProblems([]string{f.problem(err)})
		return false
	}
	problems, why := make([]string, len(file.Entries)), make([]string, len(file.Entries)) // each goroutine writes its own element
	retry := make([]bool, len(file.Entries))
	slots := make(chan struct{}, maxConcurrent)
	var running sync.WaitGroup
	for i, e := range file.Entries {
		running.Go(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				if why[i], retry[i] = f.applyEntry(ctx, e); why[i] != "" {
					problems[i] = fmt.Sprintf("%s: %s does not match the file: %s", f.Path, e.Key, why[i])
				}
			case <-ctx.Done():
			}
		})
	}
	running.Wait()
	gone := f.removeVanished(ctx, file)
	if ctx.Err() != nil {
		return false
	}
	f.setFailed(ctx, file.Entries, why)
	problems = append(problems, gone...)
	f.setProblems(slices.DeleteFunc(problems, func(p string) bool { return p == "" }))
	return slices.Contains(retry, true)
}

// setFailed records the entries that did not become servers, and why.
func (f *File) setFailed(ctx context.Context, entries []mcpfile.Entry, why []string) {
	var failed []api.ServerView
	for i, e := range entries {
		if why[i] == "" {
			continue
		}
		if _, err := f.Importer.Servers.Store.GetServer(ctx, e.Name); err == nil { // a server of that name is listed anyway
			continue
		}
		name := cmp.Or(e.Name, e.Key)
		failed = append(failed, api.ServerView{
			Health: api.Health{Name: name, State: api.NotAdded, LastError: why[i]},
			Server: store.Server{Name: name, Origin: store.Origin{File: f.Path}, Transport: e.Server.Transport, Disabled: e.Server.Disabled},
		})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = failed
}

// applyEntry makes one server match its entry, or returns why it doesn't.
func (f *File) applyEntry(ctx context.Context, e mcpfile.Entry) (why string, again bool) {
	old, err := f.Importer.Servers.Store.GetServer(ctx, e.Name)
	switch {
	case err == nil && old.Origin.File == f.Path && e.Err == nil:
		if err := f.changeServer(ctx, old, e); err != nil {
			return err.Error(), false
		}
		return "", false
	case err == nil && old.Origin.File != f.Path:
		return fmt.Sprintf("the server %s was registered by hand: nizectl servers remove %s", e.Name, e.Name), false
	}
	line := f.Importer.importEntry(ctx, fileCaller, e, entryOptions{origin: store.Origin{File: f.Path, Disabled: e.Server.Disabled}})
	if line.Status == api.ImportAdded {
		f.Importer.Log.Info("server added from file", "server", e.Name, "tools", line.Tools)
		return "", false
	}
	return strings.TrimSuffix(line.Reason, "; add it all the same with --force"), line.Status == api.ImportUnreachable
}

// changeServer updates a server of the file. It keeps what an admin set beyond what the
// file defines.
func (f *File) changeServer(ctx context.Context, old store.Server, e mcpfile.Entry) error {
	next, file := old, e.Server
	if err := control.CheckServer(&file); err != nil {
		return err
	}
	next.Transport, next.Command, next.Args, next.Cwd, next.URL = file.Transport, file.Command, file.Args, file.Cwd, file.URL
	next.Env, next.Headers = file.Env, file.Headers
	if e.Server.Timeout > 0 {
		next.Timeout = e.Server.Timeout
	}
	if e.Server.MaxConcurrency > 0 {
		next.MaxConcurrency = e.Server.MaxConcurrency
	}
	if next.Document, next.URLFromDocument = file.Document, false; file.Transport == store.OpenAPI {
		if len(file.AllowedTools) > 0 { // otherwise an admin's choice stays
			next.AllowedTools = file.AllowedTools
		}
		if file.URL == "" && old.URLFromDocument && old.Document == file.Document {
			next.URL, next.URLFromDocument = old.URL, true
		}
		if err := f.Importer.Servers.FindURL(ctx, &next); err != nil {
			return err
		}
	}
	if old.URL == file.URL && signsIn(old) {
		next.Headers = control.WithLogin(next.Headers) // the server uses logins, which files don't define
	}
	if file.Disabled != old.Origin.Disabled {
		next.Disabled = file.Disabled
	}
	next.Origin = store.Origin{File: f.Path, Disabled: file.Disabled}
	renewed, err := f.updateCredentials(ctx, old, &next, e.Secrets)
	if err != nil {
		return err
	}
	if sameEndpoint(old, next) && old.Disabled == next.Disabled && old.Origin.Disabled == next.Origin.Disabled && slices.Equal(old.Origin.Sealed, next.Origin.Sealed) {
		if renewed && !next.Disabled {
			return f.Importer.Servers.Pool.Restart(ctx, next.Name)
		}
		return nil
	}
	syncErr, err := f.Importer.Servers.Replace(ctx, fileCaller, next, old.Revision)
	if err != nil {
		return err
	}
	f.Importer.Log.Info("server changed from file", "server", next.Name)
	if syncErr != nil {
		return fmt.Errorf("it is changed, but could not be listed: %w", syncErr)
	}
	return nil
}

// updateCredentials seals the file's new and changed secrets, and removes those that are no
// longer in it. A credential that was set by hand stays.
func (f *File) updateCredentials(ctx context.Context, old store.Server, next *store.Server, secrets map[string]store.Secret) (changed bool, err error) {
	host := ""
	if u, err := url.Parse(next.URL); err == nil {
		host = u.Host
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		have, err := f.Importer.Servers.Store.GetCredential(ctx, credentialKey(next.Name, name))
		ours := slices.Contains(old.Origin.Sealed, name)
		switch {
		case err == nil && !ours:
			continue
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return changed, fmt.Errorf("reading credential %s: %w", name, err)
		}
		next.Origin.Sealed = append(next.Origin.Sealed, name)
		if err == nil && have.Secret.Reveal() == secrets[name].Reveal() && have.Host == host {
			continue
		}
		if err := f.Importer.sealCredential(ctx, fileCaller, *next, name, secrets[name]); err != nil {
			return changed, err
		}
		changed = true
	}
	var gone []string
	for _, name := range old.Origin.Sealed {
		if _, ok := secrets[name]; !ok {
			gone = append(gone, name)
		}
	}
	f.Importer.removeCredentials(ctx, fileCaller, next.Name, gone)
	return changed || len(gone) > 0, nil
}

// removeVanished removes the servers that came from the file and are no longer in it, with
// the credentials that came from it.
func (f *File) removeVanished(ctx context.Context, file mcpfile.File) (problems []string) {
	servers, err := f.Importer.Servers.Store.ListServers(ctx)
	if err != nil {
		return []string{fmt.Sprintf("%s: listing servers: %v", f.Path, err)}
	}
	for _, s := range servers {
		if s.Origin.File != f.Path || slices.ContainsFunc(file.Entries, func(e mcpfile.Entry) bool { return e.Name == s.Name }) {
			continue
		}
		if _, err := f.Importer.Servers.Remove(ctx, fileCaller, api.ServerRequest{Name: s.Name}); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s was removed from it, but %v", f.Path, s.Name, err))
			continue
		}
		f.Importer.removeCredentials(ctx, fileCaller, s.Name, s.Origin.Sealed)
		f.Importer.Log.Info("server removed because it was removed from the file", "server", s.Name)
	}
	return problems
}
