package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/daemon/mcpfile"
	"nize/store"
)

// importAtOnce bounds the servers of a file that are contacted at once: many
// of them install themselves first.
const importAtOnce = 4

// importServers registers the servers of an MCP client's file, each on its
// own, and tells what became of each, in the file's order.
func (d *Daemon) importServers(ctx context.Context, by store.Caller, r *http.Request, send func(any) error) error {
	req, err := decode[api.Import](r)
	if err != nil {
		return err
	}
	file, err := mcpfile.Read([]byte(req.Text), d.fileOptions())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx) // who stops listening stops the import
	defer cancel()
	lines := make([]chan api.ImportLine, len(file.Entries))
	places := make(chan struct{}, importAtOnce)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel() // before the wait
	for i, e := range file.Entries {
		line := make(chan api.ImportLine, 1) // nobody waits for who reads them in order
		lines[i] = line
		running.Go(func() {
			select {
			case places <- struct{}{}:
				defer func() { <-places }()
				line <- d.admit(ctx, by, e, admission{force: req.Force, dry: req.DryRun})
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

// fileOptions is what a file may see: the daemon's environment.
func (d *Daemon) fileOptions() mcpfile.Options {
	return mcpfile.Options{Env: func(name string) (string, bool) {
		v := d.opt.Env(name)
		return v, v != ""
	}}
}

// admission is how an entry is taken in.
type admission struct {
	force, dry bool
	origin     store.Origin
}

// admit registers one entry of a file.
func (d *Daemon) admit(ctx context.Context, by store.Caller, e mcpfile.Entry, how admission) api.ImportLine {
	line := api.ImportLine{Entry: e.Key, Name: e.Name, Project: e.Project, Where: e.Server.Where(), Notes: e.Notes}
	end := func(status, reason string) api.ImportLine {
		line.Status, line.Reason = status, store.RedactText(reason)
		return line
	}
	s := e.Server
	s.Origin = how.origin
	if e.Err != nil {
		return end(api.ImportInvalid, mcpfile.Reason(e.Err))
	}
	if d.isSelf(s.URL) {
		return end(api.ImportInvalid, "it is this nized itself")
	}
	checkErr := d.checkServer(&s)
	old, err := d.db.GetServer(ctx, s.Name)
	switch {
	case err == nil && wiredAlike(old, s):
		return end(api.ImportExists, "it is registered already, as the file has it")
	case err == nil:
		return end(api.ImportExists, "another server has that name: see nizectl servers show "+s.Name)
	case !errors.Is(err, store.ErrNotFound):
		return end(api.ImportInvalid, err.Error())
	case checkErr != nil:
		return end(api.ImportInvalid, checkErr.Error())
	}
	line.Where = s.Where()
	if how.dry {
		line.Sealed = slices.Sorted(maps.Keys(e.Secrets))
		return end(api.ImportNew, "")
	}
	made, kept, err := d.sealNew(ctx, by, s, e.Secrets)
	for _, name := range kept {
		line.Notes = append(line.Notes, "the credential "+name+" was set before and is kept as it was")
	}
	var view api.ServerView
	if err == nil {
		if s.Origin.File != "" {
			s.Origin.Sealed = made
		}
		view, err = d.register(ctx, by, s, how.force)
	}
	if err != nil {
		d.unseal(context.WithoutCancel(ctx), by, s.Name, made)
		reason := strings.TrimPrefix(err.Error(), "server "+s.Name+" was not added: ")
		return end(importStatus(err), strings.TrimPrefix(reason, "server "+s.Name+": "))
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

// isSelf says whether a URL leads to this very daemon, as the files of those
// who use nize do.
func (d *Daemon) isSelf(raw string) bool {
	u, err := url.Parse(raw)
	if raw == "" || err != nil || u.Port() != d.port {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// wiredAlike says whether two records lead to one server in the same way.
func wiredAlike(a, b store.Server) bool {
	values := func(x, y map[string]store.Value) bool { return len(x) == 0 && len(y) == 0 || reflect.DeepEqual(x, y) }
	return a.Transport == b.Transport && a.Command == b.Command && slices.Equal(a.Args, b.Args) && a.Cwd == b.Cwd && a.URL == b.URL &&
		values(a.Env, b.Env) && values(a.Headers, b.Headers)
}

// sealNew seals a file's secrets as the server's credentials. One that is
// there already was set by hand, and stays.
func (d *Daemon) sealNew(ctx context.Context, by store.Caller, s store.Server, secrets map[string]store.Secret) (made, kept []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		_, err := d.db.GetCredential(ctx, ownCredential(s.Name, name))
		if err == nil {
			kept = append(kept, name)
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return made, kept, fmt.Errorf("reading credential %s: %w", name, err)
		}
		if err := d.seal(ctx, by, s, name, secrets[name]); err != nil {
			return made, kept, err
		}
		made = append(made, name)
	}
	return made, kept, nil
}

// seal stores one credential of a server, bound to its host if it has one.
func (d *Daemon) seal(ctx context.Context, by store.Caller, s store.Server, name string, secret store.Secret) error {
	c := store.Credential{CredentialKey: ownCredential(s.Name, name), Secret: secret, Updated: d.now()}
	if u, err := url.Parse(s.URL); err == nil {
		c.Host = u.Host
	}
	if err := d.db.PutCredential(ctx, by, c); err != nil {
		return fmt.Errorf("sealing credential %s of %s: %w", name, s.Name, err)
	}
	return nil
}

// unseal removes credentials that this daemon has just made.
func (d *Daemon) unseal(ctx context.Context, by store.Caller, server string, names []string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, name := range names {
		if err := d.db.DeleteCredential(ctx, by, ownCredential(server, name)); err != nil && !errors.Is(err, store.ErrNotFound) {
			d.log.Error("a credential is left over", "server", server, "credential", name, "err", err)
		}
	}
}

func ownCredential(server, name string) store.CredentialKey {
	return store.CredentialKey{Scope: "system", Service: server, Name: name}
}
