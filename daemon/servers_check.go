package daemon

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"nize/store"
)

// What a server's record must be before it is stored.

// checkServer refuses what cannot work and resolves the command.
func (d *Daemon) checkServer(s *store.Server) error {
	if err := store.CheckSlug(s.Name); err != nil {
		return err
	}
	switch s.Transport {
	case "":
		s.Transport = store.Stdio
		if s.URL != "" {
			s.Transport = store.HTTP
		}
	case store.Stdio, store.HTTP, store.SSE:
	default:
		return fmt.Errorf("%w transport %q: use stdio, http or sse", store.ErrInvalid, s.Transport)
	}
	switch s.Approval {
	case "", store.ApproveAuto, store.ApproveAlways, store.ApproveNever:
	default:
		return fmt.Errorf("%w approval %q: use auto, always or never", store.ErrInvalid, s.Approval)
	}
	var err error
	if s.Auth, err = store.ParseAuth(string(s.Auth)); err != nil {
		return err
	}
	if s.Timeout < 0 || time.Duration(s.Timeout) > time.Hour {
		return fmt.Errorf("%w timeout %s: use up to 1h", store.ErrInvalid, s.Timeout)
	}
	if s.MaxConcurrency < 0 || s.MaxConcurrency > 1000 {
		return fmt.Errorf("%w max_concurrency %d: use 1 to 1000", store.ErrInvalid, s.MaxConcurrency)
	}
	if s.IdleTimeout < 0 || s.IdleTimeout > 0 && time.Duration(s.IdleTimeout) < time.Second {
		return fmt.Errorf("%w idle_timeout %s: use 1s or more", store.ErrInvalid, s.IdleTimeout)
	}
	if s.MemoryLimit != 0 && (s.MemoryLimit < 16<<20 || s.Transport != store.Stdio) {
		return fmt.Errorf("%w memory_limit %s: use 16MiB or more, for a stdio server", store.ErrInvalid, s.MemoryLimit)
	}
	if s.Transport == store.Stdio {
		return d.checkCommand(s)
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fmt.Errorf("%w URL %q: use http:// or https:// with a host and no user name", store.ErrInvalid, s.URL)
	}
	if s.Command != "" || len(s.Args) > 0 {
		return fmt.Errorf("%w server: give a URL or a command, not both", store.ErrInvalid)
	}
	return nil
}

// checkCommand resolves the command once, at registration: what was shown is
// what will be spawned, whatever PATH says later. A program that stands beside
// nized is found too.
func (d *Daemon) checkCommand(s *store.Server) error {
	if s.URL != "" {
		return fmt.Errorf("%w server: a stdio server has no URL", store.ErrInvalid)
	}
	if s.Command == "" {
		return fmt.Errorf("%w server: give a command after --, or --url", store.ErrInvalid)
	}
	path, err := exec.LookPath(s.Command)
	if err != nil {
		own, ownErr := os.Executable()
		beside := filepath.Join(filepath.Dir(own), s.Command)
		if fi, statErr := os.Stat(beside); ownErr == nil && statErr == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 && !strings.Contains(s.Command, "/") {
			path, err = beside, nil
		}
	}
	if err != nil {
		return fmt.Errorf("%w command %q: it is not in the daemon's PATH; give its absolute path", store.ErrInvalid, s.Command)
	}
	if path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("resolving %s: %w", s.Command, err)
	}
	s.Command = path
	if s.Cwd != "" {
		if fi, err := os.Stat(s.Cwd); err != nil || !fi.IsDir() || !filepath.IsAbs(s.Cwd) {
			return fmt.Errorf("%w working directory %q: it must be an absolute path of a directory", store.ErrInvalid, s.Cwd)
		}
	}
	return nil
}

// bindCredentials ties the credentials of a server that were set before it
// existed to its host: they are sent nowhere else.
func (d *Daemon) bindCredentials(ctx context.Context, by store.Caller, s store.Server) error {
	u, err := url.Parse(s.URL)
	if s.URL == "" || err != nil {
		return nil
	}
	all, err := d.db.ListCredentials(ctx)
	if err != nil {
		return fmt.Errorf("listing credentials: %w", err)
	}
	for _, c := range all {
		if c.Service != s.Name || c.Host != "" {
			continue
		}
		whole, err := d.db.GetCredential(ctx, c.CredentialKey)
		if err != nil {
			return fmt.Errorf("reading credential %s: %w", c.Name, err)
		}
		whole.Host = u.Host
		if err := d.db.PutCredential(ctx, by, whole); err != nil {
			return fmt.Errorf("binding credential %s to %s: %w", c.Name, u.Host, err)
		}
	}
	return nil
}
