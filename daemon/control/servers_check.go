package control

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"nize/store"
)

// CheckServer refuses a record that cannot work and resolves its command.
func CheckServer(s *store.Server) error {
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
	if s.StartTimeout != 0 && (time.Duration(s.StartTimeout) < time.Second || time.Duration(s.StartTimeout) > time.Hour) {
		return fmt.Errorf("%w start_timeout %s: use 1s to 1h", store.ErrInvalid, s.StartTimeout)
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
		return checkCommand(s)
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fmt.Errorf("%w URL %q: use http:// or https:// with a host and no user name", store.ErrInvalid, s.URL)
	}
	if _, set := s.Headers["Authorization"]; s.Auth.Login() && !set {
		s.Headers = WithLogin(s.Headers)
	}
	if s.Command != "" || len(s.Args) > 0 {
		return fmt.Errorf("%w server: give a URL or a command, not both", store.ErrInvalid)
	}
	return nil
}

// checkCommand resolves the command once, at registration: what was shown is
// what will be spawned, whatever PATH says later. A program that stands beside
// nized is found too.
func checkCommand(s *store.Server) error {
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

// hostOf is the host that a server's credentials are sent to, "" for none.
func hostOf(s store.Server) string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return u.Host
}
